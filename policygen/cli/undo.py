"""`policygen undo`: takes the last apply back, byte for byte."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policygen.cli.options import cub_option, output_options, store_option

if TYPE_CHECKING:
    from policygen.edit.undo import Undone
    from policygen.model.undo import Undo


@click.command()
@click.option(
    "--steps", default=1, show_default=True, metavar="N", type=int, help="How many applies."
)
@cub_option
@store_option
@click.option("--diff", "as_diff", is_flag=True, help="Print what would change; write nothing.")
@click.option(
    "--check", is_flag=True, help="Exit with 1 when there is something to undo; write nothing."
)
@output_options
def undo(
    steps: int,
    cub: str | None,
    store: str,
    as_diff: bool,
    check: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Takes the last apply back, or the last N in one go; every byte is as it was before.

    Nothing is written where a file was edited since; the edit is shown. With --cub only applies
    to that tree count, else the last one to any tree.
    """
    from policygen.edit.undo import nothing, planned
    from policygen.edit.undo import undo as take_back

    if as_diff and as_json:
        raise click.UsageError("give --diff or --json, not both")
    place, root = Path(store), _root(cub)
    written = not (as_diff or check)
    if written:
        undone = take_back(place, root, steps, datetime.now(UTC))
        _tell(place, undone)
    else:
        undone = planned(place, root, steps)
    if not (undone or check):
        raise nothing(place, root)
    if as_diff:
        _print_diff(undone)
    elif as_json:
        sys.stdout.write(_document(undone, written=written).to_json() + "\n")
    else:
        from policygen.report.views.undo import print_undo

        print_undo(_document(undone, written=written), head=not quiet, verbose=verbose)
    return int(check and bool(undone))


def _tell(store: Path, undone: tuple[Undone, ...]) -> None:
    """Their choices are no longer in the tree."""
    from pydantic import ValidationError

    from policygen.cli.outcomes import tell_outcome
    from policygen.model.plan import Applied

    for step in undone:
        try:
            applied = Applied.model_validate_json(step.applied.document)
        except ValidationError:
            continue  # of another version, or not from a plan: nothing is known of its choices
        tell_outcome(store, applied.choices, ("undone",), datetime.now(UTC))


def _root(cub: str | None) -> Path | None:
    from policygen import tree

    return None if cub is None else Path(tree.find(cub, Path.cwd()).root)


def _document(undone: tuple[Undone, ...], *, written: bool) -> Undo:
    from policygen.model.undo import Undo, UndoneApply

    applies = tuple(
        UndoneApply(
            apply=step.applied.id,
            title=step.applied.title,
            applied_at=step.applied.applied_at,
            root=str(step.applied.root),
            files=step.applied.files,
        )
        for step in undone
    )
    return Undo(written=written, applies=applies)


def _print_diff(undone: tuple[Undone, ...]) -> None:
    from policygen.edit.undo import net_changes
    from policygen.report.diff import print_diff, unified
    from policygen.tree.revision import paths_in_repository

    if not undone:
        return
    changes = net_changes(undone)
    paths = paths_in_repository([change.path for change in changes], undone[0].applied.root)
    for path, change in zip(paths, changes, strict=True):
        print_diff(unified(path, change.before, change.after))
