"""Compiles a unit for the host, by libclang, and tells which templates its questions lead to.

`python -m` with a request as JSON on standard input; the answer is JSON on standard output. A
question is a struct of the unit that inherits a template: the answer is where the specialization
stands that the compiler takes. An alias is answered with its type; with values that the compiler
computes, as arguments of a template. Nothing is generated, nothing is run.
"""

import json
import resource
import sys
from collections.abc import Iterable, Iterator
from typing import Any

MEMORY = 8 << 30
"""Bytes; a tree's own headers take a twentieth of it."""
MOST = 50
"""Errors that are told."""
FIELDS = "fields_"
"""What an alias begins with whose members are told, in place of its type."""
Apart = list[Any]
"""A template's name, and its arguments: such lists, types as they are spelled, and values."""


def main() -> None:
    """Answers one request."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    request = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(answered(request)))


def answered(request: dict[str, Any]) -> dict[str, Any]:
    """What is told of a unit: of its questions, what is wrong with it, and which files it read."""
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
                rows[child.spelling] = _taken(ci, child)
            elif child.kind == ci.CursorKind.TYPE_ALIAS_DECL and child.spelling.startswith(FIELDS):
                fields[child.spelling] = list(_fields(ci, child.underlying_typedef_type, ""))
            elif child.kind == ci.CursorKind.TYPE_ALIAS_DECL:
                types[child.spelling] = _Types(ci).apart(child.underlying_typedef_type)
    errors = [one for one in parsed.diagnostics if one.severity >= ci.Diagnostic.Error]
    read = {str(one.include) for one in parsed.get_includes()} - set(request["files"])
    return {
        "rows": rows,
        "types": types,
        "fields": fields,
        "errors": _places(errors),
        "read": sorted(read),
    }


def _fields(ci: Any, of: Any, within: str) -> Iterator[str]:
    """The members of a struct that hold no others, by their paths; those of bases come first."""
    canonical = of.get_canonical()
    for child in canonical.get_declaration().get_children():
        if child.kind == ci.CursorKind.CXX_BASE_SPECIFIER:
            yield from _fields(ci, child.type, within)
    for field in canonical.get_fields():
        path = f"{within}{field.spelling}"
        if field.type.get_canonical().kind == ci.TypeKind.RECORD:
            yield from _fields(ci, field.type, f"{path}.")
        else:
            yield path


def _scopes(ci: Any, cursor: Any, names: list[str], unit: str) -> Iterable[Any]:
    """The namespace of the questions, found from the outermost inwards, as the unit opens it."""
    found = [cursor]
    for name in names:
        found = [
            child
            for scope in found
            for child in scope.get_children()
            if child.kind == ci.CursorKind.NAMESPACE and child.spelling == name
        ]
    return [one for one in found if one.location.file and one.location.file.name == unit]


def _taken(ci: Any, struct: Any) -> list[Any] | None:
    """Where the template stands that a struct inherits: file, offset and line of its name.

    What is instantiated stands where its pattern does, and what is specialized for all of its
    parameters where it is written.
    """
    for child in struct.get_children():
        if child.kind == ci.CursorKind.CXX_BASE_SPECIFIER:
            place = child.type.get_canonical().get_declaration().location
            return None if place.file is None else [place.file.name, place.offset, place.line]
    return None


def _places(errors: list[Any]) -> list[list[Any]]:
    """Each with its file as it was opened: `#line` names no other."""
    return [
        [error.location.file and error.location.file.name, error.location.line, error.spelling]
        for error in errors[:MOST]
    ]


class _Types:
    """Takes types apart: also the arguments that a spelling leaves out, as they are defaults."""

    def __init__(self, ci: Any) -> None:
        self._ci = ci

    def apart(self, of: Any) -> Apart | str:
        """A template with its arguments as a list, its name first; else as it is spelled."""
        canonical = of.get_canonical()
        declared = canonical.get_declaration()
        count = declared.get_num_template_arguments()
        if count < 0:
            return str(canonical.spelling)
        template = self._ci.conf.lib.clang_getSpecializedCursorTemplate(declared)
        parameters = self._parameters(template)
        arguments = (self._argument(declared, place, parameters) for place in range(count))
        return [declared.spelling, *arguments]

    def _parameters(self, template: Any) -> list[Any]:
        kinds = self._ci.CursorKind
        listed = {
            kinds.TEMPLATE_TYPE_PARAMETER,
            kinds.TEMPLATE_NON_TYPE_PARAMETER,
            kinds.TEMPLATE_TEMPLATE_PARAMETER,
        }
        return [child for child in template.get_children() if child.kind in listed]

    def _argument(self, declared: Any, place: int, parameters: list[Any]) -> Any:
        try:
            kind = declared.get_template_argument_kind(place)
        except ValueError:  # a pack, which clang's bindings for Python have no name for
            return "<PACK>"
        if kind == self._ci.TemplateArgumentKind.TYPE:
            return self.apart(declared.get_template_argument_type(place))
        if kind != self._ci.TemplateArgumentKind.INTEGRAL or place >= len(parameters):
            return f"<{kind.name}>"
        of = parameters[place].type.get_canonical()
        if of.kind in {self._ci.TypeKind.INT, self._ci.TypeKind.LONG, self._ci.TypeKind.LONGLONG}:
            return declared.get_template_argument_value(place)
        number = declared.get_template_argument_unsigned_value(place)
        if of.kind == self._ci.TypeKind.BOOL:
            return bool(number)
        return self._enumerator(of, number) if of.kind == self._ci.TypeKind.ENUM else number

    def _enumerator(self, of: Any, number: int) -> Any:
        """The first name of a value: others are names of the same."""
        for child in of.get_declaration().get_children():
            if child.kind == self._ci.CursorKind.ENUM_CONSTANT_DECL and child.enum_value == number:
                return child.spelling
        return number


if __name__ == "__main__":
    main()
