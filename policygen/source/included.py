"""Files that tuning headers include: one that holds tunings itself would not be read.

The headers of Thrust and libcu++ are looked at where a tuning header names them, not further.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from policygen.bindings.words import words
from policygen.errors import SourceError
from policygen.opening import NotOpenedError, read_inside
from policygen.source.files import tree_around
from policygen.source.text import Text

# "#  include <cub/device/dispatch/tuning/common.cuh>", '#include "entries.inl"'
_INCLUDE = re.compile(rb'#[ \t]*include[ \t]*([<"])([^>"\n]*)[>"]')
_NAME = "tuning_*.cuh"
_FOLLOWED = "cub"


@cache
def _worth_a_look() -> re.Pattern[bytes]:
    """What begins with letters is searched fast."""
    return re.compile(rb"sm\d{2,3}_|" + words().selectors.name.encode())


@cache
def _tunings() -> re.Pattern[bytes]:
    """`struct sm90_tuning<`, `get_sm90_tuning(`, `struct policy_selector {`."""
    return re.compile(
        rb"\b(?:struct|class)\b[^;{}<>=,()]*"
        rb"\b(?:sm\d{2,3}_\w+\s*[<{:]|%b\s*[{:])"
        rb"|\b\w*sm\d{2,3}_\w*\s*\([^(){};]*\)[^(){};=]*->[^(){};=]*\{"
        % words().selectors.name.encode()
    )


@dataclass(slots=True)
class Included:
    """What the files of a tree hold and include, each looked at once and told once."""

    read: Collection[Path]
    """The headers that are read for themselves."""
    _seen: set[Path] = field(default_factory=set)

    def check(self, path: Path, data: bytes) -> None:
        """Raises at the include of a header that leads to tunings which nobody reads."""
        root = tree_around(path)
        for match in _includes(data):
            waiting = list(_found(path, root, match))
            while waiting:
                file = waiting.pop()
                if file in self._seen or file in self.read or file.match(_NAME):
                    continue
                self._seen.add(file)
                holds, inner = _look(file, root)
                if holds:
                    shown = file.relative_to(root) if file.is_relative_to(root) else file
                    raise Text(str(path), data).error(
                        match.start(2),
                        f"{shown.as_posix()} holds tunings, and is no tuning header: they are not"
                        " read",
                        width=len(match[2]),
                        remedy=f"Write them into a header that is called {_NAME}.",
                    )
                waiting += inner


def _look(file: Path, root: Path) -> tuple[bool, tuple[Path, ...]]:
    """Whether a file holds tunings, and what it includes of CUB."""
    try:
        data = read_inside(root, file)
    except OSError:
        return False, ()  # the compiler would not find it either
    except NotOpenedError as error:
        if not file.is_relative_to(root / _FOLLOWED):
            return False, ()  # a library may be kept elsewhere
        raise SourceError(str(file), 1, 1, error.reason, remedy=error.remedy) from error
    holds = bool(_worth_a_look().search(data) and _tunings().search(Text("", data).code))
    if not file.is_relative_to(root / _FOLLOWED):
        return holds, ()
    own = (m for m in _includes(data) if m[1] == b'"' or m[2].startswith(b"cub/"))
    return holds, tuple(found for match in own for found in _found(file, root, match))


def _includes(data: bytes) -> Iterator[re.Match[bytes]]:
    """Those that stand on a line of their own, not in a comment behind something."""
    for match in _INCLUDE.finditer(data):
        if not data[data.rfind(b"\n", 0, match.start()) + 1 : match.start()].strip():
            yield match


def _found(file: Path, root: Path, include: re.Match[bytes]) -> Iterator[Path]:
    """Where an include is looked for; a file that is not there is passed over later."""
    name = include[2].decode("utf-8", "surrogateescape")
    if include[1] == b'"':
        beside = file.parent / name
        if beside.exists():
            yield beside
            return
    yield root / name
