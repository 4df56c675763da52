"""Drawings as SVG within a page: texts are escaped, numbers short, colours those of the page."""

from collections.abc import Iterator

from markupsafe import escape

from policygen.report.blocks import Drawing, Mark
from policygen.untrusted import visible


def svg(drawing: Drawing, name: str) -> str:
    """Write a drawing; `name` is what the page calls it."""
    return "".join(_parts(drawing, name))


def _parts(drawing: Drawing, name: str) -> Iterator[str]:
    title, words = f"{name}/title", f"{name}/words"
    yield (
        f'<svg id="{_text(name)}" viewBox="0 0 {number(drawing.width)} {number(drawing.height)}"'
        f' role="img" aria-labelledby="{_text(title)}" aria-describedby="{_text(words)}"'
        f' style="--wide:{number(drawing.width)}">'
    )
    yield f'<title id="{_text(title)}">{_text(drawing.title)}</title>'
    yield f'<desc id="{_text(words)}">{_text(drawing.words)}</desc>'
    for mark in drawing.marks:
        yield _mark(mark)
    yield "</svg>"


def _mark(mark: Mark) -> str:
    where = "".join(f' {key}="{_attribute(value)}"' for key, value in mark.where.items())
    title = f"<title>{_text(mark.title)}</title>" if mark.title else ""
    return f'<{mark.name} class="{_text(mark.look)}"{where}>{title}{_text(mark.text)}</{mark.name}>'


def _attribute(value: float | str) -> str:
    return _text(value) if isinstance(value, str) else number(value)


def _text(text: str) -> str:
    return str(escape(visible(text)))


def number(value: float) -> str:
    """Write a coordinate: a tenth of a pixel is not seen."""
    return f"{value:.1f}".removesuffix(".0")
