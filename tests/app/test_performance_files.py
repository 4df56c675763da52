"""`policygen verify-performance --before --after`: results of NVBench, without a GPU or a tree."""

import json
import shutil
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policygen.app.filters import Filter
from policygen.app.performance import compare_performance
from policygen.cli.main import main
from policygen.errors import InputError, PolicygenError
from policygen.gpu.nvbench_files import NO_NOISE, ONE_PROCESS
from policygen.model.verdicts import VerifyPerformance
from policygen.results.cases import importance
from tests.report.performances import told
from tests.results.measured import MEASURED
from tests.results.test_nvbench import GPU, document, fill, state, summary, write
from tests.tiers import sampled

REAL = MEASURED / "A_reduce_sum/nvbench"
REDUCE = "cub.bench.reduce.sum"
H100 = GPU | {"sm_version": 900}


def timed(elements="16", seconds=0.25):
    told = state(elements)
    return told | {"summaries": [summary("nv/cold/time/gpu/mean", value=str(seconds))]}


def result(folder, name, times, *, program="./bin/cub.bench.toy.base", gpu=H100, **changes):
    """A file of a process; by Elements what it took, or a reason to skip it."""
    states = [
        timed(elements, seconds)
        if isinstance(seconds, float)
        else state(elements, skipped=True) | {"skip_reason": seconds}
        for elements, seconds in times.items()
    ]
    return str(write(folder, document(program, states, devices=[gpu], **changes), f"{name}.json"))


def sides(folder, ratio=1.0, count=4, noise=0.002, seed=1, **changes):
    """Files of as many processes a side."""
    random = Random(seed)

    def side(name, scale):
        return [
            result(
                folder,
                f"{name}-{number}",
                {
                    "16": 1e-5 * scale * random.gauss(1, noise),
                    "32": 2e-5 * scale * random.gauss(1, noise),
                },
                **changes,
            )
            for number in range(count)
        ]

    return side("before", 1.0), side("after", 1 / ratio)


def arguments(before, after):
    named = [part for path in before for part in ("--before", path)]
    return [*named, *(part for path in after for part in ("--after", path))]


@pytest.mark.parametrize(
    ("ratio", "verdict", "status"), [(1.2, "faster", 0), (0.8, "slower", 1), (1.0, "equal", 0)]
)
def test_results_of_several_processes_are_compared(tmp_path, capsys, ratio, verdict, status):
    before, after = sides(tmp_path, ratio)
    assert main(["verify-performance", *arguments(before, after), "--json"]) == status
    found = told(capsys)
    (workload,) = found.workloads
    assert workload.verdict == found.verdict == verdict
    assert (workload.benchmark, workload.workload, workload.arch) == (
        "cub.bench.toy",
        {"T": "I8"},
        "sm90",
    )
    assert workload.low < workload.ratio < workload.high
    assert workload.ratio == pytest.approx(ratio, rel=0.01)
    assert [row.point for row in workload.runtime] == [
        {"Elements{io}[pow2]": "4", "Share": "0.50"},
        {"Elements{io}[pow2]": "5", "Share": "0.50"},
    ]
    assert {row.processes for row in workload.runtime} == {4}
    # As CCCL weighs them, by the order of their sizes.
    assert workload.runtime[0].weight / workload.runtime[1].weight == pytest.approx(
        importance(0, 2) / importance(1, 2)
    )
    assert workload.ratio == pytest.approx(sum(r.weight * r.ratio for r in workload.runtime))
    row = workload.runtime[0]
    assert row.before_seconds / row.after_seconds == pytest.approx(row.ratio)
    assert (found.cub, found.arch, found.gpu) == (None, "sm90", "Pretend (5120, 80, eccon)")
    assert found.noise.median == pytest.approx(0.003, abs=0.002)
    assert "not measured side by side" in found.remarks[0]
    assert found.seconds == 0  # of measuring


def test_a_glob_names_the_processes_of_a_side(tmp_path):
    expected = compare_performance(*sides(tmp_path, 1.2))
    found = compare_performance([f"{tmp_path}/before-*.json"], [f"{tmp_path}/after-*.json"])
    assert found == expected
    with pytest.raises(InputError, match="no file matches"):
        compare_performance([f"{tmp_path}/nothing-*.json"], [f"{tmp_path}/after-*.json"])


def test_a_table_shows_both_sides(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    before, after = ([Path(one).name for one in side] for side in sides(tmp_path, 0.8))
    assert main(["verify-performance", *arguments(before, after)]) == 1
    out = capsys.readouterr().out
    assert "after: after-0.json, after-1.json" in out
    assert "Pretend (5120, 80, eccon)\n" in out
    assert "slower   cub.bench.toy T=I8" in out
    assert "a side compared with itself varies by" in out
    assert max(map(len, out.splitlines())) <= 80


def test_one_file_a_side_decides_nothing(tmp_path, capsys):
    """Samples that are far apart within a process tell nothing of the next one."""
    before, after = sides(tmp_path, 3.0, count=1)
    assert main(["verify-performance", *arguments(before, after)]) == 1
    out = capsys.readouterr().out
    assert "undecided" in out
    assert "not known" in out
    assert "at least two results per side" in " ".join(out.split())
    found = compare_performance(before, after)
    (workload,) = found.workloads
    assert (workload.verdict, workload.low, found.noise) == ("undecided", None, None)
    assert workload.ratio == pytest.approx(3.0, rel=0.01)
    assert found.remarks[0] == ONE_PROCESS


def test_a_side_of_one_file_decides_nothing_either(tmp_path):
    before, after = sides(tmp_path, 3.0)
    found = compare_performance(before, after[:1])
    assert found.verdict == "undecided"
    assert {row.processes for row in found.workloads[0].runtime} == {1}


def test_times_without_any_noise_decide_nothing(tmp_path):
    before = [result(tmp_path, f"b{n}", {"16": 1.0}, extra=n) for n in range(3)]
    after = [result(tmp_path, f"a{n}", {"16": 2.0}, extra=n) for n in range(3)]
    found = compare_performance(before, after)
    assert (found.verdict, found.remarks[0]) == ("undecided", NO_NOISE)


def test_medians_of_samples_are_what_a_process_took(tmp_path):
    """Not their means; and no closer than the clock's step."""

    def one(name, number, seconds):
        folder = tmp_path / f"{name}{number}"
        states = [state("16", samples=5)]
        path = write(folder, document(states=states, devices=[H100], extra=folder.name))
        fill(folder, "16", [seconds - 0.01, seconds, seconds, seconds + 0.01, 100.0 * (number + 1)])
        return str(path)

    before = [one("before", number, 1.0) for number in range(3)]
    after = [one("after", number, 1.005) for number in range(3)]
    found = compare_performance(before, after)
    (row,) = found.workloads[0].runtime
    assert row.before_seconds == pytest.approx(1.0)
    assert row.noise == pytest.approx(0.01 / 0.99 * (2 / 12) ** 0.5, rel=0.02)
    assert row.verdict == "equal"
    assert row.high - 1 > 0.01


def test_real_results_have_the_scores_that_a_database_has(tmp_path):
    def side(name):
        return [
            str(REAL / f"{REDUCE}-T={t}_OffsetT=I32-{name}/result.json") for t in ("I32", "F32")
        ]

    found = compare_performance(side("base"), side("variant"))
    assert [(one.workload["T"], round(one.ratio, 3)) for one in found.workloads] == [
        ("I32", 1.012),
        ("F32", 1.015),
    ]
    assert found.verdict == "undecided"
    assert found.gpu == "H200 (6016, 132, eccon)"


@pytest.mark.parametrize("axes", ["Elements=4", "Elements{io}[pow2]=4", "T=I8"])
def test_axes_choose_what_is_compared(tmp_path, axes):
    before, after = sides(tmp_path)
    found = compare_performance(before, after, Filter((), "cub.bench.toy", (axes,), ()))
    assert len(found.workloads[0].runtime) == (2 if axes == "T=I8" else 1)


@pytest.mark.parametrize("where", [Filter((), "cub.other"), Filter((), "", ("T=I64",))])
def test_what_matches_nothing_is_bad_input(tmp_path, where):
    before, after = sides(tmp_path)
    with pytest.raises(InputError, match="nothing matches"):
        compare_performance(before, after, where)


def test_what_one_side_alone_has_is_told(tmp_path, capsys):
    before = [result(tmp_path, f"b{n}", {"16": 1.0 + n / 100, "32": 2.0}) for n in range(3)]
    after = [result(tmp_path, f"a{n}", {"16": 1.0 - n / 100}) for n in range(3)]
    assert main(["verify-performance", *arguments(before, after)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "not compared: not on both sides: Elements=5 Share=0.50 (after: there is no result)" in out
    )
    (workload,) = compare_performance(before, after).workloads
    assert workload.verdict == "undecided"
    assert [row.verdict for row in workload.runtime] == ["equal"]
    # What is left may be asked for.
    assert compare_performance(before, after, Filter((), "", ("Elements=4",))).passes


def test_what_is_slower_stays_slower_where_something_is_missing(tmp_path):
    before = [result(tmp_path, f"b{n}", {"16": 1.0 + n / 1000, "32": 2.0}) for n in range(4)]
    after = [result(tmp_path, f"a{n}", {"16": 2.0 + n / 1000}) for n in range(4)]
    (workload,) = compare_performance(before, after).workloads
    assert (workload.verdict, workload.runtime[0].verdict) == ("slower", "slower")
    assert workload.problem


def test_a_workload_of_one_side_is_told(tmp_path):
    before = [result(tmp_path, f"b{n}", {"16": 1.0 + n}) for n in range(2)]
    after = [result(tmp_path, f"a{n}", {"16": 1.0 + n}, program="other") for n in range(2)]
    found = compare_performance(before, after)
    assert [(one.benchmark, one.verdict, one.ratio) for one in found.workloads] == [
        ("cub.bench.toy", "undecided", None),
        ("other", "undecided", None),
    ]
    assert not found.passes


def test_skipped_states_are_told_with_their_reason(tmp_path, capsys):
    before = [result(tmp_path, f"b{n}", {"16": 1.0 + n / 99, "32": "too big"}) for n in range(3)]
    after = [result(tmp_path, f"a{n}", {"16": 1.1 - n / 99, "32": "too big"}) for n in range(3)]
    found = compare_performance(before, after)
    (workload,) = found.workloads
    (skipped,) = workload.skipped
    assert skipped.reason == "before: too big; after: too big"
    assert skipped.point["Elements{io}[pow2]"] == "5"
    assert workload.problem is None
    main(["verify-performance", *arguments(before, after)])
    assert "1 runtime workload skipped: before: too big" in " ".join(
        capsys.readouterr().out.split()
    )


def test_where_all_is_skipped_nothing_is_known(tmp_path):
    before, after = (result(tmp_path, name, {"16": f"no {name}"}) for name in "ba")
    (workload,) = compare_performance([before], [after]).workloads
    assert workload.problem == "each of its runtime workloads is skipped"


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 1e300])
def test_what_is_no_time_is_no_time(tmp_path, seconds):
    before = [result(tmp_path, f"b{n}", {"16": seconds}, extra=n) for n in range(2)]
    after = [result(tmp_path, f"a{n}", {"16": 1.0 + n}) for n in range(2)]
    (workload,) = compare_performance(before, after).workloads
    assert "before: NVBench reports no time" in workload.problem
    (workload,) = compare_performance(before[:1], before[1:]).workloads
    assert "NVBench reports no time" in workload.problem


def test_other_axes_are_told(tmp_path):
    before = [result(tmp_path, f"b{n}", {"16": 1.0 + n}) for n in range(2)]
    after = []
    for number in range(2):
        content = json.loads((tmp_path / f"b{number}.json").read_text())
        (bench,) = content["benchmarks"]
        bench["axes"] = bench["axes"][:2]
        bench["states"][0]["axis_values"] = bench["states"][0]["axis_values"][:2]
        after.append(str(write(tmp_path, content, f"a{number}.json")))
    (workload,) = compare_performance(before, after).workloads
    assert workload.problem.startswith("base has the axes T{ct}, Elements{io}[pow2], Share in")
    assert workload.verdict == "undecided"


@pytest.mark.parametrize(
    "change", [{"name": "NVIDIA Other"}, {"number_of_sms": 79}, {"sm_version": 800}]
)
def test_other_gpus_are_refused(tmp_path, change, capsys):
    before = result(tmp_path, "b", {"16": 1.0})
    after = result(tmp_path, "a", {"16": 1.0}, gpu=H100 | change)
    assert main(["verify-performance", "--before", before, "--after", after]) == 2
    assert "Times of different GPUs" in capsys.readouterr().err


def test_a_gpu_without_a_compute_capability_may_be_known_by_its_name(tmp_path):
    known = GPU | {"name": "NVIDIA H200"}
    before, after = (result(tmp_path, name, {"16": 1.0 + ord(name)}, gpu=known) for name in "ba")
    assert compare_performance([before], [after]).arch == "sm90"
    before, after = (result(tmp_path, name, {"16": 1.0 + ord(name)}, gpu=GPU) for name in "ba")
    with pytest.raises(InputError, match="does not state the compute capability of Pretend"):
        compare_performance([before], [after])


def test_a_result_counts_once(tmp_path):
    path = result(tmp_path, "b", {"16": 1.0})
    copy = shutil.copy(path, tmp_path / "copy.json")
    for before, after in [((path, path), (path,)), ((path,), (str(copy),))]:
        with pytest.raises(PolicygenError, match="is the same result as"):
            compare_performance(before, after)


def test_a_state_is_in_a_result_once(tmp_path):
    before = result(tmp_path, "b", {"16": 1.0})
    content = json.loads((tmp_path / "b.json").read_text())
    content["benchmarks"][0]["states"] *= 2
    after = str(write(tmp_path, content, "a.json"))
    with pytest.raises(InputError, match=r"a\.json: base T\{ct\}=I8 .* appears twice"):
        compare_performance([before], [after])


def test_all_files_that_cannot_be_read_are_named(tmp_path, capsys):
    good = result(tmp_path, "good", {"16": 1.0})
    cut = tmp_path / "cut.json"
    cut.write_text((tmp_path / "good.json").read_text()[:400])
    other = tmp_path / "other.json"
    other.write_text("[]")
    status = main(
        ["verify-performance", *arguments([good, str(cut)], [str(other), str(tmp_path / "none")])]
    )
    assert status == 2
    error = capsys.readouterr().err
    assert "cut.json: not JSON" in error
    assert "other.json: not NVBench's JSON" in error
    assert "/none: No such file or directory" in error


def test_what_strangers_write_does_not_reach_the_terminal(tmp_path, capsys):
    evil = "too big\x1b[2J\u202e"
    before = [result(tmp_path, f"b{n}", {"16": 1.0 + n, "32": evil}) for n in range(2)]
    after = [result(tmp_path, f"a{n}", {"16": 1.0 + n, "32": evil}) for n in range(2)]
    main(["verify-performance", *arguments(before, [f"{a}" for a in after][:1])])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out


@pytest.mark.parametrize(
    "more",
    [
        ("--cub", "3.6.0"),
        ("--base", "main"),
        ("--db", "run.db"),
        ("--gpu", "0"),
        ("--nvbench", "out"),
        ("--all",),
        ("--budget", "10m"),
        ("-j", "2"),
    ],
)
def test_what_is_for_measuring_is_refused_with_results(tmp_path, capsys, more):
    before, after = sides(tmp_path, count=1)
    assert main(["verify-performance", *arguments(before, after), *more]) == 2
    name = {"-j": "--jobs"}.get(more[0], more[0])
    assert f"{name} is for measuring" in capsys.readouterr().err


@pytest.mark.parametrize("side", ["--before", "--after"])
def test_one_side_alone_is_refused(tmp_path, capsys, side):
    assert main(["verify-performance", side, result(tmp_path, "b", {"16": 1.0})]) == 2
    assert "belong together" in capsys.readouterr().err


@pytest.mark.parametrize(("percent", "status"), [("30", 0), ("10", 1)])
def test_as_much_slower_as_is_allowed(tmp_path, percent, status):
    before, after = sides(tmp_path, 0.8)
    given = [*arguments(before, after), "--tolerance", percent]
    assert main(["verify-performance", *given]) == status


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(value, path=()):
    """Each place of a document."""
    yield path
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in parts:
            yield from places(part, (*path, key))


WHOLE = document(states=[timed("16", 1.0), state("32", skipped=True)], devices=[H100])
PLACES = [path for path in places(WHOLE) if path]


@pytest.mark.parametrize("share", sampled(range(4), 0))
@settings(
    max_examples=38, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=st.sampled_from(PLACES), value=JSON, cut=st.integers(0, 3000))
def test_any_file_is_compared_or_refused(tmp_path, share, place, value, cut):
    """A value is replaced by any other, or the file ends early."""
    content = json.loads(json.dumps(WHOLE))
    inner = content
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    broken, good = tmp_path / "broken.json", result(tmp_path, "good", {"16": 1.5, "32": 2.5})
    text = json.dumps(content)
    broken.write_text(text[:cut] if cut < len(text) // 2 else text)
    for sides_ in (([str(broken)], [good]), ([good], [str(broken)])):
        with suppress(PolicygenError):
            found = compare_performance(*sides_)
            assert found.verdict == "undecided"
            assert VerifyPerformance.model_validate_json(found.to_json())


@pytest.mark.parametrize("share", sampled(range(4), 0))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.lists(st.floats(width=32), min_size=1, max_size=6))
def test_any_samples_are_compared_or_refused(tmp_path, share, data):
    paths = []
    for number in range(4):
        folder = tmp_path / str(number)
        content = document(states=[state("16", samples=len(data))], devices=[H100], extra=number)
        paths.append(str(write(folder, content)))
        fill(folder, "16", data)
    found = compare_performance(paths[:2], paths[2:])
    assert found.verdict in {"equal", "undecided"}
    assert np.isfinite(found.workloads[0].ratio or 0.0)
    assert VerifyPerformance.model_validate_json(found.to_json())
