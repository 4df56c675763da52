"""The files that headers include, in the order in which a compiler reads them."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from policygen.proof.outside.header import Directive, Header
from policygen.tree.files import read

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
