"""Ctrl-C: who is interrupted is told what is kept, and how to go on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stopped(KeyboardInterrupt):
    """An interrupt, and what those who were at work say of it, the innermost first."""

    def __init__(self, *words: str) -> None:
        super().__init__(*words)
        self.words = words


@contextmanager
def stopping(words: Callable[[], str]) -> Iterator[None]:
    """When the block is interrupted, adds what is so then; nothing where there are no words."""
    try:
        yield
    except KeyboardInterrupt as error:
        told = words()
        raise Stopped(*said(error), *([told] if told else [])) from error


def said(error: BaseException) -> tuple[str, ...]:
    """What was told of an interrupt, also of one that another exception stands for."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, Stopped):
            return found.words
        found = found.__cause__
    return ()
