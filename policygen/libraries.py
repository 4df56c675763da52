"""The libraries besides CUB: how their headers are recognized, and where their parts are.

A part is what one stage of the work needs of a library: `Notation` for headers, `Queries` and
`LibraryKernels` for proof, `TunerFormat` for results. It is loaded by its name when a header, a
tree or a result of the library is met: people who only use CUB do not pay for the others.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TypeVar

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Plugin:
    """What distinguishes the headers of a library from those of CUB, and where its parts are."""

    marks: re.Pattern[bytes]
    parts: Mapping[str, tuple[str, ...]]
    """Class of parts → each part, as `module:object`."""


PLUGINS: Mapping[str, Plugin] = {
    "rocprim": Plugin(
        re.compile(rb"\b(?:BEGIN_)?ROCPRIM_NAMESPACE\b|\bnamespace\s+rocprim\b"),
        {
            "Notation": ("policygen.rocprim.dialect:NOTATION",),
            "Queries": ("policygen.rocprim.host:QUERIES",),
            "LibraryKernels": ("policygen.rocprim.hipcc:KERNELS",),
            "TunerFormat": (
                "policygen.rocprim.tuner_files:TUNER_CACHE",
                "policygen.rocprim.tuner_files:PRIMBENCH",
                "policygen.rocprim.tuner_files:GOOGLE_BENCHMARK",
            ),
        },
    )
}
"""The registered libraries by name; CUB is not among them."""


def library_of_header(data: bytes) -> str:
    """Returns the library whose tuning header this is, CUB by default."""
    return next((name for name, plugin in PLUGINS.items() if plugin.marks.search(data)), "cub")


def part_of(library: str, kind: type[Part]) -> Part | None:
    """Returns the part of a library for a stage; None for CUB, which the stages know themselves."""
    return next(parts(kind, library), None)


def parts(kind: type[Part], library: str | None = None) -> Iterator[Part]:
    """Loads all parts of a class, of one library or of all."""
    for name, plugin in PLUGINS.items():
        if library in {name, None}:
            yield from map(resolve_name, plugin.parts[kind.__name__])


def sources() -> list[Path]:
    """Returns the Python files that know a library besides CUB."""
    here = Path(__file__)
    return [here, *(path for name in PLUGINS for path in sorted(here.parent.glob(f"{name}/*.py")))]
