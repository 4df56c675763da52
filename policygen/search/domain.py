"""A space as strategies see it: tuples of values, and which of them come to the same."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

Values = tuple[int, ...]
"""A variant: a value of each parameter, in the order of labels."""


@dataclass(frozen=True, slots=True)
class Domain:
    """What a strategy may ask for."""

    ranges: Mapping[str, Sequence[int]]
    """The values of each parameter, in the order of labels; they rise."""
    key: Callable[[Values], Hashable | None]
    """The same for variants that come to the same policy; none where there can be no such."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What the parameters are called."""
        return tuple(self.ranges)

    @property
    def count(self) -> int:
        """How many variants there are, whether they can be or not."""
        return prod(len(one) for one in self.ranges.values())

    def at(self, index: int) -> Values:
        """The variant at a place in the order of the space: the last parameter varies first."""
        found = []
        for one in reversed([*self.ranges.values()]):
            index, place = divmod(index, len(one))
            found.append(one[place])
        return tuple(reversed(found))

    def named(self, values: Values) -> dict[str, int]:
        """Parameter → value."""
        return dict(zip(self.ranges, values, strict=True))
