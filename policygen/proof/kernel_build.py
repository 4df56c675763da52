"""Makes kernels of translation units, each compiled once for what it depends on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol

from pydantic import TypeAdapter, ValidationError

from policygen.cache import digest, keep, kept, written_by
from policygen.errors import PolicygenError
from policygen.model.arch import arch_number
from policygen.model.machine_code import Kernel
from policygen.process import run
from policygen.proof import kernel_code, lexemes
from policygen.proof import kernel_code as cubin_reader
from policygen.proof import kernel_code as listings
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

# As in a release: without asserts, which hold the numbers of their lines.
FLAGS = ("-std=c++17", "-w", "-DNDEBUG")
_KERNELS = TypeAdapter(tuple[Kernel, ...])


# What is compiled to kernels, and what a compiler of kernels must know to do.


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


@dataclass(frozen=True, slots=True)
class Tools:
    """What compiles and disassembles, by path, and which release it is."""

    nvcc: str
    cuobjdump: str
    version: str
    named: str
    """Names what they make: the same for the same tools at another place."""
    roots: tuple[str, ...]
    """The folder of the toolkit, by which its headers are told from others."""

    @classmethod
    def of(cls, toolchain: Toolchain) -> "Tools":
        """Takes those of a toolchain."""
        disassembler = find_disassembler(toolchain)
        named = f"{toolchain.identity} {program(disassembler)}"
        nvcc = str(toolchain.nvcc)
        return cls(nvcc, str(disassembler), toolchain.version, named, toolchain.roots)

    def __str__(self) -> str:
        return f"nvcc {self.version}"

    @property
    def compiler(self) -> str:
        """Which one."""
        return "nvcc"

    @property
    def readers(self) -> tuple[ModuleType, ...]:
        """What reads cubins, and listings of them."""
        return cubin_reader, listings

    @property
    def install(self) -> str:
        """Of the toolkit."""
        return to_install()

    @property
    def more(self) -> None:
        """It needs no variables."""

    def identity(self, _arch: str) -> str:
        """The same for all architectures."""
        return self.named

    def flags(self, headers: UnitHeaders) -> list[str]:
        """Options that do not name a place."""
        return [*FLAGS, *headers.language, f"-arch=sm_{arch_number(headers.arch)}"]

    def options(self, headers: UnitHeaders) -> list[str]:
        """All of them."""
        # What `__FILE__` says must not depend on where a tree stands.
        places = [f"-fmacro-prefix-map={folder}/=" for folder in headers.includes]
        unplaced = [option for place in places for option in ("-Xcompiler", place)]
        folders = [f"-I{folder}" for folder in headers.includes]
        return [*self.flags(headers), *unplaced, *folders]

    def preprocessing(self, headers: UnitHeaders) -> list[str]:
        """With the macros, too: what is called below the headers may be one."""
        return [self.nvcc, "-E", "-Xcompiler", "-dD", *self.options(headers)]

    def kernels(self, job: Job, key: str, cache: Path, *, listed: bool) -> tuple[Kernel, ...]:
        """Disassembles the cubin of a unit, or seals what is in it.

        To disassemble takes a fifth of the time that it takes to compile, and most kernels are
        equal.
        """
        options = ["-sass", "-res-usage"] if listed else ["-res-usage"]
        cubin = self._cubin(job, key, cache)
        with folder_of_its_own(cache) as folder:
            path = folder / "main.cubin"
            path.write_bytes(cubin)
            listing = run([self.cuobjdump, *options, str(path)], install=to_install())
        found = read_cubin(cubin, "the cubin")
        return _listed(listing, found) if listed else _digested(listing, found)

    def _cubin(self, job: Job, key: str, cache: Path) -> bytes:
        if (known := kept("cubin", key, cache)) is not None:
            return known
        mark = new_mark()
        with unit_file(marked(job.text, mark), cache) as source:
            made = source.with_suffix(".cubin")
            command = [self.nvcc, "-cubin", *self.options(job.headers)]
            compile_file(command, source, made, cache, key)
            cubin = made_of(made, mark)
        read_cubin(cubin, "the cubin")
        keep("cubin", key, cubin, cache)
        return cubin


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


def preprocess(
    headers: UnitHeaders, there: str, tools: KernelTools, cache: Path
) -> str | PolicygenError:
    """Names what the preprocessor makes of headers: the same for the same text.

    Where lines stand, and which files they come from, does not matter; what is `there` in the
    include folders does.
    """
    return attempt(lambda: _preprocessed(headers, there, tools, cache))


def build(job: Job, tools: KernelTools, cache: Path) -> tuple[Kernel, ...] | PolicygenError:
    """Compiles the kernels of a unit; for their code there is a digest alone."""
    return attempt(lambda: _kernels("kernels", job, tools, cache, listed=False))


def disassemble(job: Job, tools: KernelTools, cache: Path) -> tuple[Kernel, ...] | PolicygenError:
    """Compiles the kernels of a unit, with their instructions."""
    return attempt(lambda: _kernels("sass", job, tools, cache, listed=True))


def _preprocessed(headers: UnitHeaders, there: str, tools: KernelTools, cache: Path) -> str:
    # The same files, read in the same way, make the same text: a computed include reads what it
    # names, too.
    writer = written_by(lexemes, kernel_code)
    flags, identity = tools.flags(headers), tools.identity(headers.arch)
    key = digest(headers.text, *flags, identity, writer, there)
    paths = (*headers.includes, *tools.roots)
    return remembered(
        "preprocessed", key, paths, lambda: _named(headers, tools, cache, key), cache
    ).decode()


def _named(headers: UnitHeaders, tools: KernelTools, cache: Path, key: str) -> Made:
    mark = new_mark()
    with unit_file(ended(headers.text, mark), cache) as source:
        made = source.with_suffix(".ii")
        compile_file(
            tools.preprocessing(headers),
            source,
            made,
            cache,
            key,
            install=tools.install,
            variables=tools.more,
        )
        text = made_of(made, mark, tools.compiler)
        check_unnamed(text, source)
        return Made(content(text, mark, headers.includes).encode(), text, source)


def _kernels(
    kind: str, job: Job, tools: KernelTools, cache: Path, *, listed: bool
) -> tuple[Kernel, ...]:
    # The options name folders; what lies in them is the content's.
    flags, identity = tools.flags(job.headers), tools.identity(job.headers.arch)
    compiled = digest(job.text, *flags, job.content, identity)
    key = digest(compiled, written_by(*tools.readers))
    if known := _known(kind, key, cache):
        return known
    kernels = tools.kernels(job, compiled, cache, listed=listed)
    keep(kind, key, _KERNELS.dump_json(kernels), cache)
    return kernels


def _digested(listing: str, found: Mapping[str, Sealed]) -> tuple[Kernel, ...]:
    usage = read_usage(listing)
    check_usage(usage, found)
    return tuple(
        Kernel(name=n, code=(one.digest,), resources=usage[n], max_threads=one.max_threads)
        for n, one in sorted(found.items())
    )


def _listed(listing: str, found: Mapping[str, Sealed]) -> tuple[Kernel, ...]:
    digests = {name: one.digest for name, one in found.items()}
    kernels = tuple(
        kernel.model_copy(update={"max_threads": found[kernel.name].max_threads})
        for kernel in read_listing(listing, "cuobjdump's listing", digests)
    )
    check_usage({kernel.name: kernel.resources for kernel in kernels}, found)
    return kernels


def _known(kind: str, key: str, cache: Path) -> tuple[Kernel, ...] | None:
    data = kept(kind, key, cache)
    try:
        return None if data is None else _KERNELS.validate_json(data)
    except ValidationError:  # of another policygen
        return None
