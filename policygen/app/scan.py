"""Lists every tuning family and entry of a tree."""

from collections.abc import Sequence
from pathlib import Path

from policygen import trees
from policygen.app.filters import EVERYTHING, Filter, parse_archs
from policygen.app.session import Session, open_session, tell_interrupted
from policygen.errors import InputError, SourceError, anchored, listed
from policygen.headers.scan import algorithm, matches, scan_headers, select_families
from policygen.headers.text import as_problem
from policygen.model.arch import arch_number
from policygen.model.audits import Scan
from policygen.model.trees import UNKNOWN, Cub, Library
from policygen.model.tuning import Family, TuningHeader
from policygen.steps import Note, discard_note
from policygen.trees.layout import lone_dialect


def scan_tunings(
    cub: str | None = None,
    where: Filter = EVERYTHING,
    *,
    cached: bool = True,
    selectors: bool = False,
    library: Library | None = None,
    note: Note = discard_note,
) -> tuple[Scan, tuple[SourceError, ...]]:
    """Reads a tree, or some of its headers. Also returns the errors of unreadable headers."""
    tree, paths = tree_and_headers(where.headers, cub, note, library)
    scanned = scan_headers(paths, cached=cached)
    families = chosen_families(scanned.headers, where, selectors=selectors)
    is_filtered = where.regex or where.axes or where.archs
    if not families and not scanned.errors and is_filtered:
        raise nothing_left(where, scanned.headers)
    chains = tuple(c for h in scanned.headers for c in h.chains if matches(where.pattern, c))
    problems = tuple(map(as_problem, scanned.errors))
    return Scan(cub=tree, families=families, chains=chains, problems=problems), scanned.errors


def chosen_families(
    headers: tuple[TuningHeader, ...], where: Filter, *, selectors: bool = False
) -> tuple[Family, ...]:
    """Returns the selected families with their selected entries."""
    archs = parse_archs(where.archs)
    return select_families(headers, where.pattern, archs, where.values, selectors=selectors)


def tree_and_headers(
    names: Sequence[str], cub: str | None, note: Note = discard_note, library: Library | None = None
) -> tuple[Cub, tuple[Path, ...]]:
    """Returns the tree with the named headers, or with all of them."""
    files = {name: Path(name) for name in names if Path(name).is_file()}
    if cub is None and files and len(files) == len(names):
        return _tree_around(next(iter(files.values())), note, library), tuple(files.values())
    tree = open_session(cub, bound=False, library=library, note=note).cub
    headers = trees.tuning_headers(tree)
    return tree, tuple(files.get(name) or _header(name, headers) for name in names) or headers


def _tree_around(header: Path, note: Note, library: Library | None) -> Cub:
    """Returns the tree around a header; a standalone header forms a tree of its own."""
    try:
        tree = trees.open_tree(header, library=library)
    except InputError:
        folder, dialect = str(header.resolve().parent), lone_dialect(header)
        return Cub(root=folder, version=UNKNOWN, dialect=dialect, found="header")
    tell_interrupted(Session(tree, note=note))
    return tree


def _header(name: str, headers: tuple[Path, ...]) -> Path:
    for path in headers:
        if name in {path.name, path.stem, algorithm(path.name)}:
            return path
    raise InputError(
        f"no tuning header is named {name!r}",
        "Available: " + ", ".join(algorithm(path.name) for path in headers),
    )


def nothing_left(where: Filter, headers: Sequence[TuningHeader]) -> InputError:
    """Builds the error for a filter that matches nothing, with suggestions."""
    words = [f"-R {where.regex!r}"] if where.regex else []
    words += [f"--arch {arch}" for arch in where.archs] + [f"-a {axis!r}" for axis in where.axes]
    families = [family for header in headers for family in header.families]
    algorithms = sorted({algorithm(family.header) for family in families})
    archs = sorted({family.arch for family in families}, key=arch_number)
    parameters = sorted({p.label for family in families for p in family.parameters})
    names = [n for f in families for n in (algorithm(f.header), f"{f.namespace}::{f.name}")]
    hint = anchored(where.pattern, names)
    return InputError(
        f"nothing matches {' '.join(words)}",
        f"{hint}\n  "
        * bool(hint)
        + f"Algorithms with tuning families: {', '.join(algorithms) or 'none'}\n"
        f"  archs: {', '.join(archs) or 'none'}\n"
        f"  template parameters for -a: {listed(parameters) or 'none'}",
    )
