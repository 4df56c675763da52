"""Runs a benchmark's program as CCCL's search does, and reads what NVBench wrote."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.errors import InputError, ProcessError
from policygen.measure.outcomes import Failure
from policygen.model.bench import Axis, Benchmark
from policygen.model.workload import axis_name
from policygen.opening import read_document
from policygen.process import ENDLESS, run
from policygen.results.nvbench import NvbenchRun, read_nvbench
from policygen.results.nvbench_json import parse
from policygen.untrusted import visible

RESULT = "result.json"
VISIBLE = "CUDA_VISIBLE_DEVICES"
INSTALL = "Build the benchmarks again."
LIMIT = 3600.0
"""Seconds that base may take; nobody knows before."""
TIMES_BASE = 50.0
"""As many times as long may a variant take, as in CCCL's search."""
FLOOR = 60.0


@dataclass(frozen=True, slots=True)
class NvbenchSettings:
    """When NVBench has enough samples; those of CCCL's search, where nothing else is said."""

    criterion: str = "entropy"
    min_samples: int | None = None
    timeout: float | None = None
    """Seconds for each runtime workload."""

    @property
    def arguments(self) -> list[str]:
        """As NVBench's programs, and `cuda.bench`, take them."""
        found = ["--stopping-criterion", self.criterion]
        if self.min_samples is not None:
            found += ["--min-samples", str(self.min_samples)]
        if self.timeout is not None:
            found += ["--timeout", f"{self.timeout:g}"]
        return found


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """What a program measured."""

    results: NvbenchRun
    elapsed: float
    """Seconds, of the whole program."""
    skipped: Mapping[str, str]
    """Runtime workloads by NVBench's name that were not measured, and why."""


class FailedRunError(Exception):
    """A program that measured nothing."""

    def __init__(self, failure: Failure, elapsed: float) -> None:
        super().__init__(failure.reason)
        self.failure = failure
        self.elapsed = elapsed


def run_arguments(
    benchmark: Benchmark,
    workload: Mapping[str, str],
    chosen: Mapping[str, Sequence[str]],
    settings: NvbenchSettings,
) -> list[str]:
    """What a program is called with: one workload, and of its runtime axes the chosen values."""
    found = [part for axis, value in workload.items() for part in ("-a", f"{axis}={value}")]
    # One GPU is shown to it, which is its first.
    found += ["--jsonbin", RESULT, *settings.arguments, "-d", "0"]
    for sub in benchmark.subbenches:
        found += ["-b", sub.name]
        for axis in sub.axes:
            if not axis.compile_time:
                values = chosen_values(benchmark.name, axis, chosen)
                found += ["-a", f"{axis.name}=[{','.join(values)}]"]
    return found


def chosen_values(benchmark: str, axis: Axis, chosen: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """The values of an axis that are asked for; all, where nothing is said of it."""
    names = (axis.name, axis_name(axis.name))
    asked = next((chosen[name] for name in names if name in chosen), None)
    if asked is None:
        return axis.values
    if unknown := [value for value in asked if value not in axis.values]:
        raise InputError(
            f"{benchmark}: {names[1]} has no value {unknown[0]}",
            f"It has: {', '.join(axis.values)}",
        )
    return asked


def run_program(
    program: Path, arguments: Sequence[str], uuid: str, limit: float = LIMIT
) -> ProgramRun:
    """Runs a program on one GPU, and reads its results."""
    begun = time.monotonic()
    with TemporaryDirectory(prefix="policygen-") as temporary:
        folder = Path(temporary)
        try:
            run(
                [str(program), *arguments],
                folder=folder,
                limit=limit,
                install=INSTALL,
                more={VISIBLE: uuid},
            )
        except ProcessError as error:
            raise FailedRunError(_failure(error), time.monotonic() - begun) from error
        elapsed = time.monotonic() - begun
        path = folder / RESULT
        return ProgramRun(read_nvbench(path), elapsed, _skipped(path))


def _failure(error: ProcessError) -> Failure:
    said = visible(error.stderr.strip().rpartition("\n")[2])
    if error.status >= 0:
        return Failure("error", f"it ended with {error.status}: {said}")
    if error.stderr.startswith(ENDLESS):
        return Failure("hang", error.stderr)
    return Failure("crash", f"it was ended by signal {-error.status}: {said}".rstrip(": "))


def _skipped(path: Path) -> dict[str, str]:
    document = parse(path, read_document(path))
    return {
        f"{bench.name} {state.name}": visible(state.skip_reason or "NVBench skips it")
        for bench in document.benchmarks
        for state in bench.states
        if state.is_skipped
    }
