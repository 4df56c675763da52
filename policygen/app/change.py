"""The headers that a change concerns, as they are read before and after it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from policygen import trees
from policygen.app.compilers import open_compiler, open_tree
from policygen.app.journal import find_apply
from policygen.app.reading import ReadTree, looked, read_tree
from policygen.app.session import Session, other_tree
from policygen.bindings.load import bound
from policygen.bindings.recorded import version_of
from policygen.bindings.words import words
from policygen.errors import InputError, SourceError
from policygen.headers.scan import read_changed, scan_headers
from policygen.headers.text import read_bytes
from policygen.model.audits import Finding
from policygen.model.machine_code import DumpIndex
from policygen.model.plans import Plan
from policygen.model.results import ScoredWorkload
from policygen.model.reviews import HeaderDiff
from policygen.model.trees import Cub
from policygen.model.tuning import Scan
from policygen.paths import nearby
from policygen.planning.measured import of_versions, with_bases
from policygen.proof.ask import IN_PLACE, compiler_of
from policygen.proof.compile import copied
from policygen.proof.kernel_units import Dumps, is_dumps, load
from policygen.proof.lint_rules import lint
from policygen.proof.lint_subject import HeaderSource
from policygen.proof.oracle import Compiler
from policygen.proof.sites import AskedArchs, asked_archs, devices
from policygen.proof.units import overlay
from policygen.store.targets import uncommitted
from policygen.textdiff import unified
from policygen.trees.manifest import shipped
from policygen.trees.revisions import open_revision


@dataclass(frozen=True, slots=True)
class Base:
    """The side before."""

    label: str
    cub: Cub | None = None
    """None where there are dumps alone."""
    replaced: Mapping[str, bytes] = field(default_factory=dict)
    """Tuning headers that it has with other content than the tree."""
    plan: Plan | None = None
    """What was applied since."""
    index: DumpIndex | None = None
    dumps: Dumps = field(default_factory=dict)

    @property
    def includes(self) -> tuple[str, ...]:
        """Its include folders; before them those of the headers that were replaced."""
        assert self.cub is not None
        if self.replaced and self.cub.library in IN_PLACE:
            return copied(self.cub, self.replaced), *self.cub.include_folders
        folders = (overlay(name, data) for name, data in sorted(self.replaced.items()))
        return *folders, *self.cub.include_folders


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
    now = {path.name: path for path in trees.tuning_headers(cub)}
    then = {path.name: path for path in trees.tuning_headers(base.cub)}
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
    known = {path.name: path for path in trees.tuning_headers(cub)}
    headers, errors = [], []
    for name, data in replaced.items():
        try:
            headers.append(read_changed(known[name], data))
        except SourceError as error:
            errors.append(error)
    paths = {name: known[name] for name in replaced}
    return ReadTree(cub, tuple(headers), paths, tuple(errors), replaced)


# What `verify-sass` compares a tree with: an apply, a revision, a folder, or dumps.


def find_base(session: Session, text: str | None) -> Base | None:
    """What is named; else what the last apply replaced; else the last commit; else nothing."""
    if text is None:
        return _default(session.cub, session.store)
    if is_dumps(Path(text)):
        index, dumps = load(Path(text))
        title = index.version if "@" in index.version else f"CUB {index.version}"
        return Base(f"dumps of {title}, {index.toolchain}, in {text}", index=index, dumps=dumps)
    other = other_tree(session, text)
    return Base(f"{other.title}, {text}", other)


def _default(found: Cub, store: Path) -> Base | None:
    if applied := find_apply(store, Path(found.root)):
        plan, before = applied
        label = f"before the apply for {plan.options.arch}: {', '.join(sorted(before))}"
        return Base(label, found, before, plan)
    if uncommitted(trees.tuning_headers(found)):
        return Base("HEAD", looked(open_revision(found, "HEAD")))
    return None


def no_base(store: Path) -> InputError:
    """Nothing to compare with."""
    return InputError(
        f"nothing was applied to the tree ({store}), and no tuning header has uncommitted edits",
        "Name what to compare with: --base REVISION, --base FOLDER, or --base VERSION",
    )


# The trees that were measured, as far as they are at hand, and whether base is theirs.


def judged_by_base(
    session: Session, workloads: Sequence[ScoredWorkload], arch: str
) -> tuple[ScoredWorkload, ...]:
    """Workloads of several versions say whether base was what the tree selects; others as given."""
    several = [*chain.from_iterable(of_versions(workloads, session.cub.release).values())]
    if not several:
        return tuple(workloads)
    names = headers_of(several, session.cub.bindings)
    _, _, compiler = open_tree(session.cub, names, progress=session.progress)
    return with_measured_bases(session, workloads, compiler, arch)


def with_measured_bases(
    session: Session,
    workloads: Sequence[ScoredWorkload],
    compiler: Compiler,
    arch: str,
    measured_on: str | None = None,
) -> tuple[ScoredWorkload, ...]:
    """The same for a tree that is open."""
    version = session.cub.release
    several = chain.from_iterable(of_versions(workloads, version).values())
    trees = measured_trees(session, measured_on, {one.cccl for one in several})
    return with_bases(workloads, compiler, version, trees, arch)


def headers_of(results: Sequence[ScoredWorkload], version: str) -> tuple[str, ...]:
    """The headers that decide the benchmarks; all where a benchmark is not bound."""
    return headers_of_benchmarks({workload.algorithm for workload in results}, version)


def headers_of_benchmarks(wanted: Collection[str], version: str) -> tuple[str, ...]:
    """The headers that decide benchmarks of these names."""
    names = set()
    for algorithm in bound(version):
        sites = {b.site for b in algorithm.benchmarks if b.name in wanted}
        names |= {site.header for site in algorithm.sites if site.name in sites}
    return tuple(sorted(names))


def measured_trees(
    session: Session, measured_on: str | None, cccl: Collection[str]
) -> dict[str, Compiler]:
    """The trees that were measured, by version, as far as they are at hand."""
    found: dict[str, Compiler] = {}
    for version in sorted(set(map(version_of, cccl))):
        if measured_on is not None:
            other = other_tree(session, measured_on)
        elif version == session.cub.release:
            continue
        else:
            try:
                other = trees.find(version, Path.cwd())
            except InputError:
                continue
        _, found[version] = open_compiler(read_tree(other), progress=session.progress)
    return found
