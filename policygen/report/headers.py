"""The trees that can be had, as a table."""

from policygen.model.cub import Cub
from policygen.model.headers import Headers, HeadersEntry

_HEAD = ("CUB", "wheel", "dialect", "specializations", "state")
_NONE = "—"
_SHOWN = 5
"""Changed files that are named."""


def table(headers: Headers) -> str:
    """One line per version."""
    rows = [_HEAD, *(_row(entry) for entry in headers.trees)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(f"{_line(row, widths)}\n" for row in rows)


def name(cub: Cub) -> str:
    """`CUB 3.0.1 in FOLDER (found by: cub_headers)`."""
    changed = ", changed since it was fetched" if cub.changed else ""
    return f"CUB {cub.version} in {cub.root} (found by: {cub.found}{changed})"


def changes(headers: Headers) -> str:
    """What differs from the wheels, and what helps."""
    return "".join(
        f"policygen: warning: CUB {tree.version} is not as its wheel has it: {named}\n"
        f"  policygen headers fetch {tree.version} --again gets it anew\n"
        for tree in headers.trees
        if (named := _named(tree.changed))
    )


def _named(files: tuple[str, ...] | None) -> str:
    if files is None:
        return ""
    if not files:
        return "some of its files differ"
    shown = ", ".join(files[:_SHOWN])
    return f"{shown} and {len(files) - _SHOWN:,} more" if len(files) > _SHOWN else shown


def _row(entry: HeadersEntry) -> tuple[str, ...]:
    count = _NONE if entry.specializations is None else str(entry.specializations)
    state = _NONE if entry.state == "absent" else entry.state
    if entry.changed is not None:
        state += ", changed"
    return (entry.version, entry.wheel or _NONE, entry.dialect, count, state)


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
