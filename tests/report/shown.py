"""What blocks look like on a terminal that is so wide."""

import io
from collections.abc import Iterable

from policygen.report.blocks import Block
from policygen.report.terminal import Terminal


def lines(blocks: Iterable[Block], width: int) -> list[str]:
    """Without colours."""
    stream = io.StringIO()
    out = Terminal(stream)
    out.width = width
    out.write(blocks)
    return stream.getvalue().split("\n")[:-1]
