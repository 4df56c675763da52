"""What is compiled to kernels, and what a compiler of kernels must know to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol

from policygen.model.sass import Kernel


@dataclass(frozen=True, slots=True)
class UnitHeaders:
    """What a unit includes: a unit without its call, where it looks, for which architecture."""

    text: str
    includes: tuple[str, ...]
    arch: str
    language: tuple[str, ...] = ()
    """Options that the unit needs beside those of all."""


@dataclass(frozen=True, slots=True)
class Job:
    """One compile; it holds all that it needs, so that any process can do it."""

    text: str
    headers: UnitHeaders
    content: str
    """Names what the preprocessor makes of the headers."""


class KernelTools(Protocol):
    """A compiler of kernels, and what reads what it makes; it can be pickled."""

    @property
    def compiler(self) -> str:
        """What it is called: `nvcc`."""

    @property
    def readers(self) -> tuple[ModuleType, ...]:
        """The modules that read what it makes: what others read is not taken for it."""

    @property
    def roots(self) -> tuple[str, ...]:
        """Folders of its own headers, by which these are told from others."""

    @property
    def install(self) -> str:
        """What helps where it is missing."""

    @property
    def more(self) -> Mapping[str, str] | None:
        """Variables that it needs."""

    def identity(self, arch: str) -> str:
        """Names what it makes for an architecture: the same for the same at another place."""

    def flags(self, headers: UnitHeaders) -> list[str]:
        """Options of the compiler that do not name a place."""

    def preprocessing(self, headers: UnitHeaders) -> list[str]:
        """The command that preprocesses, and tells of macros, too."""

    def kernels(self, job: Job, key: str, cache: Path, *, listed: bool) -> tuple[Kernel, ...]:
        """Compiles a unit; listed kernels have their instructions, others a digest of them."""
