"""One file, as what reads entries of it needs it."""

from dataclasses import dataclass

from policygen.model.base import Span
from policygen.source.comments import Comments
from policygen.source.guards import Guards
from policygen.source.text import Text


@dataclass(frozen=True)
class SourceFile:
    """What reading the entries of one file needs."""

    text: Text
    guards: Guards
    comments: Comments
    format_off: tuple[Span, ...]

    def format_is_off(self, offset: int) -> bool:
        """Whether clang-format leaves a place alone."""
        return any(region.start <= offset < region.end for region in self.format_off)
