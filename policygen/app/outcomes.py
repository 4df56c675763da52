"""What became of choices, in the store: planned, applied, verified, undone."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from policygen.app.inputs import is_results
from policygen.app.notes import Note
from policygen.errors import InputError
from policygen.model.plan import Action, Plan
from policygen.results.info import file_sha256
from policygen.results.store import ChosenFrom, ChosenRow, State, Store


def keep_choices(plan: Plan, store: Path, when: datetime) -> tuple[int, ...]:
    """Stores what is about to be written; the numbers of the choices."""
    # What is written in a return and in a family is one choice.
    written = {(a.point, a.variant): a for a in reversed(plan.actions) if a.written}
    rows = [_row(action, when) for action in reversed(written.values())]
    with Store.open(store) as opened:
        numbers = opened.record(rows)
        opened.outcome(numbers, "planned", when)
    return numbers


def tell_outcome(
    store: Path, choices: Sequence[int], states: Sequence[State], when: datetime, note: Note
) -> None:
    """Adds what became of them; the tree is written, so a store that fails now is a warning."""
    try:
        with Store.open(store) as opened:
            for state in states:
                opened.outcome(choices, state, when)
    except InputError as error:
        note(f"what became of the choices is not recorded: {error}")


def _row(action: Action, when: datetime) -> ChosenRow:
    # A plan may come from elsewhere: its databases need not be here.
    here = [name for name in action.databases if is_results(Path(name))]
    return ChosenRow(
        chosen_at=when,
        sources=tuple(ChosenFrom(path=name, sha256=file_sha256(Path(name))) for name in here),
        algorithm=action.benchmark,
        workload=action.workload,
        gpu=action.gpu,
        ctk=action.ctk,
        cccl=action.cccl,
        decision="use",
        variant=action.variant,
        score=action.scores[0] if action.scores else None,
        reason=action.reason,
    )
