"""One file of a tree as a preprocessor sees it: directives, and what stands between them."""

import re
from dataclasses import dataclass
from functools import cached_property

from policygen.proof.lexemes import Spliced

# "#  if defined(X)", "%:define Y"
_DIRECTIVE = re.compile(rb"^[ \t\f\v]*(?:#|%:)[ \t\f\v]*([A-Za-z_]\w*)?([^\n]*)", re.M)
# A name, and not the L of 201907L.
WORD = re.compile(rb"(?<![\w$'])[A-Za-z_]\w*")
CONDITIONS = frozenset({"if", "elif", "ifdef", "ifndef", "elifdef", "elifndef"})


@dataclass(frozen=True, eq=False)
class Directive:
    """A directive and what follows its name."""

    name: str
    body: bytes
    """Without comments and literals."""
    start: int
    """Of the body, in the text of the source."""

    @cached_property
    def macro(self) -> bytes:
        """What is defined or tested by name."""
        found = WORD.search(self.body)
        return found[0] if found else b""


@dataclass(frozen=True)
class Header:
    """A file, by its name below the include folders."""

    name: str
    path: str
    data: bytes

    @cached_property
    def source(self) -> Spliced:
        """Its text with continued lines put together."""
        return Spliced(self.data)

    @cached_property
    def directives(self) -> tuple[Directive, ...]:
        """All of them, whatever conditions they stand under."""
        return tuple(
            Directive((match[1] or b"").decode(), match[2], match.start(2))
            for match in _DIRECTIVE.finditer(self.source.code)
        )

    @cached_property
    def body(self) -> bytes:
        """What stands between the directives, at the same positions."""
        return _DIRECTIVE.sub(lambda match: b" " * len(match[0]), self.source.code)

    def included(self, directive: Directive) -> tuple[str, bool] | None:
        """What `#include <a>` names, and whether in quotes; none where a macro does."""
        start = directive.start
        text = self.source.text[start : start + len(directive.body)].lstrip()
        closing = {b"<": b">", b'"': b'"'}.get(text[:1])
        if closing is None or closing not in text[1:]:
            return None
        name = text[1 : text.index(closing, 1)]
        return name.decode(errors="surrogateescape"), closing == b'"'
