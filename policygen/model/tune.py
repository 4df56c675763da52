"""What tuning for a program found: the search, and the header that was made of it."""

from typing import Literal

from policygen.model.base import Document
from policygen.model.emit import Emitted
from policygen.model.kernel import KernelHeader
from policygen.model.search import Searched


class TunedProgram(Document):
    """What `policygen tune --json` prints at last."""

    format: Literal["policygen/tune/1"] = "policygen/tune/1"
    searched: Searched
    emitted: Emitted | None
    """Nothing where no variant is better than what CUB selects."""
    kernel: KernelHeader | None = None
    """Of a kernel of one's own, its policy header."""
    header: str | None
    """Where it was written."""
    example: str | None = None
    """A program that calls the algorithm with and without it, of a workload of one's own."""
