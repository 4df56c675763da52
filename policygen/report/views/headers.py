"""The trees that can be had."""

from collections.abc import Sequence

from policygen.model.cub import CALLED, Cub
from policygen.model.headers import Headers, HeadersEntry

NONE = "—"
OTHERS = ("dialect", "version", "state")
SHOWN = 5
"""Changed files that are named."""


def table(headers: Headers) -> str:
    """Write one line per version, and, below, one per release that is named otherwise."""
    rows = [("CUB", "wheel", "dialect", "specializations", "state")]
    for one in headers.trees:
        if one.holds is None:
            count = NONE if one.specializations is None else str(one.specializations)
            rows.append((one.version, one.wheel or NONE, one.dialect, count, _state(one)))
    others = [
        (one.version, one.wheel or NONE, one.dialect, _holds(one), _state(one))
        for one in headers.trees
        if one.holds is not None
    ]
    if not others:
        return _aligned(rows)
    return _aligned(rows) + "\n" + _aligned([("release", "package", *OTHERS), *others])


def _holds(one: HeadersEntry) -> str:
    return f"{CALLED[one.library]} {one.holds}"


def _state(one: HeadersEntry) -> str:
    state = NONE if one.state == "absent" else one.state
    return state if one.changed is None else f"{state}, changed"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def name(cub: Cub) -> str:
    """Name a tree: `CUB 3.0.1 in FOLDER (found by: cub_headers)`."""
    changed = ", changed since it was fetched" if cub.changed else ""
    return f"{cub.called} {cub.version} in {cub.root} (found by: {cub.found}{changed})"


def changes(headers: Headers) -> str:
    """Tell what differs from what was fetched, and what helps."""
    return "".join(
        f"policygen: warning: {_called(tree)} is not as its {_source(tree)} it:"
        f" {_named(tree.changed)}\n"
        f"  policygen headers fetch {tree.version} --again gets it anew\n"
        for tree in headers.trees
        if tree.changed is not None
    )


def _called(tree: HeadersEntry) -> str:
    return f"{CALLED[tree.library]} {tree.version}" if tree.holds is None else tree.version


def _source(tree: HeadersEntry) -> str:
    return "wheel has" if tree.holds is None else "packages have"


def _named(files: tuple[str, ...]) -> str:
    if not files:
        return "some of its files differ"
    shown = ", ".join(files[:SHOWN])
    return f"{shown} and {len(files) - SHOWN:,} more" if len(files) > SHOWN else shown
