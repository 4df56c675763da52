"""Makes kernels for GPUs of AMD: as the assembly that clang writes, for one target."""

import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from policygen.cache import keep, kept
from policygen.model.machine_code import Kernel
from policygen.proof.compile import compile_file, unit_file
from policygen.proof.kernel_build import Job, UnitHeaders
from policygen.proof.units import made_of, marked, new_mark
from policygen.rocprim import hipcc
from policygen.rocprim.hipcc import (
    DEVICE,
    OFFLOAD,
    PROGRAM,
    CompileTarget,
    Hipcc,
    read_assembly,
    sealed,
    to_install,
)

# As in a release: without asserts, which hold the numbers of their lines.
FLAGS = ("-x", "hip", "-std=c++17", "-O3", "-w", "-DNDEBUG", DEVICE)


@dataclass(frozen=True, slots=True)
class HipTools:
    """The clang that a hipcc starts, and what that makes for each architecture."""

    name: str
    clang: str
    options: tuple[str, ...]
    """What hipcc gives to it."""
    targets: tuple[tuple[str, str], ...]
    """Architectures that it compiles for, and what names that which it makes for them."""

    @classmethod
    def of(cls, hipcc: Hipcc, targets: Iterable[CompileTarget]) -> "HipTools":
        """Takes those of a hipcc."""
        known = tuple((one.arch, one.identity) for one in targets if one.identity)
        return cls(hipcc.name, hipcc.clang, hipcc.options, known)

    def __str__(self) -> str:
        return self.name

    @property
    def archs(self) -> tuple[str, ...]:
        """What it compiles for."""
        return tuple(arch for arch, _ in self.targets)

    @property
    def compiler(self) -> str:
        """Which one."""
        return PROGRAM

    @property
    def readers(self) -> tuple[ModuleType, ...]:
        """What finds the compiler, and reads what it makes."""
        return (hipcc,)

    @property
    def roots(self) -> tuple[str, ...]:
        """Its headers are told by their paths."""
        return ()

    @property
    def install(self) -> str:
        """Of hipcc."""
        return to_install()

    @property
    def more(self) -> Mapping[str, str] | None:
        """The clang itself needs no variables."""
        return None

    def identity(self, arch: str) -> str:
        """By what is linked into all code for the architecture."""
        return dict(self.targets)[arch]

    def flags(self, headers: UnitHeaders) -> list[str]:
        """Options that do not name a place."""
        return [*FLAGS, *headers.language, f"{OFFLOAD}{headers.arch}"]

    def preprocessing(self, headers: UnitHeaders) -> list[str]:
        """With the macros, too: what is called below the headers may be one."""
        return [*self._command(headers), "-E", "-dD"]

    def kernels(self, job: Job, key: str, cache: Path, *, listed: bool) -> tuple[Kernel, ...]:
        """Reads the assembly of a unit."""
        kernels = read_assembly(self._assembly(job, key, cache).decode(), "clang's assembly")
        return kernels if listed else tuple(map(sealed, kernels))

    def _assembly(self, job: Job, key: str, cache: Path) -> bytes:
        with suppress(zlib.error):
            if (known := kept("isa", key, cache)) is not None:
                return zlib.decompress(known)
        mark = new_mark()
        with unit_file(marked(job.text, mark), cache) as source:
            made = source.with_suffix(".s")
            command = [*self._command(job.headers), "-S"]
            compile_file(command, source, made, cache, key, install=self.install)
            found = made_of(made, mark, self.compiler)
        keep("isa", key, zlib.compress(found), cache)
        return found

    def _command(self, headers: UnitHeaders) -> list[str]:
        # What `__FILE__` says must not depend on where a tree stands.
        unplaced = [f"-fmacro-prefix-map={folder}/=" for folder in headers.includes]
        folders = [f"-I{folder}" for folder in headers.includes]
        return [self.clang, *self.options, *self.flags(headers), *unplaced, *folders]
