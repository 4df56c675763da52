"""Takes applies back, byte for byte."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from policygen import tree
from policygen.app.applied import document_of
from policygen.app.notes import Note, unsaid
from policygen.app.outcomes import tell_outcome
from policygen.edit.undo import Undone, net_changes, nothing, planned, undo
from policygen.model.undo import Undo, UndoneApply
from policygen.textdiff import unified
from policygen.tree.revision import paths_in_repository


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What an undo comes to."""

    undone: tuple[Undone, ...]
    written: bool

    @property
    def document(self) -> Undo:
        """Which applies, and which files of them."""
        applies = tuple(
            UndoneApply(
                apply=step.applied.id,
                title=step.applied.title,
                applied_at=step.applied.applied_at,
                root=str(step.applied.root),
                files=step.applied.files,
            )
            for step in self.undone
        )
        return Undo(written=self.written, applies=applies)

    @property
    def diffs(self) -> tuple[str, ...]:
        """What changes in each file."""
        if not self.undone:
            return ()
        changes, root = net_changes(self.undone), self.undone[0].applied.root
        paths = paths_in_repository([change.path for change in changes], root)
        return tuple(
            unified(path, change.before, change.after)
            for path, change in zip(paths, changes, strict=True)
        )


def undo_applies(
    store: Path,
    cub: str | None = None,
    *,
    steps: int = 1,
    write: bool = True,
    required: bool = True,
    note: Note = unsaid,
) -> TakenBack:
    """Takes the last applies back, to any tree or to one; where `required`, there must be one."""
    root = None if cub is None else Path(tree.find(cub, Path.cwd()).root)
    if write:
        undone = undo(store, root, steps, datetime.now(UTC))
        _tell(store, undone, note)
    else:
        undone = planned(store, root, steps)
    if required and not undone:
        raise nothing(store, root)
    return TakenBack(undone, write)


def _tell(store: Path, undone: Sequence[Undone], note: Note) -> None:
    """Their choices are no longer in the tree, as far as something is known of them."""
    for step in undone:
        if document := document_of(step.applied):
            tell_outcome(store, document.choices, ("undone",), datetime.now(UTC), note)
