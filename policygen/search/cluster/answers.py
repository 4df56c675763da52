"""What clients and workers of a cluster tell each other: plain data."""

from dataclasses import dataclass
from typing import Any, Literal

from policygen.errors import InputError, MissingToolError, PolicygenError, ProcessError
from policygen.measure.device import GpuFacts
from policygen.measure.gpus import ListedGpu
from policygen.measure.locks import BusyGpuError
from policygen.measure.outcomes import LostGpuError
from policygen.proof.compile import RefusedError

Terms = tuple[str, str]
"""The version of policygen, and nvcc's: the same on all machines of a search."""
AnswerKind = Literal["done", "lacks", "refused", "killed", "busy", "lost", "missing", "failed"]


@dataclass(frozen=True, slots=True)
class UnitAsk:
    """A translation unit to compile."""

    text: str
    trees: tuple[str, ...]
    """Its include folders, by what is in them."""
    arch: str


@dataclass(frozen=True, slots=True)
class GpuAsk:
    """Who asks a worker for its GPU."""

    owner: str
    """A search: the same for the same database."""
    runner: str
    """The object that times calls, by its content."""
    process: str = ""
    """That of the worker which has the GPU for the search, once it has."""


@dataclass(frozen=True, slots=True)
class HeldByWorker:
    """A GPU that a worker keeps for a search."""

    facts: GpuFacts
    process: str
    """The worker's, which is another one when it was started anew."""


@dataclass(frozen=True, slots=True)
class SeenByWorker:
    """The GPU of a worker, which nobody holds yet."""

    gpu: ListedGpu
    process: str


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """What a worker says."""

    worker: str
    """Its address."""
    kind: AnswerKind
    value: Any = None
    words: str = ""
    remedy: str | None = None
    status: int = 0

    def given(self) -> Any:
        """What was asked for, or why there is none."""
        match self.kind:
            case "done":
                return self.value
            case "refused":
                raise RefusedError(["nvcc"], self.status, self.words, self.remedy)
            case "killed":
                raise ProcessError(["nvcc"], self.status, self.words, self.remedy)
            case "busy":
                raise BusyGpuError(f"{self.worker}: {self.words}", self.remedy)
            case "lost":
                raise LostGpuError(f"{self.worker}: {self.words}", self.remedy)
            case "missing":
                raise MissingToolError(f"{self.worker}: {self.words}", self.remedy or "")
            case _:
                raise InputError(f"{self.worker}: {self.words}", self.remedy)


def said_of(worker: str, error: PolicygenError) -> WorkerAnswer:
    """A failure as it travels."""
    if isinstance(error, ProcessError):
        kind: AnswerKind = "refused" if isinstance(error, RefusedError) else "killed"
        told = (error.stderr, error.remedy, error.status)
        return WorkerAnswer(worker, kind, None, *told)
    if isinstance(error, InputError):
        kind = "failed"
        if isinstance(error, BusyGpuError):
            kind = "busy"
        elif isinstance(error, LostGpuError):
            kind = "lost"
        return WorkerAnswer(worker, kind, None, error.message, error.remedy)
    if isinstance(error, MissingToolError):
        return WorkerAnswer(worker, "missing", None, error.tool, error.remedy)
    return WorkerAnswer(worker, "failed", None, error.in_line)
