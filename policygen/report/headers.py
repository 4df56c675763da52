"""The trees that can be had, as a table."""

from policygen.model.cub import Cub
from policygen.model.headers import Headers, HeadersEntry

_HEAD = ("CUB", "wheel", "dialect", "specializations", "state")
_NONE = "—"


def table(headers: Headers) -> str:
    """One line per version."""
    rows = [_HEAD, *(_row(entry) for entry in headers.trees)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(f"{_line(row, widths)}\n" for row in rows)


def name(cub: Cub) -> str:
    """`CUB 3.0.1 in FOLDER (found by: cub_headers)`."""
    return f"CUB {cub.version} in {cub.root} (found by: {cub.found})"


def _row(entry: HeadersEntry) -> tuple[str, ...]:
    count = _NONE if entry.specializations is None else str(entry.specializations)
    state = _NONE if entry.state == "absent" else entry.state
    return (entry.version, entry.wheel or _NONE, entry.dialect, count, state)


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
