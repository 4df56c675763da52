"""Reads tuning headers into families, entries and policy chains, with a cache by content."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from policygen import rendering
from policygen.bindings.words import words
from policygen.cache import digest, keep, kept
from policygen.errors import SourceError
from policygen.headers.comments import SourceFile
from policygen.headers.protocol import notation_of
from policygen.headers.selectors.branches import holds_selectors, read_selectors
from policygen.headers.selectors.functions import find_aggregates
from policygen.headers.specializations.families import holds_tunings, read_families
from policygen.headers.syntax import Guards, check_brackets
from policygen.headers.text import Text, check_hidden, check_words, includes, limited, reachable
from policygen.libraries import sources
from policygen.model.arch import arch_and_gpu
from policygen.model.tuning import Entry, Family, PolicyChain, TuningHeader
from policygen.opening import FOLDER, NotOpenedError, read_bytes, read_inside, tree_around


@dataclass(frozen=True, slots=True)
class Scanned:
    """The headers that could be read, and the errors of the others."""

    headers: tuple[TuningHeader, ...]
    errors: tuple[SourceError, ...]


def scan_headers(
    paths: Sequence[Path],
    *,
    cached: bool = True,
    progress: Callable[[int, int, str], None] | None = None,
) -> Scanned:
    """Reads headers; a broken header does not affect the others."""
    neighbours, included = _neighbours(paths), Included(frozenset(paths))
    headers: list[TuningHeader] = []
    errors: list[SourceError] = []
    for index, path in enumerate(paths):
        try:
            data = read_bytes(path)
            included.check(path, data)
            headers.append(_read(path, data, neighbours, cached=cached))
        except SourceError as error:
            errors.append(error)
        if progress:
            progress(index + 1, len(paths), path.name)
    return Scanned(tuple(headers), tuple(errors))


@dataclass(slots=True)
class Included:
    """Tracks the files that a tree's headers include, and checks each of them once."""

    read: Collection[Path]
    """The headers that are scanned themselves."""
    _seen: set[Path] = field(default_factory=set)

    def check(self, path: Path, data: bytes) -> None:
        """Raises an error if an include leads to a file with tunings that is never scanned."""
        root = tree_around(path)
        for include in includes(data):
            pending = list(_include_candidates(path, root, include))
            while pending:
                file = pending.pop()
                if file in self._seen or file in self.read or file.match(_NAME):
                    continue
                self._seen.add(file)
                has_tunings, included = _inspect(file, root)
                if has_tunings:
                    shown = file.relative_to(root) if file.is_relative_to(root) else file
                    raise Text(str(path), data).error(
                        include.start(2),
                        f"{shown.as_posix()} contains tunings but is not a tuning header, so they"
                        " are not read",
                        width=len(include[2]),
                        remedy=f"Move them into a header named {_NAME}.",
                    )
                pending += included


def read_changed(path: Path, data: bytes) -> TuningHeader:
    """Reads a header of a tree with content that differs from the file's."""
    return _read(path, data, _neighbours([path]), cached=False)


def _read(
    path: Path, data: bytes, neighbours: Mapping[str, bytes], *, cached: bool
) -> TuningHeader:
    """Reads a header, or loads it if its content was read before."""
    notation = notation_of(data)
    declaring = notation.declaring(path) if notation else {}
    readable = {**reachable(data, neighbours), **declaring}
    name = key(path.name, data, *readable.values())
    if cached and (header := _load(name)):
        return header
    with limited(str(path)):
        header = read_header(path.name, data, readable, str(path))
    if cached:
        with suppress(OSError):  # an unwritable cache folder only costs speed
            keep(KIND, name, header.model_dump_json().encode())
    return header


def _neighbours(paths: Sequence[Path]) -> dict[str, bytes]:
    """Collects the headers beside the scanned ones that hold no tunings of their own."""
    folders = sorted({path.parent for path in paths})
    headers: dict[str, bytes] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.cuh")):
            try:
                data = read_bytes(path)
            except SourceError:
                continue  # reported by its own scan; others do not need it
            if not holds_tunings(data):
                headers[f"{FOLDER}/{path.name}"] = data
    return headers


KIND = "scan"


# Header cache


@cache
def _fingerprint() -> bytes:
    """Hashes the readers' sources, so that changes to them invalidate cached results."""
    package = Path(__file__).resolve().parent
    paths = [*sorted(package.rglob("*.py")), *sources()]
    paths.append(package.parent / "model" / "tuning.py")
    paths += [rendering.folder("schemas") / name for name in ("archs.toml", "words.toml")]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).digest()


def key(name: str, *contents: bytes) -> str:
    """Computes the cache key of a header: its bytes, those of its includes, and the readers'."""
    return digest(_fingerprint(), name, *contents)


def _load(name: str) -> TuningHeader | None:
    """Loads a cached header; a damaged file counts as missing."""
    data = kept(KIND, name)
    try:
        return None if data is None else TuningHeader.model_validate_json(data)
    except ValidationError:  # written by another version of Pydantic
        return None


_NAME = "tuning_*.cuh"
_FOLLOWED = "cub"


# Included files, which must not hold tunings themselves
#
# Headers of Thrust and libcu++ are checked if a tuning header names them, but not followed.


@cache
def _quick_filter() -> re.Pattern[bytes]:
    """A prefilter; patterns that start with letters are fast to search."""
    return re.compile(rb"sm\d{2,3}_|" + words().selectors.name.encode())


@cache
def _tuning_declaration() -> re.Pattern[bytes]:
    """Matches `struct sm90_tuning<`, `get_sm90_tuning(`, `struct policy_selector {`."""
    return re.compile(
        rb"\b(?:struct|class)\b[^;{}<>=,()]*"
        rb"\b(?:sm\d{2,3}_\w+\s*[<{:]|%b\s*[{:])"
        rb"|\b\w*sm\d{2,3}_\w*\s*\([^(){};]*\)[^(){};=]*->[^(){};=]*\{"
        % words().selectors.name.encode()
    )


def _inspect(file: Path, root: Path) -> tuple[bool, list[Path]]:
    """Tells whether a file holds tunings, and lists the CUB files that it includes."""
    try:
        data = read_inside(root, file)
    except OSError:
        return False, []  # the compiler would not find it either
    except NotOpenedError as error:
        if not file.is_relative_to(root / _FOLLOWED):
            return False, []  # the library may live elsewhere
        raise SourceError(str(file), 1, 1, error.reason, remedy=error.remedy) from error
    has_tunings = bool(
        _quick_filter().search(data) and _tuning_declaration().search(Text("", data).code)
    )
    if not file.is_relative_to(root / _FOLLOWED):
        return has_tunings, []
    included: list[Path] = []
    for include in includes(data):
        if include[1] == b'"' or include[2].startswith(b"cub/"):
            included += _include_candidates(file, root, include)
    return has_tunings, included


def _include_candidates(file: Path, root: Path, include: re.Match[bytes]) -> Iterator[Path]:
    """Yields the files that an include may refer to; missing ones are skipped later."""
    name = include[2].decode("utf-8", "surrogateescape")
    if include[1] == b'"':
        sibling = file.parent / name
        if sibling.exists():
            yield sibling
            return
    yield root / name


# Family filters


def algorithm(header: str) -> str:
    """Returns the algorithm of a header: `radix_sort` of `tuning_radix_sort.cuh`."""
    return header.removeprefix("tuning_").partition(".")[0]


def select_families(
    headers: tuple[TuningHeader, ...],
    pattern: re.Pattern[str],
    archs: Set[str],
    args: Mapping[str, frozenset[str]],
    *,
    selectors: bool = False,
) -> tuple[Family, ...]:
    """Selects matching families, with only those entries that have the requested arguments.

    Arguments of a branch are its conditions: `key_size == 1`.
    """
    return tuple(
        family.model_copy(update={"entries": entries})
        for header in headers
        for family in (header.tunings if selectors else header.families)
        if (not archs or archs & {family.arch, arch_and_gpu(family.arch)[0]})
        and matches(pattern, family)
        and (entries := tuple(entry for entry in family.entries if _has_args(family, entry, args)))
    )


def matches(pattern: re.Pattern[str], owner: Family | PolicyChain) -> bool:
    """Tells whether the algorithm, its benchmark or the qualified name starts with a match."""
    name = algorithm(owner.header)
    qualified_by = owner.name if isinstance(owner, Family) else owner.hub
    qualified = f"{owner.namespace}::{qualified_by}"
    names = (name, f"{words().benchmarks.prefix}{name}", owner.header, qualified)
    return any(map(pattern.match, names))


def _has_args(family: Family, entry: Entry, args: Mapping[str, frozenset[str]]) -> bool:
    """Tells whether an entry has the requested arguments; primary templates never do."""
    if not args:
        return True
    if entry.kind == "branch":
        tested = ({f"{name} == {value}" for value in values} for name, values in args.items())
        return all(not facts.isdisjoint(entry.args) for facts in tested)
    names = [parameter.label for parameter in family.parameters]
    if len(names) != len(entry.args):
        # A disabled entry may have the argument list of an older family.
        return all(not values.isdisjoint(entry.args) for values in args.values())
    arg_by_name = dict(zip(names, entry.args, strict=True))
    return all(arg_by_name.get(name) in values for name, values in args.items())


# Reading one header


def read_header(
    name: str, data: bytes, neighbours: Mapping[str, bytes] = {}, path: str | None = None
) -> TuningHeader:
    """Reads a header; `neighbours` are the other headers of its folder."""
    text = Text(path or name, data)
    text.check()
    guards = Guards(text)
    check_brackets(text, guards)
    check_words(text)
    source = SourceFile(text, guards)
    if notation := notation_of(data):
        check_hidden(text, {})
        return notation.read(source, name, neighbours)
    tunings, returns = holds_tunings(data), holds_selectors(data)
    included = reachable(text.uncommented, neighbours) if tunings or returns else {}
    if tunings or returns:
        check_hidden(text, included)
    selectors = read_selectors(source, name) if returns else ()
    families, chains = read_families(source, name) if tunings else ((), ())
    structs = sorted(find_aggregates({**included, name: data}).items()) if returns else ()
    return TuningHeader(
        name=name,
        families=families,
        chains=chains,
        selectors=selectors,
        format_off=source.format_off if tunings else (),
        aggregates={name: struct.typed_fields for name, struct in structs if struct.typed_fields},
    )
