"""Builds kernels from translation units, with a cache keyed by what each unit depends on."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
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
    Sealed,
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
        sealed_by_name = read_cubin(cubin, "the cubin")
        return _listed(listing, sealed_by_name) if listed else _digested(listing, sealed_by_name)

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
    return attempt(lambda: _content_digest(headers, available, tools, cache))


def build(job: Job, tools: KernelTools, cache: Path) -> tuple[Kernel, ...] | PolicygenError:
    """Compiles the kernels of a unit, with only a digest of their code."""
    return attempt(lambda: _kernels("kernels", job, tools, cache, listed=False))


def disassemble(job: Job, tools: KernelTools, cache: Path) -> tuple[Kernel, ...] | PolicygenError:
    """Compiles the kernels of a unit, with their instructions."""
    return attempt(lambda: _kernels("sass", job, tools, cache, listed=True))


def _content_digest(headers: UnitHeaders, available: str, tools: KernelTools, cache: Path) -> str:
    # The same files preprocess to the same text, even with computed includes, which also read
    # files.
    writer = written_by(lexemes, kernel_code)
    flags, identity = tools.flags(headers), tools.identity(headers.arch)
    key = digest(headers.text, *flags, identity, writer, available)
    paths = (*headers.includes, *tools.roots)
    return remembered(
        "preprocessed", key, paths, lambda: _preprocess_unit(headers, tools, cache, key), cache
    ).decode()


def _preprocess_unit(headers: UnitHeaders, tools: KernelTools, cache: Path, key: str) -> Made:
    mark = new_mark()
    with unit_file(ended(headers.text, mark), cache) as source:
        output = source.with_suffix(".ii")
        command = tools.preprocessing(headers)
        compile_file(command, source, output, cache, key, install=tools.install)
        text = made_of(output, mark, tools.compiler)
        check_unnamed(text, source)
        return Made(content(text, mark, headers.includes).encode(), text, source)


def _kernels(
    kind: str, job: Job, tools: KernelTools, cache: Path, *, listed: bool
) -> tuple[Kernel, ...]:
    # The options name folders; their contents are covered by job.content.
    flags, identity = tools.flags(job.headers), tools.identity(job.headers.arch)
    compiled = digest(job.text, *flags, job.content, identity)
    key = digest(compiled, written_by(*tools.readers))
    if cached := _cached(kind, key, cache):
        return cached
    kernels = tools.kernels(job, compiled, cache, listed=listed)
    keep(kind, key, _KERNELS.dump_json(kernels), cache)
    return kernels


def _digested(listing: str, sealed_by_name: Mapping[str, Sealed]) -> tuple[Kernel, ...]:
    usage = read_usage(listing)
    check_usage(usage, sealed_by_name)
    return tuple(
        Kernel(
            name=name, code=(sealed.digest,), resources=usage[name], max_threads=sealed.max_threads
        )
        for name, sealed in sorted(sealed_by_name.items())
    )


def _listed(listing: str, sealed_by_name: Mapping[str, Sealed]) -> tuple[Kernel, ...]:
    digests = {name: sealed.digest for name, sealed in sealed_by_name.items()}
    kernels = tuple(
        kernel.model_copy(update={"max_threads": sealed_by_name[kernel.name].max_threads})
        for kernel in read_listing(listing, "cuobjdump's listing", digests)
    )
    check_usage({kernel.name: kernel.resources for kernel in kernels}, sealed_by_name)
    return kernels


def _cached(kind: str, key: str, cache: Path) -> tuple[Kernel, ...] | None:
    data = kept(kind, key, cache)
    try:
        return None if data is None else _KERNELS.validate_json(data)
    except ValidationError:  # written by another version of policygen
        return None
