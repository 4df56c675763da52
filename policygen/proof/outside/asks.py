"""Finds where the headers of a tree ask for what no proof can know."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from policygen.bindings.outside import Allowed, LibraryPart, outside
from policygen.model.base import Span
from policygen.proof.outside.header import CONDITIONS, WORD, Directive, Header
from policygen.proof.outside.taint import PASTE, tainted
from policygen.proof.outside.walk import Folders
from policygen.tree.manifest import shipped

CONFIG = "cub/config.cuh"
"""What every header of CUB includes."""
DIRECTIVES = CONDITIONS | {"define", "undef", "else", "endif", "include", "error", "warning"}
DIRECTIVES |= {"pragma", ""}
LANGUAGE = frozenset({b"defined", b"true", b"false"})
# __has_include(<cuda_fp16.h>), _CCCL_HAS_INCLUDE("a.h")
_HAS = re.compile(rb"\w*HAS_INCLUDE(?:_NEXT)?(?:__)?\s*\(\s*[<\"]?([^>\")\s]*)", re.I)
_OURS = re.compile(rb"\b\w*policygen\w*", re.I)
FILE = "asks for a file that a user may have or not"
_UNIVERSAL = re.compile(rb"\\[uUN]?[\w{}]*")


@dataclass(frozen=True, slots=True)
class Dependence:
    """A place, and what is asked there."""

    header: Header
    span: Span
    """In the bytes of the file."""
    message: str


def asks(names: Sequence[str], tree: Folders) -> tuple[Dependence, ...]:
    """Finds all places that tuning headers reach, by file and line."""
    looked = _Look(tree, whole=tree.find(CONFIG) is not None)
    for name in names:
        looked.at(name)
    found = {(one.header.name, one.span): one for one in looked.found()}
    return tuple(one for _, one in sorted(found.items()))


@dataclass(frozen=True)
class _Look:
    """What is seen of a tree."""

    folders: Folders
    whole: bool
    """Whether what the tree defines is there; a header by itself shows less."""
    tested: dict[Directive, tuple[tuple[bytes, Dependence], ...]] = field(default_factory=dict)
    """By macro: what a condition tests without that the data know it."""
    unknown: list[Dependence] = field(default_factory=list)

    def at(self, name: str) -> None:
        """Follows a header's includes; what is tested must be defined before."""
        root = self.folders.find(name)
        defined: set[bytes] = set()
        for header, one in () if root is None else self.folders.steps(root, self._matters):
            if one.name == "define":
                defined.add(one.macro)
            elif one.name in CONDITIONS:
                tests = self._tests(header, one)
                self.unknown.extend(asked for macro, asked in tests if macro not in defined)

    def _matters(self, header: Header, directive: Directive) -> bool:
        """Whether something is tested that is not known, or defined that would be."""
        if directive.name == "define":
            return self.whole and _pattern(outside().own).fullmatch(directive.macro) is not None
        return directive.name in CONDITIONS and bool(self._tests(header, directive))

    def _tests(self, header: Header, directive: Directive) -> tuple[tuple[bytes, Dependence], ...]:
        if directive not in self.tested:
            self.tested[directive] = tuple(_tested(header, directive, whole=self.whole))
        return self.tested[directive]

    def found(self) -> Iterator[Dependence]:
        """All of them."""
        yield from self.unknown
        macros = tainted(self._defines(), outside().words)
        for header in self.folders.read():
            yield from _said(header)
            yield from _used(header, macros)
            for directive in header.directives:
                if directive.name == "include":
                    yield from _included(header, directive, self.folders)

    def _defines(self) -> Iterator[Directive]:
        for header in self.folders.read():
            yield from (one for one in header.directives if one.name == "define")


def _tested(
    header: Header, directive: Directive, *, whole: bool
) -> Iterator[tuple[bytes, Dependence]]:
    """Macros that a condition tests, and that the data do not know."""
    own = () if whole else outside().own
    known = _pattern((*_scope(header.name).conditions, *outside().known.get(header.name, ()), *own))
    text = directive.body
    if b"INCLUDE" in text.upper():
        asked = _is_beneath(header) or known.fullmatch(b"__has_include")
        for match in _HAS.finditer(header.source.text, directive.start, _end(directive)):
            if asked and match[1].decode(errors="replace") not in outside().files:
                yield b"", _asked(header, match.start(), match[0], FILE)
        text = _HAS.sub(lambda match: b" " * len(match[0]), text)
    for match in WORD.finditer(text):
        word = match[0]
        if word in LANGUAGE or word.decode() in outside().words or known.fullmatch(word):
            continue
        message = f"tests {word.decode()}, which nothing that the header reads defines before"
        yield word, _asked(header, directive.start + match.start(), word, message)


def _included(header: Header, directive: Directive, folders: Folders) -> Iterator[Dependence]:
    """Includes that lead to what a macro names, or out of the tree."""
    included = header.included(directive)
    if included is None:
        word = WORD.search(directive.body)
        if word and word[0].decode() not in outside().words and not _is_beneath(header):
            start = directive.start + word.start()
            yield _asked(header, start, word[0], "includes what a macro names")
    elif {"", os.pardir} & set(included[0].split("/")) and not folders.target(header, directive):
        where = header.source.text.index(included[0].encode(), directive.start)
        name = included[0].encode(errors="surrogateescape")
        yield _asked(header, where, name, "includes a file that is not in the tree")


def _said(header: Header) -> Iterator[Dependence]:
    """Words that ask, where they stand."""
    known = _pattern(outside().known.get(header.name, ()))
    beneath = _is_beneath(header)
    anywhere = header.name in outside().places.known
    code, body = header.source.code, header.body
    for match in _words().finditer(code):
        word = match[0].decode()
        directive = body[match.start() : match.end()] != match[0]
        honest = directive and (beneath or known.fullmatch(match[0]))
        if word in outside().nowhere or not (honest or anywhere):
            yield _asked(header, match.start(), match[0], f"asks for {outside().words[word]}")
    for match in _OURS.finditer(code):
        yield _asked(header, match.start(), match[0], "names policygen")
    for one in header.directives:
        if one.name not in DIRECTIVES:
            name = one.name.encode()
            yield _asked(header, one.start - len(name), name, f"has a directive #{one.name}")
    for match in () if beneath else _UNIVERSAL.finditer(code):
        yield _asked(header, match.start(), match[0], "has a universal character name")


def _used(header: Header, macros: Mapping[bytes, bytes]) -> Iterator[Dependence]:
    """Macros that ask, where they are used in code or in a condition."""
    scope = _scope(header.name)
    if _is_beneath(header):
        return
    known = _pattern(scope.macros)
    parts = [(0, header.body)]
    parts += [(one.start, one.body) for one in header.directives if one.name in CONDITIONS]
    for start, text in parts:
        if macros.keys().isdisjoint(WORD.findall(text)):
            continue
        for match in WORD.finditer(text):
            reason = macros.get(match[0])
            pasted = reason == PASTE and scope is not outside().tunings
            if reason is not None and not pasted and not known.fullmatch(match[0]):
                yield _asked(header, start + match.start(), match[0], _macro(match[0], reason))


def _macro(name: bytes, reason: bytes) -> str:
    if reason == PASTE:
        return f"the macro {name.decode()} puts words together, which may ask for anything"
    word = reason.decode()
    return f"the macro {name.decode()} asks for {outside().words[word]} ({word})"


def _asked(header: Header, position: int, word: bytes, message: str) -> Dependence:
    start, last = (header.source.offset(position + i) for i in (0, max(0, len(word) - 1)))
    return Dependence(header, Span(start, last + 1), message)


def _end(directive: Directive) -> int:
    return directive.start + len(directive.body)


def _scope(name: str) -> Allowed:
    for part in outside().parts:
        if name.startswith(part.prefix):
            return part
    if name.startswith(f"{shipped().tree.tunings}/") or "/" not in name:
        return outside().tunings
    return outside().beneath if name.startswith(("cuda/", "thrust/", "nv/")) else outside().cub


def _is_beneath(header: Header) -> bool:
    scope = _scope(header.name)
    return scope.beneath if isinstance(scope, LibraryPart) else scope is outside().beneath


@cache
def _words() -> re.Pattern[bytes]:
    return re.compile(rb"\b(?:" + "|".join(outside().words).encode() + rb")\b")


@cache
def _pattern(names: tuple[str, ...]) -> re.Pattern[bytes]:
    return re.compile("|".join(f"(?:{name})" for name in names).encode() or rb"(?!)")
