"""Terminal output: result and message streams, and the format of names and numbers."""

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
"""Ratios and percentages above this are shown as a bound."""


def results() -> "Terminal":
    """Open standard output; colors follow the terminal, `NO_COLOR` and `FORCE_COLOR`."""
    from policygen.report.terminal import Terminal

    return Terminal(sys.stdout)


def messages() -> "Terminal":
    """Open standard error, for use when standard output carries other data."""
    from policygen.report.terminal import Terminal

    return Terminal(sys.stderr)


def show(blocks: "Iterable[Block]") -> None:
    """Print blocks as results."""
    results().write(blocks)


def printed(view: Callable[P, "Iterable[Block]"]) -> Callable[P, None]:
    """Return a function that prints the blocks of a view."""

    @wraps(view)
    def show_it(*args: P.args, **kwargs: P.kwargs) -> None:
        show(view(*args, **kwargs))

    return show_it


def short(name: str) -> str:
    """Strip the common prefix `cub.bench.` from a benchmark name."""
    return name.removeprefix("cub.bench.")


def noun(count: int, singular: str, plural_form: str | None = None) -> str:
    """Return `entry` for a count of one, else `entries`."""
    return singular if count == 1 else plural_form or f"{singular}s"


def plural(count: int, singular: str, plural_form: str | None = None) -> str:
    """Count `1 entry`, `7 entries`."""
    return f"{count:,} {noun(count, singular, plural_form)}"


def ratio_words(ratio: float | None) -> str:
    """Write a ratio; absurdly large ones are shown as a bound."""
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
    origin = f"{cub.found}, changed since it was fetched" if cub.changed else cub.found
    return f"{cub.called} {cub.version} ({cub.dialect}), {nearby(Path(cub.root))} [{origin}]"
