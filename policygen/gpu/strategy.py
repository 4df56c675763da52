"""What a way to search is asked, and told: a batch to try, and what became of it."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from random import Random
from typing import Protocol

# A space as strategies see it: tuples of values, and which of them come to the same.

Values = tuple[int, ...]
"""A variant: a value of each parameter, in the order of labels."""


@dataclass(frozen=True, slots=True)
class AskedVariant:
    """What became of a variant that was asked for."""

    values: Values
    score: float | None
    """Base over variant, as the scores of databases are; none where it fails, or is wrong."""


class Strategy(Protocol):
    """Tells what to try next.

    What it asks for can be, and is no policy that it has asked for, or was told of, before. What it
    is told may be late: the next batch is asked for while one is measured.
    """

    def ask(self, count: int) -> list[Values]:
        """As many variants; fewer where there are no more."""

    def tell(self, outcomes: Sequence[AskedVariant]) -> None:
        """What became of variants, also of such as it has not asked for: of an earlier session."""


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


Order = Callable[[int], int]
"""From a step to a place in the space; each place belongs to one step."""
MISSES = 200_000
"""After so many in a row that cannot be, or were asked for, there are no more."""
_ROUNDS = 4
_WORD = (1 << 64) - 1


class Walker:
    """Asks for what is given to start with, then for all others in an order."""

    def __init__(
        self,
        domain: Domain,
        order: Order,
        starts: Sequence[Values] = (),
        misses: int | None = MISSES,
    ) -> None:
        self._fresh = Fresh(domain)
        self._starts = iter(starts)
        self._rest = walk(self._fresh, order, misses)

    def ask(self, count: int) -> list[Values]:
        """The next ones."""
        first = some(filter(self._fresh.take, self._starts), count)
        return first + some(self._rest, count - len(first))

    def tell(self, outcomes: Sequence[AskedVariant]) -> None:
        """None of these is asked for again."""
        for one in outcomes:
            self._fresh.take(one.values)


# Which variants were asked for, or told of: none of their policies is asked for again.


@dataclass(slots=True)
class Fresh:
    """What is left of a space."""

    domain: Domain
    seen: set[Hashable] = field(default_factory=set)

    def has(self, values: Values) -> bool:
        """Whether a variant can be, and is no policy that was asked for."""
        key = self.domain.key(values)
        return key is not None and key not in self.seen

    def take(self, values: Values) -> bool:
        """The same; from now on its policy was asked for."""
        key = self.domain.key(values)
        if key is None or key in self.seen:
            return False
        self.seen.add(key)
        return True


# Ways through all of a space, each variant once, without a list of them.


def walk(fresh: Fresh, order: Order, misses: int | None = MISSES) -> Iterator[Values]:
    """All variants that are left, each asked for as it comes."""
    domain, missed = fresh.domain, 0
    for step in range(domain.count):
        values = domain.at(order(step))
        if fresh.take(values):
            missed = 0
            yield values
        elif misses is not None and (missed := missed + 1) >= misses:
            return


def some(way: Iterator[Values], count: int) -> list[Values]:
    """The next ones of a way."""
    return list(islice(way, max(0, count)))


def shuffled(domain: Domain, seed: int) -> Order:
    """An order that looks random: a Feistel network over as many bits as places need."""
    count = max(1, domain.count)
    half = max(1, ((count - 1).bit_length() + 1) // 2)
    mask, draw = (1 << half) - 1, Random(seed)  # noqa: S311  it keeps no secret
    keys = [(draw.getrandbits(64) | 1, draw.getrandbits(64)) for _ in range(_ROUNDS)]

    def place(step: int) -> int:
        while True:  # there are at most four times as many numbers as places
            high, low = step >> half, step & mask
            for factor, key in keys:
                mixed = ((low + 1) * factor + key) & _WORD
                mixed = ((mixed ^ mixed >> 29) * 0x9E3779B97F4A7C15) & _WORD
                high, low = low, high ^ (mixed >> 32 & mask)
            step = high << half | low
            if step < count:
                return step

    return place
