"""Finds the measurements behind a change's values. Hand-written values are matched by value."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from policygen.app.inputs import ResultFiles, is_results, open_inputs
from policygen.app.reading import ReadTree, open_compiler
from policygen.errors import InputError
from policygen.headers.dialects import dialect_of
from policygen.headers.protocol import TuningTree
from policygen.model.plans import NextBest, Plan
from policygen.model.results import Measured, PointRatio, Rules, ScoredVariant
from policygen.model.reviews import Evidence
from policygen.model.selection import Differing
from policygen.model.workload import BASE, Point, parse_label
from policygen.planning.measured import Measurement, arch_of, measurements, rejected_variants
from policygen.planning.places import PlacedResult, find_places
from policygen.proof.changes import Touched
from policygen.results.ranking import Warnings, open_cases, rank, scored_variant
from policygen.results.samples import Decoder
from policygen.results.score import SampleReader, Scores, score_case
from policygen.results.tables import DeclaredAxes
from policygen.results.together import find_case, only, places
from policygen.steps import Progress


@dataclass(frozen=True, slots=True)
class Written:
    """What a change wrote, and what is known about the origin of its values."""

    plan: Plan | None
    after: ReadTree
    different: Sequence[Differing]
    named: Mapping[Point, str]
    """The variants that comments of entries name."""
    progress: Progress | None = None

    @property
    def planned(self) -> dict[Point, str]:
        """The variants that a plan wrote."""
        actions = self.plan.actions if self.plan else ()
        return {a.point: a.variant for a in actions if a.written and a.variant}

    @property
    def instead(self) -> dict[Point, NextBest | None]:
        """What was written in place of variants that no entry can express."""
        return {a.point: a.next_best for a in (self.plan.actions if self.plan else ()) if a.written}

    @property
    def archs(self) -> dict[str, str]:
        """The plan's architecture for each GPU that it used results of."""
        if self.plan is None:
            return {}
        return {a.gpu: self.plan.options.arch for a in self.plan.actions if a.written}


def named_variants(entries: Sequence[Touched], different: Sequence[Differing]) -> dict[Point, str]:
    """Returns the variant of each workload according to its entry's comment."""
    variants = {
        change.place: change.after.variant for change in entries if change.after is not None
    }
    labels = ((row.point, variants.get(row.entry_after)) for row in different if row.entry_after)
    return {point: label for point, label in labels if label}


def find_databases(plan: Plan | None, files: Sequence[str], remarks: list[str]) -> tuple[str, ...]:
    """Returns the named databases, or else those of the apply that exist here."""
    used = {n for a in plan.actions if a.written for n in a.databases} if plan else set()
    names = list(files) or sorted(used)
    paths = list(files) or [name for name in names if is_results(Path(name))]
    if missing := [name for name in names if name not in paths]:
        remarks.append(f"the database is not here: {', '.join(missing)}; name it with --db")
    return tuple(paths)


def find_evidence(
    databases: Sequence[str], written: Written, gpus: Mapping[str, str]
) -> tuple[Evidence, ...]:
    """Returns what databases say about the values that workloads got."""
    if not databases or not (written.different or written.planned):
        return ()
    rules = written.plan.options.rules if written.plan else Rules()
    results = ResultFiles(databases, gpus={**written.archs, **gpus})
    with open_inputs(results) as inputs:
        top = rank(inputs.databases, rules=rules, declared=inputs.declared, top=1)
        workloads = [results.told(workload) for workload in top.workloads]
        archs = {arch for workload in workloads if (arch := arch_of(workload))}
        version = written.after.cub.bindings
        requested: list[tuple[Measurement, str]] = []
        for arch in sorted(archs):
            measured = measurements(workloads, version, arch, force=False)[0]
            labels = dict(_written_variants(inputs.databases, measured, written, arch))
            requested += [
                (measurement, labels[measurement.point])
                for measurement in measured
                if measurement.point in labels
            ]
        scored = [(measurement.scored, label) for measurement, label in requested]
        proofs = evidence(inputs.databases, scored, rules, inputs.declared)
        return tuple(
            Evidence(
                benchmark=measurement.benchmark.name,
                workload=measurement.workload,
                scored=proof[0],
                runtime=proof[1],
                gpu=measurement.scored.gpu,
                ctk=measurement.scored.ctk,
                cccl=measurement.scored.cccl,
                databases=inputs.named(measurement.scored).databases,
                rejected=rejected_variants(
                    measurement, proof[0].variant, written.instead.get(measurement.point)
                ),
            )
            for (measurement, _), proof in zip(requested, proofs, strict=True)
            if proof is not None
        )


def _written_variants(
    databases: Sequence[Path], candidates: Sequence[Measurement], written: Written, arch: str
) -> Iterator[tuple[Point, str]]:
    """Yields each workload's variant: from the plan, or else the one with the same values."""
    planned = written.planned
    yield from (
        (measurement.point, planned[measurement.point])
        for measurement in candidates
        if measurement.point in planned
    )
    changed = {row.point for row in written.different if row.arch == arch and row.after}
    by_hand = [
        measurement for measurement in candidates if measurement.point in changed - planned.keys()
    ]
    if not by_hand:
        return
    data, compiler = open_compiler(written.after, progress=written.progress)
    sources = TuningTree(written.after.cub, compiler.headers, data)
    cases, _ = find_places(by_hand, dialect_of(sources, arch, None), compiler, arch)
    placed = {case.measurement.point: case for case in cases}
    labels_by_workload = variants_of(databases, [measurement.scored for measurement in by_hand])
    for measurement, labels in zip(by_hand, labels_by_workload, strict=True):
        named_label, case = written.named.get(measurement.point), placed.get(measurement.point)
        label = shown_variant(case, labels, named_label) if case else named_label
        if label is not None:
            yield measurement.point, label


Proof = tuple[ScoredVariant, tuple[PointRatio, ...]]


# Scores of written variants, with a ratio for each runtime workload.


def evidence(
    paths: Sequence[Path],
    requested: Sequence[tuple[Measured, str]],
    rules: Rules,
    declared: DeclaredAxes | None = None,
) -> list[Proof | None]:
    """Returns the scores for each workload and label; None if not all its points were measured."""
    if not requested:
        return []
    warnings = Warnings()  # already reported by the ranking
    proofs: list[Proof | None] = []
    with (
        Decoder() as decoder,
        open_cases(paths, warnings, only([workload for workload, _ in requested])) as cases,
    ):
        decoder.start()
        for measured, label in requested:
            scores = score_case(find_case(cases, measured), declared or {})
            parameters = parse_label(label)
            position = places(scores).get(frozenset((parameters or {}).items()))
            if position is None:
                proofs.append(None)
                continue
            reader = SampleReader(scores.case, decoder, warnings.add)
            scored = scored_variant(scores, position, rules, reader)
            proofs.append((scored, _point_ratios(scores, int(scores.index[position]))))
    return proofs


def variants_of(paths: Sequence[Path], workloads: Sequence[Measured]) -> list[tuple[str, ...]]:
    """Returns the labels of all variants that were measured for some workloads."""
    with open_cases(paths, Warnings(), only(workloads)) as cases:
        label_lists = [find_case(cases, workload).variants for workload in workloads]
    return [tuple(label for label in labels if label != BASE) for labels in label_lists]


def _point_ratios(scores: Scores, variant: int) -> tuple[PointRatio, ...]:
    return tuple(
        PointRatio(
            subbench=part.table.subbench,
            point=dict(zip(part.table.rt_axes, point, strict=True)),
            weight=float(scores.weights[index][column]),
            ratio=float(scores.ratios[index][variant, column]),
        )
        for index, part in enumerate(scores.case.parts)
        for column, point in enumerate(part.points)
    )


# Matching a workload's policy to measured variants.


def shown_variant(
    case: PlacedResult, labels: Sequence[str], comment_label: str | None
) -> str | None:
    """Returns the variant with the policy's values, preferring the one that the comment names.

    A variant whose benchmark fixes more parameters than the entry has is tried last.
    """
    ordered = [label for label in dict.fromkeys((comment_label, *labels)) if label]
    for exact in (True, False):
        for label in ordered:
            if _matches_policy(case, label, whole=exact):
                return label
    return None


def _matches_policy(case: PlacedResult, label: str, *, whole: bool) -> bool:
    with suppress(InputError):  # the entry cannot express the label, so it does not have it
        members = case.members(label)
        if whole:
            return case.has(members, label)
        current, expected = case.spot.told.values, case.spot.expected(members)
        return bool(expected) and all(
            current.get(name) == value for name, value in expected.items()
        )
    return False
