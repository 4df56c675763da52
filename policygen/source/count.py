"""A second look at a header, by tree-sitter: what it sees and our readers did not is refused.

It has its own lexer and its own grammar, needs no names to be known, and goes on behind errors.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from policygen.model.base import Span
from policygen.source.text import Text

# "CUB_NAMESPACE_BEGIN", "_CCCL_HOST_DEVICE_API": words that no grammar knows; not "CUB_MAX("
_MACROS = re.compile(rb"\b_?(?:CUB|CCCL|THRUST)_[A-Z0-9_]+\b(?![ \t]*\()")
# "sm90_tuning<int>", "detail::scan::sm90_tuning"
_FAMILY = re.compile(rb"(?:(?:\w+\s*)?::\s*)*(sm\d{2,3}_\w+)")
_QUESTION = """
(template_declaration (struct_specifier name: (_) @name))
(template_declaration (class_specifier name: (_) @name))
(template_declaration (union_specifier name: (_) @name))
"return" @return
"""


@dataclass(frozen=True, slots=True)
class Counted:
    """What stands in a header; offsets into the file."""

    families: tuple[Span, ...]
    """The names of templates of families."""
    returns: tuple[int, ...]


@lru_cache(maxsize=1)
def look(data: bytes) -> Counted:
    """What tree-sitter finds in a header; both checks ask for the same."""
    from tree_sitter import QueryCursor

    parser, question = _parser()
    tree = parser.parse(_MACROS.sub(lambda match: b" " * len(match[0]), data))
    found = QueryCursor(question).captures(tree.root_node)
    returns = sorted(node.start_byte for node in found.get("return", []))
    return Counted(_families(data, found.get("name", [])), tuple(returns))


def _families(data: bytes, nodes: Iterable[Any]) -> tuple[Span, ...]:
    names = ((node.start_byte, data[node.start_byte : node.end_byte]) for node in nodes)
    found = ((at, match) for at, name in names if (match := _FAMILY.match(name)))
    return tuple(sorted(Span(at + match.start(1), at + match.end(1)) for at, match in found))


def check_families(text: Text, seen: Counted, names: Collection[int]) -> None:
    """Raises at a template of a family that was not read; `names` are where those that were are."""
    for span in seen.families:
        if span.start not in names:
            name = text.data[span.start : span.end].decode()
            raise text.error(span.start, f"{name}: cannot read this declaration", width=len(name))


def check_returns(text: Text, seen: Counted, bodies: Iterable[Span]) -> None:
    """Raises at a return outside of the bodies of all functions that were found."""
    spans = iter(sorted(bodies))
    body = next(spans, None)
    for at in seen.returns:
        while body is not None and body.end <= at:
            body = next(spans, None)
        if body is None or at < body.start:
            raise text.error(
                at,
                "a return of no function that can be read",
                width=len("return"),
                remedy="Expected: constexpr auto NAME(…) -> TYPE { … }",
            )


@cache
def _parser() -> tuple[Any, Any]:
    import tree_sitter
    import tree_sitter_cpp

    language = tree_sitter.Language(tree_sitter_cpp.language())
    return tree_sitter.Parser(language), tree_sitter.Query(language, _QUESTION)
