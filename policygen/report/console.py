"""The terminal: one console for results, and how numbers and paths look on it."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def results() -> "Console":
    """Standard output; colour follows the terminal, `NO_COLOR` and `FORCE_COLOR`."""
    from rich.console import Console

    # No width is forced: a narrow terminal folds lines, it cuts nothing.
    return Console(file=sys.stdout, highlight=False, emoji=False, markup=False)


def progress_lines(what: str) -> Callable[[int, int, str], None]:
    """`[i/n] name: state` lines on standard error, for logs; nothing is erased."""

    def show(index: int, total: int, name: str) -> None:
        sys.stderr.write(f"[{index}/{total}] {name}: {what}\n")

    return show


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 entry`, `7 entries`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
