"""The headers that a change concerns, before and after it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from policygen import trees
from policygen.app.journal import find_apply
from policygen.app.reading import (
    ReadTree,
    open_compiler,
    open_tree,
    read_tree,
    with_detected_bindings,
)
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
    """The side before a change."""

    label: str
    cub: Cub | None = None
    """None if there are only dumps."""
    replaced: Mapping[str, bytes] = field(default_factory=dict)
    """Tuning headers whose content differs from the tree."""
    plan: Plan | None = None
    """The plan that was applied since."""
    index: DumpIndex | None = None
    dumps: Dumps = field(default_factory=dict)

    @property
    def includes(self) -> tuple[str, ...]:
        """The include folders, preceded by those of the replaced headers."""
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
    """Contents before and after, by header name."""
    remarks: tuple[str, ...]
    unread: tuple[SourceError, ...] = ()
    """Errors on either side. The entries of these headers are unknown."""

    @property
    def archs(self) -> AskedArchs:
        """Architectures at which values can change; others inherit from the preceding one."""
        headers = (*self.before.headers, *self.after.headers)
        archs = {policy.arch for h in headers for chain in h.chains for policy in chain.policies}
        archs |= {family.arch for header in headers for family in header.families}
        archs |= devices(headers)
        contents = [data for sides in self.contents.values() for data in sides]
        selects = words().selectors.name.encode()
        if archs and not any(selects in data for data in contents):
            return AskedArchs(frozenset(archs))
        return asked_archs(contents, (*archs, *compiler_of(self.after.cub).archs))

    def findings(self) -> tuple[Finding, ...]:
        """Returns lint findings for the headers as they are now."""
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
        """Returns the diff of each file."""
        root = Path(self.after.cub.root)
        # In a workflow the current folder is the repository root, and annotations use paths from
        # there.
        current_folder = Path.cwd()
        paths = {
            name: (path if path.is_relative_to(current_folder) else path.relative_to(root))
            for name, path in self.after.paths.items()
        }
        return tuple(
            HeaderDiff(
                path=nearby(paths[name]),
                # JSON cannot hold bytes that are not text.
                diff=unified(nearby(paths[name]), old, new).encode("utf-8", "replace").decode(),
            )
            for name, (old, new) in self.contents.items()
        )


def find_change(session: Session, text: str | None) -> TreeChange:
    """Finds the differences between the tree and its base."""
    cub, base = session.cub, find_base(session, text)
    if base is None:
        raise no_base(session.store)
    if base.cub is None:
        raise InputError(f"{base.label}: they hold no headers", "Name a tree: --base REVISION")
    paths_after = {path.name: path for path in trees.tuning_headers(cub)}
    paths_before = {path.name: path for path in trees.tuning_headers(base.cub)}
    contents = {}
    for name in sorted(paths_after.keys() & paths_before.keys()):
        old = base.replaced[name] if name in base.replaced else read_bytes(paths_before[name])
        new = read_bytes(paths_after[name])
        if old != new:
            contents[name] = (old, new)
    remarks = [
        f"{name} is in one of the trees only"
        for name in sorted(paths_after.keys() ^ paths_before.keys())
    ]
    if base.cub.version != cub.version:
        remarks.append(f"before it is {base.cub.title}, and after {cub.title}")
    names = sorted(contents)
    after = read_tree(cub, names) if names else ReadTree(cub, (), {}, ())
    before = read_before(base, names)
    unread = (*before.errors, *after.errors)
    unread_headers = {Path(error.path).name for error in unread}
    before, after = (
        replace(
            side,
            headers=tuple(header for header in side.headers if header.name not in unread_headers),
        )
        for side in (before, after)
    )
    return TreeChange(base, before, after, contents, tuple(remarks), unread)


def read_before(base: Base, names: Sequence[str]) -> ReadTree:
    """Reads the side before. Replaced headers are read from folders that precede all others.

    If the compiler supports replacing file contents, they are read in place.
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
    paths_by_name = {path.name: path for path in trees.tuning_headers(cub)}
    headers, errors = [], []
    for name, data in replaced.items():
        try:
            headers.append(read_changed(paths_by_name[name], data))
        except SourceError as error:
            errors.append(error)
    paths = {name: paths_by_name[name] for name in replaced}
    return ReadTree(cub, tuple(headers), paths, tuple(errors), replaced)


# The base of a comparison: an apply, a revision, a folder, or dumps.


def find_base(session: Session, text: str | None) -> Base | None:
    """Opens the named base, or else what the last apply replaced, or else the last commit."""
    if text is None:
        return _default_base(session.cub, session.store)
    if is_dumps(Path(text)):
        index, dumps = load(Path(text))
        title = index.version if "@" in index.version else f"CUB {index.version}"
        return Base(f"dumps of {title}, {index.toolchain}, in {text}", index=index, dumps=dumps)
    other = other_tree(session, text)
    return Base(f"{other.title}, {text}", other)


def _default_base(cub: Cub, store: Path) -> Base | None:
    if applied := find_apply(store, Path(cub.root)):
        plan, before = applied
        label = f"before the apply for {plan.options.arch}: {', '.join(sorted(before))}"
        return Base(label, cub, before, plan)
    if uncommitted(trees.tuning_headers(cub)):
        return Base("HEAD", with_detected_bindings(open_revision(cub, "HEAD")))
    return None


def no_base(store: Path) -> InputError:
    """Builds the error for having nothing to compare with."""
    return InputError(
        f"nothing was applied to the tree ({store}), and no tuning header has uncommitted edits",
        "Name what to compare with: --base REVISION, --base FOLDER, or --base VERSION",
    )


# The trees on which results were measured, if available, and whether base is theirs.


def with_base_checks(
    session: Session, workloads: Sequence[ScoredWorkload], arch: str
) -> tuple[ScoredWorkload, ...]:
    """Checks whether base was what the tree selects, for workloads of several versions."""
    other_versions = [*chain.from_iterable(of_versions(workloads, session.cub.release).values())]
    if not other_versions:
        return tuple(workloads)
    names = headers_of(other_versions, session.cub.bindings)
    _, _, compiler = open_tree(session.cub, names, progress=session.progress)
    return with_measured_bases(session, workloads, compiler, arch)


def with_measured_bases(
    session: Session,
    workloads: Sequence[ScoredWorkload],
    compiler: Compiler,
    arch: str,
    measured_on: str | None = None,
) -> tuple[ScoredWorkload, ...]:
    """Does the same for an open tree."""
    version = session.cub.release
    other_versions = chain.from_iterable(of_versions(workloads, version).values())
    trees = measured_trees(session, measured_on, {workload.cccl for workload in other_versions})
    return with_bases(workloads, compiler, version, trees, arch)


def headers_of(results: Sequence[ScoredWorkload], version: str) -> tuple[str, ...]:
    """Returns the headers that decide the benchmarks; all headers if a benchmark is not bound."""
    return headers_of_benchmarks({workload.algorithm for workload in results}, version)


def headers_of_benchmarks(names_of_benchmarks: Collection[str], version: str) -> tuple[str, ...]:
    """Returns the headers that decide the named benchmarks."""
    names = set()
    for algorithm in bound(version):
        sites = {b.site for b in algorithm.benchmarks if b.name in names_of_benchmarks}
        names |= {site.header for site in algorithm.sites if site.name in sites}
    return tuple(sorted(names))


def measured_trees(
    session: Session, measured_on: str | None, cccl: Collection[str]
) -> dict[str, Compiler]:
    """Returns compilers for the trees that were measured, by version, if available."""
    compilers: dict[str, Compiler] = {}
    for version in sorted(set(map(version_of, cccl))):
        if measured_on is not None:
            tree = other_tree(session, measured_on)
        elif version == session.cub.release:
            continue
        else:
            try:
                tree = trees.find(version, Path.cwd())
            except InputError:
                continue
        _, compilers[version] = open_compiler(read_tree(tree), progress=session.progress)
    return compilers
