"""Ways through all of a space, each variant once, without a list of them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from random import Random

from policygen.search.domain import Domain, Values
from policygen.search.strategies.fresh import Fresh
from policygen.search.strategy import AskedVariant

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
