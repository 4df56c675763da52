"""One workload of a search: its space, the variants it has tried, and their outcomes."""

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
    RungResult,
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
    """The space of a workload as strategies see it, without the baseline policy."""

    classifier: Classifier
    first: dict[Key, str] = field(default_factory=dict)
    """Policy → the label under which it appeared first."""
    refused: dict[str, int] = field(default_factory=dict)
    """Rule → number of variants it forbade."""
    _keys: dict[Values, Key | None] = field(default_factory=dict)
    _base: set[Key] = field(default_factory=set)

    @property
    def domain(self) -> Domain:
        """The domain for strategies."""
        return Domain(self.classifier.space.ranges, self.key)

    def key(self, values: Values) -> Key | None:
        """Return a key shared by variants with the same policy; None if invalid or the baseline."""
        if values not in self._keys:
            self._keys[values] = self._compute_key(values)
        return self._keys[values]

    def named(self, values: Values) -> dict[str, int]:
        """Map parameters to values."""
        return dict(zip(self.classifier.space.labels, values, strict=True))

    def label(self, values: Values) -> str:
        """Return the variant label that databases use."""
        return as_label(self.named(values))

    def values(self, label: str) -> Values | None:
        """Parse a label; None if it is not in the space."""
        try:
            variant = self.classifier.space.variant(label)
        except InputError:
            return None
        return tuple(variant.values())

    def _compute_key(self, values: Values) -> Key | None:
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
    """Return the variant nearest to a policy, and whether it matches exactly.

    Parameters are changed one at a time until none brings the variant nearer.
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
                candidate = {**best, label: value}
                candidate_distance = _distance(classifier, candidate, policy)
                if candidate_distance is not None and candidate_distance < distance:
                    best, distance, better = candidate, candidate_distance, True
    return tuple(best[label] for label in space.labels), distance == 0


def _distance(classifier: Classifier, variant: Mapping[str, int], target: Policy) -> float | None:
    """Distance between policies: each differing field counts at most one, numbers by nearness."""
    try:
        policy = classifier.policy(variant)
    except InputError:
        return None
    return sum(
        _value_distance(policy.get(name), value)
        for name, value in target.items()
        if policy.get(name) != value
    )


def _value_distance(first: str | None, second: str) -> float:
    if first is None or not (first.lstrip("-").isdigit() and second.lstrip("-").isdigit()):
        return 1.0
    first_value, second_value = int(first), int(second)
    return abs(first_value - second_value) / (abs(first_value) + abs(second_value))


@dataclass(slots=True)
class WorkloadSearch:
    """Search state of a workload."""

    point: Point
    opened: OpenedWorkload
    space: SearchSpaceOf
    counts: SpaceCounts
    strategy: Strategy
    name: str
    """Name of the strategy."""
    declared: DeclaredAxes
    spots: Sequence[RowSpot]
    """All runtime workloads, as the database names them."""
    base: str | None
    """Label of the variant that equals CUB's default, if there is one."""
    target: SearchTarget | None = None
    tried: set[str] = field(default_factory=set)
    """Labels requested in all sessions."""
    waiting: list[str] = field(default_factory=list)
    """Requested labels that there was no time for."""
    scores: dict[str, float] = field(default_factory=dict)
    """Scores of the first rung."""
    sharper: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)
    """Scores of the finalists."""
    failed: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Label → kind of failure and reason."""
    exhausted: bool = False
    problem: str | None = None
    history: list[float] = field(default_factory=list)
    """Best score after each batch."""
    seconds: float = 0.0
    """GPU seconds."""
    pace: float | None = None
    """Seconds per variant in the last batch."""

    @property
    def is_open(self) -> bool:
        """Whether there are variants left to try."""
        return self.problem is None and (bool(self.waiting) or not self.exhausted)

    @property
    def leading(self) -> tuple[str, float] | None:
        """Variant with the best score of the latest rung."""
        scores = self.last or self.sharper or self.scores
        return max(scores.items(), key=lambda item: item[1], default=None)

    def count(self, kinds: Collection[str]) -> int:
        """Count failures of the given kinds."""
        return sum(kind in kinds for kind, _ in self.failed.values())

    def ask(self, count: int) -> list[str]:
        """Return labels to try next; fewer, or none, at the end."""
        labels, self.waiting = self.waiting[:count], self.waiting[count:]
        if (missing := count - len(labels)) > 0:
            variants = self.strategy.ask(missing)
            self.exhausted = len(variants) < missing
            labels += [self.space.label(values) for values in variants]
        self.tried.update(labels)
        return labels

    def put_back(self, labels: Sequence[str]) -> None:
        """Return labels that were not tried to the front of the queue."""
        self.waiting = [*labels, *self.waiting]
        self.tried.difference_update(labels)

    def tell(self, scores: Mapping[str, float], failed: Mapping[str, tuple[str, str]]) -> None:
        """Record the outcomes of variants."""
        self.scores |= scores
        self.failed |= failed
        self._tell_strategy([*scores.items(), *((label, None) for label in failed)])
        if self.scores:
            self.history.append(max(self.scores.values()))

    def remember(self, scores: Mapping[str, float], failed: Mapping[str, tuple[str, str]]) -> None:
        """Record the outcomes of earlier sessions."""
        labels = {label for label in (*scores, *failed) if self.space.values(label)}
        self.tried |= labels
        self.scores |= {label: score for label, score in scores.items() if label in labels}
        self.failed |= {label: failure for label, failure in failed.items() if label in labels}
        self._tell_strategy([(label, scores.get(label)) for label in labels])

    def _tell_strategy(self, scores: Iterable[tuple[str, float | None]]) -> None:
        outcomes = []
        for label, score in scores:
            values = self.space.values(label)
            if values is not None:
                outcomes.append(AskedVariant(values, score))
        self.strategy.tell(outcomes)


class SearchNotes:
    """The search records of a database."""

    def __init__(self, session: MeasuringSession) -> None:
        self._session = session

    def begin(self, search: WorkloadSearch, seed: int, budget: float | None) -> None:
        """Record that this session searches a workload."""
        counts = search.counts
        cells = (
            *(self._session.number, *_database_key(search.point), search.name, seed),
            *(str(counts.variants), str(counts.valid), str(counts.distinct)),
            *(search.base, budget),
        )
        with self._session.writer.writing() as connection:
            connection.execute(
                f"INSERT INTO {SEARCHES} (session, algorithm, workload, strategy, seed, variants,"  # noqa: S608
                f" valid, distinct_, base, budget) VALUES ({', '.join('?' * len(cells))})",
                cells,
            )

    def spend(self, seconds: float, ended: Ended | None = None) -> None:
        """Record the time that this session has taken so far, and why it ended."""
        with self._session.writer.writing() as connection:
            connection.execute(
                f"UPDATE {SEARCHES} SET spent = ?, ended = coalesce(?, ended) WHERE session = ?",  # noqa: S608
                (seconds, ended, self._session.number),
            )

    def skip(self, search: WorkloadSearch) -> None:
        """Record which runtime workloads are not measured."""
        target = search.target
        spots = [named(spot)[1:] for spot, _ in target.skipped] if target else []
        with self._session.writer.writing() as connection:
            connection.execute(
                f"UPDATE {SEARCHES} SET skipped = ?"  # noqa: S608
                " WHERE (session, algorithm, workload) = (?, ?, ?)",
                (json.dumps(spots), self._session.number, *_database_key(search.point)),
            )

    def skipped(self, point: Point) -> set[tuple[str, str]]:
        """Return the sub-benchmarks and runtime workloads that earlier sessions skipped."""
        rows: list[Any] = self._session.writer.rows(
            f"SELECT q.skipped FROM {SEARCHES} AS q JOIN {SESSIONS} AS s ON s.id = q.session"  # noqa: S608
            " WHERE (s.ctk, s.cccl, s.gpu) = (?, ?, ?) AND (q.algorithm, q.workload) = (?, ?)"
            " AND q.skipped IS NOT NULL",
            *self._session.about.key,
            *_database_key(point),
        )
        return {(subbench, axes) for (text,) in rows for subbench, axes in json.loads(text)}

    def before(self, points: Collection[Point]) -> float:
        """Return the seconds that earlier sessions spent on any of these workloads."""
        names = {_database_key(point) for point in points}
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


# Keys and compiled batches


def _database_key(point: Point) -> tuple[str, str]:
    name, axes = point
    return name, workload_text({f"{axis}{{ct}}": value for axis, value in axes})


Reasons = Mapping[str, tuple[str, str]]
"""Label → kind of failure and reason."""


@dataclass(frozen=True, slots=True)
class CompiledBatch:
    """Objects of some variants of a workload."""

    bases: tuple[VariantFunction, ...]
    """Baseline of each sub-benchmark."""
    functions: tuple[Functions, ...]
    """Functions by label of each sub-benchmark."""
    runtimes: tuple[tuple[RuntimeSpot, ...], ...]
    failed: Reasons
    problem: str | None = None
    """Reason why the workload cannot be compiled at all."""

    def with_more(self, other: "CompiledBatch") -> "CompiledBatch":
        """Add the variants of another batch, keeping the baseline of this one."""
        pairs = zip(self.functions, other.functions, strict=True)
        return replace(self, functions=tuple({**old, **new} for old, new in pairs))


Batch = Mapping[str, Sequence[str]]
"""Workload in words → labels."""
Compiles = Callable[[Batch], Mapping[str, CompiledBatch]]


@dataclass(frozen=True, slots=True)
class SearchEffort:
    """How much to try, and how precise the result should be."""

    batch: int
    """Number of variants compiled together."""
    seed: int = 1
    count: int | None = None
    """Maximum number of variants per workload."""
    processes: int = 5
    """Number of fresh processes in the last rung."""
    rounds: int = 20
    """Maximum number of rounds in each of these."""
    beside: bool = False
    """Whether to compile a batch while another one is screened; never while finalists run."""


@dataclass(slots=True)
class SearchBench:
    """Compiles and measures variants."""

    gpu: MeasuresRungs
    rows: RungRows
    compiles: Compiles
    effort: SearchEffort
    asked: Asked
    sanitizes: Sanitizes | None = None
    made: dict[str, CompiledBatch] = field(default_factory=dict)
    """Compiled variants of each workload in this session."""
    compiling: float = 0.0
    """Seconds to compile the last batch."""
    processes: int = 0
    """Number of fresh processes that measured in this session."""

    def compile(self, batch: Batch) -> Mapping[str, CompiledBatch]:
        """Compile a batch; may run in parallel with a measurement."""
        started = time.monotonic()
        compiled = self.compiles(batch)
        self.compiling = time.monotonic() - started
        self.rows.time("compiling", self.compiling)
        return compiled

    def keep(self, name: str, compiled: CompiledBatch) -> CompiledBatch:
        """Store compiled variants; return all compiled variants of the workload."""
        previous = self.made.get(name)
        self.made[name] = compiled if previous is None else previous.with_more(compiled)
        return self.made[name]

    def functions(
        self, name: str, labels: Sequence[str]
    ) -> tuple[list[Functions], dict[str, tuple[str, str]]]:
        """Return functions and failures, recompiling variants of earlier sessions."""
        failed: dict[str, tuple[str, str]] = {}
        missing = [label for label in labels if label not in self.made[name].functions[0]]
        if missing:
            compiled = self.compile({name: missing})[name]
            failed |= compiled.failed
            self.keep(name, compiled)
        functions_by_subbench = self.made[name].functions
        return [
            {label: functions[label] for label in labels if label in functions}
            for functions in functions_by_subbench
        ], failed

    def measure(self, target: SearchTarget, task: RungTask) -> RungResult:
        """Measure one rung in a fresh process of each GPU."""
        return measure_rung(self.gpu, self.rows, target, task, self._fresh, self.asked)

    def _fresh(self) -> int:
        self.processes += 1
        return self.processes

    def refuse(self, target: SearchTarget, failed: Reasons) -> None:
        """Record variants that nvcc or CUB's rules reject, so that they are not compiled again."""
        spot = target.points[0].spot
        for label, (_, reason) in failed.items():
            self.rows.fail(spot, label, Failure("compile", reason), 0.0)

    def harmful(self, name: str, target: SearchTarget, labels: Sequence[str]) -> Reasons:
        """Return variants with invalid memory accesses, and withdraw their measurements."""
        if self.sanitizes is None or not labels:
            return {}
        started = time.monotonic()
        functions, _ = self.functions(name, labels)
        descending = sorted(target.points, key=lambda point: point.case.axes, reverse=True)
        smallest = {point.index: point for point in descending}  # the last one, the smallest, wins
        watched = [
            WatchedWorkload(
                point.case, self.made[name].bases[index], tuple(functions[index].values())
            )
            for index, point in smallest.items()
        ]
        reasons = {
            label: reason
            for reasons_by_label in self.sanitizes(watched)
            for label, reason in reasons_by_label.items()
        }
        if BASE in reasons:
            raise InputError(f"base of {name} must not run: {reasons[BASE]}")
        for label, reason in reasons.items():
            for point in target.points:
                self.rows.withdraw(point.spot, label, Failure("error", reason))
        self.rows.time("sanitizing", time.monotonic() - started)
        return {label: ("error", reason) for label, reason in reasons.items()}

    def known(self, target: SearchTarget) -> list[tuple[WeighedSpot, list[KeptRung]]]:
        """Return the rungs of a workload that the database has."""
        return [(point.weighed, self.rows.of(point.spot)) for point in target.points]


# Failures


def failures(outcome: RungResult) -> dict[str, tuple[str, str]]:
    """Return the kind and reason of each failure."""
    return {
        label: (failure.kind, failure.reason)
        for label, failure in outcome.failed.items()
        if label != BASE
    }
