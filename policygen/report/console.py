"""The terminal: where results go, and how names and numbers look on it."""

import sys
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

from policygen.paths import nearby

if TYPE_CHECKING:
    from policygen.model.trees import Cub
    from policygen.report.blocks import Block
    from policygen.report.terminal import Terminal

P = ParamSpec("P")
LARGE = 1000
"""A ratio or a percentage of more than this is told as such."""


def results() -> "Terminal":
    """Open standard output; colour follows the terminal, `NO_COLOR` and `FORCE_COLOR`."""
    from policygen.report.terminal import Terminal

    return Terminal(sys.stdout)


def messages() -> "Terminal":
    """Open standard error, where standard output holds something else."""
    from policygen.report.terminal import Terminal

    return Terminal(sys.stderr)


def show(blocks: "Iterable[Block]") -> None:
    """Print blocks as results."""
    results().write(blocks)


def printed(view: Callable[P, "Iterable[Block]"]) -> Callable[P, None]:
    """Make a function that prints what a view shows."""

    @wraps(view)
    def show_it(*given: P.args, **options: P.kwargs) -> None:
        show(view(*given, **options))

    return show_it


def short(name: str) -> str:
    """Name a benchmark, with or without its workload, without what all of CUB's begin with."""
    return name.removeprefix("cub.bench.")


def noun(count: int, one: str, many: str | None = None) -> str:
    """Name what is counted: `entry` of one, else `entries`."""
    return one if count == 1 else many or f"{one}s"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Count `1 entry`, `7 entries`."""
    return f"{count:,} {noun(count, one, many)}"


def ratio_words(ratio: float | None) -> str:
    """Write a ratio; what is absurd has no more letters than others."""
    if ratio is None:
        return "not known"
    if abs(ratio) < LARGE:
        return f"{ratio:.3f}"
    return f"over {LARGE:,}" if ratio > 0 else f"below -{LARGE:,}"


def interval_words(low: float | None, high: float | None) -> str:
    """Write the ends of an interval of ratios."""
    if low is None or high is None:
        return "interval not known"
    return f"{ratio_words(low)} to {ratio_words(high)}"


def percent_words(share: float | None, digits: int = 2) -> str:
    """Write a share as `0.30 %`."""
    if share is None:
        return "not known"
    return f"{100 * share:.{digits}f} %" if 100 * share < LARGE else f"over {LARGE:,} %"


def tree_line(cub: "Cub") -> str:
    """Name the tree that an output is about, and how it was found."""
    found = f"{cub.found}, changed since it was fetched" if cub.changed else cub.found
    return f"{cub.called} {cub.version} ({cub.dialect}), {nearby(Path(cub.root))} [{found}]"
