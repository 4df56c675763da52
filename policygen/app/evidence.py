"""What databases say of what a change wrote; what was written by hand is found by its values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen.app.compilers import open_compiler
from policygen.app.inputs import ResultFiles, is_results, open_inputs
from policygen.app.reading import ReadTree
from policygen.dialects.known import dialect_of
from policygen.dialects.protocol import TuningTree
from policygen.model.plan import NextBest, Plan
from policygen.model.resolve import Differing
from policygen.model.results import Rules
from policygen.model.review import Evidence
from policygen.model.workload import Point
from policygen.planning.measured import Measurement, arch_of, measurements, others
from policygen.planning.places import find_places
from policygen.planning.shown import shown_variant
from policygen.proof.review import Touched
from policygen.results.evidence import evidence, variants_of
from policygen.results.top import rank
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
