"""Interface of search strategies: they propose a batch and learn its outcome."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from random import Random
from typing import Protocol

# Domains

Values = tuple[int, ...]
"""A variant: a value of each parameter, in label order."""


@dataclass(frozen=True, slots=True)
class AskedVariant:
    """Outcome of a proposed variant."""

    values: Values
    score: float | None
    """Baseline time over variant time, as in databases; None if the variant failed or is wrong."""


class Strategy(Protocol):
    """Proposes what to try next.

    Proposals are valid and have policies that were neither proposed nor told before. Outcomes may
    arrive late: the next batch is requested while one is measured.
    """

    def ask(self, count: int) -> list[Values]:
        """Propose `count` variants; fewer if there are no more."""

    def tell(self, outcomes: Sequence[AskedVariant]) -> None:
        """Learn outcomes, also of variants from earlier sessions that it has not proposed."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The variants that a strategy may propose."""

    ranges: Mapping[str, Sequence[int]]
    """Ascending values of each parameter, in label order."""
    key: Callable[[Values], Hashable | None]
    """Key shared by variants with the same policy; None for invalid variants."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Parameter names."""
        return tuple(self.ranges)

    @property
    def count(self) -> int:
        """Number of variants, valid or not."""
        return prod(len(values) for values in self.ranges.values())

    def at(self, index: int) -> Values:
        """Return the variant at an index of the space; the last parameter varies fastest."""
        values = []
        for domain_values in reversed([*self.ranges.values()]):
            index, position = divmod(index, len(domain_values))
            values.append(domain_values[position])
        return tuple(reversed(values))

    def named(self, values: Values) -> dict[str, int]:
        """Map parameters to values."""
        return dict(zip(self.ranges, values, strict=True))


Order = Callable[[int], int]
"""Permutation from steps to positions in the space."""
MISSES = 200_000
"""Number of consecutive invalid or known variants after which the walk ends."""
_ROUNDS = 4
_WORD = (1 << 64) - 1


class Walker:
    """Proposes the starts and then all other variants in a given order."""

    def __init__(
        self,
        domain: Domain,
        order: Order,
        starts: Sequence[Values] = (),
        misses: int | None = MISSES,
    ) -> None:
        self._fresh = Fresh(domain)
        self._starts = iter(starts)
        self._remaining = walk(self._fresh, order, misses)

    def ask(self, count: int) -> list[Values]:
        """Return the next variants."""
        first = take_next(filter(self._fresh.take, self._starts), count)
        return first + take_next(self._remaining, count - len(first))

    def tell(self, outcomes: Sequence[AskedVariant]) -> None:
        """Exclude these variants from later proposals."""
        for outcome in outcomes:
            self._fresh.take(outcome.values)


# Proposed and told policies


@dataclass(slots=True)
class Fresh:
    """Tracks which policies of a domain are still new."""

    domain: Domain
    seen: set[Hashable] = field(default_factory=set)

    def has(self, values: Values) -> bool:
        """Whether a variant is valid and its policy is new."""
        key = self.domain.key(values)
        return key is not None and key not in self.seen

    def take(self, values: Values) -> bool:
        """Mark the policy of a variant as seen; return whether it was valid and new."""
        key = self.domain.key(values)
        if key is None or key in self.seen:
            return False
        self.seen.add(key)
        return True


# Walks through a space without listing it


def walk(fresh: Fresh, order: Order, misses: int | None = MISSES) -> Iterator[Values]:
    """Yield all new variants in an order, marking each as seen."""
    domain, misses_in_row = fresh.domain, 0
    for step in range(domain.count):
        values = domain.at(order(step))
        if fresh.take(values):
            misses_in_row = 0
            yield values
        elif misses is not None and (misses_in_row := misses_in_row + 1) >= misses:
            return


def take_next(variants: Iterator[Values], count: int) -> list[Values]:
    """Take the next `count` variants."""
    return list(islice(variants, max(0, count)))


def shuffled(domain: Domain, seed: int) -> Order:
    """Return a pseudorandom permutation: a Feistel network with as many bits as positions need."""
    count = max(1, domain.count)
    half = max(1, ((count - 1).bit_length() + 1) // 2)
    mask, draw = (1 << half) - 1, Random(seed)  # noqa: S311  it keeps no secret
    keys = [(draw.getrandbits(64) | 1, draw.getrandbits(64)) for _ in range(_ROUNDS)]

    def place(step: int) -> int:
        while True:  # at most four times as many numbers as positions
            high, low = step >> half, step & mask
            for factor, key in keys:
                hashed = ((low + 1) * factor + key) & _WORD
                hashed = ((hashed ^ hashed >> 29) * 0x9E3779B97F4A7C15) & _WORD
                high, low = low, high ^ (hashed >> 32 & mask)
            step = high << half | low
            if step < count:
                return step

    return place
