"""`policygen measure --workload kernel.toml` with a simulated GPU, and the matrix of it."""

import json

import pytest

from policygen.app import measure
from policygen.cli.main import main
from policygen.gpu.compiling import CompiledWorkload
from policygen.gpu.device import VariantFunction
from policygen.model.measured import MeasuredVariants, StrategyMatrix
from tests.app.searched import driver_program, own_locks
from tests.gpu.pretended_ncu import profiling
from tests.gpu.simulated import LAUNCH, Plan
from tests.own.kernels import write_saxpy
from tests.real_trees import tree

pytestmark = pytest.mark.trees
FEWER = (('"powers 128:1024"', "[256]"), ("[1, 2, 4, 8]", "[1, 8]"))
FAST = "strategy_1.threads_256.items_1"


@pytest.fixture
def measured(tmp_path, monkeypatch, capsys):
    """Measures all variants of saxpy, and tells the document."""
    monkeypatch.chdir(tmp_path)
    driver_program(tmp_path, monkeypatch)
    own_locks(tmp_path, monkeypatch)
    plan = Plan(str(tmp_path), ratios={FAST: 1.5}, copies="4e12")

    def compiled(_session, chosen, _compiler, _slots):
        lots = {p: ["base", *(c.label for c in one.candidates.made)] for p, one in chosen.items()}
        return {
            point: [
                CompiledWorkload(
                    tmp_path / "i.so",
                    tmp_path / "r.so",
                    tuple(
                        VariantFunction(each, "unit.so", f"run_{n}") for n, each in enumerate(lot)
                    ),
                    {},
                )
            ]
            for point, lot in lots.items()
        }

    monkeypatch.setattr(measure, "compile_lot", compiled)
    monkeypatch.setattr(measure, "worker_command", lambda *_: plan.command())
    monkeypatch.setenv("COLUMNS", "80")
    workload = str(write_saxpy(tmp_path, *FEWER))

    def run(*more):
        given = ("measure", "--workload", workload, "--all", "--rounds", "3", "--db", "run.db")
        assert main([*given, "--cub", str(tree("3.6.0")), "-q", "--json", *more]) == 0
        return MeasuredVariants.model_validate_json(capsys.readouterr().out)

    return run


def matrix(capsys):
    assert main(["db", "matrix", "run.db", "--json"]) == 0
    (kernel,) = StrategyMatrix.model_validate(json.loads(capsys.readouterr().out)).kernels
    return kernel


@pytest.mark.nvcc
def test_what_was_measured_is_a_matrix(measured, capsys):
    document = measured()
    assert [one.benchmark for one in document.workloads] == ["own.saxpy.small", "own.saxpy.large"]
    assert not [one.failed for each in document.workloads for one in each.variants if one.failed]
    assert FAST in {one.variant for one in document.workloads[0].variants}
    kernel = matrix(capsys)
    assert (kernel.kernel, kernel.by, kernel.peak) == ("own.saxpy", "strategy", 4e12)
    assert kernel.sizes == ("100,000", "10,000,000", "100,000,000")
    assert kernel.strategies == (
        "each_its_own", "stride", "each_its_own_managed", "stride_managed"
    )  # fmt: skip
    best = [one for one in kernel.cells if one.verdict == "best"]
    assert {one.variant for one in best} == {FAST}
    assert {one.use.registers for one in best} == {LAUNCH.registers}
    assert {one.use.achieved for one in best} == {None}
    # Base has no check: what it uses comes with its results.
    assert {one.use.registers for one in kernel.cells} == {LAUNCH.registers}


@pytest.mark.nvcc
def test_ncu_tells_what_occupancy_is_achieved(measured, monkeypatch, tmp_path, capsys):
    tool = profiling(tmp_path)
    monkeypatch.setattr("policygen.app.measure.find_profiler", lambda _: tool)
    measured("--ncu")
    kernel = matrix(capsys)
    assert all(0.1 < one.use.achieved < 0.5 for one in kernel.cells)
    assert main(["db", "matrix", "run.db", "-v"]) == 0
    assert "% achieved)" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.nvcc
def test_what_ncu_does_not_tell_is_noted(measured, monkeypatch, tmp_path, capsys):
    tool = profiling(tmp_path, error="no permission")
    monkeypatch.setattr("policygen.app.measure.find_profiler", lambda _: tool)
    measured("--ncu")
    assert {one.use.achieved for one in matrix(capsys).cells} == {None}


def test_a_call_of_cubs_has_no_occupancy_of_its_own(capsys):
    given = ("-R", "cub.bench.reduce.sum$", "--variant", "ipt_8.tpb_128.ipv_1")
    assert main(["measure", "--cub", str(tree("3.6.0")), *given, "--ncu"]) == 2
    assert "--ncu works only for your own kernels" in capsys.readouterr().err
