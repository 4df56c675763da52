"""Reads the tuning headers of a tree, and makes marked copies of them for compiler queries."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from policygen import trees
from policygen.bindings.load import bound
from policygen.bindings.words import ladder
from policygen.errors import InputError, SourceError
from policygen.headers.scan import algorithm, scan_headers
from policygen.headers.selectors.functions import compiler_conditions
from policygen.headers.specializations.siblings import older
from policygen.model.arch import arch_number
from policygen.model.trees import BoundVersion, Cub
from policygen.model.tuning import TuningHeader, steps
from policygen.opening import read_bytes


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

    def conditions(self, names: Iterable[str]) -> tuple[str, ...]:
        """Returns what policy selectors of some headers ask of the compiler."""
        selected = {*names}
        return tuple(
            condition
            for header in self.headers
            if header.name in selected and header.selectors
            for condition in compiler_conditions(header.name, self.data(header))
        )

    def data(self, header: TuningHeader) -> bytes:
        """Returns the content of a header."""
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


def older_tree(tree: ReadTree, names: Collection[str]) -> ReadTree:
    """Restricts a tree to some headers, as its older dispatchers see them."""
    return replace(
        tree,
        cub=older(tree.cub),
        headers=tuple(header for header in tree.headers if header.name in names),
        paths={name: path for name, path in tree.paths.items() if name in names},
    )
