"""Records and looks up what was applied to a tree."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from policygen.errors import InputError
from policygen.model.plans import Action, Applied, Plan
from policygen.model.trees import Cub
from policygen.portable import nearby
from policygen.results.decisions import ChosenFrom, ChosenRow, State, Store
from policygen.results.nvbench import is_results
from policygen.steps import Note
from policygen.store.applies import changed_roots
from policygen.store.journal import AppliedRecord, Journal, ProofCommand, ProofRecord, keep_proof
from policygen.trees.layout import tree_content


def last_apply(store: Path, root: Path, archs: Collection[str]) -> tuple[Plan, dict[str, bytes]]:
    """Returns the plan of the last apply that is not undone, and the headers before it."""
    if applied := find_apply(store, root, archs):
        return applied
    target = f" for {' or '.join(archs)}" if archs else ""
    others = [nearby(other) for other in changed_roots(store) if other != root.resolve()]
    raise InputError(
        f"{store}: nothing was applied to {root}{target}",
        f"It has changed {', '.join(others)}: choose one with --cub PATH"
        if others
        else "Name the store: --store FILE",
    )


def find_apply(
    store: Path, root: Path, archs: Collection[str] = ()
) -> tuple[Plan, dict[str, bytes]] | None:
    """Returns the same as `last_apply`, or None if there is no apply."""
    if not store.is_file():
        return None
    with Journal.open(store) as journal:
        for applied in reversed(journal.applies()):
            if applied.state != "applied" or applied.root.resolve() != root.resolve():
                continue
            document = document_of(applied)
            if document is None:
                raise InputError(
                    f"{store}: apply {applied.id} was written by another version of policygen and"
                    " cannot be verified",
                    "Undo it, and apply it again.",
                )
            if not archs or document.plan.options.arch in archs:
                files = journal.files_of(applied.id)
                return document.plan, {Path(file.path).name: file.before for file in files}
    return None


def document_of(applied: AppliedRecord) -> Applied | None:
    """Returns the document of an apply; None if another version of policygen wrote it."""
    try:
        return Applied.model_validate_json(applied.document)
    except ValidationError:
        return None


# The states of choices in the store: planned, applied, verified, undone.


def keep_choices(plan: Plan, store: Path, when: datetime) -> tuple[int, ...]:
    """Stores the choices that are about to be written, and returns their numbers."""
    # The same choice written in a return and in a family counts once.
    written = {(action.point, action.variant): action for action in reversed(plan.written)}
    rows = [_row(action, when) for action in reversed(written.values())]
    with Store.open(store) as opened:
        numbers = opened.record(rows)
        opened.outcome(numbers, "planned", when)
    return numbers


def tell_outcome(
    store: Path, choices: Sequence[int], states: Sequence[State], when: datetime, note: Note
) -> None:
    """Records what became of choices.

    The tree is already written, so a failing store is only noted.
    """
    try:
        with Store.open(store) as opened:
            for state in states:
                opened.outcome(choices, state, when)
    except InputError as error:
        note(f"the outcome of the choices was not recorded: {error}")


def _row(action: Action, when: datetime) -> ChosenRow:
    # A plan may come from another machine, so its databases may be missing.
    available = [name for name in action.databases if is_results(Path(name))]
    return ChosenRow(
        chosen_at=when,
        sources=tuple(map(ChosenFrom.of, available)),
        algorithm=action.benchmark,
        decision="use",
        score=action.scores[0] if action.scores else None,
        **action.model_dump(include={"workload", "gpu", "ctk", "cccl", "variant", "reason"}),
    )


# Recording what was proved of a tree.


def record_proof(
    store: Path,
    cub: Cub,
    command: ProofCommand,
    words: str,
    note: Note,
    *,
    passed: bool,
    whole: bool = True,
) -> None:
    """Records the result of a proof if there is a store.

    The proof holds whether or not it is recorded, so a failure to record is only noted.
    """
    if not store.is_file():
        return
    try:
        proof = ProofRecord(
            content=tree_content(cub),
            command=command,
            passed=passed,
            whole=whole,
            words=words,
            proved_at=datetime.now(UTC),
        )
        keep_proof(store, Path(cub.root), proof)
    except InputError as error:
        note(f"the run of {command} was not recorded: {error}")
