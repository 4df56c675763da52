"""Types that entries can name."""

from policygen.bindings.keys import by_print, type_name

ANY_OTHER = "other"
"""The type of all that CUB has no name for."""


def can_name(arg: str) -> bool:
    """Whether an entry can name a type that the compiler prints."""
    known = type_name(arg) in by_print() or arg.replace(" ", "").isidentifier()
    return known and arg != ANY_OTHER
