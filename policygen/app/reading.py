"""Reads the tuning headers of a tree, and makes marked copies of them for compiler queries."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from policygen import trees
from policygen.app.filters import parse_archs
from policygen.bindings import fit
from policygen.bindings.load import bindings, bound, identity
from policygen.bindings.words import ladder
from policygen.cache import digest, keep, kept, written_by
from policygen.errors import InputError, PolicygenError, SourceError
from policygen.headers.dialects import DIALECTS
from policygen.headers.scan import algorithm, scan_headers
from policygen.headers.selectors.marks import enable_returns
from policygen.headers.text import Text, read_bytes
from policygen.model.arch import arch_number
from policygen.model.edits import Marked
from policygen.model.trees import UNKNOWN, Cub, Dialect
from policygen.model.tuning import TuningHeader, steps
from policygen.proof.probe import Asked
from policygen.proof.sites import marked_members
from policygen.trees.layout import other_headers, own_sources, tunings_folder


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
        dialect_reader, members = (
            DIALECTS[dialect],
            marked_members(bound(self.cub.bindings), dialect),
        )
        matching = [header for header in self.headers if dialect_reader.read(header)]
        return {
            header.name: dialect_reader.mark(header, self._data(header), members)
            for header in matching
        }

    def marked_for(self, places: Iterable[Asked]) -> Mapping[str, Marked]:
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
    names: Sequence[str], headers: Mapping[str, Path], version: str
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
            raise InputError(f"no tuning header is called {name!r}", f"Here are: {available}")
        selected.update(matches)
    return frozenset(selected)


def chosen_archs(
    texts: Sequence[str], selected: Sequence[TuningHeader], all_headers: Sequence[TuningHeader]
) -> tuple[str, ...]:
    """Returns the requested architectures; by default those that the headers have tunings for.

    If no header that was read has any, returns those at which defaults change.
    """
    archs = (
        parse_archs(texts)
        or _tuned_archs(selected)
        or _tuned_archs(all_headers)
        or _default_archs(selected)
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


KIND = "looked"
# #include <cub/device/dispatch/tuning/tuning_radix_sort.cuh>
_INCLUDED = re.compile(rb"#\s*include\s*<cub/device/dispatch/tuning/(\w+\.cuh)>")


# Detecting the bindings for a tree's headers: one version of CUB covers many states of main.


def looked(cub: Cub) -> Cub:
    """Returns the tree with the bindings that fit its headers; its version is a first guess."""
    if cub.version == UNKNOWN:
        return cub
    try:
        read_as = _read_as(cub, Path(cub.root))
    except (PolicygenError, OSError):
        return cub  # whoever needs a file of it reports what is wrong
    return cub.model_copy(update={"read_as": read_as}) if read_as != cub.version else cub


def _read_as(cub: Cub, root: Path) -> str:
    files = {
        path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(own_sources(cub))
    }
    versions = written_by(fit, fit, fit, fit)
    contents = (part for name, data in files.items() for part in (name, data))
    key = digest(versions, identity(), cub.version, cub.dialect, *contents)
    if (cached := kept(KIND, key)) is not None:
        return cached.decode()
    candidates = [binding for binding in bindings() if binding.library == cub.library]
    read_as = fit.read_as(cub, candidates, _tree_text(cub, root, files))
    with suppress(OSError):  # an unwritable cache only costs speed
        keep(KIND, key, read_as.encode())
    return read_as


def _tree_text(cub: Cub, root: Path, files: dict[str, bytes]) -> fit.TreeText:
    folder = tunings_folder(cub).relative_to(root).as_posix()
    other_paths = {path.relative_to(root).as_posix() for path in other_headers(cub)}
    tunings = {
        path.rpartition("/")[2]: Text(path, data).uncommented
        for path, data in files.items()
        if path.rpartition("/")[0] == folder or path in other_paths
    }
    headers = {
        name: b"\n".join(tunings[header] for header in _with_included(name, tunings)).decode(
            "utf-8", "replace"
        )
        for name in tunings
    }
    other_texts = [data for path, data in files.items() if path.rpartition("/")[0] != folder]
    return fit.TreeText(
        headers, files.__contains__, lambda: b"\n".join(other_texts).decode("utf-8", "replace")
    )


def _with_included(name: str, tunings: dict[str, bytes]) -> list[str]:
    """Returns a header and the tuning headers that it includes."""
    reached = [name]
    for header in reached:
        names = [match.decode() for match in _INCLUDED.findall(tunings[header])]
        reached += [
            included for included in names if included in tunings and included not in reached
        ]
    return reached
