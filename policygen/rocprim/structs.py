"""Reads all configs of a rocPRIM header, in any form."""

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from policygen.bindings.words import archs_file
from policygen.errors import SourceError
from policygen.headers.comments import SourceFile
from policygen.headers.specializations.families import (
    Declaration,
    find_declarations,
    template_parameters,
)
from policygen.headers.syntax import split_list, trim
from policygen.headers.text import Text, squeeze
from policygen.model.arch import UNKNOWN
from policygen.model.records import Span
from policygen.model.tuning import Entry, Family, TemplateParameter, TuningHeader
from policygen.opening import read_bytes
from policygen.rocprim.entries import (
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
from policygen.rocprim.pickers import ARCHS, GENERIC, GPUS, read_pickers, struct_fields

# Names of config templates; excludes defaults and wrappers.
PARAMS = "_config_params"
_CONFIG = re.compile(r"^(?!default_|wrapped_|wrap_).*(?:_config(?:_v\d+|_impl)?|Config)$")


def read_configs(source: SourceFile, header: str, beside: Mapping[str, bytes]) -> TuningHeader:
    """Reads a header's configs by name and architecture, and the structs that they use.

    `beside` are headers that declare the types of configs.
    """
    headers = [source.text.data, *beside.values()]
    templates, fields = ChainMap(*map(config_templates, headers)), struct_fields(headers)
    structs = read_structs(source, header, templates)
    pickers = read_pickers(source, header, fields)
    parameters = {
        name: template_parameters
        for name, template_parameters in sorted(templates.items())
        if _CONFIG.search(name) and all(parameter.name for parameter in template_parameters)
    }
    aggregates = {
        name: tuple((parameter.name, parameter.type) for parameter in template_parameters)
        for name, template_parameters in parameters.items()
    }
    if pickers:  # the structs that they return, and the enumeration of architectures
        returned = sorted(name for name in fields if name.endswith((PARAMS, ARCHS)))
        aggregates |= {name: fields[name] for name in returned if fields[name]}
    return TuningHeader(
        name=header,
        families=(*structs, *pickers),
        chains=(),
        format_off=source.format_off,
        aggregates=aggregates,
        needed={
            name: sum(parameter.default is None for parameter in template_parameters)
            for name, template_parameters in parameters.items()
        },
    )


CONFIG = re.compile(rb"\bstruct\s+(\w+_config(?:_\w+)?)\s*")
_FALLBACK = re.compile(r"\w+_config_(?:base|fallback)\w*")
_DEFAULT = re.compile(r"default_\w+_config")
# "using type = select_type<…>"
_TYPE = re.compile(rb"\busing\s+type\s*=\s*")
_ARCH_PARAMETER = ("unsigned int", "target_arch")


@dataclass(frozen=True, slots=True)
class ConfigCase:
    """A case of a config for some types: its facts, and the span of the config."""

    facts: tuple[str, ...]
    span: Span
    config: Span


# Configs as class templates: generated ones, those written by hand, and their fallbacks. Generated:
# `default_reduce_config<static_cast<unsigned int>(target_arch::gfx942), key_type,
# std::enable_if_t<…>> : reduce_config<256, 8>`. By hand: `reduce_config_90a<Value>`, which a table
# in `default_reduce_config` gives to architectures.


def read_structs(source: SourceFile, header: str, templates: Templates) -> tuple[Family, ...]:
    """Reads the configs of a header by name and architecture."""
    code = source.text.code
    declarations = list(find_declarations(code, names=CONFIG))
    primaries = {
        declaration.name: declaration
        for declaration in declarations
        if declaration.args_span is None
    }
    groups: dict[tuple[str, str], list[tuple[Declaration, tuple[ConfigCase, ...]]]] = {}
    tables: dict[str, Declaration] = {}
    """The template that selects a config written by hand: its parameters distinguish types."""
    for declaration in declarations:
        if _FALLBACK.fullmatch(declaration.name):
            groups.setdefault((declaration.name, UNKNOWN), []).append(
                (declaration, _cases(code, declaration))
            )
        elif _is_default(source, declaration, primaries.get(declaration.name)):
            for key, cases_of_declarations in _default_cases(source, declaration, declarations):
                group = groups.setdefault(key, [])
                group += [case for case in cases_of_declarations if case not in group]
                if key[0] != declaration.name:
                    tables.setdefault(key[0], declaration)
    return tuple(
        Family(
            name=name,
            arch=arch,
            header=header,
            namespace=namespace_at(code, cases_of_declarations[0][0].span.start),
            parameters=_parameters(source, tables.get(name) or primaries.get(name)),
            entries=tuple(
                _entry(source, declaration, case, templates)
                for declaration, cases in cases_of_declarations
                for case in cases
            ),
        )
        for (name, arch), cases_of_declarations in groups.items()
    )


_DeclarationCases = tuple[Declaration, tuple[ConfigCase, ...]]


def _is_default(source: SourceFile, declaration: Declaration, primary: Declaration | None) -> bool:
    """Returns whether a template's first parameter is an architecture.

    The template may be declared elsewhere.
    """
    if not _DEFAULT.fullmatch(declaration.name):
        return False
    if primary is None:
        return declaration.args_span is not None and _arch(source, declaration) is not None
    code = source.text.code
    parts = split_list(code, *primary.parameters_span)
    return bool(parts) and squeeze(code, parts[0]).startswith(_ARCH_PARAMETER)


def _arch(source: SourceFile, declaration: Declaration) -> str | None:
    code = source.text.code
    args = split_list(code, *declaration.args_span) if declaration.args_span else []
    return arch_of(squeeze(code, args[0])) if args else None


def _default_cases(
    source: SourceFile, declaration: Declaration, declarations: list[Declaration]
) -> Iterator[tuple[tuple[str, str], list[_DeclarationCases]]]:
    """Yields the cases of a default: of a specialization, of a fallback, or of a table's rows."""
    code = source.text.code
    if declaration.args_span is not None:
        arch = _arch(source, declaration)
        if arch is None:
            raise source.text.error(
                declaration.name_span.start,
                f"{declaration.name}: cannot determine its architecture",
                width=len(declaration.name),
                remedy="Expected: static_cast<unsigned int>(target_arch::gfxNNN) as the first"
                " argument.",
            )
        yield (declaration.name, arch), [(declaration, _cases(code, declaration))]
        return
    table = table_rows(source.text, declaration)
    if table is None:
        yield (declaration.name, UNKNOWN), [(declaration, _cases(code, declaration))]
        return
    for row in table:
        cases_of_row = [
            (table_entry, _cases(code, table_entry))
            for table_entry in declarations
            if table_entry.name == row.name
        ]
        if not cases_of_row:
            raise source.text.error(
                declaration.name_span.start,
                f"{declaration.name}: no {row.name} is declared here",
                width=len(declaration.name),
            )
        yield (row.name, row.arch), cases_of_row


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table: an architecture with its config."""

    arch: str
    name: str
    config: Span
    """`reduce_config_900<Value>`."""
    named: Span
    """The name within it."""


def table_rows(text: Text, declaration: Declaration) -> list[TableRow] | None:
    """Reads `select_arch<TargetArch, select_arch_case<900, reduce_config_900<Value>>, …>`."""
    selection = applied(text.code, declaration.inherits_span) if declaration.inherits_span else None
    if selection is None or selection.name != "select_arch":
        return None
    return [_row(text, arg) for arg in selection.args[1:]]


def _row(text: Text, span: Span) -> TableRow:
    """Reads an architecture and its config; the last row of a table is for all others."""
    code, config_span = text.code, span
    config = applied(code, config_span)
    arch: str | None = UNKNOWN
    if config is not None and config.name == "select_arch_case" and len(config.args) == 2:
        arch_span, config_span = config.args
        arch = arch_of(squeeze(code, arch_span))
        config = applied(code, config_span)
    if config is None or arch is None:
        raise text.error(span.start, "cannot determine which config belongs to which architecture")
    start = code.index(config.name.encode(), config_span.start)
    return TableRow(arch, config.name, config_span, Span(start, start + len(config.name)))


def _cases(code: bytes, declaration: Declaration) -> tuple[ConfigCase, ...]:
    """Returns the cases of a struct's base or `type`; a `select_type` has several."""
    is_generated = declaration.args_span and _DEFAULT.fullmatch(declaration.name)
    conditions = tuple(_conditions(code, declaration))
    span = declaration.inherits_span
    if declaration.body_span and (match := _TYPE.search(code, *declaration.body_span)):
        end = code.find(b";", match.end(), declaration.body_span.end)
        span = trim(code, match.end(), declaration.body_span.end if end < 0 else end)
    if span is None:
        return ()
    return tuple(
        ConfigCase(
            (*conditions, *case.facts),
            declaration.span if is_generated or case.span == span else case.span,
            case.config,
        )
        for case in _selected(code, span)
    )


def _conditions(code: bytes, declaration: Declaration) -> Iterator[str]:
    """Yields what a specialization asks for: arguments that are none of its own parameters.

    A generated one begins with the architecture, and may end with `std::enable_if_t<…>`.
    """
    if declaration.args_span is None:
        return
    args = split_list(code, *declaration.args_span)
    parameters = split_list(code, *declaration.parameters_span)
    own_parameters = {squeeze(code, parameter).split()[-1] for parameter in parameters}
    for arg in args[1:] if _DEFAULT.fullmatch(declaration.name) else args:
        if condition := enabling(code, arg):
            yield from facts(squeeze(code, condition))
        elif (argument := squeeze(code, arg)) not in own_parameters:
            yield argument


def _selected(code: bytes, span: Span) -> Iterator[ConfigCase]:
    selection = applied(code, span)
    if selection is None or selection.name != "select_type":
        yield ConfigCase((), span, span)
        return
    for arg in selection.args:
        case = applied(code, arg)
        if case is not None and case.name == "select_type_case" and len(case.args) == 2:
            yield ConfigCase(facts(squeeze(code, case.args[0])), arg, case.args[1])
        else:
            yield ConfigCase((), arg, arg)


def _entry(
    source: SourceFile, declaration: Declaration, case: ConfigCase, templates: Templates
) -> Entry:
    text = source.text
    config = applied(text.code, case.config)
    is_fallback = config is not None and _FALLBACK.fullmatch(config.name)
    own_place = case.span != declaration.span
    return config_entry(
        source,
        () if is_fallback else tuple(config_members(text, case.config, templates)),
        facts=case.facts,
        span=case.span,
        value=case.config,
        parameters=declaration.parameters_span,
        top=declaration.span.start,
        named=case.span.start if own_place else declaration.name_span.start,
        args=declaration.args_span,
        body=declaration.body_span,
    )


def _parameters(source: SourceFile, primary: Declaration | None) -> tuple[TemplateParameter, ...]:
    """Returns the parameters that distinguish types, without the architecture and `enable`."""
    if primary is None:
        return ()
    parameters = template_parameters(source.text, primary.parameters_span)
    return tuple(
        parameter
        for parameter in parameters
        if parameter.name != "enable" and parameter.name.lower() not in {"arch", "targetarch"}
    )


_TYPES_HEADER = "config_types.hpp"
_HELPER = Path("detail", "device_config_helper.hpp")
_CONFIGS = "device_*_config.hpp"
_DEEPEST = 2
"""Maximum directory levels between a config header and the header that declares its types."""


# The headers of rocPRIM that declare the types of configs.


def declaring(path: Path) -> dict[str, bytes]:
    """Returns the headers that declare a header's configs, by name; empty for other headers."""
    for folder in list(path.parents)[: _DEEPEST + 1]:
        if (folder / _TYPES_HEADER).is_file():
            return {name: data for name, data in _readable_headers(folder) if name != path.name}
    return {}


def tree_archs(root: Path) -> tuple[str, ...]:
    """Returns the architectures that a tree enumerates; all known ones for an older tree."""
    enumerated = _enumerated(root, ARCHS)
    return (*enumerated, UNKNOWN) if enumerated else archs_file().amd


def tree_gpus(root: Path) -> tuple[str, ...]:
    """Returns the GPUs that targets of a tree may name; none for a tree without such targets."""
    return tuple(name for name in _enumerated(root, GPUS) if name != GENERIC)


def _enumerated(root: Path, enumeration: str) -> list[str]:
    headers = [data for _, data in _readable_headers(root / "rocprim" / "device")]
    return [name for name, _ in struct_fields(headers).get(enumeration, ())]


def _readable_headers(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in (folder / _TYPES_HEADER, folder / _HELPER, *sorted(folder.glob(_CONFIGS))):
        try:
            yield path.name, read_bytes(path)
        except SourceError:
            continue  # reported when it is read itself
