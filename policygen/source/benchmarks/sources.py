"""Reads files, each once, and refuses what cannot be a benchmark source."""

from pathlib import Path

from policygen.errors import SourceError
from policygen.source.files import read_bytes
from policygen.source.text import Text


class Sources:
    """The files that were read, or why they could not be."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, Path], Text | SourceError] = {}

    def read(self, path: Path, root: Path) -> Text:
        """The file, which lies inside of `root`, or the error that it gave the first time."""
        if (root, path) not in self._known:
            try:
                self._known[root, path] = _read(path, root)
            except SourceError as error:
                self._known[root, path] = error
        known = self._known[root, path]
        if isinstance(known, SourceError):
            raise known
        return known


def _read(path: Path, root: Path) -> Text:
    text = read_text(path, root)
    text.check_ends()
    return text


def read_text(path: Path, root: Path) -> Text:
    """A file inside of `root` that holds text."""
    text = Text(path.as_posix(), read_bytes(path, root))
    text.check_bytes()
    return text
