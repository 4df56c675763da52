"""Writes tunings into headers once their effect is proved, and completes interrupted writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from policygen import trees
from policygen.app.effect import Planned, prove_plan
from policygen.app.journal import document_of, keep_choices, record_proof, tell_outcome
from policygen.app.session import Session, check_named
from policygen.errors import EffectError, InputError
from policygen.model.machine import Undo, UndoneApply
from policygen.model.plans import Applied, Plan
from policygen.model.selection import Effect
from policygen.opening import read_bytes
from policygen.planning.saved import served
from policygen.portable import nearby
from policygen.process import stopping
from policygen.steps import Note, discard_note
from policygen.store.applies import Undone, apply, complete, net_changes, nothing, planned, undo
from policygen.store.journal import AppliedRecord
from policygen.store.replacement import Change
from policygen.store.targets import uncommitted
from policygen.textdiff import unified
from policygen.trees.lookup import paths_in_repository

UNTOUCHED = "No header is written."


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """The result of an apply."""

    plan: Plan
    changed: Mapping[str, bytes]
    """The contents of the changed headers after the apply."""
    diff: str
    effect: Effect | None
    """The proved effect; None if it was not proved or nothing changes."""


def apply_plan(
    session: Session, planned: Planned, *, prove: bool = True, write: bool = True
) -> AppliedChange:
    """Proves what a plan does, and then writes it to the tree."""
    changed, options = planned.changed, planned.plan.options
    if leaks := [
        f"{text}. --reaches {','.join(archs)} allows it"
        for text, archs in served(planned.plan, planned.compiler.sources.headers).items()
        if any(map(options.keeps, archs))
    ]:
        raise EffectError(leaks)
    if write:
        check_named(session.cub)
    with stopping(lambda: UNTOUCHED):
        effect = prove_plan(planned) if prove and changed else None
    applied = AppliedChange(planned.plan, changed, _diff(planned, changed), effect)
    if changed and write:
        _write(session, planned, applied)
    return applied


def finish_applies(
    store: Path, cub: str | None = None, *, note: Note = discard_note
) -> list[tuple[AppliedRecord, Applied | None]]:
    """Completes interrupted applies with the contents kept in the store."""
    root = None if cub is None else Path(trees.find(cub, Path.cwd()).root)
    finished = complete(store, root)
    if not finished:
        where = f" to {root}" if root else ""
        raise InputError(
            f"nothing to finish: {store} records no interrupted apply{where}",
            "If another store recorded it, name that store: --store FILE",
        )
    documents = [(record, document_of(record)) for record in finished]
    for _, document in documents:
        if document:
            tell_outcome(store, document.choices, ("applied",), datetime.now(UTC), note)
    return documents


def _diff(planned: Planned, changed: Mapping[str, bytes]) -> str:
    names = sorted(changed)
    paths = [planned.compiler.tree.paths[name] for name in names]
    shown = paths_in_repository(paths, Path(planned.plan.cub.root))
    return "".join(
        unified(path, planned.before[name], changed[name])
        for name, path in zip(names, shown, strict=True)
    )


def _write(session: Session, planned: Planned, applied: AppliedChange) -> None:
    paths, plan, changed = planned.compiler.tree.paths, applied.plan, applied.changed
    for path in uncommitted([paths[name] for name in changed]):
        session.note(f"{nearby(path)} has uncommitted changes; they are kept")
    title = f"{plan.options.arch}: {', '.join(sorted(changed))}"
    changes = [Change(paths[name], planned.before[name], after) for name, after in changed.items()]
    store, root, now = session.store, Path(plan.cub.root), datetime.now(UTC)
    choices = keep_choices(plan, store, now)
    document = Applied(plan=plan, choices=choices).model_dump_json()
    with stopping(lambda: _interrupted_state(changes)):
        apply(changes, store, root, title, document, now)
        _read_back(planned, changes, store, root)
        proved = () if applied.effect is None else ("verified",)
        tell_outcome(store, choices, ("applied", *proved), now, session.note)
        if applied.effect is not None:
            words = applied.effect.summary
            record_proof(store, session.cub, "apply", words, session.note, passed=True)


def _interrupted_state(changes: Sequence[Change]) -> str:
    """Describes the state after an interrupt. A write that was interrupted is rolled back."""
    new = sum(read_bytes(change.path) == change.after for change in changes)
    if not new:
        return UNTOUCHED
    if new == len(changes):
        return "The headers are written; policygen undo restores them."
    count = f"{new} of {len(changes)} headers are written"
    return f"{count}; policygen undo restores them, policygen apply --finish completes the apply."


def _read_back(planned: Planned, changes: Sequence[Change], store: Path, root: Path) -> None:
    """Reads the files back as `scan` does. If that fails, everything is restored."""
    try:
        contents = {
            change.path.name: _check_same(change.path, read_bytes(change.path), change.after)
            for change in changes
        }
        planned.compiler.mark(contents)
    except BaseException:
        undo(store, root, 1, datetime.now(UTC))
        raise


def _check_same(path: Path, data: bytes, after: bytes) -> bytes:
    if data != after:
        raise InputError(
            f"{path} does not contain what was written", "Another program is writing to it."
        )
    return data


@dataclass(frozen=True, slots=True)
class TakenBack:
    """The result of an undo."""

    undone: tuple[Undone, ...]
    written: bool

    @property
    def document(self) -> Undo:
        """The undone applies and their files."""
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
        """The diff of each file."""
        if not self.undone:
            return ()
        changes, root = net_changes(self.undone), self.undone[0].applied.root
        paths = paths_in_repository([change.path for change in changes], root)
        return tuple(
            unified(path, change.before, change.after)
            for path, change in zip(paths, changes, strict=True)
        )


# Undoing applies, byte for byte.


def undo_applies(
    store: Path,
    cub: str | None = None,
    *,
    steps: int = 1,
    write: bool = True,
    required: bool = True,
    note: Note = discard_note,
) -> TakenBack:
    """Undoes the last applies, to any tree or to one. If `required`, there must be one."""
    root = None if cub is None else Path(trees.find(cub, Path.cwd()).root)
    if write:
        undone = undo(store, root, steps, datetime.now(UTC))
        # The choices of undone applies are no longer in the tree.
        for document in filter(None, (document_of(step.applied) for step in undone)):
            tell_outcome(store, document.choices, ("undone",), datetime.now(UTC), note)
    else:
        undone = planned(store, root, steps)
    if required and not undone:
        raise nothing(store, root)
    return TakenBack(undone, write)
