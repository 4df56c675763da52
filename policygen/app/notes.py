"""Who is told how it goes."""

from collections.abc import Callable, Sequence

from policygen.model.results import DataWarning
from policygen.untrusted import visible

Note = Callable[[str], None]
"""Is told what is no error, and should be known."""


def unsaid(_text: str) -> None:
    """Keeps a note to itself."""


def tell_warnings(warnings: Sequence[DataWarning], note: Note) -> None:
    """Notes what was not usable."""
    for warning in warnings:
        note(visible(str(warning)))
