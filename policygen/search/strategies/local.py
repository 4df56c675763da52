"""Neighbours of good variants, chosen by a forest, and some of all others."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from policygen.results.load import Floats
from policygen.search.domain import Domain, Values
from policygen.search.strategies.features import Features
from policygen.search.strategies.first import FirstDraws
from policygen.search.strategies.fresh import Fresh
from policygen.search.strategies.neighbours import Neighbourhood
from policygen.search.strategies.surrogate import Forest, grow
from policygen.search.strategies.walk import shuffled, some, walk
from policygen.search.strategy import AskedVariant


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
    near: float = 0.4
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
