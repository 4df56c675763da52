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
from policygen.model.bindings import Call
from policygen.model.selection import Selected
from policygen.model.trees import BoundVersion
from policygen.model.tuning import Marked
from policygen.model.workload import Point
from policygen.proof import answers
from policygen.proof.compile import RefusedError, TranslationUnit, compile_divided
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import NOTHING, SiteQuery, Workload, context, identity, overlay, render
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
class Answered:
    """The compiler's answers, and the units that it refused."""

    rows: Mapping[RowKey, tuple[str, ...]]
    errors: tuple[PolicygenError, ...]
    refused: Mapping[Workload, PolicygenError] = field(default_factory=dict)
    """Why there is no complete answer."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Queries that are compiled together."""

    arch: str
    """The architecture to compile for."""
    queries: tuple[SiteQuery, ...]
    marked: bool
    """Whether it asks a marked tree for entries, or a tree for values."""
    whole: bool = True
    """Whether to ask for all fields of policies; not all structs can be taken apart."""


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
    results = compile_divided(
        batches,
        lambda batch: _translation_unit(batch, tree, std),
        _divide,
        toolchain,
        answers.pack,
        writer=written_by(answers),
        progress=progress,
    )
    for batch, result in results:
        if isinstance(result, str):
            rows.update(_read(batch, result))
        else:
            refused |= {point: result for query in batch.queries for point in query.points}
            # Benchmarks of a header usually fail for the same reason.
            message = result.first if isinstance(result, RefusedError) else str(result)
            errors.setdefault((batch.queries[0].site.header, batch.marked, message), result)
    return Answered(rows, tuple(errors.values()), refused)


def _divide(batch: Batch) -> list[Batch]:
    """Divides a refused batch by site, or asks less of a site, or divides it by call."""
    if len(batch.queries) > 1:
        return [replace(batch, queries=(query,)) for query in batch.queries]
    (query,) = batch.queries
    if batch.whole and query.site.is_selector and not batch.marked:
        return [replace(batch, whole=False)]
    calls: dict[int, list[Workload]] = {}
    for point in query.points:
        calls.setdefault(id(point.call), []).append(point)
    parts = [replace(query, points=tuple(points)) for points in calls.values()]
    return [replace(batch, queries=(part,)) for part in parts] if len(parts) > 1 else []


def _batches(queries: Sequence[SiteQuery], toolchain: Toolchain) -> list[Batch]:
    """Divides the queries into compiles, each for one architecture.

    For policy chains, CUB itself must report the active policy on that architecture, because the
    unit checks its own answer against it. Policy selectors have no such restriction.
    """
    oldest = {marked: _oldest_arch(queries, toolchain, marked=marked) for marked in (False, True)}
    groups: dict[tuple[str, bool], list[SiteQuery]] = {}
    for query in queries:
        for marked in (False, True):
            if query.asks(marked=marked):
                arch = toolchain.newest if query.site.is_selector else oldest[marked]
                groups.setdefault((arch, marked), []).extend(_chunks(query))
    return [
        Batch(arch, tuple(chunks), marked)
        for (arch, marked), group in groups.items()
        for chunks in filled(group, lambda query: len(query.points), WORKLOADS)
    ]


def _oldest_arch(queries: Sequence[SiteQuery], toolchain: Toolchain, *, marked: bool) -> str:
    """Returns the oldest queried architecture that the toolchain supports.

    Queries of a marked tree share one compile, whatever else is queried.
    """
    archs = {arch for query in queries if query.asks(marked=marked) for arch in query.archs}
    return next((arch for arch in toolchain.archs if arch in archs), toolchain.newest)


def _chunks(query: SiteQuery) -> Iterator[SiteQuery]:
    for start in range(0, len(query.points), WORKLOADS):
        yield replace(query, points=query.points[start : start + WORKLOADS])


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
    headers = dict.fromkeys(query.site.header for query in batch.queries)
    folders = [overlay(name, tree.marked[name].data) for name in headers] if batch.marked else []
    short = ", ".join(name.removeprefix("tuning_").removesuffix(".cuh") for name in headers)
    rendered_from = context(batch.queries, tree.version, marked=batch.marked, whole=batch.whole)
    return TranslationUnit(
        name=f"{short}{' (entries)' if batch.marked else ''}",
        identity=identity(rendered_from),
        text=partial(render, rendered_from),
        includes=(*folders, *tree.includes),
        arch=batch.arch,
        std=std,
    )


def _read(batch: Batch, packed: str) -> Iterator[tuple[RowKey, tuple[str, ...]]]:
    answers_by_row = answers.unpack(packed)
    spots = [spot for query in batch.queries for spot in query.spots]
    if missing := len(spots) - len(answers_by_row.keys() & range(len(spots))):
        raise InputError(
            f"the probe's PTX lacks {missing} of {len(spots)} answers", NOTHING.format("nvcc")
        )
    whole = () if batch.whole or batch.marked else ("",)
    for index, (workload, arch) in enumerate(spots):
        yield (workload, arch, batch.marked), (*whole, *answers_by_row[index])


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
