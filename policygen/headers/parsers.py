"""Reads a header with libclang (templates, namespaces, values) and cross-checks with tree-sitter.

Only includes of neighboring tuning headers are followed, so the rest of CUB need not be readable.
clang recovers from errors about unknown names.
"""

import ctypes
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from policygen import rendering
from policygen.headers.text import Text, blank
from policygen.model.records import Span

# "#  include <cub/device/dispatch/tuning/common.cuh>"
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]*)[>"][^\n]*', re.MULTILINE)
# Directives that could make clang open a file or wait for one, and are irrelevant to tunings:
# "#pragma GCC dependency "x"", "#line 271 "/dev/zero"", "# 1 "x""
_OTHER_DIRECTIVE = re.compile(
    rb"^[ \t]*#[ \t]*(?:(?:pragma|line|ident|sccs)\b|\d)[^\n\\]*(?:\\(?:\r?\n|[^\n])?[^\n\\]*)*",
    re.MULTILINE,
)
# "__has_include(<x>)" evaluates to 0 because includes are not followed
_HAS_INCLUDE = re.compile(rb"\b__has_(?:include|include_next|embed)\s*\([^()\n]*\)")
_FAMILY = re.compile(r"sm\d{2,3}_\w+")
_ROOT = "/policygen"
_ARGUMENTS = (
    *("-x", "c++", "-std=c++17", "-nostdinc", "-nostdinc++", "-w", "-ferror-limit=0"),
    *("-fbracket-depth=512", f"-I{_ROOT}", "-include", f"{_ROOT}/prelude.h"),
)
_INTEGER_RESULT = 1  # CXEval_Int


@dataclass(slots=True)
class Facts:
    """The facts that clang reports; offsets into the file."""

    namespaces: list[tuple[Span, str]] = field(default_factory=list)
    templates: dict[int, str] = field(default_factory=dict)
    """Offset of each `smNN_*` template's name → the name."""
    aggregates: set[int] = field(default_factory=set)
    """Offset of the name of each `smNN_*` struct with fields, which only carries values."""
    constants: dict[int, int] = field(default_factory=dict)
    """Offset of a member's name → the value of its initializer."""
    unclosed: str | None = None
    """What is missing at the end of the file: a macro such as `CUB_NAMESPACE_END` hides a brace."""

    def namespace(self, offset: int) -> str:
        """Returns the namespaces around an offset, such as `cub::detail::scan`."""
        return "::".join(name for span, name in self.namespaces if span.start <= offset < span.end)


class NeighborHeaders:
    """The other headers of a folder, by include path."""

    def __init__(self, headers: Mapping[str, bytes]) -> None:
        self._headers = headers
        self._readable: dict[str, bytes] = {}

    @property
    def headers(self) -> Mapping[str, bytes]:
        """All of the headers."""
        return self._headers

    def reachable(self, data: bytes) -> dict[str, bytes]:
        """Returns the neighbors that a header includes, directly or transitively."""
        reachable: dict[str, bytes] = {}
        pending = self._included(data)
        while pending:
            name = pending.pop()
            if name not in reachable:
                reachable[name] = self._readable.setdefault(name, self.cut(self._headers[name]))
                pending += self._included(reachable[name])
        return dict(sorted(reachable.items()))

    def cut(self, data: bytes) -> bytes:
        """Blanks everything in a header that leads to files other than these."""
        outside = [
            Span(*match.span())
            for match in _INCLUDE.finditer(data)
            if _target(match) not in self._headers
        ]
        data = blank(data, outside)
        data = blank(data, [Span(*match.span()) for match in _OTHER_DIRECTIVE.finditer(data)])
        return _HAS_INCLUDE.sub(lambda match: b"0".ljust(len(match[0])), data)

    def _included(self, data: bytes) -> list[str]:
        return [
            name for match in _INCLUDE.finditer(data) if (name := _target(match)) in self._headers
        ]


def _target(include: re.Match[bytes]) -> str:
    return include[1].decode("latin-1")


def parse(text: Text, neighbours: NeighborHeaders, constants: Sequence[Span]) -> Facts:
    """Parses a header; `constants` are the entries whose values clang must compute."""
    import clang.cindex as ci

    files = [
        (f"{_ROOT}/{path}", data) for path, data in neighbours.reachable(text.uncommented).items()
    ]
    main = f"{_ROOT}/header.cuh"
    files += [(main, neighbours.cut(text.uncommented)), (f"{_ROOT}/prelude.h", _prelude())]
    options = ci.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES | ci.TranslationUnit.PARSE_INCOMPLETE
    try:
        unit = ci.Index.create().parse(main, list(_ARGUMENTS), files, options)
    except ci.TranslationUnitLoadError as error:
        raise text.error(0, f"libclang cannot parse this file: {error}") from error
    return _Walk(ci, main, len(text.data.rstrip()), constants).walk(unit)


@cache
def _prelude() -> bytes:
    return (rendering.folder("templates") / "scan" / "prelude.h").read_bytes()


class _Walk:
    """A pass over the declarations that skips function bodies and other files."""

    def __init__(self, ci: Any, main: str, end: int, constants: Sequence[Span]) -> None:
        self._ci = ci
        self._main = main
        self._end = end
        self._constants = constants
        kind = ci.CursorKind
        self._scopes = {kind.NAMESPACE, kind.LINKAGE_SPEC, kind.UNEXPOSED_DECL}
        self._records = {
            kind.CLASS_TEMPLATE,
            kind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
            kind.STRUCT_DECL,
            kind.CLASS_DECL,
        }
        self._plain = {kind.STRUCT_DECL, kind.CLASS_DECL}
        self._variable = kind.VAR_DECL
        self._field = kind.FIELD_DECL
        self._namespace = kind.NAMESPACE
        self._library = _typed_library(ci)
        self.facts = Facts()

    def walk(self, unit: Any) -> Facts:
        self._scope(unit.cursor)
        self.facts.unclosed = self._unclosed(unit)
        return self.facts

    def _unclosed(self, unit: Any) -> str | None:
        """Returns clang's last syntax error if the end of the file is incomplete.

        Other errors are ignored: an unknown name makes clang misread what follows.
        """
        library = self._library
        for index in reversed(range(library.clang_getNumDiagnostics(unit))):
            diagnostic = self._ci.Diagnostic(library.clang_getDiagnostic(unit, index))
            location = diagnostic.location
            if location.file is None or location.file.name != self._main:
                continue
            at_end = location.offset >= self._end
            return diagnostic.spelling if at_end and "expected '}'" in diagnostic.spelling else None
        return None

    def _scope(self, cursor: Any) -> None:
        pending = [cursor]
        while pending:
            pending += reversed(list(self._declarations(pending.pop())))

    def _declarations(self, cursor: Any) -> Iterator[Any]:
        """Records the declarations of a scope, and yields its nested scopes."""
        for child in cursor.get_children():
            kind = child.kind
            if kind in self._records:
                self._record(child)
            elif kind in self._scopes and self._expands_in_main_file(child):
                extent = child.extent
                if kind == self._namespace:
                    span = Span(extent.start.offset, extent.end.offset)
                    self.facts.namespaces.append((span, child.spelling or "(anonymous)"))
                yield child

    def _record(self, cursor: Any) -> None:
        name = cursor.spelling
        if not _FAMILY.fullmatch(name) or not self._in_main_file(cursor):
            return
        is_plain = cursor.kind in self._plain
        if is_plain and not self._library.clang_getSpecializedCursorTemplate(cursor):
            if any(child.kind == self._field for child in cursor.get_children()):
                self.facts.aggregates.add(cursor.location.offset)
            return
        offset = cursor.location.offset
        self.facts.templates[offset] = name
        if any(span.start <= offset < span.end for span in self._constants):
            for child in cursor.get_children():
                if child.kind == self._variable:
                    self._evaluate(child)

    def _evaluate(self, cursor: Any) -> None:
        if not any(_is_written(child) for child in cursor.get_children()):
            return  # clang drops an initializer with an unknown name, which would yield 0
        result = self._library.clang_Cursor_Evaluate(cursor)
        if not result:
            return
        if self._library.clang_EvalResult_getKind(result) == _INTEGER_RESULT:
            value = self._library.clang_EvalResult_getAsLongLong(result)
            self.facts.constants[cursor.location.offset] = int(value)
        self._library.clang_EvalResult_dispose(result)

    def _expands_in_main_file(self, cursor: Any) -> bool:
        """Tells whether a cursor expands here: a macro defined elsewhere opens CUB's namespace."""
        file = cursor.location.file
        return file is not None and file.name == self._main

    def _in_main_file(self, cursor: Any) -> bool:
        return bool(self._library.clang_Location_isFromMainFile(cursor.location))


def _is_written(cursor: Any) -> bool:
    extent = cursor.extent
    return bool(cursor.kind.is_expression() and extent.end.offset > extent.start.offset)


@cache
def _typed_library(ci: Any) -> Any:
    """Declares the signatures that clang.cindex leaves untyped."""
    library = ci.conf.lib
    library.clang_Cursor_Evaluate.argtypes = [ci.Cursor]
    library.clang_Cursor_Evaluate.restype = ctypes.c_void_p
    library.clang_EvalResult_getKind.argtypes = [ctypes.c_void_p]
    library.clang_EvalResult_getAsLongLong.argtypes = [ctypes.c_void_p]
    library.clang_EvalResult_getAsLongLong.restype = ctypes.c_longlong
    library.clang_EvalResult_dispose.argtypes = [ctypes.c_void_p]
    library.clang_EvalResult_dispose.restype = None
    library.clang_Location_isFromMainFile.argtypes = [ci.SourceLocation]
    return library


# "CUB_NAMESPACE_BEGIN", "_CCCL_HOST_DEVICE_API": tokens outside of the grammar; not "CUB_MAX("
_MACROS = re.compile(rb"\b_?(?:CUB|CCCL|THRUST)_[A-Z0-9_]+\b(?![ \t]*\()")
# "sm90_tuning<int>", "detail::scan::sm90_tuning"
_FAMILY_NAME = re.compile(rb"(?:(?:\w+\s*)?::\s*)*(sm\d{2,3}_\w+)")
_QUERY = """
(template_declaration (struct_specifier name: (_) @name))
(template_declaration (class_specifier name: (_) @name))
(template_declaration (union_specifier name: (_) @name))
"return" @return
"""


@dataclass(frozen=True, slots=True)
class Counted:
    """The contents of a header; offsets into the file."""

    families: tuple[Span, ...]
    """The names of family templates."""
    returns: tuple[int, ...]


# The cross-check by tree-sitter, which rejects anything that only it sees
#
# It has its own lexer and grammar, needs no known names, and continues after errors.


@lru_cache(maxsize=1)
def parse_with_tree_sitter(data: bytes) -> Counted:
    """Parses a header with tree-sitter; cached, as both checks need it."""
    from tree_sitter import QueryCursor

    parser, query = _parser()
    tree = parser.parse(_MACROS.sub(lambda match: b" " * len(match[0]), data))
    captures = QueryCursor(query).captures(tree.root_node)
    returns = sorted(node.start_byte for node in captures.get("return", []))
    return Counted(_families(data, captures.get("name", [])), tuple(returns))


def _families(data: bytes, nodes: Iterable[Any]) -> tuple[Span, ...]:
    names = ((node.start_byte, data[node.start_byte : node.end_byte]) for node in nodes)
    matches = ((start, match) for start, name in names if (match := _FAMILY_NAME.match(name)))
    return tuple(
        sorted(Span(start + match.start(1), start + match.end(1)) for start, match in matches)
    )


def check_families(text: Text, seen: Counted, names: Collection[int]) -> None:
    """Raises an error at a family template that was not read; `names` are the offsets that were."""
    for span in seen.families:
        if span.start not in names:
            name = text.data[span.start : span.end].decode()
            raise text.error(span.start, f"{name}: cannot read this declaration", width=len(name))


def check_returns(text: Text, seen: Counted, bodies: Iterable[Span]) -> None:
    """Raises an error at a return outside of all known function bodies."""
    spans = iter(sorted(bodies))
    body = next(spans, None)
    for offset in seen.returns:
        while body is not None and body.end <= offset:
            body = next(spans, None)
        if body is None or offset < body.start:
            raise text.error(
                offset,
                "a return of no function that can be read",
                width=len("return"),
                remedy="Expected: constexpr auto NAME(…) -> TYPE { … }",
            )


@cache
def _parser() -> tuple[Any, Any]:
    import tree_sitter
    import tree_sitter_cpp

    language = tree_sitter.Language(tree_sitter_cpp.language())
    return tree_sitter.Parser(language), tree_sitter.Query(language, _QUERY)
