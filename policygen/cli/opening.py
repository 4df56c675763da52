"""The tree that a command works on; whether somebody was killed writing to it is said first."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from policygen.cli.options import STORE, is_believed
from policygen.errors import InputError

if TYPE_CHECKING:
    from policygen.model.cub import Cub

_LEFT = """\
policygen undo --store FILE takes it back, policygen apply --finish --store FILE completes it.
  If the store that was written then is gone, check the headers and delete the file."""


def open_cub(cub: str | None, store: str = STORE, *, whole: bool = False) -> "Cub":
    """The tree that is named, or found; it must be `whole` for what is said of a change."""
    from policygen import tree

    found = tree.find(cub, Path.cwd())
    tell_interrupted(found, store, whole=whole)
    return found


def tell_interrupted(found: "Cub", store: str = STORE, *, whole: bool = False) -> None:
    """An error where the tree must be whole and is not, else a warning."""
    if problem := _interrupted(found, store):
        if whole:
            raise problem
        sys.stderr.write(f"policygen: warning: {problem}\n")


def store_option_of(store: str) -> str:
    """How a command names the store: not at all where it is the usual one."""
    return "" if store == STORE else f" --store {store}"


def _interrupted(found: "Cub", store: str) -> InputError | None:
    from policygen.edit.target import leftovers
    from policygen.tree.layout import tunings_folder

    root = Path(found.root)
    left = leftovers(tunings_folder(found))
    heard = Path(store).is_file() and is_believed(store)
    if not (left or heard):
        return None
    from policygen.edit.interrupted import being_written, interrupted

    known = interrupted(Path(store), root) if heard else ()
    if not (left or known):
        return None
    if being_written(root):
        return InputError(f"another policygen is writing to {root}", "Wait until it is done.")
    if known:
        remedy = known[0].remedy.replace("{}", store_option_of(store))
        return InputError(str(known[0]), remedy)
    return InputError(
        f"{left[0]} is left of an interrupted policygen: the headers may be half done", _LEFT
    )
