"""Runs variants under CUDA's tools: occupancy from ncu, memory errors from compute-sanitizer."""

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.gpu.control import Controller, controlling
from policygen.gpu.device import Limits, RuntimeCase, VariantFunction
from policygen.installation import pip
from policygen.model.searches import Memcheck
from policygen.model.workload import BASE
from policygen.proof.toolchain import Toolchain, find_tool
from policygen.steps import HowFar, Progress
from policygen.untrusted import visible

TOOL = "ncu"
METRIC = "sm__warps_active.avg.pct_of_peak_sustained_active"
"""Percentage of the time in which a multiprocessor had work."""
# The caller controls the clocks; table rows are launches in order.
_OPTIONS = (
    *("--csv", "--page", "raw", "--metrics", METRIC),
    *("--clock-control", "none", "--target-processes", "all", "--kernel-name-base", "function"),
)
_LIMITS = Limits(floor=30.0)
"""Under a tool, a run may take at least so many seconds, and more if the baseline does."""
_ERROR = re.compile(r"^==ERROR== *(.+)", re.MULTILINE)


def find_profiler(toolchain: Toolchain) -> Path:
    """Find ncu beside nvcc or on PATH."""
    part_of = "It is part of the CUDA toolkit and of Nsight Compute"
    return find_tool(TOOL, toolchain, f"{part_of}: put it on PATH, or set CUDA_HOME.")


@dataclass(frozen=True, slots=True)
class WatchedWorkload:
    """Variants to run under a tool on one runtime workload."""

    case: RuntimeCase
    base: VariantFunction
    variants: tuple[VariantFunction, ...]


def achieved(
    tool: Path,
    command: Sequence[str],
    kernels: Sequence[str],
    workload: WatchedWorkload,
    *,
    held: bool = False,
) -> dict[str, float] | str:
    """Measure the achieved occupancy of variants that each launch one of `kernels` once.

    Returns it by variant, for those that run, or the reason why nothing is known.
    """
    with TemporaryDirectory(prefix="policygen-") as folder:
        log = Path(folder) / "launches.csv"
        kernel_filter = f"regex:^({'|'.join(map(re.escape, kernels))})$"
        options = (*_OPTIONS, "--kernel-name", kernel_filter, "--log-file", str(log))
        watched = (str(tool), *options, *command)
        with controlling(watched, limits=_LIMITS, held=held) as controller:
            if (problem := controller.open(workload.case, workload.base)) is not None:
                return problem
            functions = (workload.base, *workload.variants)
            failed = controller.check(functions)
            restarts = controller.restarts
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if error := _ERROR.search(text):
        return visible(error[1])
    lost = {label for label, failure in failed.items() if failure.kind != "wrong"}
    completed = [function.variant for function in functions if function.variant not in lost]
    shares = list(_shares(text))
    # Launches of the reference come first; a process that was lost took its launches along.
    if restarts or len(shares) < len(completed):
        return f"{len(shares)} launches were reported for {len(completed)} variants"
    shares_by_variant = dict(zip(completed, shares[len(shares) - len(completed) :], strict=True))
    if any(map(math.isnan, shares_by_variant.values())):
        return f"it does not report {METRIC}"
    return shares_by_variant


def _shares(text: str) -> Iterator[float]:
    """Yield the share of each launch, skipping tool messages and the row of units."""
    for row in csv.DictReader(line for line in text.splitlines() if line.startswith('"')):
        if row.get("ID"):
            yield _parse_metric(row.get(METRIC) or "") / 100


def _parse_metric(text: str) -> float:
    """Parse a metric; NaN for values such as `n/a`."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return math.nan


SANITIZER_TOOL = "compute-sanitizer"
PHASE = "sanitizing"
# "========= Invalid __global__ read of size 4 bytes"
_SANITIZER_ERROR = re.compile(
    r"^=+ +((?:Invalid|Out-of-bounds|Misaligned|Barrier error|Program hit)\b[^\n]*)"
    r"(?:\n=+ +(at [^\n]+))?",
    re.MULTILINE,
)
LETTERS = 300
Sanitizes = Callable[[Sequence[WatchedWorkload]], Sequence[Mapping[str, str]]]
"""Returns the errors of variants by label, for each workload."""


# Memory errors


def find_sanitizer(toolchain: Toolchain) -> Path:
    """Find compute-sanitizer beside nvcc or on PATH."""
    install = f"Install it: {pip()} install nvidia-cuda-sanitizer-api"
    return find_tool(SANITIZER_TOOL, toolchain, f"{install}; or set CUDA_HOME to a toolkit.")


def sanitize(
    tool: Path,
    command: Sequence[str],
    workloads: Sequence[WatchedWorkload],
    *,
    patience: float = 0.0,
    held: bool = False,
    progress: Progress | None = None,
) -> list[dict[str, str]]:
    """Return the errors of variants and of `base` by label, for each workload.

    `held` means that this process already holds the GPU and that nothing else runs on it.
    """
    with TemporaryDirectory(prefix="policygen-") as folder:
        log = ("--log-file", f"{folder}/%p.log")
        watched = (str(tool), "--tool", "memcheck", *log, *command)
        with controlling(watched, limits=_LIMITS, patience=patience, held=held) as controller:
            total = sum(len(workload.variants) + 1 for workload in workloads)
            run = _Sanitizing(controller, Path(folder), progress, total)
            return [run.workload(workload) for workload in workloads]


# "compute-sanitizer: Invalid … read of size 4 bytes at void cub::CUB_300_SM_90::Kernel<…>(…)+0x90"
_CUB_FRAME = re.compile(r"\bat (?:void )?(?:\w+::)*cub::")


def memcheck_of(variant: str, errors: Mapping[str, str]) -> Memcheck:
    """Judge a variant by the errors of a workload.

    CUB itself fails only if base passes and the frame of the error is CUB's.
    """
    if BASE in errors:
        return Memcheck(variant=variant, outcome="base", words=_without_tool(errors[BASE]))
    error = errors.get(variant, "")
    if not error.startswith(f"{SANITIZER_TOOL}: "):
        return Memcheck(variant=variant, outcome="clean", words=error)
    words = _without_tool(error)
    in_cub = _CUB_FRAME.search(words) is not None
    return Memcheck(variant=variant, outcome="error", words=words, in_cub=in_cub)


def _without_tool(error: str) -> str:
    return error.removeprefix(f"{SANITIZER_TOOL}: ")


@dataclass(slots=True)
class _Sanitizing:
    """The watched process and how far its logs have been read."""

    controller: Controller
    folder: Path
    progress: Progress | None
    total: int
    done: int = 0
    read: int = 0
    """Number of characters of the logs that belong to earlier variants."""

    def workload(self, workload: WatchedWorkload) -> dict[str, str]:
        """Check the baseline, which creates the results, and then the variants."""
        self._report("base")
        problem = self.controller.open(workload.case, workload.base)
        if error := self._next_error() or problem:
            self.done += len(workload.variants) + 1
            return {workload.base.variant: error}
        errors = {}
        for variant in workload.variants:
            self.done += 1
            self._report(variant.variant)
            failure = self.controller.check([variant]).get(variant.variant)
            if error := self._next_error():
                errors[variant.variant] = f"{SANITIZER_TOOL}: {error}"
            elif failure is not None and failure.kind != "wrong":
                errors[variant.variant] = failure.reason
        self.done += 1
        return errors

    def _report(self, label: str) -> None:
        if self.progress:
            self.progress(HowFar(PHASE, self.done, self.total, (label,), is_whole=True))

    def _next_error(self) -> str | None:
        """Return the first error since the last call."""
        logs = sorted(self.folder.glob("*.log"), key=lambda path: path.stat().st_mtime)
        text = "".join(path.read_text(encoding="utf-8", errors="replace") for path in logs)
        new, self.read = text[self.read :], len(text)
        match = _SANITIZER_ERROR.search(new)
        return match and visible(" ".join(filter(None, match.groups()))[:LETTERS])
