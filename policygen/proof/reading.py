"""Reads the tuning headers of a tree, and makes marked copies of them for compiler queries."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from policygen import trees
from policygen.bindings.load import bound
from policygen.bindings.words import ladder
from policygen.errors import InputError, Problems, SourceError
from policygen.headers.dialects import dialect_class
from policygen.headers.protocol import TuningTree
from policygen.headers.scan import algorithm, read_changed, scan_headers
from policygen.headers.selectors.functions import compiler_conditions
from policygen.headers.selectors.marks import enable_returns
from policygen.headers.specializations.siblings import older
from policygen.headers.text import read_bytes
from policygen.model.arch import arch_number
from policygen.model.edits import Marked
from policygen.model.trees import BoundVersion, Cub, Dialect
from policygen.model.tuning import TuningHeader, steps
from policygen.proof.ask import compiler_of
from policygen.proof.oracle import Compiler
from policygen.proof.sites import marked_members, with_new_families
from policygen.proof.units import SiteQuery
from policygen.steps import Progress


@dataclass(frozen=True, slots=True)
class ReadTree:
    """A tree, and the contents of its tuning headers."""

    cub: Cub
    headers: tuple[TuningHeader, ...]
    paths: Mapping[str, Path]
    errors: tuple[SourceError, ...]
    replaced: Mapping[str, bytes] = field(default_factory=dict)
    """Headers whose content here differs from their files, for compilers that support this."""

    @property
    def contents(self) -> dict[str, bytes]:
        """The replaced contents by path."""
        return {str(self.paths[name]): data for name, data in self.replaced.items()}

    def marked(self, dialect: Dialect) -> Mapping[str, Marked]:
        """Returns marked copies of the headers that hold entries in a dialect."""
        members = marked_members(bound(self.cub.bindings), dialect)
        dialect_reader = dialect_class(dialect)
        matching = [header for header in self.headers if dialect_reader.read(header)]
        return {
            header.name: dialect_reader.mark(header, self._data(header), members)
            for header in matching
        }

    def marked_for(self, places: Iterable[SiteQuery]) -> Mapping[str, Marked]:
        """Returns marked copies of headers, each in the dialect that decides its site."""
        if self.cub.has_selectors:
            return self.marked(self.cub.dialect)
        dialects = {p.site.header: p.site.dialect for p in places if p.site.is_selector}
        copies = {n: c for n, c in self.marked(self.cub.dialect).items() if n not in dialects}
        selector_tree = replace(self, headers=tuple(h for h in self.headers if h.name in dialects))
        for dialect in dict.fromkeys(dialects.values()):
            copies |= selector_tree.marked(dialect)
        return copies

    def enabled(self) -> Mapping[str, Marked]:
        """Returns copies of headers in which commented-out guarded returns are enabled."""
        copies = (enable_returns(header, self._data(header)) for header in self.headers)
        return {copy.header.name: copy for copy in copies if copy.entries}

    def conditions(self, names: Iterable[str]) -> tuple[str, ...]:
        """Returns what policy selectors of some headers ask of the compiler."""
        selected = {*names}
        return tuple(
            condition
            for header in self.headers
            if header.name in selected and header.selectors
            for condition in compiler_conditions(header.name, self._data(header))
        )

    def _data(self, header: TuningHeader) -> bytes:
        content = self.replaced.get(header.name)
        return read_bytes(self.paths[header.name]) if content is None else content


def read_tree(cub: Cub, names: Sequence[str] = ()) -> ReadTree:
    """Scans the headers of a tree: those named by algorithm or by header, or all."""
    paths_by_name = {path.name: path for path in trees.tuning_headers(cub)}
    selected = _header_names(names, paths_by_name, cub.bindings) or frozenset(paths_by_name)
    paths = tuple(path for name, path in paths_by_name.items() if name in selected)
    scanned = scan_headers(paths)
    return ReadTree(cub, scanned.headers, {path.name: path for path in paths}, scanned.errors)


def _header_names(
    names: Sequence[str], headers: Mapping[str, Path], version: BoundVersion
) -> frozenset[str]:
    """Returns the headers that names select.

    A name is a header's, or an algorithm's from a header or a binding.
    """
    bindings = {b.algorithm: {site.header for site in b.sites} for b in bound(version)}
    selected: set[str] = set()
    for name in names:
        matches = {h for h in headers if name in {h, Path(h).stem, algorithm(h)}}
        matches |= bindings.get(name, set()) & headers.keys()
        if not matches:
            available = ", ".join(algorithm(header) for header in headers)
            raise InputError(f"no tuning header is named {name!r}", f"Available: {available}")
        selected.update(matches)
    return frozenset(selected)


def chosen_archs(
    requested: Collection[str],
    selected: Sequence[TuningHeader],
    all_headers: Sequence[TuningHeader],
) -> tuple[str, ...]:
    """Returns the requested architectures; by default those that the headers have tunings for.

    If no header that was read has any, returns those at which defaults change.
    """
    archs = (
        requested or _tuned_archs(selected) or _tuned_archs(all_headers) or _default_archs(selected)
    )
    return tuple(sorted(archs, key=arch_number))


def _tuned_archs(headers: Sequence[TuningHeader]) -> set[str]:
    archs = {family.arch for header in headers for family in header.families}
    return archs | {
        family.arch
        for header in headers
        for family in header.selectors
        if any(entry.specific and entry.members for entry in family.entries)
    }


def _default_archs(headers: Sequence[TuningHeader]) -> set[str]:
    chains = (chain for header in headers for chain in header.chains)
    archs = {policy.arch for chain in chains for policy in chain.policies}
    returned = steps(family for header in headers for family in header.selectors)
    return archs | returned or {ladder()[0]}


def open_compiler(
    cub: Cub, names: Sequence[str] = (), *, progress: Progress | None = None
) -> tuple[ReadTree, Compiler]:
    """Reads the headers of a tree, and returns it with a compiler for them."""
    tree = read_tree(cub, names)
    if tree.errors:
        raise Problems(tree.errors)
    return tree, compiler_for(tree, progress=progress)


def compiler_for(
    tree: ReadTree, sources: TuningTree | None = None, *, progress: Progress | None = None
) -> Compiler:
    """Returns a compiler for a tree whose headers were read, or for what they were before."""
    if sources is None:
        headers = {header.name: header for header in tree.headers}
        data = {name: read_bytes(path) for name, path in tree.paths.items()}
        sources = TuningTree(tree.cub, headers, data)
    members = marked_members(bound(tree.cub.bindings), older(tree.cub).dialect)
    marked_by_content: dict[tuple[str, bytes], Marked] = {}

    def marked(name: str, content: bytes) -> Marked:
        unchanged = content == sources.data[name]
        header = sources.headers[name] if unchanged else read_changed(tree.paths[name], content)
        return dialect_class(tree.cub.dialect).mark(
            header, content, with_new_families(members, header)
        )

    def mark(contents: Mapping[str, bytes]) -> dict[str, Marked]:
        for item in contents.items():
            if item not in marked_by_content:
                marked_by_content[item] = marked(*item)
        return {name: marked_by_content[name, content] for name, content in contents.items()}

    return Compiler(sources, compiler_of(tree.cub), mark, progress)


def older_tree(tree: ReadTree, names: Collection[str]) -> ReadTree:
    """Restricts a tree to some headers, as its older dispatchers see them."""
    return replace(
        tree,
        cub=older(tree.cub),
        headers=tuple(header for header in tree.headers if header.name in names),
        paths={name: path for name, path in tree.paths.items() if name in names},
    )


def older_compiler(tree: ReadTree, compiler: Compiler) -> Compiler:
    """Returns a compiler for the tree as its older dispatchers see it."""
    older_side = older_tree(tree, tree.paths)
    sources = replace(compiler.sources, cub=older_side.cub)
    rebuilt = compiler_for(older_side, sources, progress=compiler.progress)
    return replace(rebuilt, replaced=compiler.replaced, only=older_side.cub.dialect)
