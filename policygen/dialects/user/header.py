"""The header: selectors as C++."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen import __version__
from policygen.bindings.own import taken_header
from policygen.dialects.provenance import labelled
from policygen.dialects.selectors.aggregates import Field, read_aggregate
from policygen.dialects.selectors.functions import Struct
from policygen.dialects.user.arguments import conditions, parameters, with_axes
from policygen.dialects.user.layout import INDENT, WIDTH, comment, condition, returned, wrapped
from policygen.dialects.user.place import UserReturn
from policygen.dialects.user.tuned import TunedReturn, TunedSelector
from policygen.model.arch import arch_number
from policygen.model.emit import EmitAction, EmitReturn, EmitSelector
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
