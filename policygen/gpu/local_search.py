"""Local search: neighbors of good variants chosen by a random forest, plus random exploration."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations
from random import Random
from typing import Any

import numpy as np

from policygen.gpu.strategy import AskedVariant, Domain, Fresh, Values, shuffled, take_next, walk
from policygen.results.database import Floats, Integers


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """Parameters of the search, chosen on measured spaces; see docs/searching.md."""

    first: int = 16
    """Number of variants to try before the forest is used."""
    beside: float = 0.75
    """Fraction of these that are neighbors of the starts, if there are any."""
    rounded: float = 0.5
    """Fraction of the drawn variants that favors round numbers."""
    explore: float = 0.1
    """Fraction of a batch that is drawn from the whole space."""
    near: float = 0.2
    """Fraction of a batch that changes one parameter of the best variants, ignoring the forest."""
    good: int = 8
    """Number of variants that count as the best."""
    decay: float = 0.7
    """Rate at which the best variants are picked less often by rank: each half as often."""
    pool: int = 800
    """Number of candidates from which the forest chooses."""
    courage: float = 1.0
    """Weight of the uncertainty of a prediction."""
    trees: int = 40
    tries: int = 8
    """Number of random splits tried per node."""
    leaf: int = 2
    """Minimum number of variants in a leaf."""
    most: int = 400
    """Maximum number of training variants: half are the best, half are sampled from the rest."""
    floor: float = 0.1
    """Scores below this quantile are clipped to it."""
    again: float = 0.05
    """Growth of the training data that triggers a new forest."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Nodes of all trees, roots first; a leaf has column -1."""

    trees: int
    column: Integers
    limit: Floats
    left: Integers
    value: Floats

    def predict(self, rows: Floats) -> Floats:
        """Return the predicted score by tree and row."""
        node = np.repeat(np.arange(self.trees)[:, None], len(rows), axis=1)
        row_indexes = np.arange(len(rows))[None, :]
        while (is_inner := self.column[node] >= 0).any():
            is_above = rows[row_indexes, np.maximum(self.column[node], 0)] > self.limit[node]
            node = np.where(is_inner, self.left[node] + is_above, node)
        return np.asarray(self.value[node])


class LocalSearch:
    """Learns from outcomes and proposes variants that may beat the best one."""

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
        self._neighbourhood = Neighbourhood(domain)
        self._beside_starts = self._shuffled(starts)
        self._first = FirstDraws(domain, self._draw, self._settings.rounded)
        self._features = Features(domain)
        self._remaining = walk(self._fresh, shuffled(domain, self._draw.getrandbits(64)))
        self._score_by_values: dict[Values, float | None] = {}
        self._asked_count = 0
        self._forest: Forest | None = None
        self._learned = 0

    def ask(self, count: int) -> list[Values]:
        """Return the starts and their neighbors, random draws, then the forest's choices."""
        variants = take_next(filter(self._fresh.take, self._starts), count)
        remaining = count - len(variants)
        early_count = (
            min(remaining, self._settings.first - self._asked_count - len(variants))
            if self._has_scores
            else remaining
        )
        near_starts = filter(self._fresh.take, self._beside_starts)
        variants += (
            from_starts := take_next(near_starts, round(early_count * self._settings.beside))
        )
        variants += self._drawn(early_count - len(from_starts))
        if self._has_scores:
            variants += self._chosen(count - len(variants))
        variants += take_next(self._remaining, count - len(variants))
        self._asked_count += len(variants)
        return variants

    def tell(self, outcomes: Sequence[AskedVariant]) -> None:
        """Learn from the outcomes of variants."""
        for outcome in outcomes:
            self._fresh.take(outcome.values)
            self._score_by_values[outcome.values] = outcome.score

    @property
    def _has_scores(self) -> bool:
        return any(score is not None for score in self._score_by_values.values())

    @property
    def _scored(self) -> list[tuple[Values, float]]:
        return [
            (values, score) for values, score in self._score_by_values.items() if score is not None
        ]

    def _shuffled(self, starts: Sequence[Values]) -> Iterator[Values]:
        """Return the neighbors of the starts in random order."""
        neighbors = [values for start in starts for values in self._neighbourhood.around(start)]
        self._draw.shuffle(neighbors)
        return iter(neighbors)

    def _drawn(self, count: int) -> list[Values]:
        """Return untried variants spread over the space."""
        variants: list[Values] = []
        if count > 0:
            for _ in range(4):
                draws = self._first.lot(count)
                variants += take_next(filter(self._fresh.take, draws), count - len(variants))
        return variants

    def _chosen(self, count: int) -> list[Values]:
        """Return the most promising candidates, each with a random weight of the uncertainty."""
        if count <= 0:
            return []
        candidates = self._pool()
        if not candidates:
            return []
        rows = self._features.rows(candidates)
        expected = self._grown().predict(rows)
        mean, spread = expected.mean(axis=0), expected.std(axis=0)
        spread = spread + 1e-6 * self._rng.random(len(spread))
        explore_count = self._share(count, self._settings.explore)
        variants = self._best_neighbours(self._share(count - explore_count, self._settings.near))
        available = np.ones(len(candidates), bool)
        for _ in range(count - explore_count - len(variants)):
            if not available.any():
                break
            courage = self._settings.courage * self._rng.exponential()
            value = np.where(available, mean + courage * spread, -np.inf)
            best = int(value.argmax())
            available[best] = False
            if self._fresh.take(candidates[best]):
                variants.append(candidates[best])
        return variants + self._drawn(min(explore_count, count - len(variants)))

    def _share(self, count: int, share: float) -> int:
        """Draw a count that is `share * count` on average."""
        return sum(self._draw.random() < share for _ in range(count))

    def _best_neighbours(self, count: int) -> list[Values]:
        """Return neighbors of the best variants; each rank is half as likely as the previous."""
        if not count:
            return []
        good = sorted(self._scored, key=lambda scored: -scored[1])[: self._settings.good]
        neighbor_lists = [list(self._neighbourhood.around(values)) for values, _ in good]
        for neighbors in neighbor_lists:
            self._draw.shuffle(neighbors)
        variants: list[Values] = []
        while len(variants) < count and any(neighbor_lists):
            index = min(int(self._draw.expovariate(self._settings.decay)), len(neighbor_lists) - 1)
            while neighbor_lists[index]:
                values = neighbor_lists[index].pop()
                if self._fresh.take(values):
                    variants.append(values)
                    break
            else:
                del neighbor_lists[index]
        return variants

    def _pool(self) -> list[Values]:
        """Return untried neighbors and mixtures of good variants, and random ones."""
        settings = self._settings
        scored = sorted(self._scored, key=lambda pair: -pair[1])
        good = [values for values, _ in scored[: settings.good]]
        candidates = dict.fromkeys(self._untried(self._mutations(good)))
        room = settings.pool - len(candidates)
        draws = (self._domain.at(self._draw.randrange(self._domain.count)) for _ in range(room))
        candidates |= dict.fromkeys(self._untried(draws))
        return list(candidates)

    def _mutations(self, good: Sequence[Values]) -> Iterator[Values]:
        for values in good:
            yield from self._neighbourhood.around(values)
        for _ in range(self._settings.pool // 4):
            first, second = self._draw.choice(good), self._draw.choice(good)
            yield self._neighbourhood.changed(first, self._draw, 2)
            yield self._neighbourhood.mixed(first, second, self._draw)

    def _untried(self, variants: Iterable[Values]) -> Iterator[Values]:
        return filter(self._fresh.has, variants)

    def _grown(self) -> Forest:
        """Return the current forest, regrowing it if enough outcomes have been added."""
        settings, outcome_count = self._settings, len(self._score_by_values)
        if self._forest is None or outcome_count > self._learned * (1 + settings.again):
            variants, scores = self._training_data()
            self._forest = grow(
                self._features.rows(variants),
                scores,
                self._rng,
                trees=settings.trees,
                tries=settings.tries,
                leaf=settings.leaf,
            )
            self._learned = outcome_count
        return self._forest

    def _training_data(self) -> tuple[list[Values], Floats]:
        """Return variants and clipped scores; failed variants count as the worst."""
        scored = [score for _, score in self._scored]
        floor = float(np.quantile(scored, self._settings.floor))
        examples = [
            (values, floor if score is None else max(score, floor))
            for values, score in self._score_by_values.items()
        ]
        if len(examples) > self._settings.most:
            examples.sort(key=lambda example: -example[1])
            half = self._settings.most // 2
            examples = examples[:half] + self._draw.sample(examples[half:], half)
        return [values for values, _ in examples], np.array([score for _, score in examples])


POWERS = 3
"""Maximum power of two that counts: multiples of 2, 4, and 8 are 2, 4, and 8 times as likely."""


class FirstDraws:
    """Stratified draws: the range of each parameter is split into equal shares, one per variant."""

    def __init__(self, domain: Domain, draw: Random, rounded: float) -> None:
        self._ranges, self._draw, self._rounded = tuple(domain.ranges.values()), draw, rounded
        self._flat = [list(accumulate([1.0] * len(values))) for values in self._ranges]
        self._round = [list(accumulate(weights(values))) for values in self._ranges]

    def lot(self, count: int) -> list[Values]:
        """Return `count` variants, some of which favor round numbers."""
        rounded = sum(self._draw.random() < self._rounded for _ in range(count))
        variants = self._draw_stratified(rounded, self._round) + self._draw_stratified(
            count - rounded, self._flat
        )
        self._draw.shuffle(variants)
        return variants

    def _draw_stratified(
        self, count: int, cumulative_weights: Sequence[Sequence[float]]
    ) -> list[Values]:
        columns = []
        for values, cumulative in zip(self._ranges, cumulative_weights, strict=True):
            shares = [(place + self._draw.random()) / count for place in range(count)]
            self._draw.shuffle(shares)
            columns.append([_value_at_share(values, cumulative, share) for share in shares])
        return list(zip(*columns, strict=True))


# Weights of the first draws


def weights(values: Sequence[int]) -> list[float]:
    """Return the draw weight of each value; categorical values are equally likely."""
    if are_kinds(values):
        return [1.0] * len(values)
    powers = roundness(np.array(values, np.int64))
    powers = np.minimum(POWERS, powers - powers.min())
    return [float(weight) for weight in np.exp2(powers)]


def _value_at_share(values: Sequence[int], cumulative: Sequence[float], share: float) -> int:
    return values[min(len(values) - 1, bisect_right(cumulative, share * cumulative[-1]))]


LEAST = 3
"""Minimum number of step sizes of an amount: 1, 2, and 4 positions."""


class Neighbourhood:
    """Neighbors of variants; a given variant may have values outside the domain."""

    def __init__(self, domain: Domain) -> None:
        self._ranges = tuple(domain.ranges.values())

    def around(self, values: Values) -> Iterator[Values]:
        """Yield all variants with one parameter changed."""
        for index in range(len(values)):
            for value in self._moves(index, values[index]):
                yield *values[:index], value, *values[index + 1 :]

    def changed(self, values: Values, draw: Random, count: int) -> Values:
        """Return a variant with `count` parameters changed at random."""
        new_values = list(values)
        varied = [index for index, domain in enumerate(self._ranges) if len(domain) > 1]
        for index in draw.sample(varied, min(count, len(varied))):
            new_values[index] = draw.choice(self._moves(index, values[index]))
        return tuple(new_values)

    def mixed(self, first: Values, second: Values, draw: Random) -> Values:
        """Return a variant that takes each value from either parent."""
        return tuple(draw.choice(pair) for pair in zip(first, second, strict=True))

    def _moves(self, index: int, value: int) -> Sequence[int]:
        values = self._ranges[index]
        if are_kinds(values):
            return [other for other in values if other != value]
        position = nearest(values, value)
        positions = (
            position + direction * step for step in _steps(len(values)) for direction in (1, -1)
        )
        return [values[position] for position in positions if 0 <= position < len(values)]


# Steps between values


def _steps(count: int) -> list[int]:
    """Return step sizes in positions of a range: powers of two.

    With small steps alone a range of 513 values would never be crossed.
    """
    return [1 << power for power in range(max(LEAST, count.bit_length() - 1))]


def nearest(values: Sequence[int], value: int) -> int:
    """Return the position of the value nearest to `value` in ascending values."""
    insertion = bisect_left(values, value)
    positions = [position for position in (insertion - 1, insertion) if 0 <= position < len(values)]
    return min(positions, key=lambda position: abs(values[position] - value))


DEPTH = 24
"""Maximum number of levels; enough to split a node of several thousand variants."""


# Extremely randomized trees
#
# All trees grow together, level by level, so that numpy does the work: fitting a few hundred
# variants takes tens of milliseconds.


def grow(
    rows: Floats, scores: Floats, rng: np.random.Generator, *, trees: int, tries: int, leaf: int
) -> Forest:
    """Grow a forest: each node is split by the best of several random splits."""
    grown = _Growing(rows, scores, rng, trees, tries, leaf)
    for _ in range(DEPTH):
        if not grown.divide():
            break
    return grown.forest()


class _Growing:
    """Trees during growth; `node` is the node of each variant in each tree."""

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
        """Index of the first node and number of nodes at the lowest level."""
        self.column: list[Integers] = []
        self.limit: list[Floats] = []
        self.left: list[Integers] = []
        self.value: list[Floats] = []

    def divide(self) -> bool:
        """Grow one level; return whether another may follow."""
        node, count = self.node, self.count
        sizes = np.bincount(node, minlength=count)
        sums = np.asarray(np.bincount(node, self.scores, minlength=count), np.float64)
        columns, limits, gains = self._best(node, sizes, sums)
        is_inner = gains > 0
        next_first = self.first + count
        order = np.cumsum(is_inner) - 1
        self.column.append(np.where(is_inner, columns, -1))
        self.limit.append(limits)
        self.left.append(np.where(is_inner, next_first + 2 * order, 0))
        self.value.append(sums / sizes)
        stays = is_inner[node]
        node, self.which, self.scores = node[stays], self.which[stays], self.scores[stays]
        is_above = self.rows[self.which, columns[node]] > limits[node]
        self.node = 2 * order[node] + is_above
        self.first, self.count = next_first, 2 * int(is_inner.sum())
        return self.count > 0

    def _best(
        self, node: Integers, sizes: Integers, sums: Floats
    ) -> tuple[Integers, Floats, Floats]:
        """Return the best split of each node; the gain is zero if there is none."""
        low, high = self._bounds(node, sizes)
        count = len(sizes)
        nodes = np.arange(count)
        columns, limits = np.zeros(count, np.int64), np.zeros(count)
        gains = np.zeros(count)
        for _ in range(self.tries):
            column = self._columns(low, high)
            least, most = low[nodes, column], high[nodes, column]
            limit = least + self.rng.random(count) * (most - least)
            is_above = self.rows[self.which, column[node]] > limit[node]
            right = np.bincount(node[is_above], minlength=count)
            above = np.bincount(node[is_above], self.scores[is_above], minlength=count)
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
        """Choose a random column for each node that varies within it, if there is one."""
        priority = (high > low) * self.rng.random(low.shape)
        return np.asarray(priority.argmax(axis=1))

    def _bounds(self, node: Integers, sizes: Integers) -> tuple[Floats, Floats]:
        """Return the minimum and maximum of each column in each node."""
        order = np.argsort(node, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        rows = self.rows[self.which[order]]
        return np.minimum.reduceat(rows, starts), np.maximum.reduceat(rows, starts)

    def forest(self) -> Forest:
        """Return the finished forest; unsplit nodes of the last level are leaves."""
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
"""Values below this may be categorical, such as load or wait algorithms; others are amounts."""
MOST = 8
"""Maximum number of values of a categorical parameter."""
PAIRS = 10
"""Maximum number of parameter pairs whose products are features, such as the items of a tile."""


class Features:
    """Feature columns: values, categories, powers of two, and products of two parameters."""

    def __init__(self, domain: Domain) -> None:
        ranges = list(enumerate(domain.ranges.values()))
        self._kinds = [
            (index, value)
            for index, values in ranges
            if are_kinds(values) and len(values) > 2
            for value in values
        ]
        self._amounts = [index for index, values in ranges if not are_kinds(values)]
        self._pairs = list(combinations(self._amounts, 2))[:PAIRS]

    def rows(self, variants: Sequence[Values]) -> Floats:
        """Return one row per variant."""
        values = np.array(variants, np.float64).reshape(len(variants), -1)
        kinds = [values[:, index] == value for index, value in self._kinds]
        powers = [roundness(values[:, index].astype(np.int64)) for index in self._amounts]
        products = [
            np.log2(np.abs(values[:, first]) + 1) + np.log2(np.abs(values[:, second]) + 1)
            for first, second in self._pairs
        ]
        return np.column_stack([values, *kinds, *powers, *products])


# Kinds and amounts


def are_kinds(values: Sequence[int]) -> bool:
    """Whether the values of a parameter are categorical; amounts are ordered."""
    return len(values) <= MOST and all(0 <= value < KINDS for value in values)


def roundness(values: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> Floats:
    """Return how often each number can be divided by two; 0 counts as 2^16."""
    lowest = np.where(values == 0, 1 << 16, values & -values)
    return np.log2(np.abs(lowest).astype(np.float64))
