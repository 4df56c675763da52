"""Names of files as others may read them: relative to the working folder, never of one machine.

A file below the working folder, or near it, is named as it is seen from there, and is found again
from there. One that is elsewhere keeps the end of its path, as much as tells it from others; that
is no more than a name.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache, partial
from operator import is_
from pathlib import Path, PurePath
from typing import TypeVar

from pydantic import BaseModel

KEPT = frozenset({"edits", "text", "diff", "rows", "cells", "kernels"})
"""Fields that hold code, which stays as it is, or thousands of parts of which none has a file."""
FILES = frozenset({"database", "databases", "path", "root", "includes", "out", "source"})
"""Fields whose values are files, whether or not these are here."""
NEAR = 2
"""What two paths have in common of no more parts, as `/` and `home`, is no nearness."""
# /home/me/cccl/cub in a sentence
_PATH = re.compile(r"(?<![\w.~:/$-])/(?:[^\s/:;,'\"()\[\]<>|]+/)*[^\s/:;,'\"()\[\]<>|]*[\w+]")
_WITH_TEXT = (str, tuple, dict, BaseModel)
Model = TypeVar("Model", bound=BaseModel)


def portable(document: Model, cwd: Path | None = None) -> Model:
    """A document without the paths of a machine."""
    here, files = Path.cwd() if cwd is None else cwd, _Files()
    _mapped(document, files)
    found = _mapped(document, _Names(here, tuple(dict.fromkeys(_trees(document))), files.far))
    assert isinstance(found, type(document))
    return found


def portable_name(path: str, cwd: Path | None = None) -> str:
    """A file's name for others."""
    return _Names(Path.cwd() if cwd is None else cwd)(path, is_file=True)


class _Files:
    """Notes the files of a document; some that are far away may have the same last name."""

    def __init__(self) -> None:
        self.far: set[str] = set()

    def __call__(self, text: str, *, is_file: bool) -> str:
        if is_file and PurePath(text).is_absolute():
            self.far.add(text)
        return text


class _Names:
    """What paths are called, seen from a folder."""

    def __init__(
        self, here: Path, trees: tuple[str, ...] = (), files: Collection[str] = ()
    ) -> None:
        self.here, self.files = here, [PurePath(file).parts for file in files]
        known = {base: _seen(base, here) for base in (*trees, str(here))}
        self.known = dict(sorted(known.items(), key=lambda pair: -len(pair[0])))

    def __call__(self, text: str, *, is_file: bool) -> str:
        if PurePath(text).is_absolute() and (is_file or _exists(text)):
            return self._named(text)
        for base, name in self.known.items():
            if base in text:
                found = re.compile(rf"(?<![\w.~/-]){re.escape(base)}(?:(/)|(?![\w-]|\.\w))")
                text = found.sub(partial(_replaced, name), text)
        return _PATH.sub(self._in_text, text)

    def _named(self, path: str) -> str:
        for base, name in self.known.items():
            if PurePath(path).is_relative_to(base):
                return (PurePath(name) / PurePath(path).relative_to(base)).as_posix()
        name, parts = _seen(path, self.here), PurePath(path).parts
        if name != parts[-1]:
            return name
        others = [other for other in self.files if other != parts]
        tails = (parts[-count:] for count in range(1, len(parts)))
        told = (tail for tail in tails if all(other[-len(tail) :] != tail for other in others))
        return "/".join(next(told, parts[-1:]))

    def _in_text(self, match: re.Match[str]) -> str:
        """The name of a file that is here, or was."""
        path = PurePath(match[0])
        known = _exists(match[0]) or (len(path.parts) > NEAR and _exists(str(path.parent)))
        return self._named(match[0]) if known else match[0]


def _replaced(name: str, match: re.Match[str]) -> str:
    """A folder's name, or what stands before that of a file below it."""
    if match[1]:
        return "" if name == "." else f"{name}/"
    return name


def _seen(path: str, here: Path) -> str:
    """`run.db`, `../data/run.db`; of what is far away its last name alone."""
    try:
        common = PurePath(os.path.commonpath((path, here)))
    except ValueError:  # another drive
        return PurePath(path).name
    if common != PurePath(here) and (len(common.parts) <= NEAR or common == _home()):
        return PurePath(path).name
    return PurePath(os.path.relpath(path, here)).as_posix()


def _home() -> PurePath | None:
    try:
        return Path.home()
    except RuntimeError:  # of a user without a name
        return None


@lru_cache(maxsize=1 << 12)
def _exists(path: str) -> bool:
    try:
        return os.path.exists(path)  # noqa: PTH110  of thousands of texts
    except ValueError:
        return False


def _trees(value: BaseModel) -> Iterator[str]:
    """The folders that the trees of a document stand in."""
    root = getattr(value, "root", None)
    if isinstance(root, str) and PurePath(root).is_absolute():
        folders = [f for f in getattr(value, "includes", ()) if PurePath(f).is_absolute()]
        yield os.path.commonpath([root, *folders])
    for part in value.__dict__.values():
        if isinstance(part, BaseModel):
            yield from _trees(part)


def _mapped(value: object, names: _Names | _Files, field: str = "") -> object:
    """The same with other texts; what has none is the same object."""
    if isinstance(value, str):
        return names(value, is_file=field in FILES) if "/" in value or "\\" in value else value
    if isinstance(value, BaseModel):
        told = {name: part for name, part in value.__dict__.items() if name not in KEPT}
        if different := _different(told, names):
            return value.model_copy(update=different)
    elif type(value) is tuple:
        parts = tuple([_mapped(part, names, field) for part in value])
        return value if all(map(is_, parts, value)) else parts
    elif isinstance(value, dict):
        different = _different(value, names)
        return {**value, **different} if different else value
    return value


def _different(told: Mapping[str, object], names: _Names | _Files) -> dict[str, object]:
    """What of it is called otherwise."""
    found = {}
    for name, old in told.items():
        if isinstance(old, _WITH_TEXT) and (new := _mapped(old, names, name)) is not old:
            found[name] = new
    return found
