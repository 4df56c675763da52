"""Neighbours of good variants, chosen by a forest, and some of all others."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations
from random import Random
from typing import Any

import numpy as np

from policygen.gpu.strategy import AskedVariant, Domain, Fresh, Values, shuffled, some, walk
from policygen.results.database import Floats, Integers


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """How it searches; chosen on measured spaces, see docs/searching.md."""

    first: int = 16
    """Variants that are tried before anything is expected of others."""
    beside: float = 0.75
    """The share of these that are neighbours of the starts, where there are any."""
    rounded: float = 0.5
    """The share of drawn ones that favours round numbers."""
    explore: float = 0.1
    """The share of a batch that is drawn from all of the space."""
    near: float = 0.2
    """The share that changes one parameter of the best ones, whatever a forest expects."""
    good: int = 8
    """How many are the best ones."""
    decay: float = 0.7
    """How much rarer each of these is than the one before: by a half."""
    pool: int = 800
    """Candidates of which a forest chooses the rest."""
    courage: float = 1.0
    """How much it counts that something is not known."""
    trees: int = 40
    tries: int = 8
    """Divisions of a node that are tried."""
    leaf: int = 2
    """Variants in a leaf, at least."""
    most: int = 400
    """Variants that a forest learns from: half of them the best, half of the others."""
    floor: float = 0.1
    """Scores below this quantile are all as bad."""
    again: float = 0.05
    """A forest is grown anew when so much more is known."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Nodes of all trees, the roots first; a leaf divides by no column."""

    trees: int
    column: Integers
    limit: Floats
    left: Integers
    value: Floats

    def predict(self, rows: Floats) -> Floats:
        """By tree and row what is expected."""
        node = np.repeat(np.arange(self.trees)[:, None], len(rows), axis=1)
        every = np.arange(len(rows))[None, :]
        while (inner := self.column[node] >= 0).any():
            over = rows[every, np.maximum(self.column[node], 0)] > self.limit[node]
            node = np.where(inner, self.left[node] + over, node)
        return np.asarray(self.value[node])


class LocalSearch:
    """Learns from what it is told; asks for what may be better than the best."""

    def __init__(
        self,
        domain: Domain,
        seed: int,
        starts: Sequence[Values] = (),
        settings: LocalSettings | None = None,
    ) -> None:
        self._domain, self._settings = domain, settings or LocalSettings()
        self._draw = Random(seed)  # noqa: S311  it keeps no secret
        self._rng = np.random.default_rng(self._draw.getrandbits(64))
        self._fresh = Fresh(domain)
        self._starts = iter(starts)
        self._near = Neighbourhood(domain)
        self._beside_starts = self._shuffled(starts)
        self._first = FirstDraws(domain, self._draw, self._settings.rounded)
        self._features = Features(domain)
        self._rest = walk(self._fresh, shuffled(domain, self._draw.getrandbits(64)))
        self._told: dict[Values, float | None] = {}
        self._asked = 0
        self._forest: Forest | None = None
        self._learned = 0

    def ask(self, count: int) -> list[Values]:
        """The starts and their neighbours, drawn ones, then what may be better than the best."""
        found = some(filter(self._fresh.take, self._starts), count)
        left = count - len(found)
        early = min(left, self._settings.first - self._asked - len(found)) if self._knows else left
        beside = filter(self._fresh.take, self._beside_starts)
        found += (here := some(beside, round(early * self._settings.beside)))
        found += self._drawn(early - len(here))
        if self._knows:
            found += self._chosen(count - len(found))
        found += some(self._rest, count - len(found))
        self._asked += len(found)
        return found

    def tell(self, outcomes: Sequence[AskedVariant]) -> None:
        """Learns what became of variants."""
        for one in outcomes:
            self._fresh.take(one.values)
            self._told[one.values] = one.score

    @property
    def _knows(self) -> bool:
        return any(score is not None for score in self._told.values())

    @property
    def _scored(self) -> list[tuple[Values, float]]:
        return [(values, score) for values, score in self._told.items() if score is not None]

    def _shuffled(self, starts: Sequence[Values]) -> Iterator[Values]:
        """The neighbours of some variants."""
        near = [values for one in starts for values in self._near.around(one)]
        self._draw.shuffle(near)
        return iter(near)

    def _drawn(self, count: int) -> list[Values]:
        """Spread over the space."""
        found: list[Values] = []
        if count > 0:
            for _ in range(4):
                lot = self._first.lot(count)
                found += some(filter(self._fresh.take, lot), count - len(found))
        return found

    def _chosen(self, count: int) -> list[Values]:
        """Those of a pool that may be best: each for another weight of what is not known."""
        if count <= 0:
            return []
        candidates = self._pool()
        if not candidates:
            return []
        rows = self._features.rows(candidates)
        expected = self._grown().predict(rows)
        mean, spread = expected.mean(axis=0), expected.std(axis=0)
        spread = spread + 1e-6 * self._rng.random(len(spread))
        explored = self._share(count, self._settings.explore)
        found = self._beside(self._share(count - explored, self._settings.near))
        left = np.ones(len(candidates), bool)
        for _ in range(count - explored - len(found)):
            if not left.any():
                break
            courage = self._settings.courage * self._rng.exponential()
            value = np.where(left, mean + courage * spread, -np.inf)
            best = int(value.argmax())
            left[best] = False
            if self._fresh.take(candidates[best]):
                found.append(candidates[best])
        return found + self._drawn(min(explored, count - len(found)))

    def _share(self, count: int, share: float) -> int:
        """As many of a batch, on average."""
        return sum(self._draw.random() < share for _ in range(count))

    def _beside(self, count: int) -> list[Values]:
        """Neighbours of the best, of the second a half as often, and so on."""
        if not count:
            return []
        good = sorted(self._scored, key=lambda one: -one[1])[: self._settings.good]
        ways = [list(self._near.around(values)) for values, _ in good]
        for way in ways:
            self._draw.shuffle(way)
        found: list[Values] = []
        while len(found) < count and any(ways):
            which = min(int(self._draw.expovariate(self._settings.decay)), len(ways) - 1)
            while ways[which]:
                values = ways[which].pop()
                if self._fresh.take(values):
                    found.append(values)
                    break
            else:
                del ways[which]
        return found

    def _pool(self) -> list[Values]:
        """Neighbours of good variants, mixtures of them, and some of the whole space."""
        settings = self._settings
        scored = sorted(self._scored, key=lambda one: -one[1])
        good = [values for values, _ in scored[: settings.good]]
        found = dict.fromkeys(self._untried(self._around(good)))
        room = settings.pool - len(found)
        draws = (self._domain.at(self._draw.randrange(self._domain.count)) for _ in range(room))
        found |= dict.fromkeys(self._untried(draws))
        return list(found)

    def _around(self, good: Sequence[Values]) -> Iterator[Values]:
        for values in good:
            yield from self._near.around(values)
        for _ in range(self._settings.pool // 4):
            one, other = self._draw.choice(good), self._draw.choice(good)
            yield self._near.changed(one, self._draw, 2)
            yield self._near.mixed(one, other, self._draw)

    def _untried(self, variants: Iterable[Values]) -> Iterator[Values]:
        return filter(self._fresh.has, variants)

    def _grown(self) -> Forest:
        """The forest of what is known now, or of almost that."""
        settings, known = self._settings, len(self._told)
        if self._forest is None or known > self._learned * (1 + settings.again):
            variants, scores = self._lesson()
            self._forest = grow(
                self._features.rows(variants),
                scores,
                self._rng,
                trees=settings.trees,
                tries=settings.tries,
                leaf=settings.leaf,
            )
            self._learned = known
        return self._forest

    def _lesson(self) -> tuple[list[Values], Floats]:
        """What it learns from: what fails is as bad as the worst."""
        scored = [score for _, score in self._scored]
        floor = float(np.quantile(scored, self._settings.floor))
        known = [
            (values, floor if s is None else max(s, floor)) for values, s in self._told.items()
        ]
        if len(known) > self._settings.most:
            known.sort(key=lambda one: -one[1])
            half = self._settings.most // 2
            known = known[:half] + self._draw.sample(known[half:], half)
        return [values for values, _ in known], np.array([score for _, score in known])


POWERS = 3
"""An amount that 2, 4 or 8 divides is drawn twice, four or eight times as often as an odd one."""


class FirstDraws:
    """Draws lots of variants: of each parameter, one value from each of as many equal shares."""

    def __init__(self, domain: Domain, draw: Random, rounded: float) -> None:
        self._ranges, self._draw, self._rounded = tuple(domain.ranges.values()), draw, rounded
        self._flat = [list(accumulate([1.0] * len(one))) for one in self._ranges]
        self._round = [list(accumulate(weights(one))) for one in self._ranges]

    def lot(self, count: int) -> list[Values]:
        """As many variants; some of them favour round numbers."""
        rounded = sum(self._draw.random() < self._rounded for _ in range(count))
        found = self._lot(rounded, self._round) + self._lot(count - rounded, self._flat)
        self._draw.shuffle(found)
        return found

    def _lot(self, count: int, weighed: Sequence[Sequence[float]]) -> list[Values]:
        columns = []
        for values, until in zip(self._ranges, weighed, strict=True):
            shares = [(place + self._draw.random()) / count for place in range(count)]
            self._draw.shuffle(shares)
            columns.append([_at(values, until, share) for share in shares])
        return list(zip(*columns, strict=True))


# What is tried before anything is known: spread over the space, round numbers more often.


def weights(values: Sequence[int]) -> list[float]:
    """How often each value is drawn; kinds are as likely as each other."""
    if are_kinds(values):
        return [1.0] * len(values)
    found = roundness(np.array(values, np.int64))
    found = np.minimum(POWERS, found - found.min())
    return [float(w) for w in np.exp2(found)]


def _at(values: Sequence[int], until: Sequence[float], share: float) -> int:
    return values[min(len(values) - 1, bisect_right(until, share * until[-1]))]


LEAST = 3
"""Steps of an amount: to the first, the second and the fourth place beside it."""


class Neighbourhood:
    """Knows the values that there are; those of a given variant may be others."""

    def __init__(self, domain: Domain) -> None:
        self._ranges = tuple(domain.ranges.values())

    def around(self, values: Values) -> Iterator[Values]:
        """All with one parameter changed: to any of few values, by some steps among many."""
        for which in range(len(values)):
            for other in self._moves(which, values[which]):
                yield *values[:which], other, *values[which + 1 :]

    def changed(self, values: Values, draw: Random, count: int) -> Values:
        """One with as many parameters changed, drawn at random."""
        found = list(values)
        varied = [which for which, one in enumerate(self._ranges) if len(one) > 1]
        for which in draw.sample(varied, min(count, len(varied))):
            found[which] = draw.choice(self._moves(which, values[which]))
        return tuple(found)

    def mixed(self, one: Values, other: Values, draw: Random) -> Values:
        """One that has each value from either."""
        return tuple(draw.choice(pair) for pair in zip(one, other, strict=True))

    def _moves(self, which: int, value: int) -> Sequence[int]:
        values = self._ranges[which]
        if are_kinds(values):
            return [other for other in values if other != value]
        place = nearest(values, value)
        near = (place + way * step for step in _steps(len(values)) for way in (1, -1))
        return [values[at] for at in near if 0 <= at < len(values)]


# Variants near others: one or two parameters changed, and mixtures of two.


def _steps(count: int) -> list[int]:
    """How far an amount goes, in places of its range: to the next one, twice as far, and so on.

    With small steps alone a range of 513 values is never crossed.
    """
    return [1 << power for power in range(max(LEAST, count.bit_length() - 1))]


def nearest(values: Sequence[int], value: int) -> int:
    """The place of a value, or of the one that is nearest to it, in values that rise."""
    at = bisect_left(values, value)
    near = [place for place in (at - 1, at) if 0 <= place < len(values)]
    return min(near, key=lambda place: abs(values[place] - value))


DEPTH = 24
"""Levels; by then a node of some thousand variants has been divided."""


# A forest of extremely randomized trees: what untried variants may score, and how sure that is.
#
# All trees grow together, level by level, so that numpy does the work: a fit of some hundred
# variants takes some ten milliseconds.


def grow(
    rows: Floats, scores: Floats, rng: np.random.Generator, *, trees: int, tries: int, leaf: int
) -> Forest:
    """Each node is divided by the best of some divisions drawn at random, down to small leaves."""
    grown = _Growing(rows, scores, rng, trees, tries, leaf)
    for _ in range(DEPTH):
        if not grown.divide():
            break
    return grown.forest()


class _Growing:
    """Trees while they grow; `node` says where each variant is in each tree."""

    def __init__(
        self,
        rows: Floats,
        scores: Floats,
        rng: np.random.Generator,
        trees: int,
        tries: int,
        leaf: int,
    ) -> None:
        self.rows, self.rng, self.trees, self.tries, self.leaf = rows, rng, trees, tries, leaf
        self.which = np.tile(np.arange(len(rows)), trees)
        self.scores = np.tile(scores, trees)
        self.node = np.repeat(np.arange(trees), len(rows))
        self.first, self.count = 0, trees
        """The nodes of the lowest level."""
        self.column: list[Integers] = []
        self.limit: list[Floats] = []
        self.left: list[Integers] = []
        self.value: list[Floats] = []

    def divide(self) -> bool:
        """Grows a level; whether there may be another one."""
        at, count = self.node, self.count
        sizes = np.bincount(at, minlength=count)
        sums = np.asarray(np.bincount(at, self.scores, minlength=count), np.float64)
        columns, limits, gains = self._best(at, sizes, sums)
        inner = gains > 0
        below = self.first + count
        order = np.cumsum(inner) - 1
        self.column.append(np.where(inner, columns, -1))
        self.limit.append(limits)
        self.left.append(np.where(inner, below + 2 * order, 0))
        self.value.append(sums / sizes)
        stays = inner[at]
        at, self.which, self.scores = at[stays], self.which[stays], self.scores[stays]
        over = self.rows[self.which, columns[at]] > limits[at]
        self.node = 2 * order[at] + over
        self.first, self.count = below, 2 * int(inner.sum())
        return self.count > 0

    def _best(self, at: Integers, sizes: Integers, sums: Floats) -> tuple[Integers, Floats, Floats]:
        """For each node the division that explains most; no gain where there is none."""
        low, high = self._bounds(at, sizes)
        count = len(sizes)
        every = np.arange(count)
        columns, limits = np.zeros(count, np.int64), np.zeros(count)
        gains = np.zeros(count)
        for _ in range(self.tries):
            column = self._columns(low, high)
            least, most = low[every, column], high[every, column]
            limit = least + self.rng.random(count) * (most - least)
            over = self.rows[self.which, column[at]] > limit[at]
            right = np.bincount(at[over], minlength=count)
            above = np.bincount(at[over], self.scores[over], minlength=count)
            left = sizes - right
            with np.errstate(divide="ignore", invalid="ignore"):
                gain = above**2 / right + (sums - above) ** 2 / left - sums**2 / sizes
            gain[(right < self.leaf) | (left < self.leaf)] = 0
            better = gain > gains
            columns[better], limits[better], gains[better] = (
                column[better],
                limit[better],
                gain[better],
            )
        return columns, limits, gains

    def _columns(self, low: Floats, high: Floats) -> Integers:
        """For each node a column that is not the same in all of its variants, where one is."""
        weight = (high > low) * self.rng.random(low.shape)
        return np.asarray(weight.argmax(axis=1))

    def _bounds(self, at: Integers, sizes: Integers) -> tuple[Floats, Floats]:
        """The least and the greatest of each column in each node."""
        order = np.argsort(at, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        rows = self.rows[self.which[order]]
        return np.minimum.reduceat(rows, starts), np.maximum.reduceat(rows, starts)

    def forest(self) -> Forest:
        """What has grown; nodes of a level that was not divided are leaves."""
        if self.count:
            sizes = np.bincount(self.node, minlength=self.count)
            self.column.append(np.full(self.count, -1))
            self.limit.append(np.zeros(self.count))
            self.left.append(np.zeros(self.count, np.int64))
            sums = np.bincount(self.node, self.scores, minlength=self.count)
            self.value.append(sums / sizes)
        parts: Any = (self.column, self.limit, self.left, self.value)
        return Forest(self.trees, *(np.concatenate(part) for part in parts))


KINDS = 16
"""Numbers below this may be names of kinds, such as ways to load or to wait; above are amounts."""
MOST = 8
"""There are fewer kinds than that, or as many."""
PAIRS = 10
"""Products of two parameters that are looked at, such as the items of a tile."""


class Features:
    """Columns: values, kinds, by which power of two a value is divided, products of two."""

    def __init__(self, domain: Domain) -> None:
        ranges = list(enumerate(domain.ranges.values()))
        self._kinds = [
            (place, value)
            for place, values in ranges
            if are_kinds(values) and len(values) > 2
            for value in values
        ]
        self._amounts = [place for place, values in ranges if not are_kinds(values)]
        self._pairs = list(combinations(self._amounts, 2))[:PAIRS]

    def rows(self, variants: Sequence[Values]) -> Floats:
        """A row for each variant."""
        plain = np.array(variants, np.float64).reshape(len(variants), -1)
        kinds = [plain[:, place] == value for place, value in self._kinds]
        powers = [roundness(plain[:, place].astype(np.int64)) for place in self._amounts]
        products = [
            np.log2(np.abs(plain[:, one]) + 1) + np.log2(np.abs(plain[:, other]) + 1)
            for one, other in self._pairs
        ]
        return np.column_stack([plain, *kinds, *powers, *products])


# Variants as rows of numbers, by which a forest tells them apart.


def are_kinds(values: Sequence[int]) -> bool:
    """Whether the values of a parameter may be names, in no order; of amounts the order counts."""
    return len(values) <= MOST and all(0 <= value < KINDS for value in values)


def roundness(values: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> Floats:
    """How often a number can be divided by two; of 0 as often as of 2^16."""
    lowest = np.where(values == 0, 1 << 16, values & -values)
    return np.log2(np.abs(lowest).astype(np.float64))
