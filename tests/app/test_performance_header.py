"""`policygen verify-performance --header`: CUB with a header's selectors, beside CUB by itself."""

import pytest

from fixtures.databases.every import GPUS, benchmark_database
from policygen.app import performance
from policygen.app.performance import read_emitted
from policygen.cli.main import main
from policygen.errors import InputError
from policygen.gpu.changes import AFTER
from policygen.model.verdicts import VerifyPerformance
from tests.app.searched import driver_program, own_locks
from tests.gpu.simulated import Plan
from tests.real_trees import tree

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

REDUCE = "cub.bench.reduce.sum"
LABEL = "ipt_20.tpb_512.ipv_2"


@pytest.fixture(scope="module")
def header(tmp_path_factory):
    """One workload is tuned."""
    folder = tmp_path_factory.mktemp("emitted")
    data, out = folder / "run.db", folder / "my_tunings.cuh"
    benchmark_database(data, REDUCE, "3.6.0", GPUS["sm90"], {("F32", "I32"): LABEL})
    given = ("--db", str(data), "--arch", "sm90", "--cub", str(tree("3.6.0")), "--no-prove")
    assert main(["emit", *given, "-q", "-o", str(out)]) == 0
    return out


@pytest.fixture
def verify(tmp_path, monkeypatch):
    """Runs the command; objects are files without content."""
    texts = []

    class Compiler:
        def __init__(self, _toolchain, folder, _listings):
            self.folder = folder

        def make(self, source):
            texts.append(source.text)
            path = self.folder / "unit.so"
            path.touch()
            return path

    def run(path, *arguments, **plan):
        made = Plan(str(tmp_path), **plan)
        monkeypatch.setattr(performance, "worker_command", lambda *_: made.command())
        monkeypatch.setattr(performance, "ObjectCompiler", Compiler)
        driver_program(tmp_path, monkeypatch)
        own_locks(tmp_path, monkeypatch)
        given = ("--cub", str(tree("3.6.0")), "--header", str(path), "--rounds", "6")
        return main(["verify-performance", *given, "--processes", "3", "-q", *arguments])

    run.texts = texts
    return run


@pytest.mark.slow
def test_what_a_header_tunes_is_measured_and_the_rest_is_the_same(verify, header, capsys):
    which = ("-R", f"{REDUCE}$", "-a", "T=[F32,I8]")
    assert verify(header, *which, "--json", ratios={AFTER: 1.2}) == 0
    document = VerifyPerformance.model_validate_json(capsys.readouterr().out)
    told = {tuple(one.workload.values()): one.verdict for one in document.workloads}
    assert told.pop(("F32", "I32")) == "faster"
    assert set(told.values()) == {"same-code"}
    assert (document.before, document.after) == ("CUB 3.6.0 by itself", "with my_tunings.cuh")
    # The policy of the header is what is compiled.
    (unit,) = [text for text in verify.texts if "struct policygen_selector_" in text]
    assert "512" in unit[unit.index("struct policygen_selector_") :]


@pytest.mark.slow
def test_a_header_that_policygen_did_not_make_is_refused(verify, tmp_path, capsys):
    path = tmp_path / "mine.cuh"
    path.write_text("#include <evil>\nnamespace a\n{\nstruct scan\n{\n};\n}\n")
    assert verify(path) == 2
    assert "not a policy selector header written by policygen" in capsys.readouterr().err


def test_a_header_without_what_is_asked_for_says_so(verify, header, capsys):
    assert verify(header, "-R", "cub.bench.scan") == 2
    assert "has no selector for the workloads chosen by -R and -a" in capsys.readouterr().err


@pytest.mark.slow
def test_options_of_trees_are_refused(verify, header, capsys):
    assert verify(header, "--narrow", "plan.json") == 2
    assert "--narrow is for headers of a tree" in capsys.readouterr().err


def test_a_header_is_read_only_if_policygen_made_it(tmp_path):
    path = tmp_path / "mine.cuh"
    with pytest.raises(InputError, match=r"cannot read .*mine\.cuh: No such file or directory"):
        read_emitted(path)
    path.write_text("#pragma once\n")
    with pytest.raises(InputError) as caught:
        read_emitted(path)
    assert str(caught.value) == (
        f"{path}: not a policy selector header written by policygen\n"
        "  policygen emit and policygen tune write such headers."
    )
