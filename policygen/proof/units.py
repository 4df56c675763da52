"""Renders the translation units that ask what CUB selects."""

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from policygen import rendering
from policygen.bindings.load import axis_type, is_constant, units_of
from policygen.bindings.words import ladder, words
from policygen.errors import InputError, UnprovableError
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding, Call, FamilyBinding, Site
from policygen.model.trees import BoundVersion
from policygen.model.workload import Point, axes, in_words, point_of
from policygen.paths import cache_failure, cache_folder, write_atomically
from policygen.rendering import fill
from policygen.trees.manifest import shipped

TEMPLATE = "probe/unit.cu.j2"
OPENED = "probe/opened.cu.j2"
POLICIES = "probe/policies.cuh.j2"
"""What units that take policies apart share."""
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
class Section:
    """Workloads at one site, each on some architectures.

    With families, it asks a marked tree which entry is selected; otherwise it asks for values.
    """

    site: Site
    points: tuple[Workload, ...]
    archs: tuple[str, ...]
    families: tuple[BoundFamily, ...] | None = None
    traits: tuple[str, ...] = ()
    """Members of a marked policy selector to report, too."""
    since: bool = False
    """Whether to report from which architecture on a return's values stay the same."""
    whole: bool = True
    """Whether to ask for all fields of a policy; not all structs can be taken apart."""

    @property
    def rows(self) -> tuple[tuple[Workload, str], ...]:
        """What the unit answers, in the order of the answers' numbers."""
        return tuple(product(self.points, self.archs))


def context(sections: Sequence[Section], version: BoundVersion) -> dict[str, object]:
    """Builds a unit's template context; its rows are numbered across all sections."""
    sites = {section.site.header: section.site.opened for section in sections}
    opened = [
        {"name": name, "macro": opening.macro, "header": opening.header}
        for name, opening in sorted(sites.items())
        if opening is not None
    ]
    return {
        **({"opened": opened} if opened else {}),
        "headers": sorted({section.site.header for section in sections}),
        "marks": sorted(
            {binding.mark for section in sections for binding, _ in section.families or ()}
        ),
        "counts": words().selectors.counts,
        "returns": any(
            section.families is not None and section.site.is_selector for section in sections
        ),
        "includes": sorted({name for section in sections for name in _includes(section, version)}),
        "ladder": [arch_number(arch) for arch in ladder()],
        "sections": list(_sections(sections, version)),
    }


def sized_roles(call: Call, families: Iterable[BoundFamily]) -> tuple[str, ...]:
    """Returns the roles of a call whose sizes scale a count, in families or in the benchmark."""
    units = [rule.unit for binding, _ in families for rule in binding.members.values()]
    if isinstance(call, BenchmarkBinding):
        units += [*call.units.values(), *units_of(call)]
    role_names = {*call.roles, *(f"axis::{axis}" for axis in call.axes)}
    return tuple(sorted({unit.of for unit in units if unit is not None} & role_names))


def identity(rendered_from: Mapping[str, object]) -> str:
    """Identifies a unit without rendering it."""
    templates = (TEMPLATE, POLICIES, *((OPENED,) if "opened" in rendered_from else ()))
    digest = hashlib.sha256()
    for name in templates:
        digest.update((rendering.folder("templates") / name).read_bytes())
    digest.update(json.dumps(rendered_from).encode())
    return digest.hexdigest()


def render(rendered_from: Mapping[str, object]) -> str:
    """Renders a unit, preceded by the headers that a macro must open."""
    unit = fill(TEMPLATE, rendered_from, trim=False)
    return fill(OPENED, rendered_from, trim=False) + unit if "opened" in rendered_from else unit


def _sections(sections: Sequence[Section], version: BoundVersion) -> Iterator[dict[str, object]]:
    first = 0
    for number, section in enumerate(sections):
        site = section.site
        yield {
            "number": number,
            "namespaces": site.namespace.split("::"),
            "hub": site.hub,
            "max_policy": site.max_policy,
            "policy": site.policy,
            "selector": site.is_selector,
            "marked": section.families is not None,
            "traits": bool(section.traits),
            "since": section.since,
            "carries": site.values.get(site.marked, "-1"),
            "whole": section.families is None and section.whole,
            "untuned": site.untuned,
            "support": site.support,
            "setup": site.setup,
            "facts": _answer_expressions(section),
            "archs": [arch_number(arch) for arch in section.archs],
            "workloads": [
                _workload(first + index * len(section.archs), point, section.families, version)
                for index, point in enumerate(section.points)
            ],
        }
        first += len(section.rows)


def _includes(section: Section, version: BoundVersion) -> Iterator[str]:
    yield from section.site.includes
    for point in section.points:
        yield from axis_headers(point, version)


def axis_headers(point: Workload, version: BoundVersion) -> Iterator[str]:
    """Yields the headers for a workload's types and functors."""
    yield from point.call.includes
    for axis, text in point.values.items():
        if axis in point.call.axes and not is_constant(text):
            header = axis_type(text, version).header
            if header:
                yield header


def _answer_expressions(section: Section) -> list[str]:
    if section.families is None:
        return _value_expressions(section.site, whole=section.whole)
    traits = (f"value<traits.{name}>" for name in section.traits)
    return [*_mark_expressions(section.site, section.families), *traits]


def _value_expressions(site: Site, *, whole: bool) -> list[str]:
    everything = _WHOLE if site.is_selector else "type<policy>"
    return [
        *([everything] if whole else []),
        *(f"value<{text}>" for text in site.values.values()),
        *(f"type<{text}>" for text in site.types.values()),
        *(f"value<{text}>" for text in site.delay or ()),
    ]


def _mark_expressions(site: Site, families: Sequence[BoundFamily]) -> list[str]:
    if site.is_selector:
        return ["value<mark>"]
    kinds = (f"type<::cuda::std::decay_t<decltype({text})>>" for text in site.values.values())
    return [
        f"value<{site.values[site.marked]}>",
        f"family<{', '.join(kinds)}>",
        *(_family_expression(*family) for family in families),
    ]


def _family_expression(family: FamilyBinding, kinds: Sequence[str]) -> str:
    args = [
        f"type<{arg}>" if kind == "type" else f"value<({arg})>"
        for arg, kind in zip(family.args, kinds, strict=True)
    ]
    tuning = f"{family.name}<{', '.join(family.args)}>"
    return f"family<{', '.join([f'value<entry_of<{tuning}>::id>', *args])}>"


def _workload(
    index: int, point: Workload, families: Sequence[BoundFamily] | None, version: BoundVersion
) -> dict[str, object]:
    call, values = point.call, point.values
    return {
        "index": index,
        "axes": [
            axis_declaration(axis, text, version)
            for axis, text in values.items()
            if axis in call.axes
        ],
        "roles": call.roles,
        "constants": call.constants,
        "sized": [] if families is None else sized_roles(call, families),
    }


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
    """Makes an include folder with one tuning header; equal contents share one."""
    digest = hashlib.sha256(data).hexdigest()[:32]
    folder = cache_folder() / "overlay" / digest
    path = folder / shipped().tree.tunings / name
    try:
        if not path.is_file() or path.read_bytes() != data:
            write_atomically(path, data)
    except OSError as error:
        raise cache_failure(error) from error
    return str(folder)
