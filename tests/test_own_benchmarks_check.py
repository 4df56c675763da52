"""`make own-benchmarks-check`: what it writes and compares, without a GPU."""

from types import SimpleNamespace

import pytest

from benchmarks import own_benchmarks
from benchmarks.own_benchmarks import CASES, FOLDER, SIZES, apart, main, measured
from policygen.app.benchmarks import read_tunables
from policygen.gpu.checkout import BuiltPrograms
from tests.own.checkouts import make_benchmarks, place_in

EQUAL = [1.0, 1.01, 0.99, 1.0]
SLOW = [1.2, 1.21, 1.19, 1.2]


def test_what_differs_is_told(capsys):
    cub = {"base": {"16": EQUAL}, "ipt_1": {"16": EQUAL, "20": [1.0]}}
    own = {"base": {"16": EQUAL[::-1]}, "ipt_1": {"16": SLOW, "20": [1.0]}}
    slower, unknown = apart("cub.bench.mine", cub, own)
    assert slower.startswith("cub.bench.mine ipt_1 2^16: 0.83")
    assert slower.endswith(", slower")
    assert unknown == "cub.bench.mine ipt_1 2^20: too few processes tell no noise"
    assert "base 2^16: 1.0000" in capsys.readouterr().out


@pytest.mark.trees
@pytest.mark.parametrize(("times", "status"), [(EQUAL, 0), (SLOW, 1)])
def test_benchmarks_are_written_and_gone_afterwards(monkeypatch, capsys, tmp_path, times, status):
    checkout = make_benchmarks(tmp_path)
    place = place_in(checkout, FOLDER)
    seen = []

    def pretended(names, _opened, types, label, runs):
        document, errors = read_tunables(sorted(place.glob("*.cu"))[-1:])
        (one,) = document.benchmarks
        seen.append((names, one.name, next(iter(one.rt_axes.values())), runs))
        assert not errors
        assert [each.label for each in one.parameters] == [
            p.split("_")[0] for p in label.split(".")
        ]
        assert list(one.ct_axes.values()) == [(value,) for value in types.values()]
        return [{"base": {"16": EQUAL}}, {"base": {"16": times}}]

    monkeypatch.setattr(own_benchmarks, "open_checkout", lambda _root, pattern: pattern)
    monkeypatch.setattr(own_benchmarks, "measured", pretended)
    assert main(str(checkout), "4") == status
    assert not place.exists()
    assert [(names[0], sizes, runs) for names, _, sizes, runs in seen] == [
        (like, SIZES, 4) for like, *_ in CASES
    ]
    assert all(names[1] == name for names, name, *_ in seen)
    assert f"{3 * status} differences" in capsys.readouterr().out


def test_programs_run_in_turn_and_backwards(monkeypatch):
    ran = []

    class Opened:
        benchmark = SimpleNamespace(
            name="cub.bench.mine", subbenches=(), ct_axes={"T{ct}": ("I8",)}
        )

    def run_program(program, _arguments, _uuid):
        ran.append(program)
        state = SimpleNamespace(point={"Elements{io}[pow2]": "16"}, center=float(len(ran)))
        skipped = SimpleNamespace(point={"Elements{io}[pow2]": "20"}, center=float("nan"))
        benches = [SimpleNamespace(states=[state, skipped])]
        return SimpleNamespace(benches=benches)

    names = iter(("cub", "own"))

    def build_programs(_compiler, _one, _workload, labels):
        name = next(names)
        return BuiltPrograms({kind: f"{name} {kind}" for kind in ("base", *labels)}, {})

    gpu = SimpleNamespace(arch="sm90", uuid="GPU-of-a-test-of-own-benchmarks")
    for name, value in {
        "find_gpu": lambda: gpu,
        "find_toolchain": lambda: None,
        "find_library": lambda _: None,
        "build_programs": build_programs,
        "run_program": run_program,
    }.items():
        monkeypatch.setattr(own_benchmarks, name, value)
    opened = SimpleNamespace(benchmarks={"a": Opened(), "b": Opened()})
    found = measured(["a", "b"], opened, {"T": "I8"}, "ipt_1", 2)
    order = ["cub base", "cub ipt_1", "own base", "own ipt_1"]
    assert ran == [*order, *order[::-1]]
    assert found[0] == {"base": {"16": [1.0, 8.0]}, "ipt_1": {"16": [2.0, 7.0]}}
