"""How fetched trees are called and kept: `3.0.1` in `3.0.1`, `rocprim@5.7.1` in `rocprim-5.7.1`."""

from dataclasses import dataclass
from pathlib import Path

from policygen.errors import InputError
from policygen.model.cub import Library
from policygen.tree.libraries import FetchedRule
from policygen.tree.manifest import Wheel, shipped
from policygen.tree.packages import Release
from policygen.tree.version import version_key


@dataclass(frozen=True, slots=True)
class Name:
    """A release of a library that can be fetched."""

    library: Library
    version: str

    def __str__(self) -> str:
        return f"{self._rule.name}{self.version}"

    @property
    def key(self) -> tuple[int, tuple[int, ...]]:
        """Sorts by library, then oldest first."""
        return tuple(shipped().libraries).index(self.library), version_key(self.version)

    @property
    def _rule(self) -> FetchedRule:
        return shipped().libraries[self.library].fetched

    def place(self, folder: Path) -> Path:
        """Where it is kept in the folder of fetched trees."""
        return folder / f"{self._rule.folder}{self.version}"

    def root(self, folder: Path) -> Path:
        """Its include folder."""
        return self.place(folder) / self._rule.include


def parse(text: str) -> Name | None:
    """What a text names, if it can be a release."""
    return _named(text, {one: row.fetched.name for one, row in shipped().libraries.items()})


def kept_as(folder: str) -> Name | None:
    """What a folder's name says, if it can be a release."""
    return _named(folder, {one: row.fetched.folder for one, row in shipped().libraries.items()})


def _named(text: str, prefixes: dict[Library, str]) -> Name | None:
    found = (
        Name(library, version)
        for library, prefix in prefixes.items()
        if text.startswith(prefix) and _is_version(version := text.removeprefix(prefix))
    )
    return next(found, None)


def _is_version(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 3 and all(part.isascii() and part.isdecimal() for part in parts)


def current_file(library: Library) -> str:
    """What remembers the tree that was fetched last: `.current`, `.rocprim-current`."""
    return f".{shipped().libraries[library].fetched.folder}current"


def name_of(source: Wheel | Release) -> Name:
    """What a wheel or packages hold."""
    if isinstance(source, Wheel):
        return Name("cub", source.cub)
    return Name(source.library, source.release)


def find_source(text: str) -> Wheel | Release | None:
    """Where a release comes from, if the manifest says it."""
    return next((one for one in sources() if str(name_of(one)) == text), None)


def sources() -> tuple[Wheel | Release, ...]:
    """All that the manifest has."""
    known = shipped()
    return (*known.wheels, *known.releases)


def source(text: str) -> Wheel | Release:
    """The same; none is an error."""
    if found := find_source(text):
        return found
    for library, row in shipped().libraries.items():
        if row.fetched.name and text.startswith(row.fetched.name):
            known = ", ".join(str(name_of(r)) for r in shipped().releases if r.library == library)
            raise InputError(f"no package is known that holds {text}", f"known are: {known}")
    return shipped().wheel(text)
