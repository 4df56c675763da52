"""Compiles probes that print what CUB selects, with many workloads per translation unit."""

from abc import ABC, abstractmethod
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
from policygen.model.trees import BoundVersion
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
"""Per translation unit. Parsing the headers takes nvcc 1.3 s, a workload 10 ms, and each of its
architectures less than a tenth of that: larger units would parse fewer headers but leave cores
idle.
"""
RowKey = tuple[Workload, str, bool]
"""A workload, an architecture, and whether the tree is marked."""


@dataclass(frozen=True, slots=True)
class QueriedTree:
    """The queried tree: include folders, a version, and marked copies of headers by name."""

    version: BoundVersion
    includes: tuple[str, ...]
    marked: Mapping[str, Marked]
    changed: Mapping[str, bytes] = field(default_factory=dict)
    """Replacements for files by path, where no include folder before the tree can override them."""


@dataclass(frozen=True, slots=True)
class SiteQuery:
    """A query: workloads at one site of a tree, and what to ask about them."""

    site: Site
    points: tuple[Workload, ...]
    archs: tuple[str, ...] = ()
    families: tuple[BoundFamily, ...] = ()
    """Families in which to ask for the entries of keys, too."""
    values: bool = True
    """Whether to ask for values, not only for entries."""
    branches: bool = False
    """Whether to ask for the returns of a policy selector."""
    since: bool = False
    """Whether to ask from which architecture on a return's values stay the same."""
    traits: tuple[str, ...] = ()
    """Members of the policy selector to report with its returns."""
    algorithm: str = ""
    tuned: bool = True
    """Whether CUB has entries for it, in either dialect; if not, all values are defaults."""
    aggregates: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """The header's structs, which name the fields of policies."""
    problem: PolicygenError | None = None
    """Why it cannot be queried: its header's families differ from the bound ones."""

    @property
    def spots(self) -> "Iterator[tuple[Workload, str]]":
        """All pairs of workload and architecture."""
        return product(self.points, self.archs)

    @property
    def sections(self) -> "tuple[tuple[BoundFamily, ...] | None, ...]":
        """The sections of a compile: one for values, and one for entries."""
        value_sections = (None,) if self.values else ()
        return (
            (*value_sections, self.families) if self.families or self.branches else value_sections
        )


@dataclass(frozen=True, slots=True)
class Answered:
    """The compiler's answers, and the units that it refused."""

    rows: Mapping[RowKey, tuple[str, ...]]
    errors: tuple[PolicygenError, ...]
    refused: Mapping[Workload, PolicygenError] = field(default_factory=dict)
    """Why there is no complete answer."""

    def of(self, workload: Workload, arch: str, *, marked: bool = False) -> tuple[str, ...] | None:
        """Returns the answers for one workload on one architecture."""
        return self.rows.get((workload, arch, marked))


@dataclass(frozen=True, slots=True)
class Batch:
    """Sections that are compiled together."""

    arch: str
    """The architecture to compile for."""
    sections: tuple[Section, ...]

    @property
    def marked(self) -> bool:
        """Whether the compile is of a marked tree."""
        return self.sections[0].families is not None


def workloads(call: Call, version: BoundVersion) -> tuple[Workload, ...]:
    """Lists every point of a call's axes."""
    names = tuple(call.axes)
    values_by_axis = [axis_values(call, axis, version) for axis in names]
    return tuple(
        Workload(call, dict(zip(names, point, strict=True))) for point in product(*values_by_axis)
    )


def probe(
    queries: Sequence[SiteQuery],
    tree: QueriedTree,
    toolchain: Toolchain,
    *,
    progress: Progress | None = None,
    std: int = 17,
) -> Answered:
    """Compiles the queries, and reads the answers.

    If a unit with several sites is refused, its sites are compiled separately, and then the
    benchmarks of a site, so that one broken header or benchmark does not affect the others.
    """
    rows: dict[RowKey, tuple[str, ...]] = {}
    refused = {point: query.problem for query in queries if query.problem for point in query.points}
    errors = {("", False, str(query.problem)): query.problem for query in queries if query.problem}
    batches = _batches([query for query in queries if not query.problem], toolchain)
    while batches:
        units = [_translation_unit(batch, tree, std) for batch in batches]
        writer = written_by(answers)
        results = compile_all(units, toolchain, answers.pack, writer=writer, progress=progress)
        retries: list[Batch] = []
        for batch, result in zip(batches, results, strict=True):
            if isinstance(result, str):
                rows.update(_read(batch, result))
            elif (
                isinstance(result, RefusedError)
                and len(batch.sections) == 1
                and _takes_policies_apart(batch)
            ):
                partial = (replace(section, whole=False) for section in batch.sections)
                retries.append(Batch(batch.arch, tuple(partial)))
            elif isinstance(result, RefusedError) and (parts := _split_refused(batch)):
                retries += parts
            else:
                refused |= {point: result for section in batch.sections for point in section.points}
                header = batch.sections[0].site.header
                errors.setdefault((header, batch.marked, _first_message(result)), result)
        batches = retries
    return Answered(rows, tuple(errors.values()), refused)


def _split_refused(batch: Batch) -> list[Batch]:
    """Splits a refused batch by site, or else by call; empty if it cannot be split."""
    if len(batch.sections) > 1:
        return [Batch(batch.arch, (section,)) for section in batch.sections]
    (section,) = batch.sections
    calls: dict[int, list[Workload]] = {}
    for point in section.points:
        calls.setdefault(id(point.call), []).append(point)
    smaller = [replace(section, points=tuple(points)) for points in calls.values()]
    return [Batch(batch.arch, (part,)) for part in smaller] if len(smaller) > 1 else []


def _first_message(error: PolicygenError) -> str:
    """Returns the first error: benchmarks of a header usually fail for the same reason."""
    return error.first if isinstance(error, RefusedError) else str(error)


def _takes_policies_apart(batch: Batch) -> bool:
    """Whether the compile takes policies apart, which may be why it is refused."""
    return any(
        section.whole and section.site.is_selector and section.families is None
        for section in batch.sections
    )


def _batches(queries: Sequence[SiteQuery], toolchain: Toolchain) -> list[Batch]:
    """Divides the queries into compiles, each for one architecture.

    For policy chains, CUB itself must report the active policy on that architecture, because the
    unit checks its own answer against it. Policy selectors have no such restriction.
    """
    oldest = {marked: _oldest_arch(queries, toolchain, marked=marked) for marked in (False, True)}
    sections: dict[tuple[str, bool], list[Section]] = {}
    for query in queries:
        for families in query.sections:
            marked = families is not None
            arch = toolchain.newest if query.site.is_selector else oldest[marked]
            sections.setdefault((arch, marked), []).extend(_chunks(query, families))
    return [
        Batch(arch, tuple(batch_sections))
        for (arch, _), group in sections.items()
        for batch_sections in filled(group, lambda section: len(section.points), WORKLOADS)
    ]


def _oldest_arch(queries: Sequence[SiteQuery], toolchain: Toolchain, *, marked: bool) -> str:
    """Returns the oldest queried architecture that the toolchain supports.

    Queries of a marked tree share one compile, whatever else is queried.
    """
    relevant = [
        query
        for query in queries
        if any((families is not None) == marked for families in query.sections)
    ]
    archs = {arch for query in relevant for arch in query.archs}
    return next((arch for arch in toolchain.archs if arch in archs), toolchain.newest)


def _chunks(query: SiteQuery, families: tuple[BoundFamily, ...] | None) -> Iterable[Section]:
    for start in range(0, len(query.points), WORKLOADS):
        points = query.points[start : start + WORKLOADS]
        traits = query.traits if families is not None else ()
        since = query.since and families is None and query.site.is_selector
        yield Section(query.site, points, query.archs, families, traits, since)


def filled(items: Iterable[_T], weigh: Callable[[_T], int], most: int) -> Iterator[list[_T]]:
    """Groups items up to a maximum weight."""
    group: list[_T] = []
    weight = 0
    for item in items:
        item_weight = weigh(item)
        if group and weight + item_weight > most:
            yield group
            group, weight = [], 0
        group.append(item)
        weight += item_weight
    if group:
        yield group


def _translation_unit(batch: Batch, tree: QueriedTree, std: int) -> TranslationUnit:
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
    answers_by_row = answers.unpack(packed)
    rows = [row for section in batch.sections for row in section.rows]
    if missing := len(rows) - len(answers_by_row.keys() & range(len(rows))):
        raise InputError(
            f"the probe's PTX lacks {missing} of {len(rows)} answers", NOTHING.format("nvcc")
        )
    has_whole_policy = [
        section.whole or section.families is not None
        for section in batch.sections
        for _ in section.rows
    ]
    placeholders = [() if has_whole else ("",) for has_whole in has_whole_policy]
    for index, (workload, arch) in enumerate(rows):
        yield (workload, arch, batch.marked), (*placeholders[index], *answers_by_row[index])


# The result of a query.


@dataclass(frozen=True, slots=True)
class Selection:
    """What a tree selects for workloads on architectures, and which units do not compile."""

    rows: Mapping[tuple[Workload, str], Selected]
    errors: tuple[PolicygenError, ...] = ()
    refused: Mapping[Workload, PolicygenError] = field(default_factory=dict)
    """The workloads that the compiler did not answer, or not completely."""

    def checked(self) -> "Selection":
        """Returns the selection; raises if anything did not compile."""
        if self.errors:
            raise Problems(self.errors)
        return self

    @property
    def by_point(self) -> dict[tuple[Point, str], Selected]:
        """The rows of benchmarks, by workload and architecture."""
        return {(workload.point, arch): row for (workload, arch), row in self.rows.items()}


class LibraryCompiler(ABC):
    """The compiler of a library besides CUB, which answers queries itself."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in outputs."""

    @property
    def archs(self) -> tuple[str, ...]:
        """The architectures of GPUs that it compiles for; none, if it compiles for the host."""
        return ()

    @abstractmethod
    def ask(
        self, tree: QueriedTree, queries: Sequence[SiteQuery], progress: Progress | None
    ) -> Selection:
        """Queries all workloads at once."""
