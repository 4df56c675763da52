"""Runs variants of a kernel under ncu: which share of a multiprocessor's threads were at work."""

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.gpu.control import Controller, controlling
from policygen.gpu.device import Limits, RuntimeCase, VariantFunction
from policygen.gpu.machine import device_environment
from policygen.installation import pip
from policygen.proof.toolchain import Toolchain, find_tool
from policygen.steps import HowFar, Progress
from policygen.untrusted import visible

TOOL = "ncu"
METRIC = "sm__warps_active.avg.pct_of_peak_sustained_active"
"""Percent, over the time in which a multiprocessor had work."""
# Clocks are whose who measures; a table's rows are launches, in their order.
_OPTIONS = (
    *("--csv", "--page", "raw", "--metrics", METRIC),
    *("--clock-control", "none", "--target-processes", "all", "--kernel-name-base", "function"),
)
_ERROR = re.compile(r"^==ERROR== *(.+)", re.MULTILINE)


def find_profiler(toolchain: Toolchain) -> Path:
    """Finds it beside nvcc, else on PATH."""
    return find_tool(
        TOOL,
        toolchain,
        "It is in the CUDA toolkit and in Nsight Compute: put it on PATH, or set CUDA_HOME.",
    )


@dataclass(frozen=True, slots=True)
class Achieved:
    """What the tool says of variants on a runtime workload."""

    shares: Mapping[str, float]
    """By variant, of those that run."""
    problem: str | None = None
    """Why nothing is known."""


@dataclass(frozen=True, slots=True)
class WatchedWorkload:
    """What is run of a workload, on a runtime workload of its."""

    case: RuntimeCase
    base: VariantFunction
    variants: tuple[VariantFunction, ...]


def achieved(
    tool: Path,
    command: Sequence[str],
    kernels: Sequence[str],
    one: WatchedWorkload,
    *,
    held: bool = False,
) -> Achieved:
    """The share of threads at work, of variants that each launch one of these functions once."""
    with TemporaryDirectory(prefix="policygen-") as folder:
        log = Path(folder) / "launches.csv"
        wanted = f"regex:^({'|'.join(map(re.escape, kernels))})$"
        given = (str(tool), *_OPTIONS, "--kernel-name", wanted, "--log-file", str(log))
        with watched(given, command, held=held) as controller:
            if (why := controller.open(one.case, one.base)) is not None:
                return Achieved({}, why)
            every = (one.base, *one.variants)
            failed = controller.check(every).failed
            lost = controller.restarts
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if error := _ERROR.search(text):
        return Achieved({}, visible(error[1]))
    ran = [
        each.variant
        for each in every
        if each.variant not in failed or failed[each.variant].kind == "wrong"
    ]
    shares = list(_shares(text))
    # Before them stands what the reference launched; a process that was lost took its own along.
    if lost or len(shares) < len(ran):
        return Achieved({}, f"{len(shares)} launches are told of {len(ran)} variants")
    found = dict(zip(ran, shares[len(shares) - len(ran) :], strict=True))
    if any(map(math.isnan, found.values())):
        return Achieved({}, f"it does not tell {METRIC}")
    return Achieved(found)


def _shares(text: str) -> Iterator[float]:
    """One for each launch; between them stands what the tool says, and a row of units."""
    for row in csv.DictReader(line for line in text.splitlines() if line.startswith('"')):
        if row.get("ID"):
            yield _number(row.get(METRIC) or "") / 100


def _number(text: str) -> float:
    """What is told in place of one, `n/a`, is none."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return math.nan


SANITIZER_TOOL = "compute-sanitizer"
PHASE = "sanitizing"
# "========= Invalid __global__ read of size 4 bytes"
_FOUND = re.compile(
    r"^=+ +((?:Invalid|Out-of-bounds|Misaligned|Barrier error|Program hit)\b[^\n]*)"
    r"(?:\n=+ +(at [^\n]+))?",
    re.MULTILINE,
)
LETTERS = 300
Sanitizes = Callable[[Sequence[WatchedWorkload]], Sequence[Mapping[str, str]]]
"""What is wrong with variants, by label, of each workload."""


# Runs variants under compute-sanitizer: which of them read or write where they must not.


def find_sanitizer(toolchain: Toolchain) -> Path:
    """Finds it beside nvcc, else on PATH."""
    return find_tool(
        SANITIZER_TOOL,
        toolchain,
        f"Install it: {pip()} install nvidia-cuda-sanitizer-api; or set CUDA_HOME to a toolkit.",
    )


def sanitize(
    tool: Path,
    command: Sequence[str],
    workloads: Sequence[WatchedWorkload],
    *,
    patience: float = 0.0,
    held: bool = False,
    progress: Progress | None = None,
) -> list[dict[str, str]]:
    """What is wrong with variants, by label, of each workload; `base` is one of them.

    `held`: this process keeps the GPU already, and nothing else runs on it meanwhile.
    """
    with TemporaryDirectory(prefix="policygen-") as folder:
        log = ("--log-file", f"{folder}/%p.log")
        tool_given = (str(tool), "--tool", "memcheck", *log)
        with watched(tool_given, command, patience=patience, held=held) as controller:
            run = _Sanitizing(controller, Path(folder), progress, sum(map(_count, workloads)))
            return [run.workload(one) for one in workloads]


def _count(one: WatchedWorkload) -> int:
    return len(one.variants) + 1


@dataclass(slots=True)
class _Sanitizing:
    """The process that is looked at, and what was said so far."""

    controller: Controller
    folder: Path
    progress: Progress | None
    total: int
    done: int = 0
    read: int = 0
    """Characters of all logs that belong to those before."""

    def workload(self, one: WatchedWorkload) -> dict[str, str]:
        """Base first, which makes the results."""
        self._tell("base")
        why = self.controller.open(one.case, one.base)
        if said := self._said() or why:
            self.done += len(one.variants) + 1
            return {one.base.variant: said}
        found = {}
        for variant in one.variants:
            self.done += 1
            self._tell(variant.variant)
            failed = self.controller.check([variant]).failed.get(variant.variant)
            if said := self._said():
                found[variant.variant] = f"{SANITIZER_TOOL}: {said}"
            elif failed is not None and failed.kind != "wrong":
                found[variant.variant] = failed.reason
        self.done += 1
        return found

    def _tell(self, label: str) -> None:
        if self.progress:
            self.progress(HowFar(PHASE, self.done, self.total, (label,)))

    def _said(self) -> str | None:
        """The first error since it was asked last."""
        logs = sorted(self.folder.glob("*.log"), key=lambda path: path.stat().st_mtime)
        text = "".join(path.read_text(encoding="utf-8", errors="replace") for path in logs)
        new, self.read = text[self.read :], len(text)
        match = _FOUND.search(new)
        return match and visible(" ".join(filter(None, match.groups()))[:LETTERS])


FLOOR = 30.0
"""Seconds that a run may always take. Else base tells how long, which is watched as well."""


# A GPU's worker under a tool of CUDA's that watches what it runs.


@contextmanager
def watched(
    tool: Sequence[str], command: Sequence[str], *, patience: float = 0.0, held: bool = False
) -> Iterator[Controller]:
    """Starts a worker with a tool before it; `held`: this process keeps the GPU already."""
    with controlling(
        (*tool, *command),
        limits=Limits(floor=FLOOR),
        patience=patience,
        more=device_environment(),
        held=held,
    ) as controller:
        yield controller
