"""`policygen measure`: what named variants are worth on a GPU of this machine, beside base."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.app.filters import Filter
from policygen.app.measure_variants import (
    ChosenWorkload,
    Wanted,
    check_compiles,
    choose_lot,
    compile_lot,
    in_line,
)
from policygen.app.session import Session
from policygen.errors import InputError, PolicygenError
from policygen.measure.compiling import CompiledWorkload
from policygen.measure.control import Controller, controlling
from policygen.measure.database import About, MeasuringSession, Spot, open_session
from policygen.measure.device import RuntimeCase
from policygen.measure.gpus import find_gpu
from policygen.measure.objects import ObjectCompiler, runtime_of
from policygen.measure.run import Findings, Point, WorkloadTask, measure_workload
from policygen.measure.runs import WorkloadRun
from policygen.measure.statistics import PointTimes, judged, noises, score_noise
from policygen.model.labels import BASE
from policygen.model.measured import (
    FailureKind,
    MeasuredVariant,
    MeasuredVariants,
    MeasuredWorkload,
    VariantFailure,
)
from policygen.model.workload import Point as WorkloadPoint
from policygen.process import module
from policygen.proof.deps import Listings
from policygen.proof.toolchain import find_toolchain
from policygen.results.weights import importance

PROCESSES = 5
ROUNDS = 20
WORKER = "policygen.measure.worker"


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured, and where."""

    processes: int = PROCESSES
    rounds: int = ROUNDS
    """In each process."""
    seed: int = 1
    gpu: int = 0
    slots: int | None = None
    """How many units are compiled at once; none: as many as cores and memory allow."""
    patience: float = 0.0
    """Seconds to wait for a GPU that somebody else measures on."""


def measure_variants(
    session: Session,
    where: Filter,
    wanted: Wanted,
    *,
    database: Path | None = None,
    effort: Effort | None = None,
) -> MeasuredVariants:
    """Measures variants beside base in fresh processes, and checks what they compute."""
    effort = effort or Effort()
    begun = time.monotonic()
    gpu, toolchain = find_gpu(effort.gpu), find_toolchain()
    check_compiles(toolchain, gpu.arch)
    lot = choose_lot(session, _of_compile_time(where), gpu.arch, wanted)
    with ExitStack() as stack:
        folder = stack.enter_context(_folder())
        compiler = ObjectCompiler(toolchain, folder, Listings())
        made = compile_lot(session, lot.chosen, compiler, effort.slots)
        compiled = time.monotonic() - begun
        workloads = [
            MeasuredWorkload(benchmark=name, workload=dict(axes), variants=(), problem=reason)
            for (name, axes), reason in lot.refused.items()
        ]
        label, driver = gpu.name, gpu.driver
        if runners := [one.runner for each in made.values() for one in _fine(each)]:
            runtime = runtime_of(toolchain)
            command = module(WORKER) + (str(effort.gpu), str(runners[0]), str(runtime or ""))
            controller = stack.enter_context(controlling(command, patience=effort.patience))
            facts = controller.facts
            label, driver = facts.label, facts.driver
            about = About(
                toolchain.version,
                f"v{session.cub.version}",
                facts,
                toolchain.version,
                "events",
                effort.seed,
            )
            path = database or folder / "measured.db"
            rows = stack.enter_context(open_session(path, about))
            rows.time("compiling", compiled)
            for point, one in lot.chosen.items():
                task = _Task(session, controller, rows, one, made[point], where, effort)
                workloads.append(_measured(task, point))
        return MeasuredVariants(
            cub=session.cub,
            arch=gpu.arch,
            toolchain=f"nvcc {toolchain.version}",
            driver=driver,
            method="events",
            processes=effort.processes,
            rounds=effort.rounds,
            seed=effort.seed,
            database=None if database is None else str(database),
            workloads=tuple(workloads),
            seconds=time.monotonic() - begun,
            compiling=compiled,
            gpu=label,
            ctk=toolchain.version,
            cccl=f"v{session.cub.version}",
        )


def _folder() -> "TemporaryDirectory[str]":
    return TemporaryDirectory(prefix="policygen-", ignore_cleanup_errors=True)
