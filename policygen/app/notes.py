"""Who is told how it goes."""

from collections.abc import Callable

Progress = Callable[[int, int, str], None]
"""Is told how many compiles are done, of how many, and the last one's name."""
Note = Callable[[str], None]
"""Is told what is no error, and should be known."""


def unsaid(_text: str) -> None:
    """Keeps a note to itself."""
