"""Search strategies: they propose variants and learn outcomes; the default stays near the best."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from random import Random
from typing import Literal, get_args

from policygen.errors import InputError
from policygen.model.results import Rules

StrategyName = Literal["local", "random"]
STRATEGIES: tuple[StrategyName, ...] = get_args(StrategyName)
Values = tuple[int, ...]
"""A variant: a value of each parameter, in label order."""
LENIENT = 0.02
"""How far below the allowed ratio noise may bring a variant in the first rung."""


def goal_of(score: float, least: float, allowed: float = Rules().worst_allowed) -> float:
    """Return what a search maximizes: the score, or the lowest ratio if it is not allowed.

    In between, as far as noise allows for it, it is the less of the score the lower the ratio.
    """
    share = min(1.0, max(0.0, 1 - (allowed - least) / LENIENT))
    return min(score, least + share * (score - least))


@dataclass(frozen=True, slots=True)
class AskedVariant:
    """Outcome of a proposed variant."""

    values: Values
    score: float | None
    """What to maximize; None if the variant failed or is wrong."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The variants that a strategy may propose."""

    ranges: Mapping[str, Sequence[int]]
    """Ascending values of each parameter, in label order."""
    key: Callable[[Values], Hashable | None] = lambda values: values
    """Key shared by variants with the same policy; None for invalid variants."""

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


class Strategy:
    """Proposes what to try next: the starts, and then all other variants in a given order.

    Proposals are valid and have policies that were neither proposed nor reported before. Outcomes
    may arrive late: the next batch is requested while one is measured.
    """

    def __init__(self, domain: Domain, order: Order, starts: Sequence[Values] = ()) -> None:
        self._domain = domain
        self._seen: set[Hashable] = set()
        """Keys of proposed and reported policies."""
        self._starts = deque(starts)
        self._remaining = self._walk(order)

    def ask(self, count: int) -> list[Values]:
        """Propose `count` variants; fewer if there are no more."""
        first = self._ask_starts(count)
        return first + take_next(self._remaining, count - len(first))

    def tell(self, outcomes: Sequence[AskedVariant]) -> None:
        """Learn outcomes, also of variants from earlier sessions that it has not proposed."""
        for outcome in outcomes:
            self._take(outcome.values)

    def start(self, starts: Iterable[Values]) -> None:
        """Propose these variants next, such as those that CUB selects elsewhere."""
        self._starts.extend(starts)

    def _ask_starts(self, count: int) -> list[Values]:
        variants: list[Values] = []
        while self._starts and len(variants) < count:
            if self._take(values := self._starts.popleft()):
                variants.append(values)
        return variants

    def _take(self, values: Values) -> bool:
        """Mark the policy of a variant as seen; return whether it was valid and new."""
        key = self._domain.key(values)
        if key is None or key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _walk(self, order: Order) -> Iterator[Values]:
        """Yield all new variants of the space, without listing it, marking each as seen."""
        misses_in_row = 0
        for step in range(self._domain.count):
            values = self._domain.at(order(step))
            if self._take(values):
                misses_in_row = 0
                yield values
            elif (misses_in_row := misses_in_row + 1) >= MISSES:
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


# Local search: base and its neighbors, then neighbors and mixtures of the best variants

FIRST = 16
"""Number of variants to draw before there is anything to be near to."""
COARSE_FIRST = 48
"""Number of scores after which delays and the like are varied."""
EXPLORE, SINGLE, DOUBLE = 0.03, 0.55, 0.25
"""Fraction of the variants that is drawn from the whole space; of the others, fractions that change
one and two parameters of a good variant. The rest mixes two good variants.
"""
GOOD, DECAY = 8, 1.2
"""Number of variants that count as good, and the rate at which they are picked less often by rank:
each a third as often.
"""
TRIES = 60
"""Proposals per variant; those that are invalid or not new are discarded."""


class LocalSearch(Strategy):
    """Proposes variants near the best ones: base and its neighbors first."""

    def __init__(self, domain: Domain, seed: int, starts: Sequence[Values] = ()) -> None:
        super().__init__(domain, shuffled(domain, seed), starts)
        self._draw = Random(seed)  # noqa: S311  it keeps no secret
        self._neighborhood = Neighborhood(domain)
        self._scores: dict[Values, float] = {}
        self._asked_count = 0
        self._base = [*starts[:1]]
        for base in self._base:
            self.start(self._neighborhood.around(base, fine=self._has_fine))

    def ask(self, count: int) -> list[Values]:
        """Return the starts and the neighbors of the first one, then what is near the best.

        Before the first score that is the first start; without one, the whole space.
        """
        variants = self._ask_starts(count)
        missing, asked_count = count - len(variants), self._asked_count + len(variants)
        drawn = min(missing, FIRST - asked_count) if self._scores or self._base else missing
        variants += take_next(self._remaining, drawn)
        variants += take_next(self._near(count - len(variants)), count - len(variants))
        variants += take_next(self._remaining, count - len(variants))
        self._asked_count += len(variants)
        return variants

    def tell(self, outcomes: Sequence[AskedVariant]) -> None:
        """Learn from the outcomes of variants."""
        super().tell(outcomes)
        self._scores |= {
            outcome.values: outcome.score for outcome in outcomes if outcome.score is not None
        }

    @property
    def _has_fine(self) -> bool:
        """Whether fine parameters are varied: the others come first."""
        return not self._neighborhood.coarse or len(self._scores) >= COARSE_FIRST

    def _near(self, count: int) -> Iterator[Values]:
        """Yield untried variants near the good ones, and some from the whole space."""
        draw, fine = self._draw, self._has_fine
        ranked = sorted(self._scores, key=self._scores.__getitem__, reverse=True)
        good = ranked[:GOOD] or self._base

        def parent() -> Values:
            return good[min(int(draw.expovariate(DECAY)), len(good) - 1)]

        for _ in range(TRIES * count if good else 0):
            if draw.random() < EXPLORE:
                yield from take_next(self._remaining, 1)
                continue
            if (kind := draw.random()) < SINGLE + DOUBLE:
                changes = 1 if kind < SINGLE else 2
                values = self._neighborhood.changed(parent(), draw, changes, fine=fine)
            else:
                values = self._neighborhood.mixed(parent(), parent(), draw)
            if self._take(values):
                yield values


FINE, LEVELS = 100, 6
"""Parameters with at least so many values are fine; number of step sizes of these."""
LEAST = 3
"""Minimum number of step sizes of an amount: 1, 2, and 4 positions."""


class Neighborhood:
    """Neighbors of variants; a given variant may have values outside the domain.

    Fine parameters, such as delays in nanoseconds, have so many values that single steps make no
    difference.
    """

    def __init__(self, domain: Domain) -> None:
        self._ranges = tuple(domain.ranges.values())
        varied = [index for index, values in enumerate(self._ranges) if len(values) > 1]
        self.coarse = [index for index in varied if len(self._ranges[index]) < FINE]
        """Positions of the parameters that are not fine."""
        self._varied = sorted(varied, key=lambda index: index not in self.coarse)

    def around(self, values: Values, *, fine: bool = True) -> Iterator[Values]:
        """Yield all variants with one parameter changed, fine parameters last or not at all."""
        for index in self._varied if fine else self.coarse:
            for value in self._moves(index, values[index]):
                yield _replaced(values, {index: value})

    def changed(self, values: Values, draw: Random, count: int, *, fine: bool = True) -> Values:
        """Return a variant with `count` parameters changed at random."""
        varied = self._varied if fine else self.coarse
        chosen = draw.sample(varied, min(count, len(varied)))
        moves = {index: draw.choice(self._moves(index, values[index])) for index in chosen}
        return _replaced(values, moves)

    def mixed(self, first: Values, second: Values, draw: Random) -> Values:
        """Return a variant that takes each value from either parent."""
        return tuple(draw.choice(pair) for pair in zip(first, second, strict=True))

    def _moves(self, index: int, value: int) -> Sequence[int]:
        values = self._ranges[index]
        if are_kinds(values):
            return [other for other in values if other != value]
        own = nearest(values, value)
        positions = (own + sign * step for step in _steps(len(values)) for sign in (1, -1))
        return [values[position] for position in positions if 0 <= position < len(values)]


def _replaced(values: Values, new: Mapping[int, int]) -> Values:
    """Return a variant with other values at some positions."""
    return tuple(new.get(index, value) for index, value in enumerate(values))


def _steps(count: int) -> list[int]:
    """Return step sizes in positions of a range: powers of two.

    With small steps alone a range of 513 values would never be crossed; of a fine parameter the
    smallest steps make no difference.
    """
    first = count.bit_length() - LEVELS if count >= FINE else 0
    return [1 << power for power in range(first, max(LEAST, count.bit_length() - 1))]


def nearest(values: Sequence[int], value: int) -> int:
    """Return the position of the value nearest to `value` in ascending values."""
    insertion = bisect_left(values, value)
    positions = [position for position in (insertion - 1, insertion) if 0 <= position < len(values)]
    return min(positions, key=lambda position: abs(values[position] - value))


KINDS = 16
"""Values below this may be categorical, such as load or wait algorithms; others are amounts."""
MOST = 8
"""Maximum number of values of a categorical parameter."""


def are_kinds(values: Sequence[int]) -> bool:
    """Whether the values of a parameter are categorical; amounts are ordered."""
    return len(values) <= MOST and all(0 <= value < KINDS for value in values)


def make_strategy(name: str, domain: Domain, seed: int, starts: Sequence[Values] = ()) -> Strategy:
    """Create a strategy for a space; `starts` are proposed first, such as the current values."""
    match name:
        case "random":
            return Strategy(domain, shuffled(domain, seed), starts)
        case "local":
            return LocalSearch(domain, seed, starts)
        case _:
            names = ", ".join(STRATEGIES)
            raise InputError(f"unknown strategy {name!r}", f"Available: {names}")
