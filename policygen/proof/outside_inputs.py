"""Finds where the headers of a tree ask for what no proof can know."""

import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from policygen.proof import lexemes
from policygen.proof.lexemes import Spliced
from policygen.proof.lint_subject import place
from policygen.trees.files import read
from policygen.trees.layout import own_folders
from policygen.trees.manifest import shipped

CONFIG = "cub/config.cuh"
"""What every header of CUB includes."""
# One file of a tree as a preprocessor sees it: directives, and what stands between them.

CONDITIONS = frozenset({"if", "elif", "ifdef", "ifndef", "elifdef", "elifndef"})
DIRECTIVES = CONDITIONS | {"define", "undef", "else", "endif", "include", "error", "warning"}
DIRECTIVES |= {"pragma", ""}
LANGUAGE = frozenset({b"defined", b"true", b"false"})
# __has_include(<cuda_fp16.h>), _CCCL_HAS_INCLUDE("a.h")
_HAS = re.compile(rb"\w*HAS_INCLUDE(?:_NEXT)?(?:__)?\s*\(\s*[<\"]?([^>\")\s]*)", re.I)
_OURS = re.compile(rb"\b\w*policygen\w*", re.I)
FILE = "asks for a file that a user may have or not"
_UNIVERSAL = re.compile(rb"\\[uUN]?[\w{}]*")


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


@dataclass(frozen=True, slots=True)
class Dependence:
    """A place, and what is asked there."""

    header: Header
    span: Span
    """In the bytes of the file."""
    message: str


# The files that headers include, in the order in which a compiler reads them.

Matters = Callable[[Header, Directive], bool]


@dataclass(frozen=True)
class Folders:
    """Include folders, and files that have other content than there."""

    paths: tuple[Path, ...]
    replaced: Mapping[str, bytes] = field(default_factory=dict)
    """By name below the folders."""
    within: str = ""
    """How the names of files begin that are looked at."""
    known: dict[str, Header | None] = field(default_factory=dict)
    targets: dict[str, tuple[tuple[Directive, Header | None], ...]] = field(default_factory=dict)
    """What the directives of a file include, if it is in the tree."""

    def steps(self, root: Header, matters: Matters) -> Iterator[tuple[Header, Directive]]:
        """The directives below a header in the order of the compiler; each file is read once.

        Those that do not matter are left out.
        """
        seen = {root.name}
        # An iterator for each file that is open.
        stack = [(root, iter(self._targets(root, matters)))]
        while stack:
            header, directives = stack[-1]
            for directive, target in directives:
                yield header, directive
                if target is not None and target.name not in seen:
                    seen.add(target.name)
                    stack.append((target, iter(self._targets(target, matters))))
                    break
            else:
                stack.pop()

    def read(self) -> Iterator[Header]:
        """All files that were reached."""
        for name in self.targets:
            if header := self.find(name):
                yield header

    def _targets(
        self, header: Header, matters: Matters
    ) -> tuple[tuple[Directive, Header | None], ...]:
        if header.name not in self.targets:
            self.targets[header.name] = tuple(
                (one, self.target(header, one) if one.name == "include" else None)
                for one in header.directives
                if one.name == "include" or matters(header, one)
            )
        return self.targets[header.name]

    def target(self, header: Header, directive: Directive) -> Header | None:
        """What an `#include` leads to, in the tree."""
        included = header.included(directive)
        if included is None:
            return None
        name, quoted = included
        beside = os.path.normpath(os.path.join(os.path.dirname(header.name), name))  # noqa: PTH118, PTH120
        found = self.find(beside) if quoted else None
        return found or self.find(os.path.normpath(name))

    def find(self, name: str) -> Header | None:
        """A file of the tree, by its name."""
        if name not in self.known:
            self.known[name] = self._read(name)
        return self.known[name]

    def _read(self, name: str) -> Header | None:
        if name.startswith((os.sep, os.pardir)) or not name.startswith(self.within):
            return None
        for folder in self.paths:
            path = folder / name
            if name in self.replaced:
                return Header(name, str(path), self.replaced[name])
            if path.is_file():
                return Header(name, str(path), read(path, folder))
        return None


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


# "#  if defined(X)", "%:define Y"
_DIRECTIVE = re.compile(rb"^[ \t\f\v]*(?:#|%:)[ \t\f\v]*([A-Za-z_]\w*)?([^\n]*)", re.M)
# A name, and not the L of 201907L.
WORD = re.compile(rb"(?<![\w$'])[A-Za-z_]\w*")
_PASTE = re.compile(rb"##|%:%:")
PASTE = b"##"
"""What stands for the words that a macro may put together."""


# Macros that ask for something outside, in themselves or by other macros.


def tainted(defines: Iterable[Directive], words: Iterable[str]) -> Mapping[bytes, bytes]:
    """Macro → the word that it comes to, or `##`; a word counts more than what is put together."""
    reasons = {word.encode(): word.encode() for word in words}
    users: defaultdict[bytes, set[bytes]] = defaultdict(set)
    found: dict[bytes, bytes] = {}
    asked: list[bytes] = []
    pasted: list[bytes] = []
    for directive in defines:
        name = directive.macro
        body = directive.body[directive.body.find(name) + len(name) :]
        for word in set(WORD.findall(body)):
            users[word].add(name)
            if word in reasons:
                found.setdefault(name, reasons[word])
                asked.append(name)
        if _PASTE.search(body):
            pasted.append(name)
    _spread(asked, users, found)
    for name in pasted:
        found.setdefault(name, PASTE)
    _spread(pasted, users, found)
    return found


def _spread(
    names: Iterable[bytes], users: Mapping[bytes, set[bytes]], found: dict[bytes, bytes]
) -> None:
    """To the macros that use them."""
    todo = list(names)
    while todo:
        name = todo.pop()
        for user in users.get(name, ()):
            if user not in found:
                found[user] = found[name]
                todo.append(user)


KIND = "outside"
_LOOKED = TypeAdapter(dict[str, str | None])


# Remembers headers that ask for nothing, by the content of all that they were found to include.


def asked(names: Sequence[str], folders: Sequence[Path]) -> tuple[Dependence, ...]:
    """Finds what headers ask for; where that was nothing, all files are compared alone."""
    tree = _folders(names, folders)
    key = _key(names, tree)
    if (data := kept(KIND, key)) is not None and _same(data, _folders(names, folders)):
        return ()
    found = asks(names, tree)
    if not found:
        looked = {name: _content(tree, name) for name in sorted(tree.known)}
        with suppress(OSError):  # a folder that cannot be written costs speed, nothing else
            keep(KIND, key, _LOOKED.dump_json(looked))
    return found


def _folders(names: Sequence[str], folders: Sequence[Path]) -> Folders:
    """The tree that headers are in: of a library that needs others' headers its own files alone.

    HIP's, or all of `/usr/include`, may stand beside them.
    """
    others = (one.tree.folder for one in shipped().libraries.values() if one.needs)
    found = (f"{one}/" for one in others if all(name.startswith(f"{one}/") for name in names))
    return Folders(tuple(folders), within=next(found, ""))


def _key(names: Sequence[str], tree: Folders) -> str:
    """Names the question: what is looked for, and in which headers."""
    rules = written_by(sys.modules[__name__], lexemes), outside().model_dump_json()
    return digest(*rules, *(f"{name} {_content(tree, name)}" for name in names))


def _same(data: bytes, tree: Folders) -> bool:
    """Whether each file that was looked for is there as it was, or missing as it was."""
    try:
        looked = _LOOKED.validate_json(data, strict=True)
    except ValidationError:  # what seals an entry is no secret
        return False
    return all(_content(tree, name) == content for name, content in looked.items())


def _content(tree: Folders, name: str) -> str | None:
    found = tree.find(name)
    return None if found is None else digest(found.data)


# Finds headers that ask a compile for what no proof can know.


def unprovable(cub: Cub, headers: Sequence[Path], named: Callable[[Path], str]) -> list[Finding]:
    """Finds where tuning headers, or what they include, ask for it; `named` shows a file."""
    folders = [folder.absolute() for folder in own_folders(cub)]
    names = []
    for path in map(Path.absolute, headers):
        inside = next((one for one in folders if path.is_relative_to(one)), None)
        if inside is None:  # a header that lies by itself
            inside = path.parent
            folders.append(inside)
        names.append(path.relative_to(inside).as_posix())
    return [_finding(asked, named) for asked in asked(names, folders)]


def _finding(asked: Dependence, named: Callable[[Path], str]) -> Finding:
    where = place(asked.header.data, asked.span)
    return Finding(
        rule="not-provable",
        severity="error",
        header=Path(asked.header.name).name,
        family="",
        args=(),
        line=where.line,
        column=where.column,
        message=f"not provable: it {asked.message}",
        path=named(Path(asked.header.path)),
        text=where.text,
        width=where.width,
    )
