"""Where a search compiles and measures: on this machine, or on the workers of a cluster."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from policygen.measure.compiling import MakesObjects
from policygen.measure.device import GpuFacts
from policygen.measure.sanitizer import Sanitizes
from policygen.proof.toolchain import Toolchain
from policygen.search.gpu import MeasuresRungs


@dataclass(frozen=True, slots=True)
class SearchMachines:
    """Which machines a search may use."""

    gpus: tuple[int, ...] | None = (0,)
    """Numbers of GPUs of this machine; none: all of them."""
    scheduler: str | None = None
    """The address, or the file, of a Dask scheduler, whose workers are used instead."""


@dataclass(frozen=True, slots=True)
class HeldGpus:
    """GPUs of one model, on which nobody else measures."""

    measures: MeasuresRungs
    facts: Sequence[GpuFacts]
    """Of each of them."""
    sanitizes: Sanitizes | None = None
    """Looks at finalists, where that is asked for."""


class SearchPlace(Protocol):
    """A place to search on."""

    @property
    def arch(self) -> str:
        """The architecture of its GPUs."""

    @property
    def toolchain(self) -> Toolchain:
        """What compiles; on other machines one of the same release."""

    @property
    def slots(self) -> int:
        """Units that are compiled at once."""

    def compiler(self, folder: Path) -> MakesObjects:
        """What compiles; objects lie in a folder."""

    def held(self, runner: Path) -> AbstractContextManager[HeldGpus]:
        """Keeps its GPUs for a block; the runner times calls on them."""
