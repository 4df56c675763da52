"""What the tuning headers of a tree hold, and copies of them that the compiler is asked with."""

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
    """A tree, and what its tuning headers hold."""

    cub: Cub
    headers: tuple[TuningHeader, ...]
    paths: Mapping[str, Path]
    errors: tuple[SourceError, ...]
    replaced: Mapping[str, bytes] = field(default_factory=dict)
    """Headers that have other content here than in their files, for a compiler that can be told."""

    @property
    def contents(self) -> dict[str, bytes]:
        """The same by path."""
        return {str(self.paths[name]): data for name, data in self.replaced.items()}

    def marked(self, dialect: Dialect) -> Mapping[str, Marked]:
        """Marked copies of the headers that hold entries in a dialect."""
        spelled, members = DIALECTS[dialect], marked_members(bound(self.cub.bindings), dialect)
        held = [header for header in self.headers if spelled.read(header)]
        return {header.name: spelled.mark(header, self._data(header), members) for header in held}

    def marked_for(self, places: Iterable[Asked]) -> Mapping[str, Marked]:
        """Marked copies of headers, each in the dialect that decides there."""
        if self.cub.has_selectors:
            return self.marked(self.cub.dialect)
        chosen = {p.site.header: p.site.dialect for p in places if p.site.is_selector}
        found = {n: c for n, c in self.marked(self.cub.dialect).items() if n not in chosen}
        only = replace(self, headers=tuple(h for h in self.headers if h.name in chosen))
        for dialect in dict.fromkeys(chosen.values()):
            found |= only.marked(dialect)
        return found

    def enabled(self) -> Mapping[str, Marked]:
        """Copies of headers with guarded returns that are commented out, which are code there."""
        made = (enable_returns(header, self._data(header)) for header in self.headers)
        return {copy.header.name: copy for copy in made if copy.entries}

    def _data(self, header: TuningHeader) -> bytes:
        known = self.replaced.get(header.name)
        return read_bytes(self.paths[header.name]) if known is None else known


def read_tree(cub: Cub, names: Sequence[str] = ()) -> ReadTree:
    """Scans the headers of a tree: those that are named, by algorithm or by header, or all."""
    known = {path.name: path for path in trees.tuning_headers(cub)}
    wanted = _header_names(names, known, cub.bindings) or frozenset(known)
    paths = tuple(path for name, path in known.items() if name in wanted)
    scanned = scan_headers(paths)
    return ReadTree(cub, scanned.headers, {path.name: path for path in paths}, scanned.errors)


def _header_names(names: Sequence[str], known: Mapping[str, Path], version: str) -> frozenset[str]:
    """What is meant by a header's name, or by an algorithm's: that of a header, or of a binding."""
    bindings = {b.algorithm: {site.header for site in b.sites} for b in bound(version)}
    wanted: set[str] = set()
    for name in names:
        meant = {h for h in known if name in {h, Path(h).stem, algorithm(h)}}
        meant |= bindings.get(name, set()) & known.keys()
        if not meant:
            here = ", ".join(algorithm(header) for header in known)
            raise InputError(f"no tuning header is called {name!r}", f"Here are: {here}")
        wanted.update(meant)
    return frozenset(wanted)


def chosen_archs(
    texts: Sequence[str], meant: Sequence[TuningHeader], others: Sequence[TuningHeader]
) -> tuple[str, ...]:
    """The architectures that are asked for; by default those that headers have tunings for.

    Where no header that was read has any, those at which defaults change.
    """
    archs = parse_archs(texts) or _tuned(meant) or _tuned(others) or _steps(meant)
    return tuple(sorted(archs, key=arch_number))


def _tuned(headers: Sequence[TuningHeader]) -> set[str]:
    known = {family.arch for header in headers for family in header.families}
    return known | {
        family.arch
        for header in headers
        for family in header.selectors
        if any(entry.specific and entry.members for entry in family.entries)
    }


def _steps(headers: Sequence[TuningHeader]) -> set[str]:
    chains = (chain for header in headers for chain in header.chains)
    known = {policy.arch for chain in chains for policy in chain.policies}
    returned = steps(family for header in headers for family in header.selectors)
    return known | returned or {ladder()[0]}


KIND = "looked"
# #include <cub/device/dispatch/tuning/tuning_radix_sort.cuh>
_INCLUDED = re.compile(rb"#\s*include\s*<cub/device/dispatch/tuning/(\w+\.cuh)>")


# Which bindings a tree's headers fit; a version of CUB is shared by many states of its main.


def looked(cub: Cub) -> Cub:
    """The tree with the bindings that its headers fit; they are told by its version at first."""
    if cub.version == UNKNOWN:
        return cub
    try:
        found = _read_as(cub, Path(cub.root))
    except (PolicygenError, OSError):
        return cub  # who reads a file of it for its own sake tells what is wrong
    return cub.model_copy(update={"read_as": found}) if found != cub.version else cub


def _read_as(cub: Cub, root: Path) -> str:
    files = {
        path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(own_sources(cub))
    }
    made = written_by(fit, fit, fit, fit)
    contents = (part for name, data in files.items() for part in (name, data))
    key = digest(made, identity(), cub.version, cub.dialect, *contents)
    if (known := kept(KIND, key)) is not None:
        return known.decode()
    mine = [binding for binding in bindings() if binding.library == cub.library]
    found = fit.read_as(cub, mine, _held(cub, root, files))
    with suppress(OSError):  # a cache that cannot be written costs speed, nothing else
        keep(KIND, key, found.encode())
    return found


def _held(cub: Cub, root: Path, files: dict[str, bytes]) -> fit.TreeText:
    folder = tunings_folder(cub).relative_to(root).as_posix()
    others = {path.relative_to(root).as_posix() for path in other_headers(cub)}
    tunings = {
        path.rpartition("/")[2]: Text(path, data).uncommented
        for path, data in files.items()
        if path.rpartition("/")[0] == folder or path in others
    }
    headers = {
        name: b"\n".join(tunings[one] for one in _reached(name, tunings)).decode("utf-8", "replace")
        for name in tunings
    }
    beside = [data for path, data in files.items() if path.rpartition("/")[0] != folder]
    return fit.TreeText(
        headers, files.__contains__, lambda: b"\n".join(beside).decode("utf-8", "replace")
    )


def _reached(name: str, tunings: dict[str, bytes]) -> list[str]:
    """A header and the tuning headers that it includes."""
    found = [name]
    for one in found:
        names = [match.decode() for match in _INCLUDED.findall(tunings[one])]
        found += [other for other in names if other in tunings and other not in found]
    return found
