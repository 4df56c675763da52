"""Renders the translation units that ask what CUB selects."""

import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from policygen import rendering
from policygen.bindings.load import axis_type, is_constant, units_of
from policygen.bindings.words import ladder, words
from policygen.cache import digest
from policygen.errors import InputError, PolicygenError, UnprovableError
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding, Call, FamilyBinding, Site
from policygen.model.trees import BoundVersion
from policygen.model.workload import Point, axes, in_words, point_of
from policygen.paths import cache_failures, cache_folder, write_atomically
from policygen.rendering import fill
from policygen.trees.manifest import shipped

TEMPLATE = "probe/unit.cu.j2"
OPENED = "probe/opened.cu.j2"
POLICIES = "probe/policies.cuh.j2"
"""What units that take policies apart share."""
MARKS = "probe/marks.cuh.j2"
"""What units of marked policy selectors share."""
_WHOLE = "fields_of<::cuda::std::remove_cv_t<decltype(selected)>, counted.readable, taken_apart>"
"""The whole policy, including fields that no binding names."""
BoundFamily = tuple[FamilyBinding, tuple[str, ...]]
"""A family, and for each template parameter whether it is a `type` or a `value`."""


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A point of a call's axes; compared by identity."""

    call: Call
    values: Mapping[str, str]

    @property
    def point(self) -> Point:
        """The benchmark's workload as a key."""
        assert isinstance(self.call, BenchmarkBinding)
        return point_of(self.call.name, self.values)

    @property
    def name(self) -> str:
        """The workload in words: `cub.bench.reduce.sum T=I8 OffsetT=I32`; calls have no name."""
        if isinstance(self.call, BenchmarkBinding):
            return in_words(self.call.name, self.values)
        return " ".join(axes(self.values))


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
    def spots(self) -> Iterator[tuple[Workload, str]]:
        """All pairs of workload and architecture, in the order of a unit's answers."""
        return product(self.points, self.archs)

    def asks(self, *, marked: bool) -> bool:
        """Whether it asks a marked tree for entries, or a tree for values."""
        return bool(self.families or self.branches) if marked else self.values


def context(
    queries: Sequence[SiteQuery], version: BoundVersion, *, marked: bool = False, whole: bool = True
) -> dict[str, object]:
    """Builds a unit's template context; its rows are numbered across all queries.

    Of a marked tree, a unit asks which entry is selected; otherwise it asks for values. If `whole`,
    it asks for all fields of policies, too; not all structs can be taken apart.
    """
    sites = {query.site.header: query.site.opened for query in queries}
    opened = [
        {"name": name, "macro": opening.macro, "header": opening.header}
        for name, opening in sorted(sites.items())
        if opening is not None
    ]
    families = [family for query in queries if marked for family in query.families]
    includes = {header for query in queries for header in query.site.includes}
    points = (point for query in queries for point in query.points)
    includes |= {header for point in points for header in axis_headers(point, version)}
    return {
        **({"opened": opened} if opened else {}),
        "headers": sorted({query.site.header for query in queries}),
        "marks": sorted({binding.mark for binding, _ in families}),
        "counts": words().selectors.counts,
        "returns": marked and any(query.site.is_selector for query in queries),
        "includes": sorted(includes),
        "ladder": [arch_number(arch) for arch in ladder()],
        "sections": list(_sections(queries, version, marked=marked, whole=whole)),
    }


def sized_roles(call: Call, families: Iterable[BoundFamily]) -> tuple[str, ...]:
    """Returns the roles of a call whose sizes scale a count, in families or in the benchmark."""
    units = [rule.unit for binding, _ in families for rule in binding.members.values()]
    if isinstance(call, BenchmarkBinding):
        units += [*call.units.values(), *units_of(call)]
    role_names = {*call.roles, *(f"axis::{axis}" for axis in call.axes)}
    return tuple(sorted({unit.of for unit in units if unit is not None} & role_names))


def identity(rendered_from: Mapping[str, object], template: str = TEMPLATE) -> str:
    """Identifies a unit without rendering it."""
    names = (template, POLICIES, MARKS, *((OPENED,) if "opened" in rendered_from else ()))
    texts = ((rendering.folder("templates") / name).read_bytes() for name in names)
    return digest(*texts, json.dumps(rendered_from))


def render(rendered_from: Mapping[str, object]) -> str:
    """Renders a unit, preceded by the headers that a macro must open."""
    unit = fill(TEMPLATE, rendered_from, trim=False)
    return fill(OPENED, rendered_from, trim=False) + unit if "opened" in rendered_from else unit


def _sections(
    queries: Sequence[SiteQuery], version: BoundVersion, *, marked: bool, whole: bool
) -> Iterator[dict[str, object]]:
    first = 0
    for number, query in enumerate(queries):
        site = query.site
        yield {
            "number": number,
            "namespaces": site.namespace.split("::"),
            "hub": site.hub,
            "max_policy": site.max_policy,
            "policy": site.policy,
            "selector": site.is_selector,
            "marked": marked,
            "traits": marked and bool(query.traits),
            "since": query.since and site.is_selector and not marked,
            "carries": site.values.get(site.marked, "-1"),
            "whole": whole and not marked,
            "untuned": site.untuned,
            "support": site.support,
            "setup": site.setup,
            "facts": _mark_expressions(query) if marked else _value_expressions(site, whole=whole),
            "archs": [arch_number(arch) for arch in query.archs],
            "workloads": [
                {
                    "index": first + index * len(query.archs),
                    "axes": [
                        axis_declaration(axis, text, version)
                        for axis, text in point.values.items()
                        if axis in point.call.axes
                    ],
                    "roles": point.call.roles,
                    "constants": point.call.constants,
                    "sized": sized_roles(point.call, query.families) if marked else [],
                }
                for index, point in enumerate(query.points)
            ],
        }
        first += len(query.points) * len(query.archs)


def axis_headers(point: Workload, version: BoundVersion) -> Iterator[str]:
    """Yields the headers for a workload's types and functors."""
    yield from point.call.includes
    for axis, text in point.values.items():
        if axis in point.call.axes and not is_constant(text):
            header = axis_type(text, version).header
            if header:
                yield header


def _value_expressions(site: Site, *, whole: bool) -> list[str]:
    everything = _WHOLE if site.is_selector else "type<policy>"
    return [
        *([everything] if whole else []),
        *(f"value<{text}>" for text in site.values.values()),
        *(f"type<{text}>" for text in site.types.values()),
        *(f"value<{text}>" for text in site.delay or ()),
    ]


def _mark_expressions(query: SiteQuery) -> list[str]:
    site, traits = query.site, [f"value<traits.{name}>" for name in query.traits]
    if site.is_selector:
        return ["value<mark>", *traits]
    kinds = (f"type<::cuda::std::decay_t<decltype({text})>>" for text in site.values.values())
    return [
        f"value<{site.values[site.marked]}>",
        f"family<{', '.join(kinds)}>",
        *(_family_expression(*family) for family in query.families),
        *traits,
    ]


def _family_expression(family: FamilyBinding, kinds: Sequence[str]) -> str:
    args = [
        f"type<{arg}>" if kind == "type" else f"value<({arg})>"
        for arg, kind in zip(family.args, kinds, strict=True)
    ]
    tuning = f"{family.name}<{', '.join(family.args)}>"
    return f"family<{', '.join([f'value<entry_of<{tuning}>::id>', *args])}>"


def axis_declaration(axis: str, text: str, version: BoundVersion) -> str:
    """Declares the `axis::T` of a unit."""
    if is_constant(text):
        return f"static constexpr auto {axis} = {text};"
    return f"using {axis} = {axis_type(text, version).cpp};"


UNIT = "main.cu"
NOTHING = "It was not judged. Check whether this {} is complete."
# # 12 "/folder/file.cuh" 1 3
PLACE = re.compile(rb'^# (\d+) "((?:[^"\\\n]|\\.)*)"(?: [1-4])*$', re.M)


# Marks units, so that the compiler's output can be verified.


def new_mark() -> str:
    """Makes an unpredictable name, which no header and no other unit's output can contain."""
    return f"policygen_unit_{secrets.token_hex(16)}"


def marked(unit: str, mark: str) -> str:
    """Ends a unit with its mark, in device code."""
    return f"{unit}\n__device__ int {mark};\n"


def made_of(path: Path, mark: str, compiler: str = "nvcc") -> bytes:
    """Reads a compiler's output; raises if it is empty or belongs to another unit."""
    remedy = NOTHING.format(compiler)
    try:
        output = path.read_bytes()
    except FileNotFoundError:
        output = b""
    if not output:
        raise InputError(f"{compiler} reported success but wrote nothing", remedy)
    if mark.encode() not in output:
        raise InputError(f"the output of {compiler} does not belong to the given unit", remedy)
    return output


def check_unnamed(preprocessed: bytes, source: Path) -> None:
    """Raises if a header used the unit's file name, which is random."""
    name = os.fsencode(source.parent.name)
    position = 0
    while (position := preprocessed.find(name, position)) >= 0:
        start = preprocessed.rfind(b"\n", 0, position) + 1
        position += len(name)
        if not PLACE.match(preprocessed, start):
            text = "depends on the name of the compiled file"
            raise UnprovableError([f"{_location(preprocessed, start)}: it {text}"])


def place_of(text: bytes, position: int) -> re.Match[bytes] | None:
    """Finds the line marker before a position, which names its source file."""
    start = position + 1
    while start > 0:
        start = max(0, text.rfind(b"\n# ", 0, start) + 1)
        if marker := PLACE.match(text, start):
            return marker
    return None


def _location(text: bytes, position: int) -> str:
    """Returns the file and line that a position comes from."""
    marker = place_of(text, position)
    if marker is None:
        return "the unit"
    line = int(marker[1]) + text.count(b"\n", marker.end() + 1, position)
    return f"{os.fsdecode(marker[2])}:{line}"


# Overlay folders, which precede a tree and replace one of its headers.


def overlay(name: str, data: bytes) -> str:
    """Makes an include folder with one tuning header."""
    return include_folder("overlay", {f"{shipped().tree.tunings}/{name}": data})


def include_folder(kind: str, contents: Mapping[str, bytes]) -> str:
    """Makes a folder with files; equal contents share one."""
    parts = (part for item in sorted(contents.items()) for part in item)
    folder = cache_folder() / kind / digest(*parts)[:32]
    with cache_failures():
        for name, data in contents.items():
            path = folder / name
            if not path.is_file() or path.read_bytes() != data:
                write_atomically(path, data)
    return str(folder)
