"""All tuning headers of a folder, in parallel, each read once for its content."""

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
from policygen.headers.parsers import Neighbours
from policygen.headers.specializations.families import holds_tunings
from policygen.headers.text import FOLDER, Text, read_bytes, tree_around
from policygen.headers.workers import Request, read_all
from policygen.model.arch import arch_and_gpu
from policygen.model.tuning import Entry, Family, PolicyChain, TuningHeader
from policygen.opening import NotOpenedError, read_inside
from policygen.rocprim.structs import declaring


@dataclass(frozen=True, slots=True)
class Scanned:
    """What could be read, and what could not."""

    headers: tuple[TuningHeader, ...]
    errors: tuple[SourceError, ...]


def scan_headers(
    paths: Sequence[Path],
    *,
    cached: bool = True,
    progress: Callable[[int, int, str], None] | None = None,
) -> Scanned:
    """Reads headers; one that is broken does not keep the others from being read."""
    neighbours, included = _neighbours(paths), Included(frozenset(paths))
    known = [_known(path, neighbours, included, cached=cached) for path in paths]
    asked = read_all([one for one in known if isinstance(one, Request)])
    results: list[TuningHeader | SourceError] = []
    for index, (path, one) in enumerate(zip(paths, known, strict=True)):
        result = next(asked) if isinstance(one, Request) else one
        if cached and isinstance(one, Request) and isinstance(result, TuningHeader):
            store(_key(one), result)
        results.append(result)
        if progress:
            progress(index + 1, len(paths), path.name)
    return Scanned(
        tuple(r for r in results if isinstance(r, TuningHeader)),
        tuple(r for r in results if isinstance(r, SourceError)),
    )


@dataclass(slots=True)
class Included:
    """What the files of a tree hold and include, each looked at once and told once."""

    read: Collection[Path]
    """The headers that are read for themselves."""
    _seen: set[Path] = field(default_factory=set)

    def check(self, path: Path, data: bytes) -> None:
        """Raises at the include of a header that leads to tunings which nobody reads."""
        root = tree_around(path)
        for match in _includes(data):
            waiting = list(_found(path, root, match))
            while waiting:
                file = waiting.pop()
                if file in self._seen or file in self.read or file.match(_NAME):
                    continue
                self._seen.add(file)
                holds, inner = _look(file, root)
                if holds:
                    shown = file.relative_to(root) if file.is_relative_to(root) else file
                    raise Text(str(path), data).error(
                        match.start(2),
                        f"{shown.as_posix()} holds tunings, and is no tuning header: they are not"
                        " read",
                        width=len(match[2]),
                        remedy=f"Write them into a header that is called {_NAME}.",
                    )
                waiting += inner


def _known(
    path: Path, neighbours: Neighbours, included: Included, *, cached: bool
) -> TuningHeader | SourceError | Request:
    """A header as it was read before; else what has to be asked for."""
    try:
        data = read_bytes(path)
        included.check(path, data)
        request = _request(path, data, neighbours)
    except SourceError as error:
        return error
    return (load(_key(request)) if cached else None) or request


def _request(path: Path, data: bytes, neighbours: Neighbours) -> Request:
    beside = {**neighbours.reachable(data), **declaring(path)}
    return Request(path.name, str(path), data, beside)


def _key(request: Request) -> str:
    return key(request.name, request.data, *request.neighbours.values())


def read_changed(path: Path, data: bytes) -> TuningHeader:
    """A header of a tree with other content than the file has."""
    (found,) = read_all([_request(path, data, _neighbours([path]))])
    if isinstance(found, SourceError):
        raise found
    return found


def _neighbours(paths: Sequence[Path]) -> Neighbours:
    """What the headers share: those beside them that hold no tunings of their own."""
    folders = sorted({path.parent for path in paths})
    headers: dict[str, bytes] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.cuh")):
            try:
                data = read_bytes(path)
            except SourceError:
                continue  # told when it is read for itself; others can be read without it
            if not holds_tunings(data):
                headers[f"{FOLDER}/{path.name}"] = data
    return Neighbours(headers)


KIND = "scan"


# What was read of a header, kept under the content that it was read from.


@cache
def _fingerprint() -> bytes:
    """The readers themselves: a change of theirs makes old results worthless."""
    package = Path(__file__).resolve().parent
    folders = (package, package.parent / "rocprim")
    sources = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    sources.append(package.parent / "model" / "tuning.py")
    sources.append(rendering.folder("templates") / "scan" / "prelude.h")
    sources += [rendering.folder("schemas") / name for name in ("archs.toml", "words.toml")]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).digest()


def key(name: str, *contents: bytes) -> str:
    """Names what a header reads as: its bytes, those that it includes, and the readers'."""
    return digest(_fingerprint(), name, *contents)


def load(name: str) -> TuningHeader | None:
    """A header that was read before; a damaged file counts as none."""
    data = kept(KIND, name)
    try:
        return None if data is None else TuningHeader.model_validate_json(data)
    except ValidationError:  # of another Pydantic
        return None


def store(name: str, header: TuningHeader) -> None:
    """Keeps a header; a folder that cannot be written costs speed, nothing else."""
    with suppress(OSError):
        keep(KIND, name, header.model_dump_json().encode())


# "#  include <cub/device/dispatch/tuning/common.cuh>", '#include "entries.inl"'
_INCLUDE = re.compile(rb'#[ \t]*include[ \t]*([<"])([^>"\n]*)[>"]')
_NAME = "tuning_*.cuh"
_FOLLOWED = "cub"


# Files that tuning headers include: one that holds tunings itself would not be read.
#
# The headers of Thrust and libcu++ are looked at where a tuning header names them, not further.


@cache
def _worth_a_look() -> re.Pattern[bytes]:
    """What begins with letters is searched fast."""
    return re.compile(rb"sm\d{2,3}_|" + words().selectors.name.encode())


@cache
def _tunings() -> re.Pattern[bytes]:
    """`struct sm90_tuning<`, `get_sm90_tuning(`, `struct policy_selector {`."""
    return re.compile(
        rb"\b(?:struct|class)\b[^;{}<>=,()]*"
        rb"\b(?:sm\d{2,3}_\w+\s*[<{:]|%b\s*[{:])"
        rb"|\b\w*sm\d{2,3}_\w*\s*\([^(){};]*\)[^(){};=]*->[^(){};=]*\{"
        % words().selectors.name.encode()
    )


def _look(file: Path, root: Path) -> tuple[bool, tuple[Path, ...]]:
    """Whether a file holds tunings, and what it includes of CUB."""
    try:
        data = read_inside(root, file)
    except OSError:
        return False, ()  # the compiler would not find it either
    except NotOpenedError as error:
        if not file.is_relative_to(root / _FOLLOWED):
            return False, ()  # a library may be kept elsewhere
        raise SourceError(str(file), 1, 1, error.reason, remedy=error.remedy) from error
    holds = bool(_worth_a_look().search(data) and _tunings().search(Text("", data).code))
    if not file.is_relative_to(root / _FOLLOWED):
        return holds, ()
    own = (m for m in _includes(data) if m[1] == b'"' or m[2].startswith(b"cub/"))
    return holds, tuple(found for match in own for found in _found(file, root, match))


def _includes(data: bytes) -> Iterator[re.Match[bytes]]:
    """Those that stand on a line of their own, not in a comment behind something."""
    for match in _INCLUDE.finditer(data):
        if not data[data.rfind(b"\n", 0, match.start()) + 1 : match.start()].strip():
            yield match


def _found(file: Path, root: Path, include: re.Match[bytes]) -> Iterator[Path]:
    """Where an include is looked for; a file that is not there is passed over later."""
    name = include[2].decode("utf-8", "surrogateescape")
    if include[1] == b'"':
        beside = file.parent / name
        if beside.exists():
            yield beside
            return
    yield root / name


# Which families and entries of a scan a user asked for.


def algorithm(header: str) -> str:
    """`tuning_radix_sort.cuh` tunes `radix_sort`."""
    return header.removeprefix("tuning_").partition(".")[0]


def select_families(
    headers: tuple[TuningHeader, ...],
    pattern: re.Pattern[str],
    archs: Set[str],
    args: Mapping[str, frozenset[str]],
    *,
    selectors: bool = False,
) -> tuple[Family, ...]:
    """The families that match, with those entries that have the asked arguments.

    Of a branch those are facts that it asks for: `key_size == 1`.
    """
    return tuple(
        family.model_copy(update={"entries": entries})
        for header in headers
        for family in (*header.families, *(header.selectors if selectors else ()))
        if (not archs or archs & {family.arch, arch_and_gpu(family.arch)[0]})
        and matches(pattern, family)
        and (entries := tuple(e for e in family.entries if _has(family, e, args)))
    )


def matches(pattern: re.Pattern[str], owner: Family | PolicyChain) -> bool:
    """Whether the algorithm, its benchmark or the qualified name begins with a match."""
    name = algorithm(owner.header)
    last = owner.name if isinstance(owner, Family) else owner.hub
    return any(
        pattern.match(text)
        for text in (
            name,
            f"{words().benchmarks.prefix}{name}",
            owner.header,
            f"{owner.namespace}::{last}",
        )
    )


def _has(family: Family, entry: Entry, args: Mapping[str, frozenset[str]]) -> bool:
    """Whether an entry's arguments are the asked ones; a primary template has none to ask."""
    if not args:
        return True
    if entry.kind == "branch":
        return all(
            any(f"{name} == {value}" in entry.args for value in values)
            for name, values in args.items()
        )
    names = [p.label for p in family.parameters]
    if len(names) != len(entry.args):
        # A disabled entry may have the argument list of an older family.
        return all(not values.isdisjoint(entry.args) for values in args.values())
    given = dict(zip(names, entry.args, strict=True))
    return all(given.get(name) in values for name, values in args.items())
