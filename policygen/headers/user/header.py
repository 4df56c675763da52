"""Writes selectors as a C++ header."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen import __version__
from policygen.bindings.own_workloads import header_of
from policygen.headers.comments import labelled
from policygen.headers.selectors.functions import Field, Struct, read_aggregate, returned
from policygen.headers.spelling import UNIT, WIDTH
from policygen.headers.syntax import split_list
from policygen.headers.user.policies import (
    CONTIGUOUS,
    TunedReturn,
    TunedSelector,
    UserReturn,
    conditions,
    parameters,
    with_axes,
)
from policygen.model.arch import arch_number
from policygen.model.emitted import EmitAction, EmitReturn, EmitSelector
from policygen.model.trees import BoundVersion
from policygen.rendering import fill

TEMPLATE = "emit/header.cuh.j2"
ITERATORS = "thrust/type_traits/is_contiguous_iterator.h"
COMMENT = 116
"""Maximum width of an example behind `//! `."""


@dataclass(frozen=True, slots=True)
class HeaderTarget:
    """What the header is generated for."""

    version: BoundVersion
    arch: str
    until: str | None
    """The next architecture, for which CUB's own selection applies."""
    std: int
    namespace: str
    file: str
    """The path by which the example includes the header."""


def selector_of(tuned: TunedSelector) -> EmitSelector:
    """Converts a selector to data; workloads with equal policies share one return."""
    first = tuned.spots[0]
    merged: dict[tuple[object, ...], list[TunedReturn]] = {}
    for part in tuned.written:
        assert part.values is not None
        merge_key = (part.spots[0].arguments.guard, *part.values.items())
        merged.setdefault(merge_key, []).append(part)
    return EmitSelector(
        name=tuned.name,
        policy=first.selector.selector.policy,
        default=first.selector.fallback,
        parameters=parameters(first.selector, first.arguments.spelled),
        returns=tuple(_return(parts) for parts in merged.values()),
    )


def _return(parts: Sequence[TunedReturn]) -> EmitReturn:
    first = parts[0]
    assert first.values is not None
    names = [argument.parameter for argument in first.spots[0].selector.arguments]
    spelled = [part.spots[0].arguments.spelled for part in parts]
    actions = [action for part in parts for action in part.actions]
    labels = [labelled(action.variant or "", action.scores or ()) for action in actions]
    return EmitReturn(
        when=tuple(dict(zip(names, arguments, strict=True)) for arguments in spelled),
        labels=tuple(dict.fromkeys(labels)),
        values=dict(first.values),
        guard=first.spots[0].arguments.guard,
    )


def render(
    tuned: Sequence[TunedSelector],
    selectors: Sequence[EmitSelector],
    target: HeaderTarget,
    structs: Mapping[str, Struct],
) -> str:
    """Renders the header."""
    spots = [spot for tuned_selector in tuned for spot in tuned_selector.spots]
    used = [header for spot in spots for header in spot.arguments.headers]
    own_header = header_of(target.version.own)
    major, minor = target.version.text.split(".")[:2]
    rendered = [
        _selector(tuned_selector, data, target, structs)
        for tuned_selector, data in zip(tuned, selectors, strict=True)
    ]
    conditions_text = str([selector["returns"] for selector in rendered])
    iterators = [ITERATORS] if "is_contiguous" in conditions_text else []
    headers = [*(spot.header for spot in spots), "cuda/std/type_traits"]
    composed: dict[str, str] = {}
    for data in selectors:
        template_arguments = "<...>" if data.parameters else ""
        composed.setdefault(data.policy, f"{target.namespace}::{data.name}{template_arguments}{{}}")
    return fill(
        TEMPLATE,
        {
            "version": __version__,
            "origin": _measurement_lines([action for own in tuned for action in own.actions]),
            "arch": target.arch,
            "cub": f"{major}.{minor}",
            "number": int(major) * 1000 + int(minor),
            "std": target.std,
            "namespace": target.namespace,
            "includes": sorted({*headers, *used, *iterators} - {own_header}),
            "contiguous": CONTIGUOUS if f"{CONTIGUOUS}<" in conditions_text else None,
            "own": own_header,
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
    declared = f"<{', '.join(data.parameters)}>"
    names = dict.fromkeys(spot.selector.benchmark.name for spot in tuned.spots)
    return {
        "name": data.name,
        "parameters": wrapped("template ", declared, "", 0) if data.parameters else [],
        "policy": data.policy,
        "signature": _signature(data.policy),
        "fallback": _fallback(data.default, conversion),
        "about": comment(f"What {', '.join(names)} found.".split(" "), "//!"),
        "example": _example(tuned, target),
        "conversion": None if conversion is None else wrapped("return ", conversion, ";", 2),
        "since": _capability_arguments(target.arch),
        "until": _capability_arguments(target.until) if target.until else None,
        "returns": [
            {
                "guard": emitted.guard,
                "labels": [line for label in emitted.labels for line in _label_lines(label)],
                "condition": _condition([keys[tuple(part.values())] for part in emitted.when]),
                "text": returned(
                    tuned.fields, emitted.values, target.std, 3 + bool(emitted.when[0])
                ),
            }
            for emitted in data.returns
        ],
    }


def _signature(policy: str) -> list[str]:
    call = "constexpr auto operator()(::cuda::compute_capability cc) const"
    head, returns = f"  [[nodiscard]] _CCCL_HOST_DEVICE_API {call}", f"-> ::cub::{policy}"
    line = f"{head} {returns}"
    return [line] if len(line) <= WIDTH else [head, f"    {returns}"]


def _fallback(default: str, conversion: str | None) -> list[str]:
    """Calls CUB's own selector, and returns its result or stores it for conversion."""
    prefix = "return " if conversion is None else "const auto selected = "
    selector = " ".join(default.split())
    if "<" not in selector:
        return [f"    {prefix}{selector}{{}}(cc);"]
    return wrapped(prefix, selector, "{}(cc);", 2)


def _condition(parts: Sequence[TunedReturn]) -> str | None:
    firsts = [part.spots[0] for part in parts]
    alternatives = [
        conditions(spot.selector, spot.arguments.spelled, spot.arguments.key) for spot in firsts
    ]
    return condition(alternatives, 3) if alternatives[0] else None


def _label_lines(label: str) -> list[str]:
    """Splits a label into variant and scores if it does not fit on one line."""
    if len(f"{UNIT * 3}// {label}") <= WIDTH:
        return [label]
    variant, _, scores = label.partition(" ")
    return [variant, scores]


def _measurement_lines(actions: Sequence[EmitAction]) -> list[str]:
    """Lists the GPUs and versions that were measured."""
    lines: dict[str, None] = {}
    for action in actions:
        gpu = action.gpu.partition("(")[0].strip()
        text = f"{gpu}, CUDA {action.ctk}, CCCL {action.cccl}"
        # Omit directories: paths on the measuring machine mean nothing to readers of the header.
        names = dict.fromkeys(Path(name).name for name in action.databases)
        lines[f"Measured on {text}: {', '.join(names)}"] = None
    return list(lines)


def _example(tuned: TunedSelector, target: HeaderTarget) -> list[str]:
    """Writes an example call with the selector, for the workload with the shortest types."""
    spot = min(tuned.spots, key=lambda spot: sum(map(len, spot.arguments.spelled)))
    public = spot.selector
    roles = dict(spot.arguments.roles)
    spelled = ", ".join(spot.arguments.spelled)
    template_arguments = f"<{spelled}>" if spelled else ""
    aliases = [alias.name for alias in public.selector.aliases]
    qualified_aliases = {name: f"{target.namespace}::{name}" for name in aliases}
    arguments = _with_names(template_arguments, qualified_aliases)
    selector = f"{target.namespace}::{tuned.name}{arguments}"
    bound_roles = public.benchmark.roles.items()
    spellings = {role: cpp for role, cpp in bound_roles if cpp.startswith("::")} | roles
    values = spot.arguments.values
    calls = public.selector.calls
    called = [calls[value] for value in values.values() if value in calls]
    signature, call = (
        _with_names(with_axes(text, values, target.version), spellings)
        for text in (public.selector.takes, *called, public.selector.call)[:2]
    )
    return [
        f"#include <{target.file}>",
        "",
        *wrapped("cudaError_t ", f"tuned({signature}, cudaStream_t stream)", "", 0, COMMENT),
        "{",
        *wrapped("using selector = ", selector, ";", 1, COMMENT),
        "",
        "  const auto tuning = cuda::execution::tune(selector{});",
        "  const auto env    = cuda::std::execution::env{cuda::stream_ref{stream}, tuning};",
        *wrapped("return ", " ".join(call.split()), ";", 1, COMMENT),
        "}",
    ]


def _with_names(text: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\w+", lambda match: names.get(match[0], match[0]), text)


def _aliases(spots: Sequence[UserReturn]) -> list[dict[str, object]]:
    """Lists the header's aliases of CUB's own types that its selectors use."""
    spellings = " ".join(part for spot in spots for part in spot.arguments.spelled)
    words = {*re.findall(r"(?<!::)\b\w+", spellings)}
    aliases = {alias.name: alias for spot in spots for alias in spot.selector.selector.aliases}
    used = [alias for name, alias in sorted(aliases.items()) if name in words]
    width = max((len(alias.name) for alias in used), default=0)
    return [
        {
            "name": alias.name.ljust(width),
            "parameters": alias.parameters,
            "of": f"{alias.of}{alias.arguments}",
        }
        for alias in sorted(used, key=lambda alias: bool(alias.parameters))  # templates last
    ]


def _conversion(structs: Mapping[str, Struct], policy: str, selects: str) -> str | None:
    """Converts CUB's own policy to the returned type; None if the types are the same."""
    if policy == selects:
        return None
    fields_by_name = {field.name: field for field in read_aggregate(structs, selects)}
    return _converted(read_aggregate(structs, policy), fields_by_name, "selected")


def _converted(fields: Sequence[Field], fields_by_name: Mapping[str, Field], path: str) -> str:
    parts = []
    for field in fields:
        source, source_path = fields_by_name[field.name], f"{path}.{field.name}"
        if field.type == source.type:
            parts.append(source_path)
        elif field.fields:
            inner = {nested.name: nested for nested in source.fields}
            parts.append(_converted(field.fields, inner, source_path))
        else:
            parts.append(f"static_cast<::cub::{field.type}>({source_path})")
    return f"{{{', '.join(parts)}}}"


def _capability_arguments(arch: str) -> str:
    number = arch_number(arch)
    return f"{number // 10}, {number % 10}"


OPENING, CLOSING = "(<{", ")>}"


# C++ layout as by clang-format in CUB's style


def wrapped(prefix: str, text: str, suffix: str, indent: int, width: int = WIDTH) -> list[str]:
    """Puts a call or a type on one line, or breaks the list in its last brackets."""
    indentation = UNIT * indent
    line = f"{indentation}{prefix}{text}{suffix}"
    if len(line) <= width or text[-1] not in CLOSING:
        return [line]
    opening = _opening_bracket(text)
    parts = split(text[opening + 1 : -1]) or [""]
    suffixes = [","] * (len(parts) - 1) + [f"{text[-1]}{suffix}"]
    deeper = f"{indentation}{UNIT}"
    lines, row = [f"{indentation}{prefix}{text[: opening + 1]}"], ""
    for part, part_suffix in zip(parts, suffixes, strict=True):
        joined = f"{row} {part}{part_suffix}" if row else f"{part}{part_suffix}"
        if len(deeper) + len(joined) <= width:
            row = joined
            continue
        lines += [f"{deeper}{row}"] if row else []
        *full_lines, row = wrapped("", part, part_suffix, indent + 1, width)
        lines += full_lines
        row = row.removeprefix(deeper)
    return [*lines, f"{deeper}{row}"]


def statement(left: str, right: str, indent: int) -> list[str]:
    """Breaks an assignment as needed, with the alternatives of a conditional below each other."""
    indentation = UNIT * indent
    if len(f"{indentation}{left} {right};") <= WIDTH:
        return [f"{indentation}{left} {right};"]
    if len(f"{indentation}{UNIT}{right};") <= WIDTH:
        return [f"{indentation}{left}", f"{indentation}{UNIT}{right};"]
    condition_part, *alternatives = right.split(" : ")
    rows = [condition_part, *(f": {alternative}" for alternative in alternatives)]
    rows[-1] += ";"
    return [f"{indentation}{left}", *(f"{indentation}{UNIT}{row}" for row in rows)]


def _opening_bracket(text: str) -> int:
    """Returns the index of the bracket that the last character closes."""
    depth = 0
    for index in range(len(text) - 1, -1, -1):
        depth += (text[index] in CLOSING) - (text[index] in OPENING)
        if depth == 0:
            return index
    raise ValueError(text)


def split(text: str) -> list[str]:
    """Splits a list at its top-level commas."""
    code = text.encode()
    return [code[slice(*span)].decode() for span in split_list(code, 0, len(code))]


def condition(alternatives: Sequence[Sequence[str]], indent: int) -> str:
    """Writes `if constexpr (A && B)` or `((A && B) || (C && D))`; lines break before operators."""
    indentation = UNIT * indent
    opening = f"{indentation}if constexpr ("
    hang = " " * len(opening)
    if len(alternatives) == 1:
        return f"{opening}{_join_terms(alternatives[0], len(opening), hang)})"
    groups = [
        f"({_join_terms(terms, len(opening) + len(mark) + 1, hang + ' ' * (len(mark) + 1))})"
        for terms, mark in zip(alternatives, ["", *["|| "] * len(alternatives)], strict=False)
    ]
    return f"{opening}{f'{chr(10)}{hang}|| '.join(groups)})"


def _join_terms(parts: Sequence[str], start: int, hang: str) -> str:
    """Joins conditions on a line while they fit; breaks one that is too long in its list."""
    lines, row, column = [], "", start
    for part in parts:
        joined = f"{row} && {part}" if row else part
        if column + len(joined) + len("))") <= WIDTH or not row:
            row = joined
        else:
            lines.append(row)
            row, column = f"&& {part}", len(hang)
        if column + len(row) + len("))") > WIDTH and ", " in part:
            first, comma, rest = part.partition(", ")
            head = row.removesuffix(part)
            lines.append(f"{head}{first}{comma.strip()}")
            inner = len(head) + first.rindex("<") + 1
            if len(hang) + inner + len(rest) + len("))") > WIDTH:
                inner = 2 * len(UNIT)
            row, column = f"{' ' * inner}{rest}", len(hang)
    return f"\n{hang}".join([*lines, row])


def comment(items: Sequence[str], marker: str, width: int = WIDTH) -> list[str]:
    """Wraps the words of a comment."""
    indent = f"{marker} "
    return textwrap.wrap(
        " ".join(items),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
