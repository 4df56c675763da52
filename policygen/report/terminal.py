"""Rich's console, to which no text is markup, a line end or an escape sequence."""

from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from policygen.report.sink import raw
from policygen.untrusted import visible


class Terminal(Console):
    """Shows what it is given; the escape sequences are those of its own styles."""

    def __init__(self, stream: TextIO) -> None:
        # No width is forced: a narrow terminal folds lines, it cuts nothing.
        super().__init__(file=raw(stream), highlight=False, emoji=False, markup=False)

    def render_str(self, text: str, **how: Any) -> Text:
        """Text of one line, or of one cell of a table."""
        return super().render_str(visible(text), **how)

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        """What was laid out: texts that were made elsewhere have several lines."""
        return super()._render_buffer(
            one if one.control else Segment(visible(one.text, "\n"), one.style) for one in buffer
        )


def line(text: str, style: str = "") -> Text:
    """One line; rich would drop some of its control characters."""
    return Text(visible(text), style)
