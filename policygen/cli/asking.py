"""What the commands that ask the compiler start from: a tree, its headers, a compiler."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from policygen.errors import InputError, SourceError
from policygen.report.sink import raw
from policygen.untrusted import visible

if TYPE_CHECKING:
    from policygen.model.cub import Cub, Dialect
    from policygen.model.marks import Marked
    from policygen.model.tuning import TuningHeader
    from policygen.proof.compile import Progress


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree, and what its tuning headers hold."""

    cub: "Cub"
    headers: "tuple[TuningHeader, ...]"
    paths: Mapping[str, Path]
    errors: tuple[SourceError, ...]

    def marked(self, dialect: "Dialect") -> "Mapping[str, Marked]":
        """Marked copies of the headers that hold entries in a dialect."""
        from policygen.bindings.load import bound
        from policygen.dialects.known import DIALECTS
        from policygen.proof.sites import marked_members
        from policygen.source.files import read_bytes

        def data(header: "TuningHeader") -> bytes:
            return read_bytes(self.paths[header.name])

        spelled, members = DIALECTS[dialect], marked_members(bound(self.cub.version), dialect)
        held = [header for header in self.headers if spelled.read(header)]
        return {header.name: spelled.mark(header, data(header), members) for header in held}

    def enabled(self) -> "Mapping[str, Marked]":
        """Copies of headers with guarded returns that are commented out, which are code there."""
        from policygen.dialects.selectors.enabled import enable_returns
        from policygen.source.files import read_bytes

        made = (enable_returns(h, read_bytes(self.paths[h.name])) for h in self.headers)
        return {copy.header.name: copy for copy in made if copy.entries}


def read_tree(cub: "Cub", names: Sequence[str] = ()) -> Tree:
    """Scans the headers of a tree: those that are named, by algorithm or by header, or all."""
    from policygen import tree
    from policygen.dialects.scan import scan_headers

    known = {path.name: path for path in tree.tuning_headers(cub)}
    wanted = _header_names(names, known, cub.version) or frozenset(known)
    paths = tuple(path for name, path in known.items() if name in wanted)
    scanned = scan_headers(paths)
    return Tree(cub, scanned.headers, {path.name: path for path in paths}, scanned.errors)


def _header_names(names: Sequence[str], known: Mapping[str, Path], version: str) -> frozenset[str]:
    """What is meant by a header's name, or by an algorithm's: that of a header, or of a binding."""
    from policygen.bindings.load import bound
    from policygen.source.select import algorithm

    bindings = {b.algorithm: {site.header for site in b.sites} for b in bound(version)}
    wanted: set[str] = set()
    for name in names:
        meant = {h for h in known if name in {h, h.removesuffix(".cuh"), algorithm(h)}}
        meant |= bindings.get(name, set()) & known.keys()
        if not meant:
            here = ", ".join(algorithm(header) for header in known)
            raise InputError(f"no tuning header is called {name!r}", f"Here are: {here}")
        wanted.update(meant)
    return frozenset(wanted)


def chosen_archs(texts: Sequence[str], headers: "Sequence[TuningHeader]") -> tuple[str, ...]:
    """The architectures that are asked for; all that the tree has tunings for by default."""
    from policygen.cli.options import parse_archs
    from policygen.model.arch import arch_number

    known = {family.arch for header in headers for family in header.families}
    known |= {
        family.arch
        for header in headers
        for family in header.selectors
        if any(entry.specific and entry.members for entry in family.entries)
    }
    archs = parse_archs(texts) or known
    return tuple(sorted(archs, key=arch_number))


def compile_progress(*, quiet: bool) -> "Progress | None":
    """A bar on a terminal, a line for each compile elsewhere."""

    def line(done: int, total: int, name: str) -> None:
        click.echo(f"[{done}/{total}] {visible(name)}: done", err=True)

    if quiet:
        return None
    if not sys.stderr.isatty():
        return line

    def bar(done: int, total: int, name: str) -> None:
        width = 24
        filled = width * done // total
        text = f"{'█' * filled}{'·' * (width - filled)} {done}/{total} {visible(name)}"
        # A line that wraps could not be written over.
        shown = text[: get_terminal_size().columns - 1]
        stream = raw(sys.stderr)
        stream.write(f"\r\x1b[K{shown if done < total else ''}")
        stream.flush()

    return bar
