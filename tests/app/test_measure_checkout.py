"""`policygen measure --benchmarks` with programs that write what NVBench wrote, and no GPU."""

from dataclasses import replace

import pytest

from policygen.app import measure
from policygen.cli.main import main
from policygen.errors import InputError
from policygen.gpu.checkout import BuiltPrograms
from policygen.gpu.machine import ListedGpu
from policygen.model.measured import MeasuredVariants
from tests.gpu.own_checkout import NAME, ProgramPlan, make_checkout
from tests.gpu.simulated import FACTS

pytestmark = pytest.mark.trees
FAST, REFUSED = "ipt_8.tpb_128", "ipt_24.tpb_1024"
# The one that the results of the fixture were measured on.
GPU = replace(FACTS, bus_width=6016)
WHICH = ("-R", f"{NAME}$", "-a", "T=F32", "-a", "Elements{io}[pow2]=[16,20]")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the command; what is built are programs of plans."""
    checkout = make_checkout(tmp_path / "cccl")
    programs = {
        "base": ProgramPlan().program(tmp_path / "base", "base"),
        FAST: ProgramPlan().program(tmp_path / FAST, "variant"),
    }
    problem = []

    def build(_compiler, _benchmark, _workload, labels, *, slots, progress):
        if problem:
            raise problem[0]
        failed = {label: "ptxas: it uses too much" for label in labels if label not in programs}
        wanted = {label: one for label, one in programs.items() if label in {"base", *labels}}
        return BuiltPrograms(wanted, failed)

    gpu = ListedGpu(0, FACTS.name, FACTS.uuid, FACTS.arch, FACTS.driver)
    monkeypatch.setattr(measure, "find_gpu", lambda _: gpu)
    monkeypatch.setattr(measure, "find_library", lambda _: None)
    monkeypatch.setattr(measure, "ProgramCompiler", lambda *_: None)
    monkeypatch.setattr(measure, "build_programs", build)
    monkeypatch.setattr(measure, "_facts", lambda *_: GPU)

    def command(*arguments, refused=None):
        problem[:] = [refused] if refused else []
        return main(["measure", "--benchmarks", str(checkout), *WHICH, *arguments, "-q"])

    return command


def told(capsys):
    return MeasuredVariants.model_validate_json(capsys.readouterr().out)


def test_programs_are_told_beside_base(run, capsys, tmp_path):
    db = tmp_path / "run.db"
    status = run("--variant", f"{FAST},{REFUSED}", "--processes", "2", "--db", str(db), "--json")
    assert status == 1
    document = told(capsys)
    assert (document.method, document.rounds, document.processes) == ("nvbench", 1, 2)
    (workload,) = document.workloads
    assert workload.workload == {"T": "F32", "OffsetT": "I32"}
    fast, refused = workload.variants
    assert [row.point["Elements{io}[pow2]"] for row in fast.runtime] == ["16", "20"]
    assert fast.score > 0
    assert (refused.failed.kind, refused.failed.reason) == ("compile", "ptxas: it uses too much")
    assert main(["db", "info", str(db)]) == 0
    assert NAME in capsys.readouterr().out


def test_what_cannot_be_built_is_told(run, capsys):
    error = InputError("the checkout has no nvbench_helper.cu")
    assert run("--variant", FAST, "--json", refused=error) == 1
    (workload,) = told(capsys).workloads
    assert workload.problem == "the checkout has no nvbench_helper.cu"


def test_a_filter_that_leaves_nothing_is_an_error(run, capsys):
    assert run("--variant", FAST, "-a", "OffsetT=I64") == 2
    assert "-a leaves no value of OffsetT of cub.bench.reduce.sum" in capsys.readouterr().err
