"""Writes the translation units that ask what CUB selects."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen import resources
from policygen.bindings.load import axis_type, is_constant
from policygen.model.arch import arch_number
from policygen.model.bindings import Call, FamilyBinding, Site

TEMPLATE = "probe/unit.cu.j2"
LADDER = (50, 52, 60, 61, 62, 70, 75, 80, 86, 89, 90, 100, 103, 107, 110, 120, 121)
"""Compute capabilities at which CUB's policies may change."""

BoundFamily = tuple[FamilyBinding, tuple[str, ...]]
"""A family, and for each of its template parameters whether it is a `type` or a `value`."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A point of a call's axes."""

    call: Call
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Question:
    """One row of a unit: a workload and, in the selector dialect, an architecture."""

    workload: Workload
    arch: str


@dataclass(frozen=True, slots=True)
class Section:
    """Questions about one site.

    With families it is asked on a marked tree which entry is taken, else which values are used.
    """

    site: Site
    questions: tuple[Question, ...]
    families: tuple[BoundFamily, ...] | None = None


def context(sections: Sequence[Section], version: str) -> dict[str, object]:
    """All that a unit is rendered from; its rows are numbered through all sections."""
    return {
        "headers": sorted({section.site.header for section in sections}),
        "marks": sorted({f.mark for s in sections for f, _ in s.families or ()}),
        "includes": sorted({name for section in sections for name in _includes(section, version)}),
        "ladder": LADDER,
        "sections": list(_sections(sections, version)),
    }


def identity(rendered_from: Mapping[str, object]) -> str:
    """Names what a unit would be, without rendering it."""
    digest = hashlib.sha256((resources.folder("templates") / TEMPLATE).read_bytes())
    digest.update(json.dumps(rendered_from).encode())
    return digest.hexdigest()


def render(rendered_from: Mapping[str, object]) -> str:
    """One unit."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(resources.folder("templates")),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  it is C++
    )
    return environment.get_template(TEMPLATE).render(rendered_from)


def _sections(sections: Sequence[Section], version: str) -> Iterator[dict[str, object]]:
    first = 0
    for number, section in enumerate(sections):
        site = section.site
        yield {
            "number": number,
            "namespaces": site.namespace.split("::"),
            "hub": site.hub,
            "max_policy": site.max_policy,
            "policy": site.policy,
            "selector": site.dialect == "selectors",
            "untuned": site.untuned,
            "support": site.support,
            "setup": site.setup,
            "facts": _values(site) if section.families is None else _marks(site, section.families),
            "rows": [_row(first + i, q, version) for i, q in enumerate(section.questions)],
        }
        first += len(section.questions)


def _includes(section: Section, version: str) -> Iterator[str]:
    yield from section.site.includes
    for question in section.questions:
        for axis, text in question.workload.values.items():
            if axis in question.workload.call.axes and not is_constant(text):
                header = axis_type(text, version).header
                if header:
                    yield header


def _values(site: Site) -> list[str]:
    return [
        *(f"value<{text}>" for text in site.values.values()),
        *(f"type<{text}>" for text in site.types.values()),
        *(f"value<{text}>" for text in site.delay or ()),
    ]


def _marks(site: Site, families: Sequence[BoundFamily]) -> list[str]:
    return [f"value<{site.values[site.marked]}>", *(_family(*family) for family in families)]


def _family(family: FamilyBinding, kinds: Sequence[str]) -> str:
    args = [
        f"type<{arg}>" if kind == "type" else f"value<({arg})>"
        for arg, kind in zip(family.args, kinds, strict=True)
    ]
    tuning = f"{family.name}<{', '.join(family.args)}>"
    return f"family<{', '.join([f'value<entry_of<{tuning}>::id>', *args])}>"


def _row(index: int, question: Question, version: str) -> dict[str, object]:
    call, values = question.workload.call, question.workload.values
    return {
        "index": index,
        "axes": [_axis(axis, text, version) for axis, text in values.items() if axis in call.axes],
        "roles": call.roles,
        "constants": call.constants,
        "arch": arch_number(question.arch),
    }


def _axis(axis: str, text: str, version: str) -> str:
    if is_constant(text):
        return f"static constexpr auto {axis} = {text};"
    return f"using {axis} = {axis_type(text, version).cpp};"
