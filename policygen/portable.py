"""Makes file names portable: relative to the working folder, without a machine's own paths.

A file in or near the working folder is named relative to it, and can be found again from there.
A file elsewhere is reduced to as much of the end of its path as distinguishes it from others, which
is only a label.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache, partial
from operator import is_
from pathlib import Path, PurePath
from typing import TypeVar

from pydantic import BaseModel

KEPT = frozenset({"edits", "text", "diff", "rows", "cells", "kernels"})
"""Fields that hold code, which must not change, or thousands of parts without file names."""
FILES = frozenset({"database", "databases", "path", "root", "includes", "out", "source"})
"""Fields whose values are files, whether or not they exist here."""
NEAR = 2
"""Paths with at most this many common leading parts, such as `/` and `home`, are not near."""
# /home/me/cccl/cub in a sentence
_PATH = re.compile(r"(?<![\w.~:/$-])/(?:[^\s/:;,'\"()\[\]<>|]+/)*[^\s/:;,'\"()\[\]<>|]*[\w+]")
_WITH_TEXT = (str, tuple, dict, BaseModel)
Model = TypeVar("Model", bound=BaseModel)
Rename = Callable[[str, str], str]
"""Returns a text, given the name of its field, with other names of files."""


def portable(document: Model, cwd: Path | None = None) -> Model:
    """Returns a document without machine-specific paths."""
    files: set[str] = set()  # several may end in the same name

    def note(text: str, field: str) -> str:
        if field in FILES and PurePath(text).is_absolute():
            files.add(text)
        return text

    _with_names(document, note)
    folder, trees = Path.cwd() if cwd is None else cwd, tuple(dict.fromkeys(_trees(document)))
    result = _with_names(document, _Names(folder, trees, files).renamed)
    assert isinstance(result, type(document))
    return result


def portable_name(path: str, cwd: Path | None = None) -> str:
    """Returns a file's portable name."""
    return _Names(Path.cwd() if cwd is None else cwd).renamed(path, "path")


def nearby(path: Path) -> str:
    """Returns a path relative to the current folder if it is below it."""
    cwd = Path.cwd()
    return path.relative_to(cwd).as_posix() if path.is_relative_to(cwd) else path.as_posix()


class _Names:
    """Names paths relative to a folder."""

    def __init__(
        self, folder: Path, trees: tuple[str, ...] = (), files: Collection[str] = ()
    ) -> None:
        self.folder, self.files = folder, [PurePath(file).parts for file in files]
        names = {base: _relative_name(base, folder) for base in (*trees, str(folder))}
        self.name_by_folder = dict(sorted(names.items(), key=lambda pair: -len(pair[0])))

    def renamed(self, text: str, field: str) -> str:
        """Returns the text of a field with portable names."""
        if PurePath(text).is_absolute() and (field in FILES or _exists(text)):
            return self._named(text)
        for base, name in self.name_by_folder.items():
            if base in text:
                pattern = re.compile(rf"(?<![\w.~/-]){re.escape(base)}(?:(/)|(?![\w-]|\.\w))")
                text = pattern.sub(partial(_base_name, name), text)
        return _PATH.sub(self._in_text, text)

    def _named(self, path: str) -> str:
        for base, name in self.name_by_folder.items():
            if PurePath(path).is_relative_to(base):
                return (PurePath(name) / PurePath(path).relative_to(base)).as_posix()
        name, parts = _relative_name(path, self.folder), PurePath(path).parts
        if name != parts[-1]:
            return name
        other_files = [other_file for other_file in self.files if other_file != parts]
        suffixes = (parts[-count:] for count in range(1, len(parts)))
        unique = (
            suffix
            for suffix in suffixes
            if all(other_file[-len(suffix) :] != suffix for other_file in other_files)
        )
        return "/".join(next(unique, parts[-1:]))

    def _in_text(self, match: re.Match[str]) -> str:
        """Names a file that exists, or whose folder does."""
        path = PurePath(match[0])
        exists = _exists(match[0]) or (len(path.parts) > NEAR and _exists(str(path.parent)))
        return self._named(match[0]) if exists else match[0]


def _base_name(name: str, match: re.Match[str]) -> str:
    """Returns a folder's name, or the prefix for a file below it."""
    if match[1]:
        return "" if name == "." else f"{name}/"
    return name


def _relative_name(path: str, folder: Path) -> str:
    """Returns `run.db` or `../data/run.db`; only the last component of a distant path."""
    try:
        common = PurePath(os.path.commonpath((path, folder)))
    except ValueError:  # another drive
        return PurePath(path).name
    if common != PurePath(folder) and (len(common.parts) <= NEAR or common == _home()):
        return PurePath(path).name
    return PurePath(os.path.relpath(path, folder)).as_posix()


def _home() -> PurePath | None:
    try:
        return Path.home()
    except RuntimeError:  # for a user without an account entry
        return None


@lru_cache(maxsize=1 << 12)
def _exists(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110  of thousands of texts


def _trees(value: BaseModel) -> Iterator[str]:
    """Yields the folders that contain the document's trees."""
    root = getattr(value, "root", None)
    if isinstance(root, str) and PurePath(root).is_absolute():
        folders = [
            include for include in getattr(value, "includes", ()) if PurePath(include).is_absolute()
        ]
        yield os.path.commonpath([root, *folders])
    for part in value.__dict__.values():
        if isinstance(part, BaseModel):
            yield from _trees(part)


def _with_names(value: object, rename: Rename, field: str = "") -> object:
    """Renames files in a value; returns the same object if nothing changes."""
    if isinstance(value, str):
        return rename(value, field) if "/" in value or "\\" in value else value
    if isinstance(value, BaseModel):
        fields = {name: part for name, part in value.__dict__.items() if name not in KEPT}
        if changed := _changed_fields(fields, rename):
            return value.model_copy(update=changed)
    elif type(value) is tuple:
        parts = tuple([_with_names(part, rename, field) for part in value])
        return value if all(map(is_, parts, value)) else parts
    elif isinstance(value, dict):
        changed = _changed_fields(value, rename)
        return {**value, **changed} if changed else value
    return value


def _changed_fields(fields: Mapping[str, object], rename: Rename) -> dict[str, object]:
    """Returns the fields that change."""
    changed = {}
    for name, old in fields.items():
        if isinstance(old, _WITH_TEXT) and (new := _with_names(old, rename, name)) is not old:
            changed[name] = new
    return changed
