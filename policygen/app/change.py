"""The headers that a change concerns, as they are read before and after it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from policygen import tree
from policygen.app.base import Base, find_base, no_base
from policygen.app.reading import ReadTree, read_tree
from policygen.app.session import Session
from policygen.bindings.words import words
from policygen.dialects.scan import read_changed, scan_headers
from policygen.errors import InputError, SourceError
from policygen.model.cub import Cub
from policygen.model.lint import Finding
from policygen.model.review import HeaderDiff
from policygen.model.tuning import Scan
from policygen.paths import nearby
from policygen.proof.compilers import IN_PLACE, compiler_of
from policygen.proof.intervals import AskedArchs, asked_archs
from policygen.proof.lint.place import HeaderSource
from policygen.proof.lint.run import lint
from policygen.proof.overlay import overlay
from policygen.proof.sites import devices
from policygen.source.files import read_bytes
from policygen.textdiff import unified
from policygen.tree.manifest import shipped


@dataclass(frozen=True, slots=True)
class TreeChange:
    """The headers that differ, on both sides."""

    base: Base
    before: ReadTree
    after: ReadTree
    contents: Mapping[str, tuple[bytes, bytes]]
    """Before and after, by the header's name."""
    remarks: tuple[str, ...]
    unread: tuple[SourceError, ...] = ()
    """Of either side: which entries such a header has is not known."""

    @property
    def archs(self) -> AskedArchs:
        """Where values can change; other architectures have what came before."""
        headers = (*self.before.headers, *self.after.headers)
        found = {policy.arch for h in headers for chain in h.chains for policy in chain.policies}
        found |= {family.arch for header in headers for family in header.families}
        found |= devices(headers)
        contents = [data for sides in self.contents.values() for data in sides]
        selects = words().selectors.name.encode()
        if found and not any(selects in data for data in contents):
            return AskedArchs(frozenset(found))
        return asked_archs(contents, (*found, *compiler_of(self.after.cub).archs))

    def findings(self) -> tuple[Finding, ...]:
        """What lint says of the headers as they are now."""
        headers = self.after.headers
        scan = Scan(
            cub=self.after.cub,
            families=tuple(f for header in headers for f in (*header.families, *header.selectors)),
            chains=tuple(chain for header in headers for chain in header.chains),
        )
        paths = self.after.paths
        sources = {n: HeaderSource(nearby(paths[n]), new) for n, (_, new) in self.contents.items()}
        return lint(scan, sources).findings

    def diffs(self) -> tuple[HeaderDiff, ...]:
        """What changes in each file."""
        root = Path(self.after.cub.root)
        # In a workflow the current folder is the repository's; annotations name files from there.
        here = Path.cwd()
        paths = {
            name: (path if path.is_relative_to(here) else path.relative_to(root))
            for name, path in self.after.paths.items()
        }
        return tuple(
            HeaderDiff(
                path=nearby(paths[name]),
                # JSON holds no bytes that are no text.
                diff=unified(nearby(paths[name]), old, new).encode("utf-8", "replace").decode(),
            )
            for name, (old, new) in self.contents.items()
        )


def find_change(session: Session, text: str | None) -> TreeChange:
    """What differs between the tree and what it is compared with."""
    cub, base = session.cub, find_base(session, text)
    if base is None:
        raise no_base(session.store)
    if base.cub is None:
        raise InputError(f"{base.label}: they hold no headers", "Name a tree: --base REVISION")
    now = {path.name: path for path in tree.tuning_headers(cub)}
    then = {path.name: path for path in tree.tuning_headers(base.cub)}
    contents = {}
    for name in sorted(now.keys() & then.keys()):
        old = base.replaced[name] if name in base.replaced else read_bytes(then[name])
        new = read_bytes(now[name])
        if old != new:
            contents[name] = (old, new)
    remarks = [f"{name} is in one of the trees only" for name in sorted(now.keys() ^ then.keys())]
    if base.cub.version != cub.version:
        remarks.append(f"before it is {base.cub.title}, and after {cub.title}")
    names = sorted(contents)
    after = read_tree(cub, names) if names else ReadTree(cub, (), {}, ())
    before = read_before(base, names)
    unread = (*before.errors, *after.errors)
    lost = {Path(error.path).name for error in unread}
    before, after = (
        replace(side, headers=tuple(one for one in side.headers if one.name not in lost))
        for side in (before, after)
    )
    return TreeChange(base, before, after, contents, tuple(remarks), unread)


def read_before(base: Base, names: Sequence[str]) -> ReadTree:
    """The side before; headers that were replaced are read where they stand before all others.

    Where the compiler takes other content for files, they are read in the place of these.
    """
    assert base.cub is not None
    if not names:
        return ReadTree(base.cub, (), {}, ())
    if not base.replaced:
        return read_tree(base.cub, names)
    if base.cub.library in IN_PLACE:
        return _in_place(base.cub, {name: base.replaced[name] for name in names})
    tunings = shipped().tree.tunings
    paths = {n: Path(overlay(n, base.replaced[n])) / tunings / n for n in names}
    scanned = scan_headers(tuple(paths.values()))
    cub = base.cub.model_copy(update={"includes": base.includes})
    return ReadTree(cub, scanned.headers, paths, scanned.errors)


def _in_place(cub: Cub, replaced: Mapping[str, bytes]) -> ReadTree:
    known = {path.name: path for path in tree.tuning_headers(cub)}
    headers, errors = [], []
    for name, data in replaced.items():
        try:
            headers.append(read_changed(known[name], data))
        except SourceError as error:
            errors.append(error)
    paths = {name: known[name] for name in replaced}
    return ReadTree(cub, tuple(headers), paths, tuple(errors), replaced)
