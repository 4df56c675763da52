"""What databases say of what a change wrote; what was written by hand is found by its values."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from policygen.app.compilers import open_compiler
from policygen.app.inputs import ResultFiles, is_results, open_inputs
from policygen.app.reading import ReadTree
from policygen.errors import InputError
from policygen.headers.dialects import dialect_of
from policygen.headers.protocol import TuningTree
from policygen.model.plans import NextBest, Plan
from policygen.model.results import Measured, PointRatio, Rules, ScoredVariant
from policygen.model.reviews import Evidence
from policygen.model.selection import Differing
from policygen.model.workload import BASE, Point, parse_label
from policygen.planning.measured import Measurement, arch_of, measurements, others
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
    """What a change wrote, and what is known of where its values come from."""

    plan: Plan | None
    after: ReadTree
    different: Sequence[Differing]
    named: Mapping[Point, str]
    """The variants that the comments of entries name."""
    progress: Progress | None = None

    @property
    def planned(self) -> dict[Point, str]:
        """The variants that a plan wrote."""
        actions = self.plan.actions if self.plan else ()
        return {a.point: a.variant for a in actions if a.written and a.variant}

    @property
    def instead(self) -> dict[Point, NextBest | None]:
        """What was written in place of what no entry says."""
        return {a.point: a.next_best for a in (self.plan.actions if self.plan else ()) if a.written}

    @property
    def archs(self) -> dict[str, str]:
        """A GPU that the plan took its results of is of the plan's architecture."""
        if self.plan is None:
            return {}
        return {a.gpu: self.plan.options.arch for a in self.plan.actions if a.written}


def named_variants(entries: Sequence[Touched], different: Sequence[Differing]) -> dict[Point, str]:
    """Which variant each workload got, as the comment of its entry says."""
    variants = {one.place: one.after.variant for one in entries if one.after is not None}
    found = ((row.point, variants.get(row.entry_after)) for row in different if row.entry_after)
    return {point: label for point, label in found if label}


def find_databases(plan: Plan | None, files: Sequence[str], remarks: list[str]) -> tuple[str, ...]:
    """Those that are named, else those of the apply, as far as they are here."""
    used = {n for a in plan.actions if a.written for n in a.databases} if plan else set()
    named = list(files) or sorted(used)
    paths = list(files) or [name for name in named if is_results(Path(name))]
    if lost := [name for name in named if name not in paths]:
        remarks.append(f"the database is not here: {', '.join(lost)}; name it with --db")
    return tuple(paths)


def find_evidence(
    databases: Sequence[str], written: Written, gpus: Mapping[str, str]
) -> tuple[Evidence, ...]:
    """What databases say of the values that workloads got."""
    if not databases or not (written.different or written.planned):
        return ()
    rules = written.plan.options.rules if written.plan else Rules()
    results = ResultFiles(databases, gpus={**written.archs, **gpus})
    with open_inputs(results) as given:
        top = rank(given.databases, rules=rules, declared=given.declared, top=1)
        workloads = [results.told(one) for one in top.workloads]
        archs = {arch for one in workloads if (arch := arch_of(one))}
        version = written.after.cub.bindings
        wanted: list[tuple[Measurement, str]] = []
        for arch in sorted(archs):
            known = measurements(workloads, version, arch, force=False)[0]
            labels = dict(_variants(given.databases, known, written, arch))
            wanted += [(one, labels[one.point]) for one in known if one.point in labels]
        asked = [(one.scored, label) for one, label in wanted]
        proofs = evidence(given.databases, asked, rules, given.declared)
        return tuple(
            Evidence(
                benchmark=one.benchmark.name,
                workload=one.workload,
                scored=proof[0],
                runtime=proof[1],
                gpu=one.scored.gpu,
                ctk=one.scored.ctk,
                cccl=one.scored.cccl,
                databases=given.named(one.scored).databases,
                rejected=others(one, proof[0].variant, written.instead.get(one.point)),
            )
            for (one, _), proof in zip(wanted, proofs, strict=True)
            if proof is not None
        )


def _variants(
    databases: Sequence[Path], known: Sequence[Measurement], written: Written, arch: str
) -> Iterator[tuple[Point, str]]:
    """The variant that each workload got: as the plan has it, else the one with its values."""
    planned = written.planned
    yield from ((one.point, planned[one.point]) for one in known if one.point in planned)
    changed = {row.point for row in written.different if row.arch == arch and row.after}
    by_hand = [one for one in known if one.point in changed - planned.keys()]
    if not by_hand:
        return
    data, compiler = open_compiler(written.after, progress=written.progress)
    sources = TuningTree(written.after.cub, compiler.headers, data)
    cases, _ = find_places(by_hand, dialect_of(sources, arch, None), compiler, arch)
    placed = {case.measurement.point: case for case in cases}
    measured = variants_of(databases, [one.scored for one in by_hand])
    for one, labels in zip(by_hand, measured, strict=True):
        named, case = written.named.get(one.point), placed.get(one.point)
        label = shown_variant(case, labels, named) if case else named
        if label is not None:
            yield one.point, label


Proof = tuple[ScoredVariant, tuple[PointRatio, ...]]


# What databases say of what was written: scores, and a ratio for each runtime workload.


def evidence(
    paths: Sequence[Path],
    wanted: Sequence[tuple[Measured, str]],
    rules: Rules,
    declared: DeclaredAxes | None = None,
) -> list[Proof | None]:
    """For each measured workload and label the scores; none where it was not measured whole."""
    if not wanted:
        return []
    warnings = Warnings()  # the ranking told them
    found: list[Proof | None] = []
    with (
        Decoder() as decoder,
        open_cases(paths, warnings, only([one for one, _ in wanted])) as cases,
    ):
        decoder.start()
        for measured, label in wanted:
            scores = score_case(find_case(cases, measured), declared or {})
            parameters = parse_label(label)
            position = places(scores).get(frozenset((parameters or {}).items()))
            if position is None:
                found.append(None)
                continue
            reader = SampleReader(scores.case, decoder, warnings.add)
            scored = scored_variant(scores, position, rules, reader)
            found.append((scored, _runtime(scores, int(scores.index[position]))))
    return found


def variants_of(paths: Sequence[Path], wanted: Sequence[Measured]) -> list[tuple[str, ...]]:
    """The labels of all variants that were measured for some workloads."""
    with open_cases(paths, Warnings(), only(wanted)) as cases:
        found = [find_case(cases, one).variants for one in wanted]
    return [tuple(label for label in labels if label != BASE) for labels in found]


def _runtime(scores: Scores, variant: int) -> tuple[PointRatio, ...]:
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


# Which of the measured variants a workload's policy shows: whoever wrote its values.


def shown_variant(case: PlacedResult, labels: Sequence[str], named: str | None) -> str | None:
    """The one with its values; the one that its comment names first, where it has them.

    One whose benchmark fixes more than an entry says comes last: what the entry says is the same.
    """
    ordered = [label for label in dict.fromkeys((named, *labels)) if label]
    for whole in (True, False):
        for label in ordered:
            if _shows(case, label, whole=whole):
                return label
    return None


def _shows(case: PlacedResult, label: str, *, whole: bool) -> bool:
    with suppress(InputError):  # a label that the entry cannot say is not what it has
        members = case.members(label)
        if whole:
            return case.has(members, label)
        now, wanted = case.spot.told.values, case.spot.expected(members)
        return bool(wanted) and all(now.get(name) == value for name, value in wanted.items())
    return False
