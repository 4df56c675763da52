"""All configs of a header of rocPRIM, in whichever form."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from policygen.errors import SourceError
from policygen.headers.comments import SourceFile
from policygen.headers.specializations.families import (
    Declaration,
    find_declarations,
    list_parts,
    template_parameters,
)
from policygen.headers.syntax import trim
from policygen.headers.text import Text, read_bytes, squeeze
from policygen.model.arch import UNKNOWN
from policygen.model.records import Span
from policygen.model.tuning import Entry, Family, TemplateParameter
from policygen.rocprim.entries import (
    FoundConfig,
    Templates,
    applied,
    arch_of,
    config_entry,
    config_members,
    config_templates,
    enabling,
    facts,
    namespace_at,
)
from policygen.rocprim.pickers import ARCHS, Fields, read_pickers, struct_fields

_WORTH_READING = re.compile(
    rb"\bROCPRIM_NAMESPACE\b|\bBEGIN_ROCPRIM_NAMESPACE\b|\bnamespace\s+rocprim\b"
)
# What a config is made of; not what it is by default, nor what wraps it.
PARAMS = "_config_params"
_CONFIG = re.compile(r"^(?!default_|wrapped_|wrap_).*(?:_config(?:_v\d+|_impl)?|Config)$")


def holds_configs(data: bytes) -> bool:
    """Whether there can be a config in a header."""
    return _WORTH_READING.search(data) is not None


Aggregates = dict[str, tuple[tuple[str, str], ...]]
"""The parameters of templates, and the fields of structs, each with its type."""


def read_configs(
    source: SourceFile, header: str, beside: Mapping[str, bytes]
) -> tuple[tuple[Family, ...], Aggregates, dict[str, int]]:
    """The configs by name and architecture, what they are made of, and how much of it they need.

    `beside` are headers that declare what configs are.
    """
    headers = [source.text.data, *beside.values()]
    templates = config_templates(headers)
    structs = read_structs(source, header, templates)
    parameters = {
        name: lot
        for name, lot in sorted(templates.items())
        if _CONFIG.search(name) and all(one.name for one in lot)
    }
    fields = struct_fields(headers)
    pickers = read_pickers(source, header, fields)
    made: Aggregates = {n: tuple((p.name, p.type) for p in lot) for n, lot in parameters.items()}
    if pickers:
        made |= _params(fields)
    needed = {n: sum(p.default is None for p in lot) for n, lot in parameters.items()}
    return (*structs, *pickers), made, needed


def _params(fields: Fields) -> Aggregates:
    """The structs that pickers return, with those that they are made of, and what devices are."""
    kept = ((name, lot) for name, lot in sorted(fields.items()) if name.endswith((PARAMS, ARCHS)))
    return {name: lot for name, lot in kept if lot}


CONFIG = re.compile(rb"\bstruct\s+(\w+_config(?:_\w+)?)\s*")
_BASE = re.compile(r"\w+_config_(?:base|fallback)\w*")
_DEFAULT = re.compile(r"default_\w+_config")
# "using type = select_type<…>"
_TYPE = re.compile(rb"\busing\s+type\s*=\s*")
_ARCH_PARAMETER = ("unsigned int", "target_arch")


@dataclass(frozen=True, slots=True)
class ConfigCase:
    """What a config is for some types: its facts, and where the config stands."""

    facts: tuple[str, ...]
    span: Span
    config: Span


# Configs as class templates: the generated ones, those written by hand, and their fallbacks.
#
# Generated: `default_reduce_config<static_cast<unsigned int>(target_arch::gfx942), key_type,
# std::enable_if_t<…>> : reduce_config<256, 8>`. By hand: `reduce_config_90a<Value>`, which a
# table in
# `default_reduce_config` gives to architectures.


def read_structs(source: SourceFile, header: str, templates: Templates) -> tuple[Family, ...]:
    """The configs of a header by name and architecture."""
    code = source.text.code
    found = list(find_declarations(code, names=CONFIG))
    primaries = {one.name: one for one in found if one.args_span is None}
    groups: dict[tuple[str, str], list[tuple[Declaration, tuple[ConfigCase, ...]]]] = {}
    tables: dict[str, Declaration] = {}
    """What asks for a config by hand: its parameters tell types apart."""
    for one in found:
        if _BASE.fullmatch(one.name):
            groups.setdefault((one.name, UNKNOWN), []).append((one, _cases(code, one)))
        elif _is_default(source, one, primaries.get(one.name)):
            for key, lot in _default(source, one, found):
                known = groups.setdefault(key, [])
                known += [case for case in lot if case not in known]
                if key[0] != one.name:
                    tables.setdefault(key[0], one)
    return tuple(
        Family(
            name=name,
            arch=arch,
            header=header,
            namespace=namespace_at(code, lot[0][0].span.start),
            parameters=_parameters(source, tables.get(name) or primaries.get(name)),
            entries=tuple(
                _entry(source, one, case, templates) for one, cases in lot for case in cases
            ),
        )
        for (name, arch), lot in groups.items()
    )


_Found = tuple[Declaration, tuple[ConfigCase, ...]]


def _is_default(source: SourceFile, one: Declaration, primary: Declaration | None) -> bool:
    """Whether a template is asked with an architecture first; it may be declared elsewhere."""
    if not _DEFAULT.fullmatch(one.name):
        return False
    if primary is None:
        return one.args_span is not None and _arch(source, one) is not None
    parts = list_parts(source.text.code, primary.parameters_span)
    first = squeeze(source.text.code[parts[0].start : parts[0].end]) if parts else ""
    return first.startswith(_ARCH_PARAMETER)


def _arch(source: SourceFile, one: Declaration) -> str | None:
    """The architecture that a specialization is for; none where it cannot be told."""
    args = list_parts(source.text.code, one.args_span) if one.args_span else []
    return arch_of(squeeze(source.text.code[args[0].start : args[0].end])) if args else None


def _default(
    source: SourceFile, one: Declaration, found: list[Declaration]
) -> Iterator[tuple[tuple[str, str], list[_Found]]]:
    """What a default is: a specialization for an architecture, a fallback, or a table of others."""
    code = source.text.code
    if one.args_span is not None:
        args = list_parts(code, one.args_span)
        arch = _arch(source, one)
        if arch is None:
            raise source.text.error(
                one.name_span.start,
                f"{one.name}: cannot tell for which architecture this is",
                width=len(one.name),
                remedy="Expected: static_cast<unsigned int>(target_arch::gfxNNN) as the first"
                " argument.",
            )
        yield (one.name, arch), [(one, _specialized(code, one, args[1:]))]
        return
    table = table_rows(source.text, one)
    if table is None:
        yield (one.name, UNKNOWN), [(one, _cases(code, one))]
        return
    for row in table:
        lot = [(other, _cases(code, other)) for other in found if other.name == row.name]
        if not lot:
            raise source.text.error(
                one.name_span.start,
                f"{one.name}: no {row.name} is declared here",
                width=len(one.name),
            )
        yield (row.name, row.arch), lot


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table: an architecture, and what it has."""

    arch: str
    name: str
    config: Span
    """`reduce_config_900<Value>`."""
    named: Span
    """Its name."""


def table_rows(text: Text, one: Declaration) -> list[TableRow] | None:
    """`select_arch<TargetArch, select_arch_case<900, reduce_config_900<Value>>, …>`."""
    chosen = applied(text.code, one.inherits_span) if one.inherits_span else None
    if chosen is None or chosen.name != "select_arch":
        return None
    return [_row(text, arg) for arg in chosen.args[1:]]


def _row(text: Text, span: Span) -> TableRow:
    """An architecture and its config; the last row of a table is for all others."""
    code, at = text.code, span
    config = applied(code, at)
    arch: str | None = UNKNOWN
    if config is not None and config.name == "select_arch_case" and len(config.args) == 2:
        first, at = config.args
        arch = arch_of(squeeze(code[first.start : first.end]))
        config = applied(code, at)
    if config is None or arch is None:
        raise text.error(span.start, "cannot tell which config this is for which architecture")
    start = code.index(config.name.encode(), at.start)
    return TableRow(arch, config.name, at, Span(start, start + len(config.name)))


def _own(code: bytes, one: Declaration) -> set[str]:
    """The names of a template's own parameters."""
    return {
        squeeze(code[p.start : p.end]).split()[-1] for p in list_parts(code, one.parameters_span)
    }


def _specialized(code: bytes, one: Declaration, args: list[Span]) -> tuple[ConfigCase, ...]:
    """The one case of a generated config: what its arguments and its condition ask for."""
    own = _own(code, one)
    asked: list[str] = []
    for arg in args:
        condition = enabling(code, arg)
        spelled = squeeze(code[arg.start : arg.end])
        if condition is not None:
            asked += facts(code, condition)
        elif spelled not in own:
            asked.append(spelled)
    return tuple(
        ConfigCase((*asked, *case.facts), one.span, case.config) for case in _cases(code, one)
    )


def _cases(code: bytes, one: Declaration) -> tuple[ConfigCase, ...]:
    """What a struct inherits, or calls its `type`; a `select_type` has a case for some types."""
    asked = _explicit(code, one)
    span = one.inherits_span
    if one.body_span and (match := _TYPE.search(code, *one.body_span)):
        end = code.find(b";", match.end(), one.body_span.end)
        span = trim(code, match.end(), one.body_span.end if end < 0 else end)
    if span is None:
        return ()
    return tuple(
        ConfigCase((*asked, *case.facts), case.span if case.span != span else one.span, case.config)
        for case in _selected(code, span)
    )


def _explicit(code: bytes, one: Declaration) -> tuple[str, ...]:
    """The arguments of a specialization by hand that are no parameters of its own."""
    if one.args_span is None or _DEFAULT.fullmatch(one.name):
        return ()
    own = _own(code, one)
    args = (squeeze(code[a.start : a.end]) for a in list_parts(code, one.args_span))
    return tuple(arg for arg in args if arg not in own)


def _selected(code: bytes, span: Span) -> Iterator[ConfigCase]:
    chosen = applied(code, span)
    if chosen is None or chosen.name != "select_type":
        yield ConfigCase((), span, span)
        return
    for arg in chosen.args:
        case = applied(code, arg)
        if case is not None and case.name == "select_type_case" and len(case.args) == 2:
            yield ConfigCase(facts(code, case.args[0]), arg, case.args[1])
        else:
            yield ConfigCase((), arg, arg)


def _entry(source: SourceFile, one: Declaration, case: ConfigCase, templates: Templates) -> Entry:
    text = source.text
    config = applied(text.code, case.config)
    falls = config is not None and _BASE.fullmatch(config.name)
    found = FoundConfig(
        facts=case.facts,
        span=case.span,
        value=case.config,
        parameters=one.parameters_span,
        top=one.span.start,
        named=case.span.start if case.span != one.span else one.name_span.start,
        args=one.args_span,
        body=one.body_span,
    )
    return config_entry(
        source, found, () if falls else config_members(text, case.config, templates)
    )


def _parameters(source: SourceFile, primary: Declaration | None) -> tuple[TemplateParameter, ...]:
    """Those that tell types apart: not the architecture, and not what enables."""
    if primary is None:
        return ()
    found = template_parameters(source.text.data, source.text.code, primary.parameters_span)
    return tuple(
        one
        for one in found
        if one.name != "enable" and one.name.lower() not in {"arch", "targetarch"}
    )


_TYPES = "config_types.hpp"
_HELPER = Path("detail", "device_config_helper.hpp")
_CONFIGS = "device_*_config.hpp"
_DEEPEST = 2
"""Folders between a header of configs and that of what declares them."""


# The headers of rocPRIM that declare what configs are made of, with their parameters.


def declaring(path: Path) -> dict[str, bytes]:
    """What declares the configs of a header, by name; nothing for a header that is none of them."""
    for folder in list(path.parents)[: _DEEPEST + 1]:
        if (folder / _TYPES).is_file():
            return {name: data for name, data in _readable(folder) if name != path.name}
    return {}


def _readable(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in (folder / _TYPES, folder / _HELPER, *sorted(folder.glob(_CONFIGS))):
        try:
            yield path.name, read_bytes(path)
        except SourceError:
            continue  # told when it is read for itself
