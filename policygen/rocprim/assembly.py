"""Compiles kernels for AMD GPUs: clang's assembly for one target."""

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

# As in a release build: without asserts, which contain line numbers.
FLAGS = ("-x", "hip", "-std=c++17", "-O3", "-w", "-DNDEBUG", DEVICE)


@dataclass(frozen=True, slots=True)
class HipTools:
    """The clang that a hipcc starts, and its targets."""

    name: str
    clang: str
    options: tuple[str, ...]
    """The options that hipcc passes to it."""
    targets: tuple[tuple[str, str], ...]
    """The architectures that it compiles for, each with the identity of its target."""

    @classmethod
    def of(cls, hipcc: Hipcc, targets: Iterable[CompileTarget]) -> "HipTools":
        """Takes the clang and the targets of a hipcc."""
        compiled = tuple((target.arch, target.identity) for target in targets if target.identity)
        return cls(hipcc.name, hipcc.clang, hipcc.options, compiled)

    def __str__(self) -> str:
        return self.name

    @property
    def archs(self) -> tuple[str, ...]:
        """The architectures that it compiles for."""
        return tuple(arch for arch, _ in self.targets)

    @property
    def compiler(self) -> str:
        """The name of the compiler."""
        return PROGRAM

    @property
    def readers(self) -> tuple[ModuleType, ...]:
        """The modules that find the compiler and parse its output."""
        return (hipcc,)

    @property
    def roots(self) -> tuple[str, ...]:
        """None: headers are identified by their paths."""
        return ()

    @property
    def install(self) -> str:
        """How to install hipcc."""
        return to_install()

    @property
    def more(self) -> Mapping[str, str] | None:
        """None: clang itself needs no variables."""
        return None

    def identity(self, arch: str) -> str:
        """Returns the identity of what is linked into all code for the architecture."""
        return dict(self.targets)[arch]

    def flags(self, headers: UnitHeaders) -> list[str]:
        """Returns the options that contain no path."""
        return [*FLAGS, *headers.language, f"{OFFLOAD}{headers.arch}"]

    def preprocessing(self, headers: UnitHeaders) -> list[str]:
        """Returns the preprocessor command; it keeps macros that code below headers may use."""
        return [*self._command(headers), "-E", "-dD"]

    def kernels(self, job: Job, key: str, cache: Path, *, listed: bool) -> tuple[Kernel, ...]:
        """Compiles a unit and reads its assembly."""
        kernels = read_assembly(self._assembly(job, key, cache).decode(), "clang's assembly")
        return kernels if listed else tuple(map(sealed, kernels))

    def _assembly(self, job: Job, key: str, cache: Path) -> bytes:
        with suppress(zlib.error):
            if (cached := kept("isa", key, cache)) is not None:
                return zlib.decompress(cached)
        mark = new_mark()
        with unit_file(marked(job.text, mark), cache) as source:
            output = source.with_suffix(".s")
            command = [*self._command(job.headers), "-S"]
            compile_file(command, source, output, cache, key, install=self.install)
            assembly = made_of(output, mark, self.compiler)
        keep("isa", key, zlib.compress(assembly), cache)
        return assembly

    def _command(self, headers: UnitHeaders) -> list[str]:
        # `__FILE__` must not depend on the location of a tree.
        unplaced = [f"-fmacro-prefix-map={folder}/=" for folder in headers.includes]
        folders = [f"-I{folder}" for folder in headers.includes]
        return [self.clang, *self.options, *self.flags(headers), *unplaced, *folders]
