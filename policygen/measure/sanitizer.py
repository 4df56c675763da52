"""Runs variants under compute-sanitizer: which of them read or write where they must not."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.installation import pip
from policygen.measure.control import Controller
from policygen.measure.watched import WatchedWorkload, watched
from policygen.proof.toolchain import Toolchain, find_tool
from policygen.steps import HowFar, Progress
from policygen.untrusted import visible

TOOL = "compute-sanitizer"
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


def find_sanitizer(toolchain: Toolchain) -> Path:
    """Finds it beside nvcc, else on PATH."""
    return find_tool(
        TOOL,
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
                found[variant.variant] = f"{TOOL}: {said}"
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
