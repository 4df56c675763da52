"""One workload of a search: what it may ask for, what it has tried, and what came of it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from policygen.errors import InputError
from policygen.measure.distinct import Classifier, SpaceCounts
from policygen.measure.meaning import Policy
from policygen.measure.opened import OpenedWorkload
from policygen.measure.tables import RowSpot
from policygen.model.labels import as_label
from policygen.model.workload import Point
from policygen.results.declared import DeclaredAxes
from policygen.search.domain import Domain, Values
from policygen.search.strategy import AskedVariant, Strategy
from policygen.search.target import SearchTarget

Key = tuple[int, ...]


@dataclass(slots=True)
class SearchSpaceOf:
    """The variants of a workload as a strategy sees them; what is base's own policy is none."""

    classifier: Classifier
    first: dict[Key, str] = field(default_factory=dict)
    """Policy → the label by which it was met first."""
    refused: dict[str, int] = field(default_factory=dict)
    """Rule → how many variants it forbade."""
    _keys: dict[Values, Key | None] = field(default_factory=dict)
    _base: set[Key] = field(default_factory=set)

    @property
    def domain(self) -> Domain:
        """What strategies are given."""
        return Domain(self.classifier.space.ranges, self.key)

    def key(self, values: Values) -> Key | None:
        """The same for variants of the same policy; none where there is none, or it is base's."""
        if values not in self._keys:
            self._keys[values] = self._asked(values)
        return self._keys[values]

    def named(self, values: Values) -> dict[str, int]:
        """Parameter → value."""
        return dict(zip(self.classifier.space.labels, values, strict=True))

    def label(self, values: Values) -> str:
        """As databases name a variant."""
        return as_label(self.named(values))

    def values(self, label: str) -> Values | None:
        """The variant of a label; none where the space has no such."""
        try:
            found = self.classifier.space.variant(label)
        except InputError:
            return None
        return tuple(found.values())

    def _asked(self, values: Values) -> Key | None:
        variant = self.named(values)
        try:
            key = self.classifier.key(variant)
        except InputError as error:
            rule = error.remedy or error.message
            self.refused[rule] = self.refused.get(rule, 0) + 1
            return None
        if key in self._base:
            return None
        if key not in self.first:
            if self.classifier.policy(variant) == self.classifier.meaning.base:
                self._base.add(key)
                return None
            self.first[key] = as_label(variant)
        return key


def nearest_values(classifier: Classifier, policy: Policy) -> tuple[Values, bool]:
    """The variant that comes nearest to a policy, and whether it is the same.

    One parameter after the other, until nothing comes nearer.
    """
    space = classifier.space
    best = dict(classifier.possible)
    distance = _distance(classifier, best, policy)
    assert distance is not None
    better = True
    while better and distance > 0:
        better = False
        for label, values in space.ranges.items():
            for value in values:
                other = {**best, label: value}
                found = _distance(classifier, other, policy)
                if found is not None and found < distance:
                    best, distance, better = other, found, True
    return tuple(best[label] for label in space.labels), distance == 0


def _distance(classifier: Classifier, variant: Mapping[str, int], wanted: Policy) -> float | None:
    """How far policies are apart: fields that differ count one, numbers less by nearness."""
    try:
        policy = classifier.policy(variant)
    except InputError:
        return None
    return sum(
        _apart(policy.get(name), value)
        for name, value in wanted.items()
        if policy.get(name) != value
    )


def _apart(one: str | None, other: str) -> float:
    if one is None or not (one.lstrip("-").isdigit() and other.lstrip("-").isdigit()):
        return 1.0
    a, b = int(one), int(other)
    return abs(a - b) / (abs(a) + abs(b))


@dataclass(slots=True)
class WorkloadSearch:
    """A workload while it is searched."""

    point: Point
    opened: OpenedWorkload
    space: SearchSpaceOf
    counts: SpaceCounts
    strategy: Strategy
    name: str
    """Of the strategy."""
    declared: DeclaredAxes
    spots: Sequence[RowSpot]
    """All runtime workloads, as the database names them."""
    base: str | None
    """The variant that is what CUB selects, where one is."""
    target: SearchTarget | None = None
    tried: set[str] = field(default_factory=set)
    """Those that were asked for, in all sessions."""
    waiting: list[str] = field(default_factory=list)
    """Of those that were to be tried, what there was no time for."""
    scores: dict[str, float] = field(default_factory=dict)
    """Of the first rung."""
    sharper: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)
    """Of the finalists."""
    failed: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Label → how it fails, and why."""
    exhausted: bool = False
    problem: str | None = None
    history: list[float] = field(default_factory=list)
    """The best score after each batch."""
    seconds: float = 0.0
    """Of the GPU's time."""
    pace: float | None = None
    """Seconds that a variant of the last batch took."""

    @property
    def is_open(self) -> bool:
        """Whether there is something left to try."""
        return self.problem is None and (bool(self.waiting) or not self.exhausted)

    @property
    def leading(self) -> tuple[str, float] | None:
        """The variant with the best score of the sharpest rung that there is."""
        known = self.last or self.sharper or self.scores
        return max(known.items(), key=lambda one: one[1], default=None)

    def count(self, kinds: Collection[str]) -> int:
        """How many failed in one of these ways."""
        return sum(kind in kinds for kind, _ in self.failed.values())

    def ask(self, count: int) -> list[str]:
        """Labels of variants to try next; fewer, or none, at the end."""
        labels, self.waiting = self.waiting[:count], self.waiting[count:]
        if (more := count - len(labels)) > 0:
            found = self.strategy.ask(more)
            self.exhausted = len(found) < more
            labels += [self.space.label(values) for values in found]
        self.tried.update(labels)
        return labels

    def put_back(self, labels: Sequence[str]) -> None:
        """These were not tried, and are the first that are asked for next."""
        self.waiting = [*labels, *self.waiting]
        self.tried.difference_update(labels)

    def tell(self, scores: Mapping[str, float], failed: Mapping[str, tuple[str, str]]) -> None:
        """What became of variants."""
        self.scores |= scores
        self.failed |= failed
        self._told([*scores.items(), *((label, None) for label in failed)])
        if self.scores:
            self.history.append(max(self.scores.values()))

    def remember(self, scores: Mapping[str, float], failed: Mapping[str, tuple[str, str]]) -> None:
        """What earlier sessions found."""
        known = {label for label in (*scores, *failed) if self.space.values(label)}
        self.tried |= known
        self.scores |= {label: score for label, score in scores.items() if label in known}
        self.failed |= {label: why for label, why in failed.items() if label in known}
        self._told([(label, scores.get(label)) for label in known])

    def _told(self, found: Iterable[tuple[str, float | None]]) -> None:
        outcomes = []
        for label, score in found:
            values = self.space.values(label)
            if values is not None:
                outcomes.append(AskedVariant(values, score))
        self.strategy.tell(outcomes)
