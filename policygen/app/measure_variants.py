"""Which variants of which workloads are measured, and their objects."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.app.filters import Filter
from policygen.app.inputs import benchmarks_of
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
from policygen.measure.opened import Candidates, OpenedWorkload
from policygen.measure.units import runner_text
from policygen.model.labels import as_label
from policygen.model.workload import Point
from policygen.planning.measured import Spaces
from policygen.proof.toolchain import Toolchain

MOST = 5000
"""Distinct variants of a workload that are compiled without being asked for by number."""
SEED = 1
MANY = 20
"""Workloads, above which it is said how to choose among them: each takes seconds to minutes."""


@dataclass(frozen=True, slots=True)
class VariantsWanted:
    """Which variants are compiled."""

    labels: tuple[str, ...] = ()
    """Those that are named; all of the space where none is."""
    count: int | None = None
    """So many distinct ones, drawn by the seed; all where it is not said."""
    seed: int = SEED
    spaces: Spaces | None = None
    """Search spaces of sources or files, by benchmark; those of the bindings where not given."""


def spaces_of(benches: Sequence[str]) -> Spaces:
    """The search spaces of benchmark sources, a checkout or a cccl_meta_bench.csv."""
    return benchmarks_of([Path(name) for name in benches])[0]


@dataclass(frozen=True, slots=True)
class ChosenLot:
    """The workloads that are meant, and those that cannot be measured."""

    chosen: "Mapping[Point, ChosenWorkload]"
    refused: Mapping[Point, str]


def choose_lot(session: Session, where: Filter, arch: str, wanted: VariantsWanted) -> ChosenLot:
    """Chooses variants of the workloads that are meant, for an architecture."""
    workloads = chosen_workloads(session, where)
    if len(workloads) > MANY:
        session.note(f"{len(workloads):,} workloads are meant: -R and -a choose among them")
    opened = open_workloads(session, workloads, arch, wanted.spaces)
    chosen: dict[Point, ChosenWorkload] = {}
    refused: dict[Point, str] = {}
    for point, one in opened.items():
        if isinstance(one, PolicygenError):
            refused[point] = one.in_line
            continue
        try:
            chosen[point] = _choose(one, wanted)
        except InputError as error:
            refused[point] = error.in_line
    return ChosenLot(chosen, refused)


def check_compiles(toolchain: Toolchain, arch: str) -> None:
    """Refuses an architecture that the compiler does not know."""
    if arch not in toolchain.archs:
        known = ", ".join(toolchain.archs)
        raise InputError(
            f"nvcc {toolchain.version} does not compile for {arch}", f"It does: {known}"
        )


@dataclass(frozen=True, slots=True)
class ChosenWorkload:
    """What of a workload is compiled."""

    opened: OpenedWorkload
    counted: tuple[int, int, int]
    """Variants, valid ones, distinct ones."""
    classified: ClassifiedVariants
    candidates: Candidates
    labels: tuple[str, ...] = ()
    """Those that were named, in their order."""

    @property
    def tasks(self) -> Iterator[WorkloadToCompile]:
        """One for each sub-benchmark."""
        for run in self.opened.runs:
            yield self.opened.to_compile(run, self.candidates.made)


def _choose(opened: OpenedWorkload, wanted: VariantsWanted) -> ChosenWorkload:
    classifier = Classifier(opened.space, opened.meaning)
    asked: tuple[str, ...] = ()
    if wanted.labels:
        named = [opened.space.variant(label) for label in wanted.labels]
        asked = tuple(dict.fromkeys(map(as_label, named)))
        told = classifier.classify(named)
        counted = told.variants, told.valid, len(told.distinct)
    else:
        counts = classifier.counts()
        counted = counts.variants, counts.valid, counts.distinct
        told = _drawn(classifier, counts.distinct, wanted)
    labels = [one.label for one in told.distinct if not one.is_base]
    found = opened.candidates(labels)
    base = tuple(one.label for one in told.distinct if one.is_base) + found.base
    return ChosenWorkload(opened, counted, told, Candidates(found.made, found.refused, base), asked)


def _drawn(classifier: Classifier, distinct: int, wanted: VariantsWanted) -> ClassifiedVariants:
    """All variants, or so many distinct ones as are wanted."""
    if wanted.count is None:
        if distinct > MOST:
            raise InputError(
                f"it has {distinct:,} distinct variants, which are not all compiled",
                "Say how many to draw, or name some.",
            )
        return classifier.classify()
    return classifier.draw(wanted.count, wanted.seed)


def compile_lot(
    session: Session,
    chosen: Mapping[Point, ChosenWorkload],
    compiler: MakesObjects,
    slots: int | None,
) -> dict[Point, list[CompiledWorkload | PolicygenError]]:
    """Compiles the chosen variants; for each workload what came of each sub-benchmark."""
    if not chosen:
        return {}
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


def work_folder() -> "TemporaryDirectory[str]":
    """Where objects lie while they are needed; a process that loaded them may still end."""
    return TemporaryDirectory(prefix="policygen-", ignore_cleanup_errors=True)
