"""`policygen search` and `tune` with a simulated GPU: objects are names, a plan says the rest."""

import os
import stat

from policygen.gpu import machine, search_places
from policygen.gpu.candidates import CompiledBatch
from policygen.gpu.device import VariantFunction
from policygen.gpu.rounds import runtime_spots
from tests.gpu.simulated import Plan

WHICH = ("-R", "cub.bench.reduce.sum$", "-a", "T=F32", "-a", "OffsetT=I32")
ROW = "NVIDIA H200, GPU-5f3b, 9.0, 580.82.07"


def ratios():
    """What variants of sums are worth: ipt_18.tpb_384.ipv_1 most."""
    return {
        f"ipt_{ipt}.tpb_{tpb}.ipv_{ipv}": 1.08
        - 0.002 * abs(ipt - 18)
        - 0.0002 * abs(tpb - 384)
        - 0.01 * (ipv - 1)
        for ipt in range(7, 25)
        for tpb in range(128, 1025, 32)
        for ipv in (1, 2)
    }


def driver_program(folder, monkeypatch, row=ROW):
    """A driver's program that tells of one GPU."""
    place = folder / "bin"
    place.mkdir(exist_ok=True)
    program = place / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho '{row}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")


def pretend(folder, monkeypatch, plan=None, refused=()):
    """Replaces the GPU and nvcc for variants; the policies are still asked of the compiler."""
    plan = plan or Plan(str(folder), ratios=ratios())

    def compiled(self, search, labels):
        opened = search.opened
        if not labels:
            inputs = folder / "inputs.so"
            return CompiledBatch(
                bases=(VariantFunction("base", "unit.so", "policygen_run_0"),),
                runtimes=tuple(
                    tuple(runtime_spots(run, inputs, self.keeps)) for run in opened.runs
                ),
            )
        candidates = opened.candidates(labels)
        made = [one.label for one in candidates.made if one.label not in refused]
        functions = {
            label: (VariantFunction(label, "unit.so", f"policygen_run_{label}"),) for label in made
        }
        failed = {label: ("compile", "refused") for label in labels if label in refused}
        return CompiledBatch(functions=functions, failed=failed)

    class Compiler:
        def __init__(self, *_):
            pass

        def make(self, _):
            return folder / "runner.so"

    monkeypatch.setattr(search_places.UnitCompiler, "__call__", compiled)
    monkeypatch.setattr(search_places, "worker_command", lambda *_: plan.command())
    monkeypatch.setattr(search_places, "ObjectCompiler", Compiler)
    driver_program(folder, monkeypatch)
    own_locks(folder, monkeypatch)
    return plan


def own_locks(folder, monkeypatch):
    """Tests beside this one have a GPU of the same name."""
    place = folder / "locks"
    place.mkdir(exist_ok=True)
    place.chmod(0o1777)
    monkeypatch.setattr(machine, "PLACES", (place,))
