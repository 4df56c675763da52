"""The terminal: one console for results, and how numbers look on it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from policygen.model.cub import Cub


def results() -> "Console":
    """Standard output; colour follows the terminal, `NO_COLOR` and `FORCE_COLOR`."""
    from policygen.report.terminal import Terminal

    return Terminal(sys.stdout)


def messages() -> "Console":
    """Standard error, where standard output holds something else."""
    from policygen.report.terminal import Terminal

    return Terminal(sys.stderr)


def nearby(path: Path) -> str:
    """A path as it is written from here, when it is below the current folder."""
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.as_posix()


def short(name: str) -> str:
    """A benchmark, with or without its workload, without what all of CUB's begin with."""
    return name.removeprefix("cub.bench.")


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 entry`, `7 entries`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def tree_line(cub: "Cub") -> str:
    """The tree that an output is about, and how it was found."""
    found = f"{cub.found}, changed since it was fetched" if cub.changed else cub.found
    return f"CUB {cub.version} ({cub.dialect}), {nearby(Path(cub.root))} [{found}]"


def fill(items: list[str], width: int, first: str, hang: str, gap: str) -> list[str]:
    """Items side by side, as many as fit; one that does not fit alone is left whole."""
    rows: list[str] = []
    for item in items:
        if rows and len(rows[-1]) + len(gap) + len(item) <= width:
            rows[-1] += gap + item
        else:
            rows.append((hang if rows else first) + item)
    return rows


def print_filled(
    out: "Console", items: list[str], indent: str, hang: str, style: str, gap: str = " "
) -> None:
    """Items side by side on lines of one style; later lines are indented further."""
    for row in fill(items, out.width, indent, indent + hang, gap):
        out.print(row, style=style)
