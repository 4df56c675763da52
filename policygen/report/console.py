"""The terminal: one console for results, and how numbers look on it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def results() -> "Console":
    """Standard output; colour follows the terminal, `NO_COLOR` and `FORCE_COLOR`."""
    from rich.console import Console

    # No width is forced: a narrow terminal folds lines, it cuts nothing.
    return Console(file=sys.stdout, highlight=False, emoji=False, markup=False)


def nearby(path: Path) -> str:
    """A path as it is written from here, when it is below the current folder."""
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.as_posix()


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 entry`, `7 entries`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
