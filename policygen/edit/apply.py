"""Writes changed files into a tree, all or none, and remembers how to take them back."""

from collections.abc import Container, Sequence
from datetime import datetime
from pathlib import Path

from policygen.edit.change import Change
from policygen.edit.journal import Journal, WrittenFile
from policygen.edit.lock import tree_lock
from policygen.edit.recover import Recovered, recover, settle
from policygen.edit.replace import described, replace
from policygen.edit.target import inside, present, real
from policygen.errors import InputError, together

__all__ = ["Recovered", "apply", "recover"]


def apply(
    changes: Sequence[Change], store: Path, root: Path, title: str, document: str, when: datetime
) -> int:
    """Writes all files or none, and remembers how to take it back; the number of the apply.

    `document` says what was asked for, as JSON. What a kill interrupted before is ended first.
    """
    if all(change.before == change.after for change in changes):
        raise InputError("no file would change", "There is nothing to apply.")
    with tree_lock(real(root)), Journal.open(store) as journal:
        settle(journal, real(root))
        files = _checked(changes, root)
        number, write = journal.begin_apply(real(root), files, title, document, when)
        replace(journal, write)
    return number


def _checked(changes: Sequence[Change], root: Path) -> tuple[WrittenFile, ...]:
    """The files that change, each as it was when the change was made."""
    errors: list[InputError] = []
    files: dict[Path, WrittenFile] = {}
    for change in sorted(changes, key=lambda change: change.path):
        try:
            _check(change, files, root)
            if change.before != change.after:
                files[real(change.path)] = described(change, root)
        except InputError as error:
            errors.append(error)
    if errors:
        raise together(errors)
    return tuple(files.values())


def _check(change: Change, files: Container[Path], root: Path) -> None:
    inside(change.path, root)
    if present(change.path, root) != change.before:
        raise InputError(
            f"{change.path} was changed since it was read", "Make the plan again; nothing was done."
        )
    if real(change.path) in files:
        raise InputError(f"{change.path} would be changed twice", "Give all of it in one change.")
