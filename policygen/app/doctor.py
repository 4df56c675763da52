"""What is here of what policygen works with, and what mends what is not."""

import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from policygen import __version__, settings_file
from policygen.app.check_places import check_places
from policygen.app.check_tools import check_tools, fine
from policygen.installation import Requirement, add, again, clone, requirements
from policygen.model.doctor import Check, Doctor
from policygen.paths import nearby

NEEDED_BY = {
    "cuda": ("whatever asks the compiler, where there is no CUDA toolkit",),
    "benchmarks": ("verify-sass --benchmarks",),
    "measure": ("measure",),
    "plot": ("db plot",),
    "parquet": ("db export -o FILE.parquet",),
    "dev": ("make test", "make check"),
}
"""Extra → what needs it."""


def examine(cub: str | None = None) -> Doctor:
    """Looks at everything; what is missing is no error here."""
    return Doctor(
        version=__version__,
        installed="package" if clone() is None else "clone",
        checks=tuple(_checks(cub)),
    )


def _checks(cub: str | None) -> Iterator[Check]:
    yield fine("Python", f"{platform.python_version()}, {nearby(Path(sys.executable))}")
    asked = requirements()
    yield _packages(asked.get("", ()))
    for extra in sorted(asked.keys() - {""}):
        if extra != "dev" or clone() is not None:
            yield _extra(extra, asked[extra])
    yield from check_tools()
    yield _settings()
    yield from check_places(cub)


def _packages(asked: Sequence[Requirement]) -> Check:
    """What every command needs."""
    lacking = [one for one in asked if not one.fits]
    if not lacking:
        return fine("packages", f"all {len(asked)} that policygen needs", ("every command",))
    return Check(
        name="packages",
        state="missing",
        found=_lacking(lacking),
        needed_by=("every command",),
        remedy=again(),
    )


def _extra(extra: str, asked: Sequence[Requirement]) -> Check:
    lacking = [one for one in asked if not one.fits]
    name, needed_by = f"extra {extra}", NEEDED_BY.get(extra, ())
    if not lacking:
        first, *others = asked
        more = f" and {len(others)} more" if others else ""
        return fine(name, f"{first.name} {first.version}{more}", needed_by)
    none = all(one.version is None for one in asked)
    return Check(
        name=name,
        state="optional",
        found="not installed" if none else _lacking(lacking),
        needed_by=needed_by,
        remedy=add(extra),
    )


def _lacking(lot: Sequence[Requirement]) -> str:
    """`no pyarrow; pandas 2.1 where pandas>=2.2 is needed`."""
    return "; ".join(
        f"no {one.name}"
        if one.version is None
        else f"{one.name} {one.version} where {one.asked} is needed"
        for one in lot
    )


def _settings() -> Check:
    """One that is broken is told by the tree that it names."""
    if path := settings_file.named():
        return fine("settings", nearby(path))
    return Check(name="settings", state="optional", found=f"no {settings_file.NAME} is named")
