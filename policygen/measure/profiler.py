"""Runs variants of a kernel under ncu: which share of a multiprocessor's threads were at work."""

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.measure.watched import WatchedWorkload, watched
from policygen.proof.toolchain import Toolchain, find_tool
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
