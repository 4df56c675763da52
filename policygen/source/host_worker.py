"""Compiles a unit for the host, by libclang, and tells which templates its questions lead to.

`python -m` with a request as JSON on standard input; the answer is JSON on standard output. A
question is a struct of the unit that inherits a template: the answer is where the specialization
stands that the compiler takes. An alias is answered with its type. Nothing is generated, nothing
is run.
"""

import json
import resource
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from policygen.source.brackets import closing_angle, split_list

MEMORY = 8 << 30
"""Bytes; a tree's own headers take a twentieth of it."""
MOST = 50
"""Errors that are told."""
Tree = list[Any]
"""A type: its name, and its arguments as such lists, or as they are spelled."""


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
    for scope in _scopes(ci, parsed.cursor, request["scopes"], request["unit"]):
        for child in scope.get_children():
            if child.kind == ci.CursorKind.STRUCT_DECL:
                rows[child.spelling] = _taken(ci, child)
            elif child.kind == ci.CursorKind.TYPE_ALIAS_DECL:
                spelled = child.underlying_typedef_type.get_canonical().spelling
                types[child.spelling] = taken_apart(spelled)
    errors = [one for one in parsed.diagnostics if one.severity >= ci.Diagnostic.Error]
    read = {str(one.include) for one in parsed.get_includes()} - set(request["files"])
    return {"rows": rows, "types": types, "errors": _places(errors), "read": sorted(read)}


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
    """Where the template stands that a struct inherits: file, offset and line of its name."""
    for child in struct.get_children():
        if child.kind == ci.CursorKind.CXX_BASE_SPECIFIER:
            declared = child.type.get_canonical().get_declaration()
            taken = ci.conf.lib.clang_getSpecializedCursorTemplate(declared)
            place = (taken or declared).location
            return None if place.file is None else [place.file.name, place.offset, place.line]
    return None


def _places(errors: list[Any]) -> list[list[Any]]:
    """Each with its file as it was opened: `#line` names no other."""
    return [
        [error.location.file and error.location.file.name, error.location.line, error.spelling]
        for error in errors[:MOST]
    ]


def taken_apart(spelling: str) -> Tree | str:
    """`rocprim::reduce_config<256, 8>` as its name and its arguments; else as it is spelled."""
    code = spelling.encode()
    opened = code.find(b"<")
    close = closing_angle(code, opened) if opened > 0 else None
    if close is None or close != len(code) - 1:
        return spelling
    name = code[:opened].decode().strip().rpartition("::")[2]
    return [name, *_arguments(code, opened + 1, close)]


def _arguments(code: bytes, start: int, end: int) -> Iterator[Tree | str]:
    for span in split_list(code, start, end):
        yield taken_apart(code[span.start : span.end].decode())


if __name__ == "__main__":
    main()
