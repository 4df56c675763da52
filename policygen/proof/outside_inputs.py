"""Finds where the headers of a tree depend on inputs that no proof can cover."""

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from policygen.bindings.words import Allowed, LibraryPart, outside
from policygen.cache import digest, keep, kept, written_by
from policygen.model.audits import Finding
from policygen.model.records import Span
from policygen.model.trees import Cub
from policygen.portable import nearby
from policygen.proof import lexemes
from policygen.proof.lexemes import Spliced
from policygen.proof.lint_subject import place
from policygen.trees.files import read
from policygen.trees.layout import own_folders
from policygen.trees.manifest import shipped

CONFIG = "cub/config.cuh"
"""Every CUB header includes it."""
# A file as the preprocessor sees it: directives, and the code between them.
CONDITIONS = frozenset({"if", "elif", "ifdef", "ifndef", "elifdef", "elifndef"})
DIRECTIVES = CONDITIONS | {"define", "undef", "else", "endif", "include", "error", "warning"}
DIRECTIVES |= {"pragma", ""}
LANGUAGE = frozenset({b"defined", b"true", b"false"})
# __has_include(<cuda_fp16.h>), _CCCL_HAS_INCLUDE("a.h")
_HAS = re.compile(rb"\w*HAS_INCLUDE(?:_NEXT)?(?:__)?\s*\(\s*[<\"]?([^>\")\s]*)", re.I)
_OURS = re.compile(rb"\b\w*policygen\w*", re.I)
FILE = "depends on a file that a user may or may not have"
_UNIVERSAL = re.compile(rb"\\[uUN]?[\w{}]*")


@dataclass(frozen=True, eq=False)
class Directive:
    """A directive and the text after its name."""

    name: str
    body: bytes
    """Without comments and literals."""
    start: int
    """Offset of the body in the source's text."""

    @cached_property
    def macro(self) -> bytes:
        """The macro that is defined, or tested by name."""
        word = WORD.search(self.body)
        return word[0] if word else b""


@dataclass(frozen=True, eq=False)
class Header:
    """A file, by its name below the include folders."""

    name: str
    path: str
    data: bytes

    @cached_property
    def source(self) -> Spliced:
        """The text with continued lines joined."""
        return Spliced(self.data)

    @cached_property
    def directives(self) -> tuple[Directive, ...]:
        """All directives, regardless of the conditions around them."""
        return tuple(
            Directive((match[1] or b"").decode(), match[2], match.start(2))
            for match in _DIRECTIVE.finditer(self.source.code)
        )

    @cached_property
    def body(self) -> bytes:
        """The code between the directives, at the same offsets."""
        return _DIRECTIVE.sub(lambda match: b" " * len(match[0]), self.source.code)

    def included(self, directive: Directive) -> tuple[str, bool] | None:
        """The file that `#include <a>` names, and whether it is quoted; None for a macro."""
        start = directive.start
        text = self.source.text[start : start + len(directive.body)].lstrip()
        closing = {b"<": b">", b'"': b'"'}.get(text[:1])
        if closing is None or closing not in text[1:]:
            return None
        name = text[1 : text.index(closing, 1)]
        return name.decode(errors="surrogateescape"), closing == b'"'


@dataclass(frozen=True, slots=True)
class Dependence:
    """A place in a header that depends on something outside."""

    header: Header
    span: Span
    """In the bytes of the file."""
    message: str


@dataclass(frozen=True)
class Folders:
    """Include folders."""

    paths: tuple[Path, ...]
    within: str = ""
    """Only files whose names begin with this are read."""
    known: dict[str, Header | None] = field(default_factory=dict)

    def target(self, header: Header, directive: Directive) -> Header | None:
        """The file in the tree that an `#include` leads to."""
        included = header.included(directive)
        if included is None:
            return None
        name, quoted = included
        beside = os.path.normpath(os.path.join(os.path.dirname(header.name), name))  # noqa: PTH118, PTH120
        neighbor = self.find(beside) if quoted else None
        return neighbor or self.find(os.path.normpath(name))

    def find(self, name: str) -> Header | None:
        """Finds a file of the tree by its name."""
        if name not in self.known:
            self.known[name] = self._read(name)
        return self.known[name]

    def _read(self, name: str) -> Header | None:
        if name.startswith((os.sep, os.pardir)) or not name.startswith(self.within):
            return None
        for folder in self.paths:
            path = folder / name
            if path.is_file():
                return Header(name, str(path), read(path, folder))
        return None


def find_dependences(names: Sequence[str], tree: Folders) -> tuple[Dependence, ...]:
    """Finds the outside dependences that tuning headers reach, sorted by file and position."""
    finder = _OutsideFinder(tree, whole=tree.find(CONFIG) is not None)
    dependences = [*map(finder.at, names), finder.in_files()]
    by_place = {(row.header.name, row.span): row for rows in dependences for row in rows}
    return tuple(dependence for _, dependence in sorted(by_place.items()))


@dataclass(frozen=True)
class _OutsideFinder:
    """Collects the outside dependences of a tree."""

    folders: Folders
    whole: bool
    """Whether the tree defines its own macros; a lone header does not."""
    tested: dict[Directive, tuple[tuple[bytes, Dependence], ...]] = field(default_factory=dict)
    """Macros that a condition tests and the data does not know, with the place."""
    steps: dict[Header, tuple[tuple[Directive, Header | None], ...]] = field(default_factory=dict)
    """The directives of a file that matter, with the file in the tree that each includes."""

    def at(self, name: str) -> list[Dependence]:
        """Follows a header's includes; a macro that is tested must have been defined earlier."""
        root = self.folders.find(name)
        defined: set[bytes] = set()
        unknown: list[Dependence] = []
        for header, directive in () if root is None else self._walk(root):
            if directive.name == "define":
                defined.add(directive.macro)
            elif directive.name in CONDITIONS:
                tests = self._tests(header, directive)
                unknown += [dependence for macro, dependence in tests if macro not in defined]
        return unknown

    def _walk(self, root: Header) -> Iterator[tuple[Header, Directive]]:
        """Yields the directives below a header in the compiler's order; each file is visited once.

        Directives that do not matter are left out.
        """
        seen = {root}
        # One iterator per open file.
        stack = [(root, iter(self._steps(root)))]
        while stack:
            header, directives = stack[-1]
            for directive, target in directives:
                yield header, directive
                if target is not None and target not in seen:
                    seen.add(target)
                    stack.append((target, iter(self._steps(target))))
                    break
            else:
                stack.pop()

    def _steps(self, header: Header) -> tuple[tuple[Directive, Header | None], ...]:
        if header not in self.steps:
            self.steps[header] = tuple(
                (
                    directive,
                    self.folders.target(header, directive) if directive.name == "include" else None,
                )
                for directive in header.directives
                if directive.name == "include" or self._matters(header, directive)
            )
        return self.steps[header]

    def _matters(self, header: Header, directive: Directive) -> bool:
        """Whether a condition tests an unknown macro, or a definition may make one known."""
        if directive.name == "define":
            return self.whole and _pattern(outside().own).fullmatch(directive.macro) is not None
        return directive.name in CONDITIONS and bool(self._tests(header, directive))

    def _tests(self, header: Header, directive: Directive) -> tuple[tuple[bytes, Dependence], ...]:
        if directive not in self.tested:
            self.tested[directive] = tuple(_unknown_tests(header, directive, whole=self.whole))
        return self.tested[directive]

    def in_files(self) -> Iterator[Dependence]:
        """Yields the dependences in all files that were reached."""
        headers = list(self.steps)
        directives = (directive for header in headers for directive in header.directives)
        defines = (directive for directive in directives if directive.name == "define")
        macros = tainted(defines, outside().words)
        for header in headers:
            yield from _forbidden_words(header)
            yield from _tainted_uses(header, macros)
            for directive in header.directives:
                if directive.name == "include":
                    yield from _outside_includes(header, directive, self.folders)


def _unknown_tests(
    header: Header, directive: Directive, *, whole: bool
) -> Iterator[tuple[bytes, Dependence]]:
    """Yields the macros that a condition tests and that the data does not know."""
    own_macros = () if whole else outside().own
    allowed = _pattern(
        (*_scope(header.name).conditions, *outside().known.get(header.name, ()), *own_macros)
    )
    text = directive.body
    if b"INCLUDE" in text.upper():
        word_allowed = _is_beneath(header) or allowed.fullmatch(b"__has_include")
        for match in _HAS.finditer(
            header.source.text, directive.start, directive.start + len(directive.body)
        ):
            if word_allowed and match[1].decode(errors="replace") not in outside().files:
                yield b"", _dependence(header, match.start(), match[0], FILE)
        text = _HAS.sub(lambda match: b" " * len(match[0]), text)
    for match in WORD.finditer(text):
        word = match[0]
        if word in LANGUAGE or word.decode() in outside().words or allowed.fullmatch(word):
            continue
        message = f"tests {word.decode()}, which is not defined by anything the header includes"
        yield word, _dependence(header, directive.start + match.start(), word, message)


def _outside_includes(
    header: Header, directive: Directive, folders: Folders
) -> Iterator[Dependence]:
    """Yields includes that a macro names, or that lead out of the tree."""
    included = header.included(directive)
    if included is None:
        word = WORD.search(directive.body)
        if word and word[0].decode() not in outside().words and not _is_beneath(header):
            start = directive.start + word.start()
            yield _dependence(header, start, word[0], "includes a file named by a macro")
    elif {"", os.pardir} & set(included[0].split("/")) and not folders.target(header, directive):
        name_start = header.source.text.index(included[0].encode(), directive.start)
        name = included[0].encode(errors="surrogateescape")
        yield _dependence(header, name_start, name, "includes a file that is not in the tree")


def _forbidden_words(header: Header) -> Iterator[Dependence]:
    """Yields the words, directives and names that make a header depend on something outside."""
    allowed = _pattern(outside().known.get(header.name, ()))
    beneath = _is_beneath(header)
    anywhere = header.name in outside().places.known
    code, body = header.source.code, header.body
    for match in _words().finditer(code):
        word = match[0].decode()
        in_directive = body[match.start() : match.end()] != match[0]
        permitted = in_directive and (beneath or allowed.fullmatch(match[0]))
        if word in outside().nowhere or not (permitted or anywhere):
            message = f"depends on {outside().words[word]}"
            yield _dependence(header, match.start(), match[0], message)
    for match in _OURS.finditer(code):
        yield _dependence(header, match.start(), match[0], "names policygen")
    for directive in header.directives:
        if directive.name not in DIRECTIVES:
            name, message = directive.name.encode(), f"has a directive #{directive.name}"
            yield _dependence(header, directive.start - len(name), name, message)
    for match in () if beneath else _UNIVERSAL.finditer(code):
        yield _dependence(header, match.start(), match[0], "has a universal character name")


def _tainted_uses(header: Header, macros: Mapping[bytes, bytes]) -> Iterator[Dependence]:
    """Yields uses of tainted macros in code or in conditions."""
    scope = _scope(header.name)
    if _is_beneath(header):
        return
    allowed = _pattern(scope.macros)
    parts = [(0, header.body)]
    conditions = (row for row in header.directives if row.name in CONDITIONS)
    parts += [(condition.start, condition.body) for condition in conditions]
    for start, text in parts:
        if macros.keys().isdisjoint(WORD.findall(text)):
            continue
        for match in WORD.finditer(text):
            reason = macros.get(match[0])
            pasted = reason == PASTE and scope is not outside().tunings
            if reason is not None and not pasted and not allowed.fullmatch(match[0]):
                word = reason.decode()
                effect = (
                    "pastes tokens, so it may depend on anything"
                    if reason == PASTE
                    else f"depends on {outside().words[word]} ({word})"
                )
                message = f"the macro {match[0].decode()} {effect}"
                yield _dependence(header, start + match.start(), match[0], message)


def _dependence(header: Header, position: int, word: bytes, message: str) -> Dependence:
    start, end = (header.source.offset(position + index) for index in (0, max(0, len(word) - 1)))
    return Dependence(header, Span(start, end + 1), message)


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


# "#  if defined(X)", "%:define Y"
_DIRECTIVE = re.compile(rb"^[ \t\f\v]*(?:#|%:)[ \t\f\v]*([A-Za-z_]\w*)?([^\n]*)", re.M)
# An identifier, but not the L of 201907L.
WORD = re.compile(rb"(?<![\w$'])[A-Za-z_]\w*")
_PASTE = re.compile(rb"##|%:%:")
PASTE = b"##"
"""Stands for any word that a macro may paste together."""


# Macros that depend on something outside, directly or through other macros.


def tainted(defines: Iterable[Directive], words: Iterable[str]) -> Mapping[bytes, bytes]:
    """Maps each tainted macro to its forbidden word, or to `##`; a word takes precedence."""
    reasons = {word.encode(): word.encode() for word in words}
    users: defaultdict[bytes, set[bytes]] = defaultdict(set)
    reason_by_macro: dict[bytes, bytes] = {}
    direct: list[bytes] = []
    pasted: list[bytes] = []
    for directive in defines:
        name = directive.macro
        body = directive.body[directive.body.find(name) + len(name) :]
        for word in set(WORD.findall(body)):
            users[word].add(name)
            if word in reasons:
                reason_by_macro.setdefault(name, reasons[word])
                direct.append(name)
        if _PASTE.search(body):
            pasted.append(name)
    _spread(direct, users, reason_by_macro)
    for name in pasted:
        reason_by_macro.setdefault(name, PASTE)
    _spread(pasted, users, reason_by_macro)
    return reason_by_macro


def _spread(
    names: Iterable[bytes], users: Mapping[bytes, set[bytes]], reason_by_macro: dict[bytes, bytes]
) -> None:
    """Propagates the reasons to all macros that use these."""
    todo = list(names)
    while todo:
        name = todo.pop()
        for user in users.get(name, ()):
            if user not in reason_by_macro:
                reason_by_macro[user] = reason_by_macro[name]
                todo.append(user)


KIND = "outside"
_CONTENTS = TypeAdapter(dict[str, str | None])


# Caches the headers that have no outside dependences, by the content of all that they include.


def cached_dependences(names: Sequence[str], folders: Sequence[Path]) -> tuple[Dependence, ...]:
    """Finds the outside dependences of headers; if there are none, that result is cached."""
    tree = _folders(names, folders)
    # The rules, and the headers.
    rules = written_by(sys.modules[__name__], lexemes), outside().model_dump_json()
    key = digest(*rules, *(f"{name} {_content(tree, name)}" for name in names))
    if (data := kept(KIND, key)) is not None and _is_unchanged(data, _folders(names, folders)):
        return ()
    dependences = find_dependences(names, tree)
    if not dependences:
        contents = {name: _content(tree, name) for name in sorted(tree.known)}
        with suppress(OSError):  # an unwritable cache only costs speed
            keep(KIND, key, _CONTENTS.dump_json(contents))
    return dependences


def _folders(names: Sequence[str], folders: Sequence[Path]) -> Folders:
    """Returns the tree that headers are in; for a library with dependencies, only its own files.

    HIP's headers, or all of `/usr/include`, may be next to them.
    """
    libraries = (library for library in shipped().libraries.values() if library.needs)
    prefixes = (f"{library.tree.folder}/" for library in libraries)
    shared = (prefix for prefix in prefixes if all(name.startswith(prefix) for name in names))
    return Folders(tuple(folders), within=next(shared, ""))


def _is_unchanged(data: bytes, tree: Folders) -> bool:
    """Whether every file that was looked up still has the same content, or is still missing."""
    try:
        contents = _CONTENTS.validate_json(data, strict=True)
    except ValidationError:  # the seal on a cache entry is not a secret
        return False
    return all(_content(tree, name) == content for name, content in contents.items())


def _content(tree: Folders, name: str) -> str | None:
    header = tree.find(name)
    return None if header is None else digest(header.data)


# Reports outside dependences as findings.


def unprovable(cub: Cub, headers: Sequence[Path]) -> list[Finding]:
    """Finds outside dependences of tuning headers and their includes."""
    folders = [folder.absolute() for folder in own_folders(cub)]
    names = []
    for path in map(Path.absolute, headers):
        inside = next((folder for folder in folders if path.is_relative_to(folder)), None)
        if inside is None:  # a header outside any tree
            inside = path.parent
            folders.append(inside)
        names.append(path.relative_to(inside).as_posix())
    return [_finding(dependence) for dependence in cached_dependences(names, folders)]


def _finding(dependence: Dependence) -> Finding:
    return Finding(
        rule="not-provable",
        severity="error",
        header=Path(dependence.header.name).name,
        family="",
        args=(),
        message=f"not provable: it {dependence.message}",
        path=nearby(Path(dependence.header.path)),
        **place(dependence.header.data, dependence.span)._asdict(),
    )
