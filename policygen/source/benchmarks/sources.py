"""Reads files, each once, and refuses what cannot be a benchmark source."""

import re
from pathlib import Path

from policygen.errors import SourceError
from policygen.source.text import MAX_BYTES, Text

_OPEN_COMMENT = re.compile(rb"/\*")


class Sources:
    """The files that were read, or why they could not be."""

    def __init__(self) -> None:
        self._known: dict[Path, Text | SourceError] = {}

    def read(self, path: Path) -> Text:
        """The file, or the error that it gave the first time."""
        if path not in self._known:
            try:
                self._known[path] = _read(path)
            except SourceError as error:
                self._known[path] = error
        known = self._known[path]
        if isinstance(known, SourceError):
            raise known
        return known


def _read(path: Path) -> Text:
    text = Text(path.as_posix(), read_bytes(path))
    if left := _OPEN_COMMENT.search(text.code):
        raise text.error(left.start(), "comment without an end", width=2)
    return text


def read_bytes(path: Path) -> bytes:
    """A regular text file of a sensible size."""
    name = path.as_posix()
    try:
        if not path.is_file():
            path.stat()
            raise SourceError(name, 1, 1, "not a regular file")
        size = path.stat().st_size
        if size > MAX_BYTES:
            message = f"{size:,} bytes: larger than the limit of {MAX_BYTES >> 20} MiB"
            raise SourceError(name, 1, 1, message)
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(name, 1, 1, f"cannot be read: {error.strerror}") from error
    if (nul := data.find(b"\0")) >= 0:
        raise Text(name, data).error(nul, "NUL byte: this is no text file (UTF-16 perhaps?)")
    return data
