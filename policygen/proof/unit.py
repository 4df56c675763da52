"""Writes the translation units that ask what CUB selects."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from policygen import resources
from policygen.bindings.load import axis_type
from policygen.model.arch import arch_number
from policygen.model.bindings import Call, FamilyBinding, Site

LADDER = (50, 52, 60, 61, 62, 70, 75, 80, 86, 89, 90, 100, 103, 107, 110, 120, 121)
"""Compute capabilities at which CUB's policies may change."""
CHUNK = 80
"""Workloads in one unit: nvcc's time grows with the third power of it from some hundred on."""


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


def render(
    site: Site,
    version: str,
    questions: Sequence[Question],
    families: Iterable[tuple[FamilyBinding, Sequence[str]]] = (),
    *,
    marked: bool = False,
) -> str:
    """One unit. Marked ones ask which entry is taken; others which values are used.

    With each family come the kinds of its template parameters: `type` or `value`.
    """
    environment = Environment(
        loader=FileSystemLoader(resources.folder("templates")),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  it is C++
    )
    items = [_family(*family) for family in families]
    items = [f"value<{site.values[site.marked]}>", *items] if marked else _values(site)
    headers = {
        header
        for question in questions
        for axis, text in question.workload.values.items()
        if (header := _type_header(question.workload.call, axis, text, version))
    }
    return environment.get_template("probe/unit.cu.j2").render(
        header=site.header,
        includes=[*site.includes, *sorted(headers)],
        namespaces=site.namespace.split("::"),
        hub=site.hub,
        policy=site.policy,
        selector=site.dialect == "selectors",
        untuned=site.untuned,
        ladder=LADDER,
        setup=site.setup,
        items=items,
        rows=[_row(index, question, version) for index, question in enumerate(questions)],
    )


def _values(site: Site) -> list[str]:
    return [
        *(f"value<{text}>" for text in site.values.values()),
        *(f"type<{text}>" for text in site.types.values()),
        *(f"value<{text}>" for text in site.delay or ()),
    ]


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
    if _is_constant(text):
        return f"static constexpr auto {axis} = {text};"
    return f"using {axis} = {axis_type(text, version).cpp};"


def _type_header(call: Call, axis: str, text: str, version: str) -> str | None:
    if axis not in call.axes or _is_constant(text):
        return None
    return axis_type(text, version).header


def _is_constant(text: str) -> bool:
    return text in {"true", "false"} or text.lstrip("-").isdigit()
