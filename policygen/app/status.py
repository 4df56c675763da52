"""Shows the status of a tree: what was written to it, what was proved, and what to do next."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from policygen import trees
from policygen.app.session import (
    Session,
    interruption,
    open_session,
    readable_store,
    store_option_of,
)
from policygen.errors import InputError
from policygen.git import find_repository
from policygen.model.machine import AppliedState, NextStep, ProofState, Status
from policygen.model.trees import Cub
from policygen.portable import nearby
from policygen.process import which
from policygen.store.applies import Interrupted, interrupted
from policygen.store.journal import AppliedRecord, Journal, ProofRecord, proofs_of
from policygen.store.targets import content, real, uncommitted
from policygen.trees.layout import tree_content

EFFECT, SASS = ("verify-effect", "apply"), ("verify-sass",)
"""Commands that prove the same thing."""
Step = tuple[str, str]
"""The purpose of a command, and the command."""


def tree_status(cub: str | None = None, store: str | Path | None = None) -> Status:
    """Inspects a tree and its store without changing anything."""
    session = open_session(cub, store, bound=False, by_store=True)
    known_store = readable_store(session.named)
    applies, undone = _applies(known_store, session.root) if known_store else ((), 0)
    problem = interruption(session)
    proofs = _proofs(known_store, session)
    changed = _uncommitted(session)
    interruptions = interrupted(known_store, session.root) if known_store and problem else ()
    options = "" if cub is None else f" --cub {shlex.quote(cub)}"
    options += store_option_of(session.named)
    steps = (
        _recovery_steps(interruptions, session.named)
        if problem
        else _next_steps(applies, changed or (), proofs, options, session.cub)
    )
    return Status(
        cub=session.cub,
        named=session.cub.is_named,
        store=None if known_store is None else str(known_store),
        applies=applies,
        undone=undone,
        interrupted=problem and problem.message,
        uncommitted=changed,
        proofs=proofs,
        next=tuple(NextStep(purpose=purpose, command=command) for purpose, command in steps),
    )


def _applies(store: Path, root: Path) -> tuple[tuple[AppliedState, ...], int]:
    """Returns the applies in the tree, newest first, and the number of undone ones."""
    with Journal.open(store) as journal:
        applies = [applied for applied in journal.applies() if applied.root == real(root)]
        states, seen = [], set[str]()
        for applied in reversed(applies):
            if applied.state != "applied":
                continue
            states.append(_describe_apply(journal, applied, seen))
            seen.update(applied.files)
        return tuple(states), sum(applied.state == "undone" for applied in applies)


def _describe_apply(journal: Journal, applied: AppliedRecord, later: set[str]) -> AppliedState:
    """Describes an apply. Files that a later apply rewrote are compared with that one instead."""
    files = [file for file in journal.files_of(applied.id) if file.path not in later]
    return AppliedState(
        apply=applied.id,
        title=applied.title,
        applied_at=applied.applied_at,
        files=applied.files,
        edited=tuple(f.path for f in files if content(applied.root / f.path) != f.after),
    )


def _uncommitted(session: Session) -> tuple[str, ...] | None:
    try:
        if which("git") is None or find_repository(session.root) is None:
            return None
    except InputError:  # it belongs to another user
        return None
    return tuple(map(nearby, uncommitted(trees.tuning_headers(session.cub))))


def _proofs(store: Path | None, session: Session) -> tuple[ProofState, ...]:
    """Returns the last proof of each command, preferring one for the tree's current content."""
    if store is None:
        return ()
    tree_hash = tree_content(session.cub)
    last: dict[str, ProofRecord] = {}
    for proof in proofs_of(store, session.root, tree_hash):
        newest = last.setdefault(proof.command, proof)
        if proof.content == tree_hash and newest.content != tree_hash:
            last[proof.command] = proof
    newest_first = sorted(last.values(), key=lambda proof: proof.proved_at, reverse=True)
    return tuple(
        ProofState(
            current=proof.content == tree_hash,
            **proof.model_dump(include={"command", "proved_at", "passed", "whole", "words"}),
        )
        for proof in newest_first
    )


def _recovery_steps(interruptions: Sequence[Interrupted], store: Path | None) -> Iterator[Step]:
    """Yields the steps that recover from an interrupted write recorded in the store."""
    option = store_option_of(store)
    if interruptions:
        yield "undo it", f"policygen undo{option}"
    if any(record.kind == "apply" for record in interruptions):
        yield "or complete it", f"policygen apply --finish{option}"


def _next_steps(
    applies: Sequence[AppliedState],
    changed: Sequence[str],
    proofs: Sequence[ProofState],
    options: str,
    cub: Cub,
) -> Iterator[Step]:
    """Yields the steps that verify what was written, or else what could be written."""
    if not applies and not changed:
        yield "see what results would change", f"policygen plan --db DB --arch ARCH{options}"
        yield "see what is tuned where", f"policygen audit coverage{options}"
        if not cub.is_named:
            yield "work on a checkout of your own", "policygen status --cub PATH"
        return
    if applies and not _is_proved(proofs, EFFECT):
        yield "prove its effect", f"policygen verify-effect{options}"
    # Other libraries need a compiler that few users have.
    if cub.has_machine_code and not _is_proved(proofs, SASS):
        yield "compare all other machine code", f"policygen verify-sass{options}"
    yield "share it for review", f"policygen review{options} -o review.md"
    if applies and not any(applied.edited for applied in applies):
        yield "undo the last apply", f"policygen undo{options}"


def _is_proved(proofs: Sequence[ProofState], commands: Sequence[str]) -> bool:
    """Returns whether a command proved the tree's current content."""
    return any(
        proof.command in commands and proof.current and proof.whole and proof.passed
        for proof in proofs
    )
