"""Makes kernels of translation units, each compiled once for what it depends on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from policygen.cache import digest, keep, kept, written_by
from policygen.errors import PolicygenError
from policygen.model.arch import arch_number
from policygen.model.sass import Kernel
from policygen.process import run
from policygen.proof import lexemes
from policygen.proof.compile import attempt, compile_file, folder_of_its_own, unit_file
from policygen.proof.deps import Made, remembered
from policygen.proof.mark import check_unnamed, made_of, marked, new_mark
from policygen.proof.sass import cubin as cubin_reader
from policygen.proof.sass import listing as listings
from policygen.proof.sass import preprocessed
from policygen.proof.sass.cubin import Sealed, check_usage, read_cubin
from policygen.proof.sass.listing import read_listing, read_usage
from policygen.proof.sass.preprocessed import content, ended
from policygen.proof.toolchain import Toolchain, find_disassembler, program, to_install

# As in a release: without asserts, which hold the numbers of their lines.
FLAGS = ("-std=c++17", "-w", "-DNDEBUG")
_KERNELS = TypeAdapter(tuple[Kernel, ...])


@dataclass(frozen=True, slots=True)
class Tools:
    """What compiles and disassembles, by path, and which release it is."""

    nvcc: str
    cuobjdump: str
    version: str
    identity: str
    """Names what they make: the same for the same tools at another place."""
    roots: tuple[str, ...]
    """The folder of the toolkit, by which its headers are told from others."""

    @classmethod
    def of(cls, toolchain: Toolchain) -> "Tools":
        """Takes those of a toolchain."""
        disassembler = find_disassembler(toolchain)
        identity = f"{toolchain.identity} {program(disassembler)}"
        nvcc = str(toolchain.nvcc)
        return cls(nvcc, str(disassembler), toolchain.version, identity, toolchain.roots)

    def __str__(self) -> str:
        return f"nvcc {self.version}"


@dataclass(frozen=True, slots=True)
class UnitHeaders:
    """What a unit includes: a unit without its call, where it looks, for which architecture."""

    text: str
    includes: tuple[str, ...]
    arch: str
    language: tuple[str, ...] = ()
    """Options that the unit needs beside those of all."""

    @property
    def flags(self) -> list[str]:
        """Options of the compiler that do not name a place."""
        return [*FLAGS, *self.language, f"-arch=sm_{arch_number(self.arch)}"]

    @property
    def options(self) -> list[str]:
        """Of the compiler."""
        # What `__FILE__` says must not depend on where a tree stands.
        places = [f"-fmacro-prefix-map={folder}/=" for folder in self.includes]
        unplaced = [option for place in places for option in ("-Xcompiler", place)]
        folders = [f"-I{folder}" for folder in self.includes]
        return [*self.flags, *unplaced, *folders]


@dataclass(frozen=True, slots=True)
class Job:
    """One compile; it holds all that it needs, so that any process can do it."""

    text: str
    headers: UnitHeaders
    content: str
    """Names what the preprocessor makes of the headers."""


def preprocess(headers: UnitHeaders, there: str, tools: Tools, cache: Path) -> str | PolicygenError:
    """Names what the preprocessor makes of headers: the same for the same text.

    Where lines stand, and which files they come from, does not matter; what is `there` in the
    include folders does.
    """
    return attempt(lambda: _preprocessed(headers, there, tools, cache))


def build(job: Job, tools: Tools, cache: Path) -> tuple[Kernel, ...] | PolicygenError:
    """Compiles the kernels of a unit; for their code there is a digest alone.

    To disassemble takes a fifth of the time that it takes to compile, and most kernels are equal.
    """
    return attempt(lambda: _kernels("kernels", ["-res-usage"], _digested, job, tools, cache))


def disassemble(job: Job, tools: Tools, cache: Path) -> tuple[Kernel, ...] | PolicygenError:
    """Compiles the kernels of a unit, with their instructions."""
    return attempt(lambda: _kernels("sass", ["-sass", "-res-usage"], _listed, job, tools, cache))


def _preprocessed(headers: UnitHeaders, there: str, tools: Tools, cache: Path) -> str:
    # The same files, read in the same way, make the same text: a computed include reads what it
    # names, too.
    writer = written_by(lexemes, preprocessed)
    key = digest(headers.text, *headers.flags, tools.identity, writer, there)
    paths = (*headers.includes, *tools.roots)
    return remembered(
        "preprocessed", key, paths, lambda: _named(headers, tools, cache, key), cache
    ).decode()


def _named(headers: UnitHeaders, tools: Tools, cache: Path, key: str) -> Made:
    mark = new_mark()
    with unit_file(ended(headers.text, mark), cache) as source:
        made = source.with_suffix(".ii")
        # With the macros, too: what is called below the headers may be one.
        command = [tools.nvcc, "-E", "-Xcompiler", "-dD", *headers.options]
        compile_file(command, source, made, cache, key)
        text = made_of(made, mark)
        check_unnamed(text, source)
        return Made(content(text, mark, headers.includes).encode(), text, source)


Read = Callable[[str, Mapping[str, Sealed]], tuple[Kernel, ...]]
"""From cuobjdump's listing, and what the cubin tells, to kernels."""


def _kernels(
    kind: str, options: Sequence[str], read: Read, job: Job, tools: Tools, cache: Path
) -> tuple[Kernel, ...]:
    key = digest(_key(job, tools), written_by(cubin_reader, listings))
    if known := _known(kind, key, cache):
        return known
    cubin = _cubin(job, tools, cache)
    with folder_of_its_own(cache) as folder:
        path = folder / "main.cubin"
        path.write_bytes(cubin)
        listing = run([tools.cuobjdump, *options, str(path)], install=to_install())
    kernels = read(listing, read_cubin(cubin, "the cubin"))
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


def _cubin(job: Job, tools: Tools, cache: Path) -> bytes:
    key = _key(job, tools)
    if (known := kept("cubin", key, cache)) is not None:
        return known
    mark = new_mark()
    with unit_file(marked(job.text, mark), cache) as source:
        made = source.with_suffix(".cubin")
        command = [tools.nvcc, "-cubin", *job.headers.options]
        compile_file(command, source, made, cache, key)
        cubin = made_of(made, mark)
    read_cubin(cubin, "the cubin")
    keep("cubin", key, cubin, cache)
    return cubin


def _key(job: Job, tools: Tools) -> str:
    # The options name folders; what lies in them is the content's.
    return digest(job.text, *job.headers.flags, job.content, tools.identity)


def _known(kind: str, key: str, cache: Path) -> tuple[Kernel, ...] | None:
    data = kept(kind, key, cache)
    try:
        return None if data is None else _KERNELS.validate_json(data)
    except ValidationError:  # of another policygen
        return None
