"""`policygen apply --finish`: completes an apply that was interrupted."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policygen.cli.opening import store_option_of
from policygen.errors import InputError

if TYPE_CHECKING:
    from policygen.edit.journal import AppliedRecord
    from policygen.model.plan import Applied


def finish(cub: str | None, store: str, *, as_json: bool, quiet: bool) -> int:
    """Writes what is left of interrupted applies, with the contents that the store kept."""
    from policygen import tree
    from policygen.edit.recover import complete

    root = None if cub is None else Path(tree.find(cub, Path.cwd()).root)
    finished = complete(Path(store), root)
    if not finished:
        where = f" to {root}" if root else ""
        raise InputError(
            f"nothing to finish: {store} knows of no apply{where} that was interrupted",
            "Name the store that was written then: --store FILE.",
        )
    documents = [_document(record) for record in finished]
    _tell(Path(store), documents)
    if as_json:
        for document in documents:
            sys.stdout.write((document.plan.to_json() if document else "{}") + "\n")
    elif not quiet:
        for record in finished:
            click.echo(f"finished apply {record.id}: {record.title}")
            for file in record.files:
                click.echo(f"  written {record.root / file}")
        click.echo(f"to prove it: policygen verify-effect{store_option_of(store)}")
    return 0


def _document(record: "AppliedRecord") -> "Applied | None":
    """What was asked for; none where another policygen said it in other words."""
    from pydantic import ValidationError

    from policygen.model.plan import Applied

    try:
        return Applied.model_validate_json(record.document)
    except ValidationError:
        return None


def _tell(store: Path, documents: "Sequence[Applied | None]") -> None:
    """Their choices are in the tree now."""
    from policygen.cli.outcomes import tell_outcome

    for document in documents:
        if document:
            tell_outcome(store, document.choices, ("applied",), datetime.now(UTC))
