"""Compiles the variants of workloads, and measures none: how many there are, differ, and fail."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.app.filters import Filter
from policygen.app.measuring import chosen_workloads, open_workloads
from policygen.app.session import Session
from policygen.errors import InputError, PolicygenError
from policygen.measure.compiling import (
    CompiledWorkload,
    MakesObjects,
    WorkloadToCompile,
    compile_workloads,
)
from policygen.measure.distinct import ClassifiedVariants, Classifier
from policygen.measure.objects import ObjectCompiler
from policygen.measure.opened import Candidates, OpenedWorkload
from policygen.measure.units import runner_text
from policygen.model.measure import CompiledSpace, FailedVariant, MeasureCompile, Unmeasured
from policygen.model.workload import Point
from policygen.planning.measured import Spaces
from policygen.proof.deps import Listings
from policygen.proof.toolchain import Toolchain, find_toolchain

MOST = 5000
"""Distinct variants of a workload that are compiled without being asked for by number."""
SEED = 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which variants are compiled."""

    labels: tuple[str, ...] = ()
    """Those that are named; all of the space where none is."""
    count: int | None = None
    """So many distinct ones, drawn by the seed; all where it is not said."""
    seed: int = SEED
    spaces: Spaces | None = None
    """Search spaces of sources or files, by benchmark; those of the bindings where not given."""


def compile_only(
    session: Session,
    where: Filter,
    arch: str,
    wanted: Wanted | None = None,
    *,
    slots: int | None = None,
) -> MeasureCompile:
    """Compiles variants of the workloads that are meant, for an architecture; needs no GPU."""
    wanted = wanted or Wanted()
    toolchain = find_toolchain()
    check_compiles(toolchain, arch)
    opened = open_workloads(session, chosen_workloads(session, where), arch, wanted.spaces)
    chosen: dict[Point, _Chosen] = {}
    refused: dict[Point, str] = {}
    for point, one in opened.items():
        if isinstance(one, PolicygenError):
            refused[point] = _in_line(one)
            continue
        try:
            chosen[point] = _choose(one, wanted)
        except InputError as error:
            refused[point] = error.in_line
    with TemporaryDirectory(prefix="policygen-", ignore_cleanup_errors=True) as folder:
        compiler = ObjectCompiler(toolchain, Path(folder), Listings())
        made = _compiled(session, chosen, compiler, slots)
    spaces = []
    for point, what in chosen.items():
        try:
            spaces.append(_space(what, made[point]))
        except PolicygenError as error:
            refused[point] = _in_line(error)
    drawn = wanted.count is not None and not wanted.labels
    return MeasureCompile(
        cub=session.cub,
        toolchain=f"nvcc {toolchain.version}",
        arch=arch,
        seed=wanted.seed if drawn else None,
        workloads=tuple(spaces),
        unmeasured=tuple(
            Unmeasured(benchmark=point[0], workload=dict(point[1]), arch=arch, reason=reason)
            for point, reason in refused.items()
        ),
    )


def check_compiles(toolchain: Toolchain, arch: str) -> None:
    """Refuses an architecture that the compiler does not know."""
    if arch not in toolchain.archs:
        known = ", ".join(toolchain.archs)
        raise InputError(
            f"nvcc {toolchain.version} does not compile for {arch}", f"It does: {known}"
        )


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What of a workload is compiled."""

    opened: OpenedWorkload
    counted: tuple[int, int, int]
    """Variants, valid ones, distinct ones."""
    classified: ClassifiedVariants
    candidates: Candidates

    @property
    def tasks(self) -> Iterator[WorkloadToCompile]:
        """One for each sub-benchmark."""
        for run in self.opened.runs:
            yield self.opened.to_compile(run, self.candidates.made)


def _choose(opened: OpenedWorkload, wanted: Wanted) -> _Chosen:
    classifier = Classifier(opened.space, opened.meaning)
    if wanted.labels:
        told = classifier.classify(map(opened.space.variant, wanted.labels))
        counted = told.variants, told.valid, len(told.distinct)
    else:
        counts = classifier.counts()
        counted = counts.variants, counts.valid, counts.distinct
        told = _drawn(classifier, counts.distinct, wanted)
    labels = [one.label for one in told.distinct if not one.is_base]
    found = opened.candidates(labels)
    base = tuple(one.label for one in told.distinct if one.is_base) + found.base
    return _Chosen(opened, counted, told, Candidates(found.made, found.refused, base))


def _drawn(classifier: Classifier, distinct: int, wanted: Wanted) -> ClassifiedVariants:
    """All variants, or so many distinct ones as are wanted."""
    if wanted.count is None:
        if distinct > MOST:
            raise InputError(
                f"it has {distinct:,} distinct variants, which are not all compiled",
                "Say how many to draw, or name some.",
            )
        return classifier.classify()
    return classifier.draw(wanted.count, wanted.seed)


def _compiled(
    session: Session, chosen: Mapping[Point, _Chosen], compiler: MakesObjects, slots: int | None
) -> dict[Point, list[CompiledWorkload | PolicygenError]]:
    tasks = [(point, task) for point, one in chosen.items() for task in one.tasks]
    made = compile_workloads(
        [task for _, task in tasks],
        runner_text(),
        compiler,
        slots=slots,
        progress=session.progress,
    )
    found: dict[Point, list[CompiledWorkload | PolicygenError]] = {point: [] for point in chosen}
    for (point, _), one in zip(tasks, made, strict=True):
        found[point].append(one)
    return found


def _space(chosen: _Chosen, made: Sequence[CompiledWorkload | PolicygenError]) -> CompiledSpace:
    """What the compiler said; a variant that fails in a sub-benchmark has failed."""
    failed = dict(chosen.candidates.refused)
    for one in made:
        if isinstance(one, PolicygenError):
            raise one
        failed = {**one.failed, **failed}
    benchmark, workload = chosen.opened.meaning.point
    variants, valid, distinct = chosen.counted
    asked = len(chosen.candidates.made) + len(chosen.candidates.refused)
    labels = [one.label for one in chosen.classified.distinct]
    return CompiledSpace(
        benchmark=benchmark,
        workload=dict(workload),
        arch=chosen.opened.meaning.arch,
        how="headers" if chosen.opened.headers else "policies",
        variants=variants,
        valid=valid,
        distinct=distinct,
        asked=asked,
        compiled=asked - len(failed),
        base=chosen.candidates.base,
        failed=tuple(
            FailedVariant(variant=label, reason=failed[label])
            for label in labels
            if label in failed
        ),
        dropped=dict(chosen.classified.dropped),
    )


def _in_line(error: PolicygenError) -> str:
    return error.in_line if isinstance(error, InputError) else str(error)
