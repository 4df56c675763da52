"""Which stores were made here: one that merely lies in the current folder may be a stranger's."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from policygen import cache

_KIND = "stores"
_PATIENCE = 2.0
"""Seconds that somebody who only looks waits for a writer."""


def remember(path: Path, token: str) -> None:
    """Notes that a store was made by this user; without a cache it must be named each time."""
    with suppress(OSError):
        cache.keep(_KIND, _key(path, token), b"")


def is_own(path: Path) -> bool:
    """Whether a store was made by this user, in this place."""
    # Of a commit that was killed only who may write can see what counts.
    token = _token(path, "ro") or _token(path, "rw")
    return bool(token) and cache.kept(_KIND, _key(path, token)) is not None


def opened(path: Path, mode: str) -> closing[sqlite3.Connection]:
    """A store that is there, to look into; none is made."""
    address = f"file:{quote(str(path.absolute()))}?mode={mode}"
    return closing(sqlite3.connect(address, _PATIENCE, uri=True))


def _token(path: Path, mode: str) -> str:
    """What no other store has; none for what is no store, or one of before there were any."""
    try:
        with opened(path, mode) as connection:
            return str(connection.execute("SELECT token FROM made").fetchone()[0])
    except (sqlite3.Error, TypeError, ValueError):
        return ""


def _key(path: Path, token: str) -> str:
    return cache.digest(str(path.resolve()), token)
