"""Blocks as a page of one file; the template escapes whatever stands in it."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from policygen.rendering import fill
from policygen.report.anchors import Anchors
from policygen.report.blocks import Block, Drawing, Page, pieces, spelled
from policygen.report.side_by_side import coloured, side_by_side
from policygen.report.svg import svg


def render(page: Page, template: str) -> str:
    """Write a whole document with the styles and the script of its template."""
    anchors = Anchors()
    ways = {
        "pieces": pieces,
        "spelled": spelled,
        "kind": _kind,
        "columns": _columns,
        "inline": _inline,
        "drawn": _drawn,
        "define": anchors.define,
        "link": anchors.link,
    }
    return fill(f"report/{template}.html.j2", {"page": page, **ways})


def _kind(block: Block) -> str:
    """Name the macro that writes a block."""
    return type(block).__name__


def _inline(svg: bytes) -> str:
    """Write a drawing as an address: in an image nothing of it is run."""
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


def _drawn(drawing: Drawing, name: str) -> Markup:
    """Write the marks of a drawing; what is in them is escaped there."""
    return Markup(svg(drawing, name))  # noqa: S704  it is escaped


def _columns(lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Set a diff side by side, its lines with colours."""
    for row in side_by_side("\n".join(lines)):
        old, new = (
            side and (side[0], Markup(coloured(side[1])))  # noqa: S704  it is escaped
            for side in (row.old, row.new)
        )
        yield {"kind": row.kind, "old": old, "new": new}
