"""Finds what CCCL's own benchmarks are linked with: NVBench and cuRAND, for the release of nvcc."""

import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from policygen.errors import InputError, MissingToolError
from policygen.installation import add
from policygen.proof.sass.nvbench import HEADER, PACKAGE
from policygen.proof.toolchain import Toolchain, program

LIBRARY, MAIN = "libnvbench.so", "libnvbench_main.a"
CURAND, CURAND_HEADER = "libcurand.so*", "curand.h"
_LIBRARIES = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")


@dataclass(frozen=True, slots=True)
class NvbenchLibrary:
    """Where NVBench and cuRAND are."""

    includes: tuple[str, ...]
    main: Path
    """`main` of a benchmark's program."""
    shared: tuple[Path, ...]
    """NVBench, and cuRAND, which makes random inputs."""

    @property
    def folders(self) -> tuple[str, ...]:
        """Where a program finds its libraries when it runs."""
        return tuple(dict.fromkeys(str(one.parent) for one in self.shared))

    @property
    def identity(self) -> str:
        """Names what is linked, and where a program finds it."""
        return " ".join((*map(program, (self.main, *self.shared)), *self.folders))


def find_library(toolchain: Toolchain, folder: Path | None = None) -> NvbenchLibrary:
    """Finds NVBench in the folder that it was installed to, else in its wheel."""
    prefix = _installed(toolchain) if folder is None else _given(folder)
    main, library = (_of(prefix, name) for name in (MAIN, LIBRARY))
    assert main is not None
    assert library is not None
    header, curand = _curand(toolchain)
    return NvbenchLibrary((str(prefix / "include"), str(header)), main, (library, curand))


def _given(folder: Path) -> Path:
    if _is_whole(folder):
        return folder
    raise InputError(
        f"{folder} is no installed NVBench: it has no include/{HEADER}, lib/{LIBRARY} and"
        f" lib/{MAIN}",
        "Build it, and name what `cmake --install` wrote; or leave the option out.",
    )


def _installed(toolchain: Toolchain) -> Path:
    """The wheel has NVBench for each major release of CUDA."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    pattern = f"{_major(toolchain)}/nvbench/include/{HEADER}"
    for file in files:
        if file.match(pattern):
            prefix = Path(str(file.locate())).parents[2]
            if _is_whole(prefix):
                return prefix
    raise MissingToolError(
        f"NVBench for CUDA {toolchain.version.partition('.')[0]}", f"Install it: {add('measure')}"
    )


def _is_whole(prefix: Path) -> bool:
    return (prefix / "include" / HEADER).is_file() and all(
        _of(prefix, name) is not None for name in (LIBRARY, MAIN)
    )


def _curand(toolchain: Toolchain) -> tuple[Path, Path]:
    """The folder of its header, and the library: of the toolkit, else of the wheel."""
    for root in _roots(toolchain):
        header, library = root / "include" / CURAND_HEADER, _of(root, CURAND)
        if header.is_file() and library is not None:
            return header.parent, library
    raise MissingToolError("cuRAND", f"Install it: {add('measure')}")


def _roots(toolchain: Toolchain) -> Iterator[Path]:
    yield from map(Path, toolchain.roots)
    wheels = Path(sysconfig.get_path("purelib")) / "nvidia"
    yield wheels / _major(toolchain)
    yield wheels / "curand"  # where the wheels for CUDA 12 have it


def _major(toolchain: Toolchain) -> str:
    return f"cu{toolchain.version.partition('.')[0]}"


def _of(root: Path, pattern: str) -> Path | None:
    found = (path for folder in _LIBRARIES for path in sorted((root / folder).glob(pattern)))
    return next((path for path in found if path.is_file()), None)
