"""Every tuning family and entry of a tree."""

from collections.abc import Sequence
from pathlib import Path

from policygen import trees
from policygen.app.filters import EVERYTHING, Filter, parse_archs
from policygen.app.session import Note, Session, open_session, tell_interrupted, unsaid
from policygen.errors import InputError, SourceError, anchored, listed
from policygen.headers.scan import algorithm, matches, scan_headers, select_families
from policygen.model.arch import arch_number
from policygen.model.records import Problem
from policygen.model.trees import UNKNOWN, Cub, Library
from policygen.model.tuning import Family, Scan, TuningHeader
from policygen.trees.layout import lone_dialect


def scan_tunings(
    cub: str | None = None,
    asked: Filter = EVERYTHING,
    *,
    cached: bool = True,
    selectors: bool = False,
    library: Library | None = None,
    note: Note = unsaid,
) -> tuple[Scan, tuple[SourceError, ...]]:
    """Reads a tree, or some of its headers; tells what could not be read, too."""
    found, paths = tree_and_headers(asked.headers, cub, note, library)
    scanned = scan_headers(paths, cached=cached)
    families = chosen_families(scanned.headers, asked, selectors=selectors)
    narrowed = asked.regex or asked.axes or asked.archs
    if not families and not scanned.errors and narrowed:
        raise nothing_left(asked, scanned.headers)
    chains = tuple(c for h in scanned.headers for c in h.chains if matches(asked.pattern, c))
    problems = tuple(Problem.of(error) for error in scanned.errors)
    return Scan(cub=found, families=families, chains=chains, problems=problems), scanned.errors


def chosen_families(
    headers: tuple[TuningHeader, ...], asked: Filter, *, selectors: bool = False
) -> tuple[Family, ...]:
    """The families that are meant, with those of their entries that are."""
    archs = parse_archs(asked.archs)
    return select_families(headers, asked.pattern, archs, asked.values, selectors=selectors)


def tree_and_headers(
    names: Sequence[str], cub: str | None, note: Note = unsaid, library: Library | None = None
) -> tuple[Cub, tuple[Path, ...]]:
    """The tree, and the headers that are named, or all of them."""
    files = {name: Path(name) for name in names if Path(name).is_file()}
    if cub is None and files and len(files) == len(names):
        return _tree_of(next(iter(files.values())), note, library), tuple(files.values())
    found = open_session(cub, bound=False, library=library, note=note).cub
    known = trees.tuning_headers(found)
    return found, tuple(files.get(name) or _header(name, known) for name in names) or known


def _tree_of(header: Path, note: Note, library: Library | None) -> Cub:
    """The tree around a header; a header that lies by itself is its own."""
    try:
        found = trees.open_tree(header, library=library)
    except InputError:
        folder, dialect = str(header.resolve().parent), lone_dialect(header)
        return Cub(root=folder, version=UNKNOWN, dialect=dialect, found="header")
    tell_interrupted(Session(found, note=note))
    return found


def _header(name: str, known: tuple[Path, ...]) -> Path:
    for path in known:
        if name in {path.name, path.stem, algorithm(path.name)}:
            return path
    raise InputError(
        f"no tuning header is called {name!r}",
        "Here are: " + ", ".join(algorithm(path.name) for path in known),
    )


def nothing_left(asked: Filter, headers: Sequence[TuningHeader]) -> InputError:
    """A filter that matches nothing is a mistyped one."""
    words = [f"-R {asked.regex!r}"] if asked.regex else []
    words += [f"--arch {arch}" for arch in asked.archs] + [f"-a {axis!r}" for axis in asked.axes]
    families = [family for header in headers for family in header.families]
    algorithms = sorted({algorithm(family.header) for family in families})
    known = sorted({family.arch for family in families}, key=arch_number)
    parameters = sorted({p.label for family in families for p in family.parameters})
    names = [n for f in families for n in (algorithm(f.header), f"{f.namespace}::{f.name}")]
    hint = anchored(asked.pattern, names)
    return InputError(
        f"nothing matches {' '.join(words)}",
        f"{hint}\n  "
        * bool(hint)
        + f"Algorithms with tuning families: {', '.join(algorithms) or 'none'}\n"
        f"  archs: {', '.join(known) or 'none'}\n"
        f"  template parameters for -a: {listed(parameters) or 'none'}",
    )
