"""The header: selectors as C++."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen import __version__
from policygen.bindings.own_workloads import taken_header
from policygen.headers.provenance import labelled
from policygen.headers.selectors.functions import Field, Struct, read_aggregate
from policygen.headers.user.selectors import (
    TunedReturn,
    TunedSelector,
    UserReturn,
    conditions,
    parameters,
    with_axes,
)
from policygen.model.arch import arch_number
from policygen.model.emitted import EmitAction, EmitReturn, EmitSelector
from policygen.rendering import fill

TEMPLATE = "emit/header.cuh.j2"
COMMENT = 116
"""How wide an example can be, behind `//! `."""


@dataclass(frozen=True, slots=True)
class HeaderTarget:
    """What the header is for."""

    cub: str
    arch: str
    until: str | None
    """The next architecture, which gets what CUB selects."""
    std: int
    namespace: str
    file: str
    """How the example includes it."""


def selector_of(tuned: TunedSelector) -> EmitSelector:
    """A selector as data; workloads that get the same policy are in one return."""
    first = tuned.spots[0]
    merged: dict[tuple[object, ...], list[TunedReturn]] = {}
    for part in tuned.written:
        assert part.values is not None
        same = (part.spots[0].arguments.guard, *part.values.items())
        merged.setdefault(same, []).append(part)
    return EmitSelector(
        name=tuned.name,
        policy=first.selector.selector.policy,
        default=first.selector.default,
        parameters=parameters(first.selector, first.base),
        returns=tuple(_return(parts) for parts in merged.values()),
    )


def _return(parts: Sequence[TunedReturn]) -> EmitReturn:
    first = parts[0]
    assert first.values is not None
    names = first.spots[0].selector.roles
    return EmitReturn(
        when=tuple(
            dict(zip(names, part.spots[0].arguments.spelled, strict=True)) for part in parts
        ),
        labels=tuple(
            dict.fromkeys(
                labelled(action.variant or "", action.scores or ())
                for part in parts
                for action in part.actions
            )
        ),
        values=dict(first.values),
        guard=first.spots[0].arguments.guard,
    )


def render(
    tuned: Sequence[TunedSelector],
    selectors: Sequence[EmitSelector],
    target: HeaderTarget,
    structs: Mapping[str, Struct],
) -> str:
    """The header's text."""
    spots = [spot for one in tuned for spot in one.spots]
    headers = [spot.header for spot in spots]
    used = [header for spot in spots for header in spot.arguments.headers]
    own = taken_header()
    major, minor = target.cub.split(".")[:2]
    rendered = [
        _selector(one, data, target, structs) for one, data in zip(tuned, selectors, strict=True)
    ]
    composed: dict[str, str] = {}
    for data in selectors:
        given = "<...>" if data.parameters else ""
        composed.setdefault(data.policy, f"{target.namespace}::{data.name}{given}{{}}")
    return fill(
        TEMPLATE,
        {
            "version": __version__,
            "origin": _origin([action for one in tuned for action in one.actions]),
            "arch": target.arch,
            "cub": f"{major}.{minor}",
            "number": int(major) * 1000 + int(minor),
            "std": target.std,
            "namespace": target.namespace,
            "includes": sorted({*headers, *used, "cuda/std/type_traits"} - {own}),
            "own": own,
            "aliases": _aliases(spots),
            "composed": [*composed.values()][:2] if len(composed) > 1 else None,
            "selectors": rendered,
        },
    )


def _selector(
    tuned: TunedSelector, data: EmitSelector, target: HeaderTarget, structs: Mapping[str, Struct]
) -> dict[str, object]:
    selector = tuned.spots[0].selector
    keys = {part.spots[0].arguments.spelled: part for part in tuned.written}
    conversion = _conversion(structs, selector.selector.policy, selector.selects)
    return {
        "name": data.name,
        "parameters": data.parameters,
        "policy": data.policy,
        "signature": _signature(data.policy),
        "fallback": _fallback(data.default, conversion),
        "about": _about(tuned),
        "example": _example(tuned, target),
        "conversion": None if conversion is None else wrapped("return ", conversion, ";", 2),
        "since": _capability(target.arch),
        "until": _capability(target.until) if target.until else None,
        "returns": [
            {
                "guard": one.guard,
                "labels": [line for label in one.labels for line in _label(label)],
                "condition": _condition([keys[tuple(w.values())] for w in one.when]),
                "text": returned(tuned.fields, one.values, target.std, 4 if one.when[0] else 3),
            }
            for one in data.returns
        ],
    }


def _signature(policy: str) -> list[str]:
    call = "constexpr auto operator()(::cuda::compute_capability cc) const"
    head, returns = f"  [[nodiscard]] _CCCL_HOST_DEVICE_API {call}", f"-> ::cub::{policy}"
    line = f"{head} {returns}"
    return [line] if len(line) <= WIDTH else [head, f"    {returns}"]


def _fallback(default: str, conversion: str | None) -> list[str]:
    """What CUB selects, as it is or to be converted."""
    lead = "return " if conversion is None else "const auto selected = "
    selector = " ".join(default.split())
    if "<" not in selector:
        return [f"    {lead}{selector}{{}}(cc);"]
    return wrapped(lead, selector, "{}(cc);", 2)


def _condition(parts: Sequence[TunedReturn]) -> str | None:
    firsts = [part.spots[0] for part in parts]
    alternatives = [
        conditions(spot.selector, spot.arguments.spelled, spot.arguments.key) for spot in firsts
    ]
    return condition(alternatives, 3) if alternatives[0] else None


def _label(label: str) -> list[str]:
    """A variant with its scores, on a line of their own where they do not fit."""
    if len(f"{INDENT * 3}// {label}") <= WIDTH:
        return [label]
    variant, _, scores = label.partition(" ")
    return [variant, scores]


def _origin(actions: Sequence[EmitAction]) -> list[str]:
    """GPUs and versions that were measured."""
    found: dict[str, None] = {}
    for one in actions:
        gpu = one.gpu.partition("(")[0].strip()
        text = f"{gpu}, CUDA {one.ctk}, CCCL {one.cccl}"
        # Whoever reads the header has no use for where a file was on another machine.
        names = dict.fromkeys(Path(name).name for name in one.databases)
        found[f"Measured on {text}: {', '.join(names)}"] = None
    return list(found)


def _about(tuned: TunedSelector) -> list[str]:
    names = dict.fromkeys(spot.selector.benchmark.name for spot in tuned.spots)
    return comment(f"What {', '.join(names)} found.".split(" "), "//!")


def _example(tuned: TunedSelector, target: HeaderTarget) -> list[str]:
    """A call of the algorithm with the selector, for the workload with the shortest types."""
    spot = min(tuned.spots, key=lambda spot: sum(map(len, spot.arguments.spelled)))
    public = spot.selector
    roles = dict(zip(public.roles, spot.arguments.spelled, strict=True))
    given = f"<{', '.join(roles.values())}>" if roles else ""
    own = {alias.name: f"{target.namespace}::{alias.name}" for alias in public.selector.aliases}
    selector = f"{target.namespace}::{tuned.name}{_replaced(given, own)}"
    known = {r: t for r, t in public.benchmark.roles.items() if t.startswith("::")} | roles
    values = spot.arguments.values
    called = [public.selector.calls[v] for v in values.values() if v in public.selector.calls]
    takes, call = (
        _replaced(with_axes(text, values, target.cub), known)
        for text in (public.selector.takes, *called, public.selector.call)[:2]
    )
    return [
        f"#include <{target.file}>",
        "",
        *wrapped("cudaError_t ", f"tuned({takes}, cudaStream_t stream)", "", 0, COMMENT),
        "{",
        *wrapped("using selector = ", selector, ";", 1, COMMENT),
        "",
        "  const auto tuning = cuda::execution::tune(selector{});",
        "  const auto env    = cuda::std::execution::env{cuda::stream_ref{stream}, tuning};",
        *wrapped("return ", " ".join(call.split()), ";", 1, COMMENT),
        "}",
    ]


def _replaced(text: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\w+", lambda match: names.get(match[0], match[0]), text)


def _aliases(spots: Sequence[UserReturn]) -> list[dict[str, object]]:
    """What the header calls types of CUB's own, as far as its selectors are for them."""
    told = " ".join(part for spot in spots for part in spot.arguments.spelled)
    words = {*re.findall(r"(?<!::)\b\w+", told)}
    known = {a.name: a for spot in spots for a in spot.selector.selector.aliases}
    used = [alias for name, alias in sorted(known.items()) if name in words]
    width = max((len(alias.name) for alias in used if not alias.parameters), default=0)
    # Templates come last: the others are one block, with their signs below each other.
    return [
        {
            "name": alias.name if alias.parameters else alias.name.ljust(width),
            "parameters": alias.parameters,
            "of": f"{alias.of}{alias.arguments}",
        }
        for alias in sorted(used, key=lambda alias: bool(alias.parameters))
    ]


def _conversion(structs: Mapping[str, Struct], policy: str, selects: str) -> str | None:
    """CUB's own policy as the one that is returned; nothing where they are the same."""
    if policy == selects:
        return None
    other = {field.name: field for field in read_aggregate(structs, selects)}
    return _converted(read_aggregate(structs, policy), other, "selected")


def _converted(fields: Sequence[Field], other: Mapping[str, Field], path: str) -> str:
    parts = []
    for field in fields:
        theirs, at = other[field.name], f"{path}.{field.name}"
        if field.type == theirs.type:
            parts.append(at)
        elif field.fields:
            inner = {one.name: one for one in theirs.fields}
            parts.append(_converted(field.fields, inner, at))
        else:
            parts.append(f"static_cast<::cub::{field.type}>({at})")
    return f"{{{', '.join(parts)}}}"


def _capability(arch: str) -> str:
    number = arch_number(arch)
    return f"{number // 10}, {number % 10}"


WIDTH = 120
INDENT = "  "
OPENING, CLOSING = "(<{", ")>}"


# Policies and conditions as lines of C++, as clang-format lays them out in CUB's style.


def returned(fields: Sequence[Field], values: Mapping[str, str], std: int, indent: int) -> str:
    """`return {.threads_per_block = 512, …};`, with as many lines as it takes."""
    lines = _aggregate("return ", fields, values, std, indent, "", ";")
    return "\n".join(lines)


def _aggregate(
    lead: str,
    fields: Sequence[Field],
    values: Mapping[str, str],
    std: int,
    indent: int,
    within: str,
    end: str,
) -> list[str]:
    """On one line where it fits; else each field on lines of its own, behind the brace."""
    space = INDENT * indent
    line = f"{space}{lead}{_in_line(fields, values, std, within)}{end}"
    if len(line) <= WIDTH:
        return [line]
    lines = [f"{space}{lead}{{"]
    for field in fields:
        path = f"{within}{field.name}"
        name = _name(field, std)
        if field.fields:
            inner = f"{path}."
            lines += _aggregate(name, field.fields, values, std, indent + 1, inner, ",")
        else:
            lines.append(f"{space}{INDENT}{name}{values[path]},")
    return [*lines, f"{space}}}{end}"]


def _in_line(fields: Sequence[Field], values: Mapping[str, str], std: int, within: str) -> str:
    parts = [
        _name(field, std) + _in_line(field.fields, values, std, f"{within}{field.name}.")
        if field.fields
        else _name(field, std) + values[f"{within}{field.name}"]
        for field in fields
    ]
    return f"{{{', '.join(parts)}}}"


def _name(field: Field, std: int) -> str:
    """The field's designator, or a comment in its place."""
    return f".{field.name} = " if std >= 20 else f"/* {field.name} */ "


def wrapped(lead: str, text: str, end: str, indent: int, width: int = WIDTH) -> list[str]:
    """A call or a type on one line, or with what stands in its last brackets on lines below."""
    space = INDENT * indent
    line = f"{space}{lead}{text}{end}"
    if len(line) <= width or text[-1] not in CLOSING:
        return [line]
    opened = _last_opened(text)
    parts = [part.strip() for part in split(text[opened + 1 : -1])]
    ends = [","] * (len(parts) - 1) + [f"{text[-1]}{end}"]
    below = f"{space}{INDENT}"
    lines, row = [f"{space}{lead}{text[: opened + 1]}"], ""
    for part, behind in zip(parts, ends, strict=True):
        joined = f"{row} {part}{behind}" if row else f"{part}{behind}"
        if len(below) + len(joined) <= width:
            row = joined
            continue
        lines += [f"{below}{row}"] if row else []
        *whole, row = wrapped("", part, behind, indent + 1, width)
        lines += whole
        row = row.removeprefix(below)
    return [*lines, f"{below}{row}"]


def statement(left: str, right: str, indent: int) -> list[str]:
    """On as many lines as it takes; choices stand below each other."""
    space = INDENT * indent
    if len(f"{space}{left} {right};") <= WIDTH:
        return [f"{space}{left} {right};"]
    if len(f"{space}{INDENT}{right};") <= WIDTH:
        return [f"{space}{left}", f"{space}{INDENT}{right};"]
    first, *others = right.split(" : ")
    lines = [f"{space}{INDENT}{first}", *(f"{space}{INDENT}: {one}" for one in others)]
    return [f"{space}{left}", *lines[:-1], f"{lines[-1]};"]


def _last_opened(text: str) -> int:
    """Where the bracket is that the last character closes."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] in CLOSING) - (text[at] in OPENING)
        if depth == 0:
            return at
    raise ValueError(text)


def split(text: str) -> list[str]:
    """The parts of a list, where no bracket is open."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in OPENING) - (char in CLOSING)
        if char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def condition(alternatives: Sequence[Sequence[str]], indent: int) -> str:
    """`if constexpr (A && B)`, or `((A && B) || (C && D))`; lines break before operators."""
    space = INDENT * indent
    lead = f"{space}if constexpr ("
    behind = " " * len(lead)
    if len(alternatives) == 1:
        parts = _joined(alternatives[0], "&&", len(lead), behind)
        return f"{lead}{parts})"
    groups = [
        f"({_joined(one, '&&', len(lead) + len(mark) + 1, behind + ' ' * (len(mark) + 1))})"
        for one, mark in zip(alternatives, ["", *["|| "] * len(alternatives)], strict=False)
    ]
    return f"{lead}{f'{chr(10)}{behind}|| '.join(groups)})"


def _joined(parts: Sequence[str], operator: str, start: int, hang: str) -> str:
    """Conditions side by side as long as they fit; what is too long alone breaks in its list."""
    lines, row, column = [], "", start
    for part in parts:
        joined = f"{row} {operator} {part}" if row else part
        if column + len(joined) + len("))") <= WIDTH or not row:
            row = joined
        else:
            lines.append(row)
            row, column = f"{operator} {part}", len(hang)
        if column + len(row) + len("))") > WIDTH and ", " in part:
            first, comma, rest = part.partition(", ")
            head = row.removesuffix(part)
            lines.append(f"{head}{first}{comma.strip()}")
            inner = len(head) + first.rindex("<") + 1
            if len(hang) + inner + len(rest) + len("))") > WIDTH:
                inner = 2 * len(INDENT)
            row, column = f"{' ' * inner}{rest}", len(hang)
    return f"\n{hang}".join([*lines, row])


def comment(items: Sequence[str], lead: str, width: int = WIDTH) -> list[str]:
    """Words of a comment, on as many lines as they take."""
    lines, row = [], lead
    for item in items:
        if row != lead and len(row) + 1 + len(item) > width:
            lines.append(row)
            row = lead
        row = f"{row} {item}"
    return [*lines, row]
