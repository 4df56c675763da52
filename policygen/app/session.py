"""Sessions: the tree, the store of what was written to it, and where notes and progress go."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from policygen import trees
from policygen.bindings import load
from policygen.bindings.load import bindings, identity
from policygen.cache import digest, keep, kept, written_by
from policygen.errors import InputError, PolicygenError
from policygen.headers import fit, syntax
from policygen.headers.selectors import functions, statements
from policygen.headers.specializations import families
from policygen.headers.text import Text
from policygen.model.trees import CALLED, FOUND_BY_STORE, UNKNOWN, Cub, Headers, Library
from policygen.outputs import is_own
from policygen.portable import nearby
from policygen.steps import Note, Progress, discard_note
from policygen.store.applies import changed_roots, interrupted
from policygen.store.targets import being_written, leftovers
from policygen.trees import find_any, headers_folder, open_tree
from policygen.trees.fetched import all_versions, fetch_all, fetched_name, open_fetched, overview
from policygen.trees.layout import other_headers, own_sources, tuning_folders, tunings_folder
from policygen.trees.lookup import open_revision

_LEFT = """\
policygen undo --store FILE undoes it, policygen apply --finish --store FILE completes it.
  If its store no longer exists, check the headers and delete the file."""


@dataclass(frozen=True, slots=True)
class Session:
    """One tree with one store."""

    cub: Cub
    named: Path | None = None
    """The named store; if None, the default store of the current folder."""
    progress: Progress | None = None
    note: Note = discard_note

    @property
    def root(self) -> Path:
        """The include folder of the tree."""
        return Path(self.cub.root)

    @property
    def store(self) -> Path:
        """The database in which applies are recorded."""
        return own_store(self.named)


def open_session(
    cub: str | None = None,
    store: str | Path | None = None,
    *,
    whole: bool = False,
    bound: bool = True,
    by_store: bool = False,
    library: Library | None = None,
    progress: Progress | None = None,
    note: Note = discard_note,
) -> Session:
    """Opens the named tree, or finds one. With `whole`, raises an error if a write was interrupted.

    `bound=False` skips detecting the bindings that the tree fits. With `by_store`, the tree that
    the store has changed comes before trees that belong to other programs. `library` restricts
    which library the tree must be of.
    """
    store_path = None if store is None else Path(store)
    tree = _find_by_store(store_path, note) if by_store and cub is None else None
    tree = tree or trees.find(cub, Path.cwd(), library)
    session = Session(with_detected_bindings(tree) if bound else tree, store_path, progress, note)
    tell_interrupted(session, whole=whole)
    return session


def _find_by_store(named: Path | None, note: Note) -> Cub | None:
    """Returns the only tree that the store has changed, unless the user named or is in a tree.

    Raises an error if the store has changed several.
    """
    store, default = readable_store(named), find_any(None, Path.cwd())
    if store is None or (default and default.is_named):
        return None
    changed: list[Cub] = []
    for root in changed_roots(store):
        with suppress(InputError):  # it is no longer there
            changed.append(open_tree(root, FOUND_BY_STORE))
    if len(changed) > 1:
        rows = "".join(f"\n    {nearby(Path(tree.root))}" for tree in changed)
        raise InputError(
            f"no tree given, and {store} has changed {len(changed)}:{rows}",
            "Name one of them: --cub PATH",
        )
    if not changed or (default and Path(default.root).samefile(changed[0].root)):
        return None
    name = nearby(Path(changed[0].root))
    note(f"no tree given: using {name}, the only one that {store} has changed")
    return changed[0]


def check_named(cub: Cub) -> None:
    """Raises an error for a tree that was found and not named; such trees are read-only."""
    if cub.is_named:
        return
    root = Path(cub.root)
    name = fetched_name(trees.headers_folder(Path.cwd()), root) or nearby(root)
    raise InputError(
        f"nothing is written to {cub.called} {cub.version} in {cub.root}: it was found"
        f" automatically (by: {cub.found}), not named with --cub",
        f"To write to this tree, add --cub {shlex.quote(name)}; to one of your own, --cub PATH."
        " --diff, --check and --patch FILE write to no tree.",
    )


def tell_interrupted(session: Session, *, whole: bool = False) -> None:
    """Notes an interrupted write to the tree, or raises an error if the tree must be `whole`."""
    if problem := interruption(session):
        if whole:
            raise problem
        session.note(str(problem))


def interruption(session: Session) -> InputError | None:
    """Returns an error if a write to the tree is in progress or was interrupted, else None."""
    leftover_files = [path for folder in tuning_folders(session.cub) for path in leftovers(folder)]
    known_store = readable_store(session.named)
    if not (leftover_files or known_store):
        return None
    interruptions = interrupted(known_store, session.root) if known_store else ()
    if not (leftover_files or interruptions):
        return None
    if being_written(session.root):
        return InputError(
            f"another policygen is writing to {session.root}", "Wait until it has finished."
        )
    if interruptions:
        remedy = interruptions[0].remedy.replace("{}", store_option_of(session.named))
        return InputError(str(interruptions[0]), remedy)
    return InputError(
        f"{leftover_files[0]} was left behind by an interrupted policygen; the headers may be only"
        " partly written",
        _LEFT,
    )


STORE = "policygen.db"


# The active store: a named one, or one that this user made in the current folder.


def own_store(path: str | Path | None = None) -> Path:
    """Returns the store. The default store is refused if it may belong to another user."""
    store = Path(STORE if path is None else path)
    if path is None and store.exists() and not is_own(store):
        raise InputError(
            f"{store.resolve()} may not be your store",
            f"If it is yours, name it: --store {store}",
        )
    return store


def readable_store(path: Path | None) -> Path | None:
    """Returns the store if it exists and may be read; the store of another user is ignored."""
    store = path or Path(STORE)
    return store if store.is_file() and (path or is_own(store)) else None


def store_option_of(store: Path | None) -> str:
    """Returns the command-line option for the store; empty for the default store."""
    return "" if store is None or str(store) == STORE else f" --store {store}"


# Names of the supported libraries.

__all__ = ["LIBRARIES", "Library"]
LIBRARIES: tuple[Library, ...] = tuple(CALLED)
_MEASURED = (
    "Measure with {called}'s own benchmarks: policygen db import reads their results, and"
    " policygen plan shows what would change."
)
FOR_CUB: Mapping[str, str] = {
    "emit": "{called} reads its values from its headers: policygen apply writes them there.",
    "measure": _MEASURED,
    "overlay": "{called} takes other values from its headers: policygen apply writes them there.",
    "search": _MEASURED,
    "tune": _MEASURED,
    "verify-performance": _MEASURED,
}
"""Commands that need nvcc or an NVIDIA GPU → what to do with a tree of another library."""


# Commands that are for CUB only.


def check_serves(command: str, cub: Cub) -> None:
    """Raises an error if a command does not apply to a tree."""
    if not cub.has_machine_code:
        raise InputError(
            f"policygen {command} is for {CALLED['cub']}, but {cub.root} contains {cub.title}",
            FOR_CUB[command].format(called=cub.called),
        )


# Available trees, and trees to compare with.


def other_tree(session: Session, text: str) -> Cub:
    """Opens the tree to compare with: a path or a fetched version, else a git revision."""
    try:
        return open_session(text, note=session.note).cub
    except InputError:
        if Path(text).exists():
            raise
        return with_detected_bindings(open_revision(session.cub, text))


def list_trees(cub: str | None = None) -> Headers:
    """Lists the available trees, and the one in use here."""
    return overview(headers_folder(Path.cwd()), find_any(cub, Path.cwd()))


def fetch_trees(
    versions: Sequence[str],
    *,
    everything: bool = False,
    again: bool = False,
    progress: Callable[[str], None],
) -> tuple[Headers, tuple[Cub, ...]]:
    """Fetches trees from PyPI or Debian. The last one becomes the current tree of its library."""
    folder = headers_folder(Path.cwd())
    selected = all_versions(folder, versions) if everything else versions
    trees = fetch_all(selected, folder, progress, again=again)
    return overview(folder, trees[-1]), tuple(trees)


def used_tree(session: Session) -> Headers:
    """Lists the available trees, with the session's tree in use."""
    return overview(headers_folder(Path.cwd()), session.cub)


def fetched_session(version: str) -> Session:
    """Opens a session for a fetched tree."""
    return Session(open_fetched(headers_folder(Path.cwd()), version))


KIND = "looked"
# #include <cub/device/dispatch/tuning/tuning_radix_sort.cuh>
_INCLUDED = re.compile(rb"#\s*include\s*<cub/device/dispatch/tuning/(\w+\.cuh)>")


# Detecting the bindings for a tree's headers: one version of CUB covers many states of main.


def with_detected_bindings(cub: Cub) -> Cub:
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
    versions = written_by(fit, load, functions, statements, families, syntax)
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
    return fit.TreeText(headers, files)


def _with_included(name: str, tunings: dict[str, bytes]) -> list[str]:
    """Returns a header and the tuning headers that it includes."""
    reached = [name]
    for header in reached:
        names = [match.decode() for match in _INCLUDED.findall(tunings[header])]
        reached += [
            included for included in names if included in tunings and included not in reached
        ]
    return reached
