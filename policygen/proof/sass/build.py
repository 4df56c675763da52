"""Translation units to kernels, each compiled once for what it depends on."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from policygen.errors import InputError, PolicygenError, ProcessError
from policygen.model.arch import arch_number
from policygen.model.sass import Kernel
from policygen.paths import cache_failure, write_atomically
from policygen.process import run
from policygen.proof import deps
from policygen.proof.compile import compile_failure
from policygen.proof.sass.cubin import read_cubin
from policygen.proof.sass.listing import read_listing, read_usage
from policygen.proof.toolchain import REMEDY

# As in a release: without asserts, which hold the numbers of their lines.
FLAGS = ("-std=c++17", "-w", "-DNDEBUG")
Made = TypeVar("Made")
_KERNELS = TypeAdapter(tuple[Kernel, ...])


@dataclass(frozen=True, slots=True)
class Tools:
    """What compiles and disassembles, by path, and which release it is."""

    nvcc: str
    cuobjdump: str
    version: str

    def __str__(self) -> str:
        return f"nvcc {self.version}"


@dataclass(frozen=True, slots=True)
class Headers:
    """What a unit includes: a unit without its call, where it looks, for which architecture."""

    text: str
    includes: tuple[str, ...]
    arch: str
    language: tuple[str, ...] = ()
    """Options that the unit needs beside those of all."""

    @property
    def options(self) -> list[str]:
        """Of the compiler."""
        # What `__FILE__` says must not depend on where a tree stands.
        places = [f"-fmacro-prefix-map={folder}/=" for folder in self.includes]
        unplaced = [option for place in places for option in ("-Xcompiler", place)]
        folders = [f"-I{folder}" for folder in self.includes]
        return [*FLAGS, *self.language, f"-arch=sm_{arch_number(self.arch)}", *unplaced, *folders]


@dataclass(frozen=True, slots=True)
class Job:
    """One compile; it holds all that it needs, so that any process can do it."""

    text: str
    headers: Headers
    content: str
    """Names what the preprocessor makes of the headers."""


def preprocess(headers: Headers, tools: Tools, cache: Path) -> str | PolicygenError:
    """A name for what the preprocessor makes of headers: the same for the same text.

    Where lines stand, and which files they come from, does not matter.
    """
    return _attempt(lambda: _preprocessed(headers, tools, cache / "sass"))


def build(job: Job, tools: Tools, cache: Path) -> tuple[Kernel, ...] | PolicygenError:
    """The kernels of a unit; for their code there is a digest alone.

    To disassemble takes a fifth of the time that it takes to compile, and most kernels are equal.
    """
    return _attempt(lambda: _built(job, tools, cache / "sass"))


def disassemble(job: Job, tools: Tools, cache: Path) -> tuple[Kernel, ...] | PolicygenError:
    """The kernels of a unit with their instructions."""
    return _attempt(lambda: _disassembled(job, tools, cache / "sass"))


def _attempt(make: Callable[[], Made]) -> Made | PolicygenError:
    """What is made, or why it is not: one failure must not end the others."""
    try:
        return make()
    except PolicygenError as error:
        return error
    except OSError as error:
        return cache_failure(error)


def _preprocessed(headers: Headers, tools: Tools, folder: Path) -> str:
    key = _digest(headers.text, *headers.options, tools.version)
    known, manifest = folder / f"{key}.name", folder / f"{key}.files"
    if deps.unchanged(manifest) and (name := _name(known)):
        return name
    with _file(headers.text.encode(), folder) as source:
        made = source.with_suffix(".ii")
        _compile([tools.nvcc, "-E", *headers.options], source, made, folder / f"{key}.cu")
        name = hashlib.sha256(_without_places(made.read_bytes())).hexdigest()
        # The old list must not vouch for the new name.
        manifest.unlink(missing_ok=True)
        write_atomically(known, name.encode())
        deps.record(manifest, made)
    return name


def _built(job: Job, tools: Tools, folder: Path) -> tuple[Kernel, ...]:
    path = folder / f"{_key(job, tools)}.kernels"
    if known := _known(path):
        return known
    cubin = _cubin(job, tools, folder)
    found = read_cubin(cubin, "the cubin")
    with _file(cubin, folder) as place:
        listing = run([tools.cuobjdump, "-res-usage", str(place)], install=REMEDY)
    usage = read_usage(listing)
    if found.keys() != usage.keys():
        name = min(found.keys() ^ usage.keys())
        raise InputError(f"cuobjdump and the cubin do not agree about {name}")
    kernels = tuple(
        Kernel(name=n, code=(one.digest,), resources=usage[n], max_threads=one.max_threads)
        for n, one in sorted(found.items())
    )
    _keep(path, _KERNELS.dump_json(kernels))
    return kernels


def _disassembled(job: Job, tools: Tools, folder: Path) -> tuple[Kernel, ...]:
    path = folder / f"{_key(job, tools)}.sass"
    if known := _known(path):
        return known
    cubin = _cubin(job, tools, folder)
    with _file(cubin, folder) as place:
        listing = run([tools.cuobjdump, "-sass", "-res-usage", str(place)], install=REMEDY)
    bounds = {name: one.max_threads for name, one in read_cubin(cubin, "the cubin").items()}
    kernels = tuple(
        kernel.model_copy(update={"max_threads": bounds.get(kernel.name)})
        for kernel in read_listing(listing, "cuobjdump's listing")
    )
    _keep(path, _KERNELS.dump_json(kernels))
    return kernels


def _cubin(job: Job, tools: Tools, folder: Path) -> bytes:
    key = _key(job, tools)
    path = folder / f"{key}.cubin"
    if (known := _kept(path)) is not None:
        return known
    with _file(job.text.encode(), folder) as source:
        made = source.with_suffix(".cubin")
        _compile([tools.nvcc, "-cubin", *job.headers.options], source, made, folder / f"{key}.cu")
        cubin = made.read_bytes()
    _keep(path, cubin)
    return cubin


def _key(job: Job, tools: Tools) -> str:
    # The options name folders; what lies in them is the content's.
    flags = (*FLAGS, *job.headers.language)
    return _digest(job.text, *flags, job.headers.arch, job.content, tools.version)


@contextmanager
def _file(data: bytes, folder: Path) -> Iterator[Path]:
    """A unit in a folder of its own; what a stopped compiler leaves behind goes with it."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder) as temporary:
        path = Path(temporary) / "unit.cu"
        path.write_bytes(data)
        yield path


def _compile(command: Sequence[str], source: Path, made: Path, kept: Path) -> None:
    try:
        run([*command, "-o", str(made), str(source)], folder=source.parent, install=REMEDY)
    except ProcessError as error:
        raise compile_failure(error, source, kept, command) from error


def _without_places(text: bytes) -> bytes:
    """Without `# 12 "file.cuh"`, and without the space that comments leave."""
    lines = (line.strip() for line in text.splitlines())
    return b"\n".join(line for line in lines if line and not line.startswith(b"# "))


def _name(path: Path) -> str | None:
    try:
        text = path.read_text()
    except (OSError, ValueError):
        return None
    return text if len(text) == hashlib.sha256().digest_size * 2 else None


def _keep(path: Path, data: bytes) -> None:
    """Writes what the cache holds, with what tells later that it is whole."""
    write_atomically(path, hashlib.sha256(data).hexdigest().encode() + b"\n" + data)


def _kept(path: Path) -> bytes | None:
    """What the cache holds; a file that is not as it was written is as good as none."""
    try:
        digest, _, data = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest().encode() == digest else None


def _known(path: Path) -> tuple[Kernel, ...] | None:
    data = _kept(path)
    try:
        return None if data is None else _KERNELS.validate_json(data)
    except ValidationError:  # of another policygen
        return None


def _digest(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part.encode())
    return digest.hexdigest()[:32]
