"""Versions of CUB, and what holds for a range of them."""

from functools import lru_cache

from policygen.model.base import Record


class Versioned(Record):
    """Something that holds for a range of CUB versions: `since <= version < below`."""

    since: str | None = None
    below: str | None = None

    def covers(self, version: tuple[int, ...]) -> bool:
        """Whether a version lies in the range."""
        return not (self.since and version < numbers(self.since)) and not (
            self.below and version >= numbers(self.below)
        )


@lru_cache(maxsize=256)
def numbers(version: str) -> tuple[int, ...]:
    """`3.2.0` as (3, 2, 0): versions compare part by part."""
    return tuple(int(part) for part in plain(version).split("."))


def plain(version: str) -> str:
    """A version without the rows that hold instead of its own, and without the library's name.

    `3.6.0+topk/…=1` is 3.6.0, `rocprim@4.2.0` is 4.2.0.
    """
    return version.partition("+")[0].rpartition("@")[2]


def library_of(version: str) -> str:
    """The library of a version, CUB where it names none."""
    return version.partition("@")[0] if "@" in version else "cub"
