"""One workload of a search: what it may ask for, what it has tried, and what came of it."""

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from policygen.errors import InputError
from policygen.gpu.database_writer import RowSpot
from policygen.gpu.device import Failure, VariantFunction
from policygen.gpu.measured_rows import MeasuringSession, named
from policygen.gpu.opened import OpenedWorkload
from policygen.gpu.rounds import RuntimeSpot
from policygen.gpu.rung_rows import KeptRung, RungRows, WeighedSpot
from policygen.gpu.rungs import (
    Asked,
    Functions,
    MeasuresRungs,
    RungFound,
    RungTask,
    SearchTarget,
    measure_rung,
)
from policygen.gpu.space import Classifier, Policy, SpaceCounts
from policygen.gpu.strategy import AskedVariant, Domain, Strategy, Values
from policygen.gpu.tools import Sanitizes, WatchedWorkload
from policygen.model.searches import Ended
from policygen.model.workload import BASE, Point, as_label
from policygen.results.own_tables import SEARCHES, SESSIONS, workload_text
from policygen.results.tables import DeclaredAxes

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


class SearchNotes:
    """The searches of a database."""

    def __init__(self, session: MeasuringSession) -> None:
        self._session = session

    def begin(self, one: WorkloadSearch, seed: int, budget: float | None) -> None:
        """Notes that this session searches a workload."""
        counts = one.counts
        cells = (
            *(self._session.number, *_named(one.point), one.name, seed),
            *(str(counts.variants), str(counts.valid), str(counts.distinct)),
            *(one.base, budget),
        )
        with self._session.writer.writing() as connection:
            connection.execute(
                f"INSERT INTO {SEARCHES} (session, algorithm, workload, strategy, seed, variants,"  # noqa: S608
                f" valid, distinct_, base, budget) VALUES ({', '.join('?' * len(cells))})",
                cells,
            )

    def spend(self, seconds: float, ended: Ended | None = None) -> None:
        """Notes how long this session has taken so far, and why it tries no more."""
        with self._session.writer.writing() as connection:
            connection.execute(
                f"UPDATE {SEARCHES} SET spent = ?, ended = coalesce(?, ended) WHERE session = ?",  # noqa: S608
                (seconds, ended, self._session.number),
            )

    def skip(self, one: WorkloadSearch) -> None:
        """Notes which runtime workloads of a workload are not measured."""
        target = one.target
        spots = [named(spot)[1:] for spot, _ in target.skipped] if target else []
        with self._session.writer.writing() as connection:
            connection.execute(
                f"UPDATE {SEARCHES} SET skipped = ?"  # noqa: S608
                " WHERE (session, algorithm, workload) = (?, ?, ?)",
                (json.dumps(spots), self._session.number, *_named(one.point)),
            )

    def skipped(self, point: Point) -> set[tuple[str, str]]:
        """The sub-benchmarks and runtime workloads that earlier sessions did not measure."""
        rows: list[Any] = self._session.writer.rows(
            f"SELECT q.skipped FROM {SEARCHES} AS q JOIN {SESSIONS} AS s ON s.id = q.session"  # noqa: S608
            " WHERE (s.ctk, s.cccl, s.gpu) = (?, ?, ?) AND (q.algorithm, q.workload) = (?, ?)"
            " AND q.skipped IS NOT NULL",
            *self._session.about.key,
            *_named(point),
        )
        return {(subbench, axes) for (text,) in rows for subbench, axes in json.loads(text)}

    def before(self, points: Collection[Point]) -> float:
        """Seconds that earlier sessions took for some of these workloads."""
        names = {_named(point) for point in points}
        rows: list[Any] = self._session.writer.rows(
            f"SELECT q.session, q.algorithm, q.workload, q.spent FROM {SEARCHES} AS q"  # noqa: S608
            f" JOIN {SESSIONS} AS s ON s.id = q.session"
            " WHERE (s.ctk, s.cccl, s.gpu) = (?, ?, ?) AND q.session <> ?",
            *self._session.about.key,
            self._session.number,
        )
        sessions: dict[int, float] = {}
        for session, algorithm, workload, spent in rows:
            if (algorithm, workload) in names:
                sessions[session] = max(spent, sessions.get(session, 0.0))
        return sum(sessions.values())


# What a database says of its searches: how each was made, how long it took, and why it ended.


def _named(point: Point) -> tuple[str, str]:
    name, axes = point
    return name, workload_text({f"{axis}{{ct}}": value for axis, value in axes})


Reasons = Mapping[str, tuple[str, str]]
"""Label → how it fails, and why."""


@dataclass(frozen=True, slots=True)
class CompiledBatch:
    """The objects of some variants of a workload."""

    bases: tuple[VariantFunction, ...]
    """One for each sub-benchmark."""
    functions: tuple[Functions, ...]
    """By label, for each sub-benchmark."""
    runtimes: tuple[tuple[RuntimeSpot, ...], ...]
    failed: Reasons
    problem: str | None = None
    """Why none of the workload can be compiled."""

    def with_more(self, other: "CompiledBatch") -> "CompiledBatch":
        """The same with the variants of another batch; base stays the one that was first."""
        lots = zip(self.functions, other.functions, strict=True)
        return replace(self, functions=tuple({**old, **new} for old, new in lots))


Batch = Mapping[str, Sequence[str]]
"""Workload in words → labels."""
Compiles = Callable[[Batch], Mapping[str, CompiledBatch]]


@dataclass(frozen=True, slots=True)
class SearchEffort:
    """How much is tried, and how sure the result is."""

    batch: int
    """Variants that are compiled together."""
    seed: int = 1
    count: int | None = None
    """As many variants of a workload are tried at most."""
    processes: int = 5
    """Of the last rung, each of them fresh."""
    rounds: int = 20
    """In each of those, at most."""
    beside: bool = False
    """Whether a batch is compiled while another one is screened; never while finalists run."""


@dataclass(slots=True)
class SearchBench:
    """Where variants are compiled and measured."""

    gpu: MeasuresRungs
    rows: RungRows
    compiles: Compiles
    effort: SearchEffort
    asked: Asked
    sanitizes: Sanitizes | None = None
    made: dict[str, CompiledBatch] = field(default_factory=dict)
    """What is compiled of each workload, in this session."""
    compiling: float = 0.0
    """Seconds of the last batch."""
    processes: int = 0
    """Fresh ones that measured, in this session."""

    def compile(self, batch: Batch) -> Mapping[str, CompiledBatch]:
        """The objects of a batch; it may run beside what is measured."""
        begun = time.monotonic()
        made = self.compiles(batch)
        self.compiling = time.monotonic() - begun
        self.rows.time("compiling", self.compiling)
        return made

    def keep(self, name: str, made: CompiledBatch) -> CompiledBatch:
        """Remembers where variants lie; all that is known of the workload."""
        before = self.made.get(name)
        self.made[name] = made if before is None else before.with_more(made)
        return self.made[name]

    def functions(
        self, name: str, labels: Sequence[str]
    ) -> tuple[list[Functions], dict[str, tuple[str, str]]]:
        """Where variants lie, and what fails; those of earlier sessions are compiled again."""
        failed: dict[str, tuple[str, str]] = {}
        lacking = [label for label in labels if label not in self.made[name].functions[0]]
        if lacking:
            made = self.compile({name: lacking})[name]
            failed |= made.failed
            self.keep(name, made)
        lots = self.made[name].functions
        return [{one: lot[one] for one in labels if one in lot} for lot in lots], failed

    def measure(self, target: SearchTarget, task: RungTask) -> RungFound:
        """One rung of some variants, in a fresh process of each GPU."""
        return measure_rung(self.gpu, self.rows, target, task, self._fresh, self.asked)

    def _fresh(self) -> int:
        self.processes += 1
        return self.processes

    def refuse(self, target: SearchTarget, failed: Reasons) -> None:
        """Writes that nvcc, or CUB's own rules, refuse variants; they are not compiled again."""
        spot = target.points[0].spot
        for label, (_, reason) in failed.items():
            self.rows.fail(spot, label, Failure("compile", reason), 0.0)

    def harmful(self, name: str, target: SearchTarget, labels: Sequence[str]) -> Reasons:
        """Variants that read or write where they must not; nothing that they took is kept."""
        if self.sanitizes is None or not labels:
            return {}
        begun = time.monotonic()
        functions, _ = self.functions(name, labels)
        falling = sorted(target.points, key=lambda point: point.case.axes, reverse=True)
        least = {point.index: point for point in falling}  # the last one, the smallest, stays
        asked = [
            WatchedWorkload(point.case, self.made[name].bases[at], tuple(functions[at].values()))
            for at, point in least.items()
        ]
        reasons = {label: why for lot in self.sanitizes(asked) for label, why in lot.items()}
        if BASE in reasons:
            raise InputError(f"base of {name} must not run: {reasons[BASE]}")
        for label, why in reasons.items():
            for point in target.points:
                self.rows.withdraw(point.spot, label, Failure("error", why))
        self.rows.time("sanitizing", time.monotonic() - begun)
        return {label: ("error", why) for label, why in reasons.items()}

    def known(self, target: SearchTarget) -> list[tuple[WeighedSpot, list[KeptRung]]]:
        """What the database has of a workload's rungs."""
        return [(point.weighed, self.rows.of(point.spot)) for point in target.points]


# What a search measures on: the GPU's controller, the database, and what is compiled so far.


def failures(found: RungFound) -> dict[str, tuple[str, str]]:
    """How variants fail, and why."""
    return {label: (one.kind, one.reason) for label, one in found.failed.items() if label != BASE}
