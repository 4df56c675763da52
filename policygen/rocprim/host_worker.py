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

MEMORY = 8 << 30
"""Memory limit in bytes; a tree's own headers take a twentieth of it."""
MOST = 50
"""Limit of errors that are reported."""
FIELDS = "fields_"
"""Prefix of aliases whose members are reported instead of their type."""
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
    import clang.cindex as ci

    files = [(path, text.encode("latin-1")) for path, text in request["files"].items()]
    options = ci.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES
    parsed = ci.Index.create().parse(request["unit"], request["arguments"], files, options)
    rows: dict[str, Any] = {}
    types: dict[str, Any] = {}
    fields: dict[str, list[str]] = {}
    for scope in _scopes(ci, parsed.cursor, request["scopes"], request["unit"]):
        for child in scope.get_children():
            if child.kind == ci.CursorKind.STRUCT_DECL:
                rows[child.spelling] = _base_location(ci, child)
            elif child.kind == ci.CursorKind.TYPE_ALIAS_DECL and child.spelling.startswith(FIELDS):
                fields[child.spelling] = list(_fields(ci, child.underlying_typedef_type, ""))
            elif child.kind == ci.CursorKind.TYPE_ALIAS_DECL:
                types[child.spelling] = _Types(ci).apart(child.underlying_typedef_type)
    errors = [
        diagnostic
        for diagnostic in parsed.diagnostics
        if diagnostic.severity >= ci.Diagnostic.Error
    ]
    included = {str(diagnostic.include) for diagnostic in parsed.get_includes()} - set(
        request["files"]
    )
    return {
        "rows": rows,
        "types": types,
        "fields": fields,
        "errors": _error_rows(errors),
        "read": sorted(included),
    }


def _fields(ci: Any, struct: Any, prefix: str) -> Iterator[str]:
    """Yields the paths of a struct's innermost members; those of bases come first."""
    canonical = struct.get_canonical()
    for child in canonical.get_declaration().get_children():
        if child.kind == ci.CursorKind.CXX_BASE_SPECIFIER:
            yield from _fields(ci, child.type, prefix)
    for field in canonical.get_fields():
        path = f"{prefix}{field.spelling}"
        if field.type.get_canonical().kind == ci.TypeKind.RECORD:
            yield from _fields(ci, field.type, f"{path}.")
        else:
            yield path


def _scopes(ci: Any, cursor: Any, names: list[str], unit: str) -> Iterable[Any]:
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


def _base_location(ci: Any, struct: Any) -> list[Any] | None:
    """Returns file, offset and line of the template that a struct inherits.

    An instantiation has the location of its pattern, and a full specialization that of its own
    declaration.
    """
    for child in struct.get_children():
        if child.kind == ci.CursorKind.CXX_BASE_SPECIFIER:
            place = child.type.get_canonical().get_declaration().location
            return None if place.file is None else [place.file.name, place.offset, place.line]
    return None


def _error_rows(errors: list[Any]) -> list[list[Any]]:
    """Returns errors with their files as they were opened, ignoring `#line`."""
    return [
        [error.location.file and error.location.file.name, error.location.line, error.spelling]
        for error in errors[:MOST]
    ]


class _Types:
    """Splits types, including arguments that the spelling omits because they are defaults."""

    def __init__(self, ci: Any) -> None:
        self._ci = ci

    def apart(self, split_type: Any) -> Apart | str:
        """Returns a template as a list, its name first, then its arguments; else the spelling."""
        canonical = split_type.get_canonical()
        declaration = canonical.get_declaration()
        count = declaration.get_num_template_arguments()
        if count < 0:
            return str(canonical.spelling)
        template = self._ci.conf.lib.clang_getSpecializedCursorTemplate(declaration)
        parameters = self._parameters(template)
        arguments = (self._argument(declaration, place, parameters) for place in range(count))
        return [declaration.spelling, *arguments]

    def _parameters(self, template: Any) -> list[Any]:
        kinds = self._ci.CursorKind
        parameter_kinds = {
            kinds.TEMPLATE_TYPE_PARAMETER,
            kinds.TEMPLATE_NON_TYPE_PARAMETER,
            kinds.TEMPLATE_TEMPLATE_PARAMETER,
        }
        return [child for child in template.get_children() if child.kind in parameter_kinds]

    def _argument(self, declaration: Any, position: int, parameters: list[Any]) -> Any:
        try:
            kind = declaration.get_template_argument_kind(position)
        except ValueError:  # a pack, for which clang's Python bindings have no name
            return "<PACK>"
        if kind == self._ci.TemplateArgumentKind.TYPE:
            return self.apart(declaration.get_template_argument_type(position))
        if kind != self._ci.TemplateArgumentKind.INTEGRAL or position >= len(parameters):
            return f"<{kind.name}>"
        parameter_type = parameters[position].type.get_canonical()
        if parameter_type.kind in {
            self._ci.TypeKind.INT,
            self._ci.TypeKind.LONG,
            self._ci.TypeKind.LONGLONG,
        }:
            return declaration.get_template_argument_value(position)
        number = declaration.get_template_argument_unsigned_value(position)
        if parameter_type.kind == self._ci.TypeKind.BOOL:
            return bool(number)
        return (
            self._enumerator(parameter_type, number)
            if parameter_type.kind == self._ci.TypeKind.ENUM
            else number
        )

    def _enumerator(self, enumeration: Any, number: int) -> Any:
        """Returns the first enumerator with a value."""
        for child in enumeration.get_declaration().get_children():
            if child.kind == self._ci.CursorKind.ENUM_CONSTANT_DECL and child.enum_value == number:
                return child.spelling
        return number


if __name__ == "__main__":
    main()
