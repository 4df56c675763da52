"""What was applied to a tree, out of the journal."""

from collections.abc import Collection
from pathlib import Path

from pydantic import ValidationError

from policygen.edit.journal import AppliedRecord, Journal
from policygen.errors import InputError
from policygen.model.plan import Applied, Plan


def last_apply(store: Path, root: Path, archs: Collection[str]) -> tuple[Plan, dict[str, bytes]]:
    """The plan of the last apply that is not undone, and the headers that it found."""
    if found := find_apply(store, root, archs):
        return found
    what = f" for {' or '.join(archs)}" if archs else ""
    raise InputError(
        f"{store}: nothing was applied to {root}{what}", "Name the store: --store FILE"
    )


def find_apply(
    store: Path, root: Path, archs: Collection[str] = ()
) -> tuple[Plan, dict[str, bytes]] | None:
    """The same, where there may be none."""
    if not store.is_file():
        return None
    with Journal.open(store) as journal:
        for applied in reversed(journal.applies()):
            if applied.state != "applied" or applied.root.resolve() != root.resolve():
                continue
            plan = _plan_of(applied, store)
            if not archs or plan.options.arch in archs:
                files = journal.files_of(applied.id)
                return plan, {Path(file.path).name: file.before for file in files}
    return None


def _plan_of(applied: AppliedRecord, store: Path) -> Plan:
    if document := document_of(applied):
        return document.plan
    raise InputError(
        f"{store}: apply {applied.id} is of another policygen, and cannot be verified",
        "Undo it, and apply it again.",
    )


def document_of(applied: AppliedRecord) -> Applied | None:
    """What an apply was asked for; none where another policygen said it in other words."""
    try:
        return Applied.model_validate_json(applied.document)
    except ValidationError:
        return None
