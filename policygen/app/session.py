"""The tree that is worked on, the store of what was written to it, and who is told how it goes."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen import trees
from policygen.app.reading import looked
from policygen.errors import InputError
from policygen.model.results import DataWarning
from policygen.model.trees import CALLED, Cub, Headers, Library
from policygen.outputs import is_own
from policygen.paths import nearby
from policygen.steps import Progress
from policygen.store.applies import being_written, interrupted
from policygen.store.targets import leftovers
from policygen.trees import find_any, headers_folder
from policygen.trees.fetched import all_versions, fetch_all, fetched_name, open_fetched, overview
from policygen.trees.layout import tuning_folders
from policygen.trees.revisions import open_revision
from policygen.untrusted import visible

_LEFT = """\
policygen undo --store FILE takes it back, policygen apply --finish --store FILE completes it.
  If the store that was written then is gone, check the headers and delete the file."""
Note = Callable[[str], None]
"""Is told what is no error, and should be known."""


# Who is told how it goes.


def unsaid(_text: str) -> None:
    """Keeps a note to itself."""


@dataclass(frozen=True, slots=True)
class Session:
    """One tree, one store."""

    cub: Cub
    named: Path | None = None
    """The store that was named; none: the usual one of the current folder."""
    progress: Progress | None = None
    note: Note = unsaid

    @property
    def root(self) -> Path:
        """The include folder of the tree."""
        return Path(self.cub.root)

    @property
    def store(self) -> Path:
        """Where applies are recorded."""
        return own_store(self.named)


def open_session(
    cub: str | None = None,
    store: str | Path | None = None,
    *,
    whole: bool = False,
    bound: bool = True,
    library: Library | None = None,
    progress: Progress | None = None,
    note: Note = unsaid,
) -> Session:
    """Opens the tree that is named, or found; it must be `whole` for what is said of a change.

    What needs no bindings does not look which of them it fits. A library is the one whose tree it
    must be; else any.
    """
    named = None if store is None else Path(store)
    found = trees.find(cub, Path.cwd(), library)
    session = Session(looked(found) if bound else found, named, progress, note)
    tell_interrupted(session, whole=whole)
    return session


def check_named(cub: Cub) -> None:
    """An error for a tree that was merely found: it is read, and nothing is written to it."""
    if cub.is_named:
        return
    root = Path(cub.root)
    name = fetched_name(trees.headers_folder(Path.cwd()), root) or nearby(root)
    raise InputError(
        f"nothing is written to {cub.called} {cub.version} in {cub.root}: it was found, not named"
        f" (found by: {cub.found})",
        f"To write to this tree, add --cub {shlex.quote(name)}; to one of your own, --cub PATH."
        " --diff, --check and --patch FILE write to no tree.",
    )


def tell_interrupted(session: Session, *, whole: bool = False) -> None:
    """Notes that somebody was killed writing to the tree; an error where it must be whole."""
    if problem := interruption(session):
        if whole:
            raise problem
        session.note(str(problem))


def interruption(session: Session) -> InputError | None:
    """That somebody writes to the tree, or was killed doing it; none where it is whole."""
    left = [path for folder in tuning_folders(session.cub) for path in leftovers(folder)]
    heard = heard_store(session.named)
    if not (left or heard):
        return None
    known = interrupted(heard, session.root) if heard else ()
    if not (left or known):
        return None
    if being_written(session.root):
        return InputError(
            f"another policygen is writing to {session.root}", "Wait until it is done."
        )
    if known:
        remedy = known[0].remedy.replace("{}", store_option_of(session.named))
        return InputError(str(known[0]), remedy)
    return InputError(
        f"{left[0]} is left of an interrupted policygen: the headers may be half done", _LEFT
    )


def tell_warnings(warnings: Sequence[DataWarning], note: Note) -> None:
    """Notes what was not usable."""
    for warning in warnings:
        note(visible(str(warning)))


STORE = "policygen.db"


# The store that counts: one that is named, or that this user made in the current folder.


def own_store(named: str | Path | None = None) -> Path:
    """The store; the usual one is refused where it could be a stranger's."""
    store = Path(STORE if named is None else named)
    if named is None and store.exists() and not is_own(store):
        raise InputError(
            f"{store.resolve()} is not known to be your store; it could be a stranger's",
            f"Where it is yours, name it: --store {store}",
        )
    return store


def heard_store(named: Path | None) -> Path | None:
    """The same to look into, where there is one; a stranger's is left alone."""
    store = named or Path(STORE)
    return store if store.is_file() and (named or is_own(store)) else None


def store_option_of(store: Path | None) -> str:
    """How a command names the store: not at all where it is the usual one."""
    return "" if store is None or str(store) == STORE else f" --store {store}"


# The libraries whose trees are read, as commands name them.

__all__ = ["LIBRARIES", "Library"]
LIBRARIES: tuple[Library, ...] = tuple(CALLED)
_MEASURED = (
    "Measure with {called}'s own benchmarks: policygen db import reads what they write, and"
    " policygen plan says what it would change."
)
FOR_CUB: Mapping[str, str] = {
    "emit": "{called} takes other values from its headers: policygen apply writes them there.",
    "measure": _MEASURED,
    "search": _MEASURED,
    "tune": _MEASURED,
    "verify-performance": _MEASURED,
}
"""Command that needs nvcc or a GPU of NVIDIA → what one does with a tree of another library."""


# Which commands are for CUB alone, and what one does instead with trees of other libraries.


def serves(command: str, cub: Cub) -> bool:
    """Whether a command has a meaning for a tree."""
    return command not in FOR_CUB or cub.has_machine_code


def offers_code(cub: Cub) -> bool:
    """Whether a comparison of machine code is offered unasked: not where few have the compiler."""
    return cub.has_machine_code


def check_serves(command: str, cub: Cub) -> None:
    """Refuses a tree that a command has no meaning for."""
    if not serves(command, cub):
        raise InputError(
            f"policygen {command} is for {CALLED['cub']}, and {cub.root} holds {cub.title}",
            FOR_CUB[command].format(called=cub.called),
        )


# The trees that can be had, and the ones that another is compared with.


def other_tree(session: Session, text: str) -> Cub:
    """The tree to compare with: a path or a fetched version, else a git revision."""
    try:
        return open_session(text, note=session.note).cub
    except InputError:
        if Path(text).exists():
            raise
        return looked(open_revision(session.cub, text))


def list_trees(cub: str | None = None) -> Headers:
    """The trees that can be had, and the one that is used here."""
    return overview(headers_folder(Path.cwd()), find_any(cub, Path.cwd()))


def fetch_trees(
    versions: Sequence[str],
    *,
    everything: bool = False,
    again: bool = False,
    progress: Callable[[str], None],
) -> tuple[Headers, tuple[Cub, ...]]:
    """Gets trees from PyPI or Debian; the last one becomes the current tree of its library."""
    folder = headers_folder(Path.cwd())
    wanted = all_versions(folder, versions) if everything else versions
    trees = fetch_all(wanted, folder, progress, again=again)
    return overview(folder, trees[-1]), tuple(trees)


def used_tree(session: Session) -> Headers:
    """The tree of a session, among those that can be had."""
    return overview(headers_folder(Path.cwd()), session.cub)


def fetched_session(version: str) -> Session:
    """A tree that was fetched."""
    return Session(open_fetched(headers_folder(Path.cwd()), version))
