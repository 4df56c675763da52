"""The headers that a change concerns, before and after it."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from policygen import trees
from policygen.app.journal import find_apply
from policygen.app.session import Session, other_tree, with_detected_bindings
from policygen.bindings.words import known_arch, words
from policygen.errors import InputError, SourceError
from policygen.headers.scan import read_changed, scan_headers
from policygen.model.machine_code import DumpIndex
from policygen.model.plans import Plan
from policygen.model.selection import Differing
from policygen.model.trees import Cub
from policygen.model.tuning import spell
from policygen.opening import read_bytes
from policygen.planning.judge import judge_inputs
from policygen.proof.all_inputs import InputDelta, Side
from policygen.proof.ask import compiler_of, replaces_files
from policygen.proof.compile import copied
from policygen.proof.kernel_units import Dumps, is_dumps, load
from policygen.proof.lexemes import first_difference
from policygen.proof.other_calls import changes_elsewhere, compare_all_inputs
from policygen.proof.probe import LibraryCompiler
from policygen.proof.reading import ReadTree, read_tree
from policygen.proof.sites import (
    AskedArchs,
    asked_archs,
    bound_headers,
    devices,
    headers_of_benchmarks,
)
from policygen.proof.units import overlay
from policygen.steps import Progress
from policygen.store.targets import uncommitted
from policygen.trees.files import changed_headers
from policygen.trees.lookup import open_revision
from policygen.trees.manifest import shipped


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
        if self.replaced and replaces_files(self.cub):
            return copied(self.cub, self.replaced), *self.cub.include_folders
        folders = (overlay(name, data) for name, data in sorted(self.replaced.items()))
        return *folders, *self.cub.include_folders


@dataclass(frozen=True, slots=True)
class HeaderChange:
    """A header that is not a tuning header; empty where a tree lacks it."""

    path: Path
    """After the change."""
    before: bytes
    after: bytes
    line: int
    """Where its code begins to differ."""


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
    beside: Mapping[str, HeaderChange] = field(default_factory=dict)
    """Other headers whose code differs, by path; workloads of any tuning header may read them."""


def find_change(session: Session, text: str | None) -> TreeChange:
    """Finds the differences between the tree and its base."""
    cub, (base, base_cub) = session.cub, find_base_tree(session, text)
    paths_after = {path.name: path for path in trees.tuning_headers(cub)}
    paths_before = {path.name: path for path in trees.tuning_headers(base_cub)}
    contents = {}
    for name in sorted(paths_after.keys() & paths_before.keys()):
        old = base.replaced[name] if name in base.replaced else read_bytes(paths_before[name])
        new = read_bytes(paths_after[name])
        if old != new:
            contents[name] = (old, new)
    remarks = [
        f"{name} exists in only one of the trees"
        for name in sorted(paths_after.keys() ^ paths_before.keys())
    ]
    if base_cub.version != cub.version:
        remarks.append(f"the tree before is {base_cub.title}, the tree after is {cub.title}")
    names = sorted(contents)
    after = read_tree(cub, names) if names else ReadTree(cub, (), {}, ())
    before = read_before(base, names)
    unread = (*before.errors, *after.errors)
    before, after = _read_on_both(before, after)
    tunings = {*paths_after.values(), *paths_before.values()}
    beside = _headers_beside(base_cub, cub, tunings)
    return TreeChange(base, before, after, contents, tuple(remarks), unread, beside)


def _headers_beside(before: Cub, after: Cub, tunings: Set[Path]) -> dict[str, HeaderChange]:
    """Finds headers with changed code that are not tuning headers, by their paths in the tree."""
    beside = {}
    for sides in changed_headers(before, after):
        if tunings.isdisjoint(sides):
            old, new = (read_bytes(path) if path.is_file() else b"" for path in sides)
            if line := first_difference(sides[1].name, old, new):
                path = sides[1]
                root = next(top for top in after.include_folders if path.is_relative_to(top))
                beside[path.relative_to(root).as_posix()] = HeaderChange(path, old, new, line)
    return beside


def compared_sides(change: TreeChange) -> tuple[ReadTree, ReadTree, AskedArchs]:
    """Returns what to resolve before and after, and at which architectures values can change.

    If other headers differ, that is all tuning headers that bindings name; else those that differ.
    """
    before, after = change.before, change.after
    contents = [data for sides in change.contents.values() for data in sides]
    if change.beside:
        names = bound_headers(after.cub.bindings)
        for cub in (before.cub, after.cub):
            names &= {path.name for path in trees.tuning_headers(cub)}
        before, after = _read_on_both(
            *(read_tree(side.cub, sorted(names)) for side in (before, after))
        )
        contents = [read_bytes(path) for side in (before, after) for path in side.paths.values()]
    return before, after, _archs(before, after, contents)


def _archs(before: ReadTree, after: ReadTree, contents: Sequence[bytes]) -> AskedArchs:
    """Returns the architectures at which values can change; others inherit from the preceding."""
    headers = (*before.headers, *after.headers)
    archs = {policy.arch for h in headers for chain in h.chains for policy in chain.policies}
    archs |= {family.arch for header in headers for family in header.families}
    archs |= devices(headers)
    selects = words().selectors.name.encode()
    if archs and not any(selects in data for data in contents):
        return AskedArchs(frozenset(archs))
    return asked_archs(contents, (*archs, *compiler_of(after.cub).archs))


def _read_on_both(*sides: ReadTree) -> Iterator[ReadTree]:
    """Leaves headers out of both sides: those that cannot be read on a side."""
    unread = {Path(error.path).name for side in sides for error in side.errors}
    for side in sides:
        headers = tuple(header for header in side.headers if header.name not in unread)
        yield replace(side, headers=headers)


def read_before(base: Base, names: Sequence[str]) -> ReadTree:
    """Reads the side before. Replaced headers are read from folders that precede all others.

    If the compiler supports replacing file contents, they are read in place.
    """
    assert base.cub is not None
    if not names:
        return ReadTree(base.cub, (), {}, ())
    if not base.replaced:
        return read_tree(base.cub, names)
    if replaces_files(base.cub):
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


def find_base_tree(session: Session, text: str | None) -> tuple[Base, Cub]:
    """Opens the base and its tree. Raises an error if there is no base, or if it is dumps."""
    base = find_base(session, text)
    if base is None:
        raise no_base(session.store)
    if base.cub is None:
        raise InputError(
            f"{base.label}: dumps contain no headers",
            "Name a revision, a folder or a version: --base REVISION",
        )
    return base, base.cub


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
        f"nothing was applied to the tree ({store}), and no tuning header has uncommitted changes",
        "Name what to compare with: --base REVISION, --base FOLDER, or --base VERSION",
    )


# What a review says of inputs that no benchmark measures.


def review_inputs(
    change: TreeChange, different: Sequence[Differing], progress: Progress | None
) -> InputDelta:
    """Compares all inputs, and calls of no benchmark; says where no benchmark measures them."""
    toolchain = compiler_of(change.after.cub)
    if isinstance(toolchain, LibraryCompiler) or not change.contents:
        return InputDelta()
    before, after = (Side.of(side.cub.include_folders) for side in (change.before, change.after))
    version = change.after.cub.bindings
    delta = compare_all_inputs(change.contents, (before, after), version, toolchain, progress)
    if change.base.plan is not None:
        return replace(delta, changes=judge_inputs(change.base.plan.options, delta.changes))
    rows = [
        (row, headers_of_benchmarks([row.benchmark], version)) for row in different if row.after
    ]
    measured = {
        (header, row.arch, frozenset(_pairs(row))) for row, names in rows for header in names
    }
    changes = []
    for item in delta.changes:
        pairs = frozenset(item.values.values())
        leaks = dict.fromkeys(
            known_arch(arch)
            for arch in ([] if item.examples else item.archs)
            if (item.header, arch, pairs) not in measured
        )
        changes.append(item.model_copy(update={"leaks": tuple(leaks)}))
    return replace(delta, changes=tuple(changes))


def _pairs(row: Differing) -> Iterator[str]:
    before, after = row.before or {}, row.after or {}
    return (f"{spell(before[name])} → {spell(after[name])}" for name in row.changed)


def all_compared(change: TreeChange, inputs: InputDelta) -> set[str]:
    """Returns the changed headers whose differing code was all compared."""
    return {
        name
        for name in inputs.headers & change.contents.keys()
        if not changes_elsewhere(name, *change.contents[name])
    }
