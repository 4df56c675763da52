"""Compiles a unit for the host with libclang, and reports which templates its questions select.

`python -m` with a JSON request on standard input; the answer is JSON on standard output. A question
is a struct of the unit that inherits a template: the answer is the location of the specialization
that the compiler selects. An alias is answered with its type, including values that the compiler
computes as template arguments. Nothing is generated, nothing is run.
"""

import json
import resource
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import clang.cindex as ci

MEMORY = 8 << 30
"""Memory limit in bytes; a tree's own headers take a twentieth of it."""
MOST = 50
"""Limit of errors that are reported."""
FIELDS = "fields_"
"""Prefix of aliases whose members are reported instead of their type."""
PARAMETERS = {
    ci.CursorKind.TEMPLATE_TYPE_PARAMETER,
    ci.CursorKind.TEMPLATE_NON_TYPE_PARAMETER,
    ci.CursorKind.TEMPLATE_TEMPLATE_PARAMETER,
}
SIGNED = {ci.TypeKind.INT, ci.TypeKind.LONG, ci.TypeKind.LONGLONG}
Apart = list[Any]
"""A template's name and its arguments: nested lists, spelled types, and values."""


def main() -> None:
    """Answers one request."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    request = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(answered(request)))


def answered(request: dict[str, Any]) -> dict[str, Any]:
    """Answers a unit's questions, with its errors and the files that it read."""
    files = [(path, text.encode("latin-1")) for path, text in request["files"].items()]
    options = ci.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES
    parsed = ci.Index.create().parse(request["unit"], request["arguments"], files, options)
    rows: dict[str, Any] = {}
    types: dict[str, Any] = {}
    fields: dict[str, list[str]] = {}
    for scope in _scopes(parsed.cursor, request["scopes"], request["unit"]):
        for child in scope.get_children():
            if child.kind == ci.CursorKind.STRUCT_DECL:
                rows[child.spelling] = _base_location(child)
            elif child.kind == ci.CursorKind.TYPE_ALIAS_DECL and child.spelling.startswith(FIELDS):
                fields[child.spelling] = list(_fields(child.underlying_typedef_type, ""))
            elif child.kind == ci.CursorKind.TYPE_ALIAS_DECL:
                types[child.spelling] = apart(child.underlying_typedef_type)
    # Files as they were opened, ignoring `#line`.
    errors = [
        [error.location.file and error.location.file.name, error.location.line, error.spelling]
        for error in parsed.diagnostics
        if error.severity >= ci.Diagnostic.Error
    ]
    included = {str(inclusion.include) for inclusion in parsed.get_includes()}
    return {
        "rows": rows,
        "types": types,
        "fields": fields,
        "errors": errors[:MOST],
        "read": sorted(included - request["files"].keys()),
    }


def _fields(struct: Any, prefix: str) -> Iterator[str]:
    """Yields the paths of a struct's innermost members; those of bases come first."""
    canonical = struct.get_canonical()
    for child in canonical.get_declaration().get_children():
        if child.kind == ci.CursorKind.CXX_BASE_SPECIFIER:
            yield from _fields(child.type, prefix)
    for field in canonical.get_fields():
        path = f"{prefix}{field.spelling}"
        if field.type.get_canonical().kind == ci.TypeKind.RECORD:
            yield from _fields(field.type, f"{path}.")
        else:
            yield path


def _scopes(cursor: Any, names: list[str], unit: str) -> Iterable[Any]:
    """Finds the namespace of the questions from the outermost inwards, as the unit opens it."""
    scopes = [cursor]
    for name in names:
        scopes = [
            child
            for scope in scopes
            for child in scope.get_children()
            if child.kind == ci.CursorKind.NAMESPACE and child.spelling == name
        ]
    return [scope for scope in scopes if scope.location.file and scope.location.file.name == unit]


def _base_location(struct: Any) -> list[Any] | None:
    """Returns file, offset and line of the template that a struct inherits.

    An instantiation has the location of its pattern, and a full specialization that of its own
    declaration.
    """
    for child in struct.get_children():
        if child.kind == ci.CursorKind.CXX_BASE_SPECIFIER:
            place = child.type.get_canonical().get_declaration().location
            return None if place.file is None else [place.file.name, place.offset, place.line]
    return None


def apart(split_type: Any) -> Apart | str:
    """Splits a template into its name and its arguments; else returns the spelling.

    Includes arguments that the spelling omits because they are defaults.
    """
    canonical = split_type.get_canonical()
    declaration = canonical.get_declaration()
    count = declaration.get_num_template_arguments()
    if count < 0:
        return str(canonical.spelling)
    template = ci.conf.lib.clang_getSpecializedCursorTemplate(declaration)
    parameters = [child for child in template.get_children() if child.kind in PARAMETERS]
    arguments = (_argument(declaration, place, parameters) for place in range(count))
    return [declaration.spelling, *arguments]


def _argument(declaration: Any, position: int, parameters: list[Any]) -> Any:
    try:
        kind = declaration.get_template_argument_kind(position)
    except ValueError:  # a pack, for which clang's Python bindings have no name
        return "<PACK>"
    if kind == ci.TemplateArgumentKind.TYPE:
        return apart(declaration.get_template_argument_type(position))
    if kind != ci.TemplateArgumentKind.INTEGRAL or position >= len(parameters):
        return f"<{kind.name}>"
    parameter_type = parameters[position].type.get_canonical()
    if parameter_type.kind in SIGNED:
        return declaration.get_template_argument_value(position)
    number = declaration.get_template_argument_unsigned_value(position)
    if parameter_type.kind == ci.TypeKind.BOOL:
        return bool(number)
    is_enumeration = parameter_type.kind == ci.TypeKind.ENUM
    enumerators = (
        child.spelling
        for child in (parameter_type.get_declaration().get_children() if is_enumeration else ())
        if child.kind == ci.CursorKind.ENUM_CONSTANT_DECL and child.enum_value == number
    )
    return next(enumerators, number)


if __name__ == "__main__":
    main()
