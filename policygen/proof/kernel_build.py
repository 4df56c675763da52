"""Builds kernels from translation units, with a cache keyed by what each unit depends on."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from pydantic import TypeAdapter, ValidationError

from policygen.cache import digest, keep, kept, written_by
from policygen.errors import PolicygenError
from policygen.model.arch import arch_number
from policygen.model.bindings import Site
from policygen.model.machine_code import Kernel
from policygen.model.trees import Library
from policygen.process import run
from policygen.proof import kernel_code, lexemes
from policygen.proof.compile import (
    Made,
    attempt,
    compile_file,
    folder_of_its_own,
    remembered,
    unit_file,
)
from policygen.proof.kernel_code import (
    check_usage,
    content,
    ended,
    read_cubin,
    read_listing,
    read_usage,
)
from policygen.proof.toolchain import Toolchain, find_disassembler, program, to_install
from policygen.proof.units import check_unnamed, made_of, marked, new_mark

# As in a release build: asserts would embed their line numbers.
FLAGS = ("-std=c++17", "-w", "-DNDEBUG")
_KERNELS = TypeAdapter(tuple[Kernel, ...])


# What to compile, and the interface to the compiler.


@dataclass(frozen=True, slots=True)
class UnitHeaders:
    """The headers of a unit: its text without the call, include folders, and the architecture."""

    text: str
    includes: tuple[str, ...]
    arch: str
    language: tuple[str, ...] = ()
    """Additional options that this unit needs."""


@dataclass(frozen=True, slots=True)
class Job:
    """One compile; self-contained, so that any process can run it."""

    text: str
    headers: UnitHeaders
    content: str
    """Digest of the preprocessed headers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTools(ABC):
    """A compiler of kernels with its readers; it can be pickled."""

    compiler: str
    """`nvcc` or `hipcc`."""
    install: str
    """How to install it."""
    archs: tuple[str, ...]
    """Supported architectures; if these depend on the tree, those among the requested ones."""
    seconds: float
    """Core-seconds to compile a unit."""
    roots: tuple[str, ...] = ()
    """Folders of its own headers, which identify them."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Requested architectures that it does not support, with reasons."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks about architectures that are not compared because they cannot be compiled."""
        archs = sorted(self.refusals, key=arch_number)
        return tuple(f"{arch} is not compared: {self.refusals[arch]}" for arch in archs)

    @property
    @abstractmethod
    def readers(self) -> tuple[ModuleType, ...]:
        """The modules that read its output; they are part of the cache key."""

    @abstractmethod
    def identity(self, arch: str) -> str:
        """Identifies its output for an architecture, independent of its path."""

    @abstractmethod
    def flags(self, headers: UnitHeaders) -> list[str]:
        """Compiler options that do not contain paths."""

    @abstractmethod
    def preprocessing(self, headers: UnitHeaders) -> list[str]:
        """The command to preprocess with macros: what is called may be a macro in the headers."""

    @abstractmethod
    def kernels(self, job: Job, key: str, cache: Path, *, listed: bool) -> tuple[Kernel, ...]:
        """Compiles a unit; listed kernels have their instructions, others only a digest of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools(KernelTools):
    """nvcc and cuobjdump."""

    nvcc: str
    cuobjdump: str
    version: str
    named: str
    """Identifies the tools' output: the same for the same tools at another path."""

    @classmethod
    def of(cls, toolchain: Toolchain) -> "Tools":
        """Takes the tools of a toolchain."""
        disassembler = find_disassembler(toolchain)
        return cls(
            compiler="nvcc",
            install=to_install(),
            archs=toolchain.archs,
            seconds=5.0,
            roots=toolchain.roots,
            nvcc=str(toolchain.nvcc),
            cuobjdump=str(disassembler),
            version=toolchain.version,
            named=f"{toolchain.identity} {program(disassembler)}",
        )

    def __str__(self) -> str:
        return f"nvcc {self.version}"

    @property
    def readers(self) -> tuple[ModuleType, ...]:
        """The module that reads cubins and listings."""
        return (kernel_code,)

    def identity(self, _arch: str) -> str:
        """The same for all architectures."""
        return self.named

    def flags(self, headers: UnitHeaders) -> list[str]:
        """Options that do not contain paths."""
        return [*FLAGS, *headers.language, f"-arch=sm_{arch_number(headers.arch)}"]

    def options(self, headers: UnitHeaders) -> list[str]:
        """All options."""
        # `__FILE__` must not depend on the path of a tree.
        prefix_maps = [f"-fmacro-prefix-map={folder}/=" for folder in headers.includes]
        unplaced = [option for prefix_map in prefix_maps for option in ("-Xcompiler", prefix_map)]
        folders = [f"-I{folder}" for folder in headers.includes]
        return [*self.flags(headers), *unplaced, *folders]

    def preprocessing(self, headers: UnitHeaders) -> list[str]:
        """The command to preprocess, keeping macro definitions."""
        return [self.nvcc, "-E", "-Xcompiler", "-dD", *self.options(headers)]

    def kernels(self, job: Job, key: str, cache: Path, *, listed: bool) -> tuple[Kernel, ...]:
        """Disassembles a unit's cubin, or only digests its kernels.

        Disassembling takes a fifth as long as compiling, and most kernels turn out to be equal.
        """
        return self.read(self._cubin(job, key, cache), cache, listed=listed)

    def read(self, cubin: bytes, cache: Path, *, listed: bool) -> tuple[Kernel, ...]:
        """Reads the kernels of a cubin."""
        options = ["-sass", "-res-usage"] if listed else ["-res-usage"]
        with folder_of_its_own(cache) as folder:
            path = folder / "main.cubin"
            path.write_bytes(cubin)
            listing = run([self.cuobjdump, *options, str(path)], install=to_install())
        sealed_by_name, usage = read_cubin(cubin, "the cubin"), read_usage(listing)
        code_by_name = {name: kernel.code for name, kernel in sealed_by_name.items()}
        if listed:
            kernels = read_listing(listing, "cuobjdump's listing", sealed_by_name)
            code_by_name = {kernel.name: kernel.code for kernel in kernels}
        check_usage(usage, sealed_by_name)
        return tuple(
            kernel.model_copy(update={"code": code_by_name[name], "resources": usage[name]})
            for name, kernel in sorted(sealed_by_name.items())
        )

    def _cubin(self, job: Job, key: str, cache: Path) -> bytes:
        if (cached := kept("cubin", key, cache)) is not None:
            return cached
        mark = new_mark()
        with unit_file(marked(job.text, mark), cache) as source:
            output = source.with_suffix(".cubin")
            command = [self.nvcc, "-cubin", *self.options(job.headers)]
            compile_file(command, source, output, cache, key)
            cubin = made_of(output, mark)
        read_cubin(cubin, "the cubin")
        keep("cubin", key, cubin, cache)
        return cubin


@dataclass(frozen=True, slots=True)
class LibraryKernels:
    """How kernels of a library besides CUB are compiled."""

    library: Library
    find_tools: Callable[[Collection[str], Path | None], KernelTools]
    """Finds the compiler, at a path if given, and which of the architectures it supports."""
    compiler: str
    """The name of the program."""
    install: str
    """The command that installs it."""
    try_out: Callable[[], str]
    """Compiles a kernel, and describes the compiler."""
    call_template: str
    """The template of units that call the library's device API."""
    call_options: Callable[[Site, str], tuple[str, ...]]
    """Returns the options that such a unit needs at a site for an architecture."""


def preprocess(
    headers: UnitHeaders, available: str, tools: KernelTools, cache: Path
) -> str | PolicygenError:
    """Returns a digest of the preprocessed headers.

    Line numbers and file names do not matter; the names `available` in the include folders do.
    """
    # The same files preprocess to the same text, even with computed includes, which also read
    # files.
    writer = written_by(lexemes, kernel_code)
    flags, paths = tools.flags(headers), (*headers.includes, *tools.roots)
    key = digest(headers.text, *flags, tools.identity(headers.arch), writer, available)

    def make() -> Made:
        mark = new_mark()
        with unit_file(ended(headers.text, mark), cache) as source:
            output = source.with_suffix(".ii")
            command = tools.preprocessing(headers)
            compile_file(command, source, output, cache, key, install=tools.install)
            text = made_of(output, mark, tools.compiler)
            check_unnamed(text, source)
            return Made(content(text, mark, headers.includes).encode(), text, source)

    return attempt(lambda: remembered("preprocessed", key, paths, make, cache).decode())


def build(
    job: Job, tools: KernelTools, cache: Path, *, listed: bool
) -> tuple[Kernel, ...] | PolicygenError:
    """Compiles a unit; listed kernels have their instructions, others only a digest of them."""
    return attempt(lambda: _kernels(job, tools, cache, listed=listed))


def _kernels(job: Job, tools: KernelTools, cache: Path, *, listed: bool) -> tuple[Kernel, ...]:
    # The options name folders; their contents are covered by job.content.
    flags, identity = tools.flags(job.headers), tools.identity(job.headers.arch)
    compiled = digest(job.text, *flags, job.content, identity)
    kind, key = "sass" if listed else "kernels", digest(compiled, written_by(*tools.readers))
    with suppress(ValidationError):  # written by another version of policygen
        if cached := _KERNELS.validate_json(kept(kind, key, cache) or b"[]"):
            return cached
    kernels = tools.kernels(job, compiled, cache, listed=listed)
    keep(kind, key, _KERNELS.dump_json(kernels), cache)
    return kernels
