"""Reads files, each once, and refuses what cannot be a benchmark source."""

from pathlib import Path

from policygen.errors import SourceError
from policygen.source.files import read_bytes
from policygen.source.text import Text


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
    text = read_text(path)
    text.check_ends()
    return text


def read_text(path: Path) -> Text:
    """A file that holds text."""
    text = Text(path.as_posix(), read_bytes(path))
    text.check_bytes()
    return text
