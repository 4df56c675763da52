"""Has the compiler print what CUB selects, as many workloads as fit into a unit."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TypeVar

from policygen.bindings.load import axis_values
from policygen.cache import written_by
from policygen.errors import InputError, PolicygenError, Problems
from policygen.model.bindings import Call, Site
from policygen.model.edits import Marked
from policygen.model.selection import Selected
from policygen.model.workload import Point
from policygen.proof import answers
from policygen.proof.compile import RefusedError, TranslationUnit, compile_all
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import (
    NOTHING,
    BoundFamily,
    Section,
    Workload,
    context,
    identity,
    overlay,
    render,
)
from policygen.steps import Progress

_T = TypeVar("_T")
WORKLOADS = 240
"""In one unit. The headers alone take nvcc 1.3 s, a workload 10 ms, each of its architectures less
than a tenth of that: more in a unit would spare headers, and leave cores without work."""
RowKey = tuple[Workload, str, bool]
"""A workload, an architecture, and whether the tree is marked."""


@dataclass(frozen=True, slots=True)
class AskedTree:
    """What is asked: include folders, a version, and marked copies of headers by name."""

    version: str
    includes: tuple[str, ...]
    marked: Mapping[str, Marked]
    changed: Mapping[str, bytes] = field(default_factory=dict)
    """Other content of files, by their paths, where no folder before the tree can replace them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Workloads at one site of a tree, and what is asked about them."""

    site: Site
    points: tuple[Workload, ...]
    archs: tuple[str, ...] = ()
    families: tuple[BoundFamily, ...] = ()
    """Those in which the entries of keys are asked for, too."""
    values: bool = True
    """Whether the values are asked for, or the entries alone."""
    branches: bool = False
    """Whether the returns of a policy selector are asked for."""
    since: bool = False
    """Whether it is asked with a return's values since which architecture they are the same."""
    traits: tuple[str, ...] = ()
    """Members of the policy selector, which are told with its returns."""
    algorithm: str = ""
    tuned: bool = True
    """Whether CUB has entries for it, in either dialect; without any, all values are defaults."""
    aggregates: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """The structs of its header, by which fields of policies are named."""
    problem: PolicygenError | None = None
    """Why it cannot be asked: its header has other families than are bound."""

    @property
    def spots(self) -> "Iterator[tuple[Workload, str]]":
        """Each workload on each architecture."""
        return product(self.points, self.archs)

    @property
    def sections(self) -> "tuple[tuple[BoundFamily, ...] | None, ...]":
        """Lists what the sections of a compile ask for: values, and entries."""
        found = (None,) if self.values else ()
        return (*found, self.families) if self.families or self.branches else found


@dataclass(frozen=True, slots=True)
class Answered:
    """What the compiler said, and which units it refused."""

    rows: Mapping[RowKey, tuple[str, ...]]
    errors: tuple[PolicygenError, ...]
    refused: Mapping[Workload, PolicygenError] = field(default_factory=dict)
    """Why there is no answer, or not all of it."""

    def of(self, workload: Workload, arch: str, *, marked: bool = False) -> tuple[str, ...] | None:
        """Finds the answers for one workload on one architecture."""
        return self.rows.get((workload, arch, marked))


@dataclass(frozen=True, slots=True)
class Batch:
    """The sections that one compile answers."""

    arch: str
    """The one that it is compiled for."""
    sections: tuple[Section, ...]

    @property
    def marked(self) -> bool:
        """Whether the compile is of a marked tree."""
        return self.sections[0].families is not None


def workloads(call: Call, version: str) -> tuple[Workload, ...]:
    """Lists every point of a call's axes."""
    names = tuple(call.axes)
    lists = [axis_values(call, axis, version) for axis in names]
    return tuple(Workload(call, dict(zip(names, point, strict=True))) for point in product(*lists))


def probe(
    asked: Sequence[Asked],
    tree: AskedTree,
    toolchain: Toolchain,
    *,
    progress: Progress | None = None,
    std: int = 17,
) -> Answered:
    """Compiles, and reads the answers back.

    What several sites share in a unit is refused together; those are then asked one by one, and
    after them the benchmarks of a site: one that the header does not fit ends no other.
    """
    rows: dict[RowKey, tuple[str, ...]] = {}
    refused = {point: each.problem for each in asked if each.problem for point in each.points}
    errors = {("", False, str(each.problem)): each.problem for each in asked if each.problem}
    lots = _batches([each for each in asked if not each.problem], toolchain)
    while lots:
        units = [_unit(batch, tree, std) for batch in lots]
        writer = written_by(answers)
        results = compile_all(units, toolchain, answers.pack, writer=writer, progress=progress)
        again: list[Batch] = []
        for batch, result in zip(lots, results, strict=True):
            if isinstance(result, str):
                rows.update(_read(batch, result))
            elif isinstance(result, RefusedError) and len(batch.sections) == 1 and _is_whole(batch):
                less = (replace(section, whole=False) for section in batch.sections)
                again.append(Batch(batch.arch, tuple(less)))
            elif isinstance(result, RefusedError) and (parts := _parts(batch)):
                again += parts
            else:
                refused |= {point: result for s in batch.sections for point in s.points}
                header = batch.sections[0].site.header
                errors.setdefault((header, batch.marked, _first(result)), result)
        lots = again
    return Answered(rows, tuple(errors.values()), refused)


def _parts(batch: Batch) -> list[Batch]:
    """Divides what was refused: a compile for each site, or else for each call; or nothing."""
    if len(batch.sections) > 1:
        return [Batch(batch.arch, (section,)) for section in batch.sections]
    (section,) = batch.sections
    calls: dict[int, list[Workload]] = {}
    for point in section.points:
        calls.setdefault(id(point.call), []).append(point)
    lots = [replace(section, points=tuple(points)) for points in calls.values()]
    return [Batch(batch.arch, (lot,)) for lot in lots] if len(lots) > 1 else []


def _first(error: PolicygenError) -> str:
    """What the compiler says first, wherever: benchmarks of a header fail for the same reason."""
    return error.first if isinstance(error, RefusedError) else str(error)


def _is_whole(batch: Batch) -> bool:
    """Whether a compile takes policies apart, which it may be refused for."""
    return any(s.whole and s.site.is_selector and s.families is None for s in batch.sections)


def _batches(asked: Sequence[Asked], toolchain: Toolchain) -> list[Batch]:
    """Divides what is asked into compiles, each of them for one architecture.

    Of policy chains that is one at which CUB itself says what is active, as the unit compares what
    it found with it; policy selectors have no such one.
    """
    oldest = {marked: _oldest(asked, toolchain, marked=marked) for marked in (False, True)}
    sections: dict[tuple[str, bool], list[Section]] = {}
    for each in asked:
        for families in each.sections:
            marked = families is not None
            arch = toolchain.newest if each.site.is_selector else oldest[marked]
            sections.setdefault((arch, marked), []).extend(_chunks(each, families))
    return [
        Batch(arch, tuple(lot))
        for (arch, _), found in sections.items()
        for lot in filled(found, lambda section: len(section.points), WORKLOADS)
    ]


def _oldest(asked: Sequence[Asked], toolchain: Toolchain, *, marked: bool) -> str:
    """Finds the oldest architecture that is asked for and can be compiled for.

    What is asked of a marked tree is the same compile, whatever values are asked for beside it.
    """
    mine = [each for each in asked if any((f is not None) == marked for f in each.sections)]
    archs = {arch for each in mine for arch in each.archs}
    return next((arch for arch in toolchain.archs if arch in archs), toolchain.newest)


def _chunks(asked: Asked, families: tuple[BoundFamily, ...] | None) -> Iterable[Section]:
    for start in range(0, len(asked.points), WORKLOADS):
        points = asked.points[start : start + WORKLOADS]
        traits = asked.traits if families is not None else ()
        since = asked.since and families is None and asked.site.is_selector
        yield Section(asked.site, points, asked.archs, families, traits, since)


def filled(items: Iterable[_T], weigh: Callable[[_T], int], most: int) -> Iterator[list[_T]]:
    """Puts items together as long as they fit into a unit."""
    lot: list[_T] = []
    weight = 0
    for one in items:
        more = weigh(one)
        if lot and weight + more > most:
            yield lot
            lot, weight = [], 0
        lot.append(one)
        weight += more
    if lot:
        yield lot


def _unit(batch: Batch, tree: AskedTree, std: int) -> TranslationUnit:
    headers = dict.fromkeys(section.site.header for section in batch.sections)
    folders = [overlay(name, tree.marked[name].data) for name in headers] if batch.marked else []
    short = ", ".join(name.removeprefix("tuning_").removesuffix(".cuh") for name in headers)
    rendered_from = context(batch.sections, tree.version)
    return TranslationUnit(
        name=f"{short}{' (entries)' if batch.marked else ''}",
        identity=identity(rendered_from),
        text=partial(render, rendered_from),
        includes=(*folders, *tree.includes),
        arch=batch.arch,
        std=std,
    )


def _read(
    batch: Batch, packed: str
) -> Iterable[tuple[tuple[Workload, str, bool], tuple[str, ...]]]:
    found = answers.unpack(packed)
    rows = [row for section in batch.sections for row in section.rows]
    if lost := len(rows) - len(found.keys() & range(len(rows))):
        raise InputError(
            f"the probe's PTX lacks {lost} of {len(rows)} answers", NOTHING.format("nvcc")
        )
    whole = [s.whole or s.families is not None for s in batch.sections for _ in s.rows]
    nothing = [() if told else ("",) for told in whole]
    for index, (workload, arch) in enumerate(rows):
        yield (workload, arch, batch.marked), (*nothing[index], *found[index])


# What a compiler says that a tree selects, and what it refuses.


@dataclass(frozen=True, slots=True)
class Selection:
    """What a tree selects for workloads on architectures, and which units do not compile."""

    rows: Mapping[tuple[Workload, str], Selected]
    errors: tuple[PolicygenError, ...] = ()
    refused: Mapping[Workload, PolicygenError] = field(default_factory=dict)
    """The workloads of which the compiler says nothing, or not all that was asked."""

    def checked(self) -> "Selection":
        """Raises what does not compile; else gives the selection."""
        if self.errors:
            raise Problems(self.errors)
        return self

    @property
    def by_point(self) -> dict[tuple[Point, str], Selected]:
        """Gives the rows of benchmarks, by workload and architecture."""
        return {(workload.point, arch): row for (workload, arch), row in self.rows.items()}
