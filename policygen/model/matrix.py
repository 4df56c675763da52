"""Strategies of a kernel against sizes: who wins where, by how much, and what it takes."""

from typing import Literal

from policygen.model.base import Document, Record
from policygen.model.results import Interval

MatrixVerdict = Literal["best", "close", "slower", "not known"]
"""`close`: its interval reaches the best one's time. `not known`: there are too few processes."""


class KernelUse(Record):
    """What a launch takes of a GPU."""

    registers: int
    spilled: int
    """Bytes of a thread that lie in memory: arrays, and registers that were spilled."""
    shared: int
    """Bytes of a block."""
    block: int
    grid: int
    occupancy: float
    """The share of a multiprocessor's threads that fitting blocks take."""
    achieved: float | None = None
    """The share that was at work, on average, as ncu counted it."""


class MatrixCell(Record):
    """The best variant of a strategy at a size."""

    strategy: str
    size: str
    variant: str
    tried: int
    """Variants of the strategy that were measured there."""
    seconds: float
    """The mean of the medians of processes."""
    interval: Interval | None
    """Of 95 %; none where there is one process."""
    ratio: float
    """The time of the best at this size, over this one's."""
    ratio_interval: Interval | None
    verdict: MatrixVerdict
    bandwidth: float | None = None
    """Bytes in a second."""
    share: float | None = None
    """Of what a copy reaches on the same GPU."""
    use: KernelUse | None = None


class KernelMatrix(Record):
    """A kernel on a GPU."""

    kernel: str
    gpu: str
    by: str
    """The parameter whose values are compared as sets."""
    strategies: tuple[str, ...]
    sizes: tuple[str, ...]
    cells: tuple[MatrixCell, ...]
    peak: float | None
    """Bytes in a second that a copy reads and writes."""

    def cell(self, strategy: str, size: str) -> MatrixCell | None:
        """What was measured of a strategy at a size."""
        found = (one for one in self.cells if (one.strategy, one.size) == (strategy, size))
        return next(found, None)


class StrategyMatrix(Document):
    """What `policygen db matrix --json` prints."""

    format: Literal["policygen/matrix/1"] = "policygen/matrix/1"
    databases: tuple[str, ...]
    kernels: tuple[KernelMatrix, ...]
