"""The trees that can be had."""

from policygen.model.cub import Cub
from policygen.model.headers import Headers

NONE = "—"
SHOWN = 5
"""Changed files that are named."""


def table(headers: Headers) -> str:
    """Write one line per version."""
    rows = [("CUB", "wheel", "dialect", "specializations", "state")]
    for one in headers.trees:
        count = NONE if one.specializations is None else str(one.specializations)
        state = NONE if one.state == "absent" else one.state
        state += "" if one.changed is None else ", changed"
        rows.append((one.version, one.wheel or NONE, one.dialect, count, state))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def name(cub: Cub) -> str:
    """Name a tree: `CUB 3.0.1 in FOLDER (found by: cub_headers)`."""
    changed = ", changed since it was fetched" if cub.changed else ""
    return f"CUB {cub.version} in {cub.root} (found by: {cub.found}{changed})"


def changes(headers: Headers) -> str:
    """Tell what differs from the wheels, and what helps."""
    return "".join(
        f"policygen: warning: CUB {tree.version} is not as its wheel has it:"
        f" {_named(tree.changed)}\n"
        f"  policygen headers fetch {tree.version} --again gets it anew\n"
        for tree in headers.trees
        if tree.changed is not None
    )


def _named(files: tuple[str, ...]) -> str:
    if not files:
        return "some of its files differ"
    shown = ", ".join(files[:SHOWN])
    return f"{shown} and {len(files) - SHOWN:,} more" if len(files) > SHOWN else shown
