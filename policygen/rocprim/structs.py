"""Reads all configs of a rocPRIM header, in any form."""

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
# Names of config templates; excludes defaults and wrappers.
PARAMS = "_config_params"
_CONFIG = re.compile(r"^(?!default_|wrapped_|wrap_).*(?:_config(?:_v\d+|_impl)?|Config)$")


def holds_configs(data: bytes) -> bool:
    """Returns whether a header may contain a config."""
    return _WORTH_READING.search(data) is not None


Aggregates = dict[str, tuple[tuple[str, str], ...]]
"""The parameters of templates and the fields of structs, each with its type."""


def read_configs(
    source: SourceFile, header: str, beside: Mapping[str, bytes]
) -> tuple[tuple[Family, ...], Aggregates, dict[str, int]]:
    """Reads configs by name and architecture, the structs they use, and their required parameters.

    `beside` are headers that declare the types of configs.
    """
    headers = [source.text.data, *beside.values()]
    templates = config_templates(headers)
    structs = read_structs(source, header, templates)
    parameters = {
        name: template_parameters
        for name, template_parameters in sorted(templates.items())
        if _CONFIG.search(name) and all(parameter.name for parameter in template_parameters)
    }
    fields = struct_fields(headers)
    pickers = read_pickers(source, header, fields)
    aggregates: Aggregates = {
        name: tuple((parameter.name, parameter.type) for parameter in template_parameters)
        for name, template_parameters in parameters.items()
    }
    if pickers:
        aggregates |= _picker_structs(fields)
    needed = {
        name: sum(parameter.default is None for parameter in template_parameters)
        for name, template_parameters in parameters.items()
    }
    return (*structs, *pickers), aggregates, needed


def _picker_structs(fields: Fields) -> Aggregates:
    """Returns the structs that pickers return, nested ones, and the architecture enumeration."""
    picker_structs = (
        (name, struct_members)
        for name, struct_members in sorted(fields.items())
        if name.endswith((PARAMS, ARCHS))
    )
    return {name: struct_members for name, struct_members in picker_structs if struct_members}


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
    parts = list_parts(source.text.code, primary.parameters_span)
    first_parameter = squeeze(source.text.code[parts[0].start : parts[0].end]) if parts else ""
    return first_parameter.startswith(_ARCH_PARAMETER)


def _arch(source: SourceFile, declaration: Declaration) -> str | None:
    """Returns the architecture of a specialization, or None."""
    args = list_parts(source.text.code, declaration.args_span) if declaration.args_span else []
    return arch_of(squeeze(source.text.code[args[0].start : args[0].end])) if args else None


def _default_cases(
    source: SourceFile, declaration: Declaration, declarations: list[Declaration]
) -> Iterator[tuple[tuple[str, str], list[_DeclarationCases]]]:
    """Yields the cases of a default: of a specialization, of a fallback, or of a table's rows."""
    code = source.text.code
    if declaration.args_span is not None:
        args = list_parts(code, declaration.args_span)
        arch = _arch(source, declaration)
        if arch is None:
            raise source.text.error(
                declaration.name_span.start,
                f"{declaration.name}: cannot tell for which architecture this is",
                width=len(declaration.name),
                remedy="Expected: static_cast<unsigned int>(target_arch::gfxNNN) as the first"
                " argument.",
            )
        yield (declaration.name, arch), [(declaration, _specialized(code, declaration, args[1:]))]
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
        arch = arch_of(squeeze(code[arch_span.start : arch_span.end]))
        config = applied(code, config_span)
    if config is None or arch is None:
        raise text.error(span.start, "cannot tell which config this is for which architecture")
    start = code.index(config.name.encode(), config_span.start)
    return TableRow(arch, config.name, config_span, Span(start, start + len(config.name)))


def _own_parameters(code: bytes, declaration: Declaration) -> set[str]:
    """Returns the names of a template's own parameters."""
    return {
        squeeze(code[parameter.start : parameter.end]).split()[-1]
        for parameter in list_parts(code, declaration.parameters_span)
    }


def _specialized(code: bytes, declaration: Declaration, args: list[Span]) -> tuple[ConfigCase, ...]:
    """Returns the case of a generated config, with the conditions from its arguments."""
    own_parameters = _own_parameters(code, declaration)
    conditions: list[str] = []
    for arg in args:
        condition = enabling(code, arg)
        argument = squeeze(code[arg.start : arg.end])
        if condition is not None:
            conditions += facts(code, condition)
        elif argument not in own_parameters:
            conditions.append(argument)
    return tuple(
        ConfigCase((*conditions, *case.facts), declaration.span, case.config)
        for case in _cases(code, declaration)
    )


def _cases(code: bytes, declaration: Declaration) -> tuple[ConfigCase, ...]:
    """Returns the cases of a struct's base or `type`; a `select_type` has several."""
    conditions = _explicit_arguments(code, declaration)
    span = declaration.inherits_span
    if declaration.body_span and (match := _TYPE.search(code, *declaration.body_span)):
        end = code.find(b";", match.end(), declaration.body_span.end)
        span = trim(code, match.end(), declaration.body_span.end if end < 0 else end)
    if span is None:
        return ()
    return tuple(
        ConfigCase(
            (*conditions, *case.facts),
            case.span if case.span != span else declaration.span,
            case.config,
        )
        for case in _selected(code, span)
    )


def _explicit_arguments(code: bytes, declaration: Declaration) -> tuple[str, ...]:
    """Returns the arguments of a handwritten specialization that are not its own parameters."""
    if declaration.args_span is None or _DEFAULT.fullmatch(declaration.name):
        return ()
    own_parameters = _own_parameters(code, declaration)
    args = (
        squeeze(code[span.start : span.end]) for span in list_parts(code, declaration.args_span)
    )
    return tuple(arg for arg in args if arg not in own_parameters)


def _selected(code: bytes, span: Span) -> Iterator[ConfigCase]:
    selection = applied(code, span)
    if selection is None or selection.name != "select_type":
        yield ConfigCase((), span, span)
        return
    for arg in selection.args:
        case = applied(code, arg)
        if case is not None and case.name == "select_type_case" and len(case.args) == 2:
            yield ConfigCase(facts(code, case.args[0]), arg, case.args[1])
        else:
            yield ConfigCase((), arg, arg)


def _entry(
    source: SourceFile, declaration: Declaration, case: ConfigCase, templates: Templates
) -> Entry:
    text = source.text
    config = applied(text.code, case.config)
    is_fallback = config is not None and _FALLBACK.fullmatch(config.name)
    found_config = FoundConfig(
        facts=case.facts,
        span=case.span,
        value=case.config,
        parameters=declaration.parameters_span,
        top=declaration.span.start,
        named=case.span.start if case.span != declaration.span else declaration.name_span.start,
        args=declaration.args_span,
        body=declaration.body_span,
    )
    return config_entry(
        source, found_config, () if is_fallback else config_members(text, case.config, templates)
    )


def _parameters(source: SourceFile, primary: Declaration | None) -> tuple[TemplateParameter, ...]:
    """Returns the parameters that distinguish types, without the architecture and `enable`."""
    if primary is None:
        return ()
    parameters = template_parameters(source.text.data, source.text.code, primary.parameters_span)
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


def enumerated_archs(root: Path) -> tuple[str, ...]:
    """Returns the architectures that a tree enumerates; older trees enumerate none."""
    headers = [data for _, data in _readable_headers(root / "rocprim" / "device")]
    return tuple(name for name, _ in struct_fields(headers).get(ARCHS, ()))


def _readable_headers(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in (folder / _TYPES_HEADER, folder / _HELPER, *sorted(folder.glob(_CONFIGS))):
        try:
            yield path.name, read_bytes(path)
        except SourceError:
            continue  # reported when it is read itself
