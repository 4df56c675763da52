"""The tree that is worked on, the store of what was written to it, and who is told how it goes."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from policygen import tree
from policygen.app.looking import looked
from policygen.app.notes import Note, unsaid
from policygen.app.stores import heard_store, own_store, store_option_of
from policygen.edit.interrupted import being_written, interrupted
from policygen.edit.target import leftovers
from policygen.errors import InputError
from policygen.model.cub import Cub, Library
from policygen.paths import nearby
from policygen.steps import Progress
from policygen.tree.layout import tuning_folders
from policygen.tree.store import fetched_name

_LEFT = """\
policygen undo --store FILE takes it back, policygen apply --finish --store FILE completes it.
  If the store that was written then is gone, check the headers and delete the file."""


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
    found = tree.find(cub, Path.cwd(), library)
    session = Session(looked(found) if bound else found, named, progress, note)
    tell_interrupted(session, whole=whole)
    return session


def check_named(cub: Cub) -> None:
    """An error for a tree that was merely found: it is read, and nothing is written to it."""
    if cub.is_named:
        return
    root = Path(cub.root)
    name = fetched_name(tree.headers_folder(Path.cwd()), root) or nearby(root)
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
