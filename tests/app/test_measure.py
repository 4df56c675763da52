"""`policygen measure` with a simulated GPU: what is asked, what is told, what goes wrong."""

import json
import os
import stat
from pathlib import Path

import pytest

from policygen.app import measure
from policygen.cli.main import main
from policygen.gpu.compiling import CompiledWorkload
from policygen.gpu.device import VariantFunction
from policygen.model.measured import MeasuredVariants
from tests.gpu.simulated import Plan
from tests.real_trees import tree

FAST, SLOW, SAME = "ipt_16.tpb_512.ipv_2", "ipt_8.tpb_128.ipv_1", "ipt_12.tpb_256.ipv_1"
RATIOS = {FAST: 1.1, SLOW: 0.9}
WHICH = ("-R", "cub.bench.reduce.sum$", "-a", "T=F32", "-a", "OffsetT=I32")
ROW = "NVIDIA H200, GPU-5f3b, 9.0, 580.82.07"


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """A driver's program that tells of one GPU."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho '{ROW}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return program


@pytest.fixture
def simulated(tmp_path, monkeypatch, smi):
    """Runs the command; objects are names, and the GPU does what a plan says."""

    def compiled(_session, chosen, _compiler, _slots):
        found = {}
        for point, one in chosen.items():
            labels = ["base", *(candidate.label for candidate in one.candidates.made)]
            functions = [
                VariantFunction(label, "unit.so", f"policygen_run_{number}")
                for number, label in enumerate(labels)
                if label not in refused
            ]
            made = CompiledWorkload(tmp_path / "i.so", tmp_path / "r.so", tuple(functions), refused)
            found[point] = [made]
        return found

    refused = {}

    def run(*arguments, failing=None, **plan):
        refused.update(failing or {})
        made = Plan(str(tmp_path), ratios={**RATIOS, **plan.pop("ratios", {})}, **plan)
        monkeypatch.setattr(measure, "compile_lot", compiled)
        monkeypatch.setattr(measure, "worker_command", lambda *_: made.command())
        return main(
            ["measure", "--cub", str(tree("3.6.0")), *WHICH, "--rounds", "6", *arguments, "-q"]
        )

    return run


def told(capsys):
    return MeasuredVariants.model_validate_json(capsys.readouterr().out)


@pytest.mark.slow
def test_variants_are_told_beside_base(simulated, capsys):
    assert simulated("--variant", f"{FAST},{SLOW}", "--variant", SAME, "--json") == 0
    document = told(capsys)
    assert (document.gpu, document.arch, document.method) == (
        "H200 (6144, 132, eccon)",
        "sm90",
        "events",
    )
    (workload,) = document.workloads
    scores = {one.variant: one for one in workload.variants}
    assert list(scores) == [FAST, SLOW, SAME]
    assert scores[FAST].score == pytest.approx(1.1, abs=0.02)
    assert [scores[one].verdict for one in (FAST, SLOW)] == ["faster", "slower"]
    assert scores[FAST].interval.low < scores[FAST].score < scores[FAST].interval.high
    sizes = [row.point["Elements{io}[pow2]"] for row in scores[FAST].runtime]
    assert sizes == ["16", "20", "24", "28"]
    assert sum(row.weight for row in scores[FAST].runtime) == pytest.approx(1)
    assert [row.point for row in workload.noise] == [row.point for row in scores[FAST].runtime]
    assert document.is_fine


@pytest.mark.slow
def test_a_table_shows_them(simulated, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert simulated("--variant", f"{FAST},{SLOW}", "-v") == 0
    out = capsys.readouterr().out
    assert "cub.bench.reduce.sum T=F32 OffsetT=I32" in out
    (fast,) = [row for row in out.splitlines() if row.endswith(f"faster   {FAST}")]
    assert fast.startswith(("1.09", "1.10"))
    assert "base from process to process: 16:" in out
    assert "Elements{io}[pow2]=28" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.slow
def test_rows_are_kept_and_not_measured_again(simulated, capsys, tmp_path):
    db = tmp_path / "run.db"
    assert simulated("--variant", FAST, "--db", str(db), "--json") == 0
    first = told(capsys)
    assert simulated("--variant", FAST, "--db", str(db), "--json") == 0
    again = told(capsys)
    assert again.workloads[0].variants == first.workloads[0].variants
    assert main(["db", "choose", str(db), "--json"]) == 0
    (workload,) = json.loads(capsys.readouterr().out)["workloads"]
    assert workload["choice"]["variant"] == FAST
    assert workload["choice"]["noise_origin"] == "measured: 5 processes of base"


def test_who_fails_is_told_and_costs_itself_alone(simulated, capsys):
    status = simulated(
        "--variant",
        f"{FAST},{SLOW},{SAME}",
        "--json",
        does={SLOW: "wrong"},
        failing={SAME: "ptxas: it uses too much shared data"},
    )
    assert status == 1
    (workload,) = told(capsys).workloads
    found = {one.variant: one.failed and one.failed.kind for one in workload.variants}
    assert found == {FAST: None, SLOW: "wrong", SAME: "compile"}


def test_wrong_results_are_loud(simulated, capsys):
    assert simulated("--variant", f"{FAST},{SLOW}", does={SLOW: "wrong"}) == 1
    assert f"{SLOW}: WRONG RESULTS:" in capsys.readouterr().out


def test_a_crash_starts_another_process(simulated, capsys):
    assert simulated("--variant", f"{FAST},{SLOW}", "--json", does={SLOW: "sample: crash"}) == 1
    (workload,) = told(capsys).workloads
    assert workload.restarts == 1
    assert [one.failed and one.failed.kind for one in workload.variants] == [None, "crash"]


def test_without_a_variant_base_is_measured_alone(simulated, capsys):
    assert simulated("--processes", "3", "--json") == 0
    (workload,) = told(capsys).workloads
    assert workload.variants == ()
    assert all(row.between is not None for row in workload.noise)


def test_a_runtime_workload_can_be_chosen(simulated, capsys):
    which = ("-a", "Elements{io}[pow2]=[20,24]")
    assert simulated("--variant", FAST, *which, "--json") == 0
    ((variant,),) = [one.variants for one in told(capsys).workloads]
    assert [row.point["Elements{io}[pow2]"] for row in variant.runtime] == ["20", "24"]
    assert simulated("--variant", FAST, "-a", "Elements{io}[pow2]=21") == 2
    words = (
        "no workload has Elements{io}[pow2] = 21\n  Elements{io}[pow2] is one of 16, 20, 24, 28."
    )
    assert words in capsys.readouterr().err


def test_a_point_that_the_benchmark_skips_is_told(simulated, capsys):
    assert simulated("--variant", FAST, "--json", skips=[1 << 16]) == 0
    (workload,) = told(capsys).workloads
    ((point, reason),) = [(one.point, one.reason) for one in workload.skipped]
    assert (point, reason) == ({"Elements{io}[pow2]": "16"}, "the benchmark skips it")
    assert len(workload.variants[0].runtime) == 3


def test_what_is_no_variant_of_the_space_is_refused(simulated, capsys):
    assert simulated("--variant", "ipt_99.tpb_512.ipv_2", "--json") == 1
    (workload,) = told(capsys).workloads
    assert "ipt" in workload.problem


def test_a_gpu_that_is_not_there_is_an_error(simulated, capsys, smi):
    assert simulated("--variant", FAST, "--gpu", "1") == 2
    assert "there is no GPU 1" in capsys.readouterr().err
    smi.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed' >&2\nexit 9\n")
    assert simulated("--variant", FAST) == 3
    assert "a responding GPU is missing" in capsys.readouterr().err
    smi.write_text("#!/bin/sh\n")
    assert simulated("--variant", FAST) == 3
    smi.unlink()


def test_without_a_driver_it_says_what_is_missing(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["measure", "--cub", str(tree("3.6.0")), *WHICH, "--variant", FAST, "-q"]) == 3
    error = capsys.readouterr().err
    assert error.startswith("policygen: error: a GPU is missing\n")
    assert "Without them, policygen measure --compile-only compiles variants." in error


def test_the_doctor_says_what_is_missing(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["measure", "--doctor"]) == 3
    assert "GPU" in capsys.readouterr().out


def test_of_many_the_best_are_shown(simulated, capsys):
    assert simulated("--count", "30", "--processes", "1") == 0
    out = capsys.readouterr().out
    assert "the best 20 of 30; all: -v, or policygen db top\n" in out
    scores = [float(row.split()[0]) for row in out.splitlines() if "not sure" in row]
    assert len(scores) == 20
    assert scores == sorted(scores, reverse=True)


def test_what_the_sanitizer_finds_costs_the_variant(simulated, monkeypatch, tmp_path, capsys):
    asked = []

    def sanitize(tool, command, workloads, **_):
        asked.append((tool.name, *workloads))
        return [{SLOW: "compute-sanitizer: Invalid __global__ read of size 4 bytes"}]

    monkeypatch.setattr(measure, "find_sanitizer", lambda _: Path("compute-sanitizer"))
    monkeypatch.setattr(measure, "sanitize", sanitize)
    names = f"{FAST},{SLOW}"
    db = str(tmp_path / "run.db")
    assert simulated("--variant", names, "--sanitize", "--json", "--db", db) == 1
    (workload,) = told(capsys).workloads
    fast, slow = workload.variants
    assert fast.score > 1
    assert slow.failed.reason == "compute-sanitizer: Invalid __global__ read of size 4 bytes"
    ((tool, looked),) = asked
    assert tool == "compute-sanitizer"
    assert looked.case.axes == (1 << 16,)
    assert [one.variant for one in looked.variants] == [FAST, SLOW]


def test_base_that_the_sanitizer_refuses_ends_all(simulated, monkeypatch, capsys):
    monkeypatch.setattr(measure, "find_sanitizer", lambda _: Path("compute-sanitizer"))
    monkeypatch.setattr(measure, "sanitize", lambda *_, **__: [{"base": "it reads nowhere"}])
    assert simulated("--variant", FAST, "--sanitize") == 2
    assert "base of cub.bench.reduce.sum cannot run: it reads nowhere" in capsys.readouterr().err
