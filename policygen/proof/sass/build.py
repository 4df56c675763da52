"""Translation units to kernels, each compiled once for what it depends on."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from policygen.errors import PolicygenError, ProcessError
from policygen.model.arch import arch_number
from policygen.model.sass import Kernel
from policygen.paths import cache_failure, write_atomically
from policygen.process import run
from policygen.proof import deps
from policygen.proof.compile import compile_failure
from policygen.proof.sass.bounds import max_threads
from policygen.proof.sass.listing import read_listing
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

    @property
    def options(self) -> list[str]:
        """Of the compiler."""
        # What `__FILE__` says must not depend on where a tree stands.
        places = [f"-fmacro-prefix-map={folder}/=" for folder in self.includes]
        unplaced = [option for place in places for option in ("-Xcompiler", place)]
        folders = [f"-I{folder}" for folder in self.includes]
        return [*FLAGS, f"-arch=sm_{arch_number(self.arch)}", *unplaced, *folders]


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
    """The kernels of a unit; what is known of the same unit is taken from the cache."""
    return _attempt(lambda: _built(job, tools, cache / "sass"))


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
    with _source(headers.text, folder) as source:
        made = source.with_suffix(".ii")
        _compile([tools.nvcc, "-E", *headers.options], source, made, folder / f"{key}.cu")
        name = hashlib.sha256(_without_places(made.read_bytes())).hexdigest()
        # The old list must not vouch for the new name.
        manifest.unlink(missing_ok=True)
        write_atomically(known, name.encode())
        deps.record(manifest, made)
    return name


def _built(job: Job, tools: Tools, folder: Path) -> tuple[Kernel, ...]:
    # The options name folders; what lies in them is the content's.
    key = _digest(job.text, *FLAGS, job.headers.arch, job.content, tools.version)
    path = folder / f"{key}.sass"
    if (known := _read(path)) is not None:
        return known
    with _source(job.text, folder) as source:
        cubin = source.with_suffix(".cubin")
        _compile([tools.nvcc, "-cubin", *job.headers.options], source, cubin, folder / f"{key}.cu")
        kernels = disassembled(cubin, tools)
    data = _KERNELS.dump_json(kernels)
    write_atomically(path, hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
    return kernels


def disassembled(cubin: Path, tools: Tools) -> tuple[Kernel, ...]:
    """The kernels of a cubin, with their launch bounds."""
    listing = run([tools.cuobjdump, "-sass", "-res-usage", str(cubin)], install=REMEDY)
    bounds = max_threads(cubin.read_bytes(), cubin.name)
    kernels = read_listing(listing, "cuobjdump's listing")
    return tuple(k.model_copy(update={"max_threads": bounds.get(k.name)}) for k in kernels)


@contextmanager
def _source(text: str, folder: Path) -> Iterator[Path]:
    """A unit in a folder of its own; what a stopped compiler leaves behind goes with it."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder) as temporary:
        source = Path(temporary) / "unit.cu"
        source.write_text(text)
        yield source


def _compile(command: Sequence[str], source: Path, made: Path, kept: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(source.parent)}
    try:
        run([*command, "-o", str(made), str(source)], env=environment, install=REMEDY)
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


def _read(path: Path) -> tuple[Kernel, ...] | None:
    """What the cache holds; a file that is not as it was written is as good as none."""
    try:
        digest, _, data = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if hashlib.sha256(data).hexdigest().encode() != digest:
        return None
    try:
        return _KERNELS.validate_json(data) or None
    except ValidationError:  # of another policygen
        return None


def _digest(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part.encode())
    return digest.hexdigest()[:32]
