"""Where a tree stands: what was written to it, what was proved of that, what is left to do."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from policygen import trees
from policygen.app.session import (
    Session,
    heard_store,
    interruption,
    offers_code,
    open_session,
    store_option_of,
)
from policygen.errors import InputError
from policygen.git import find_repository
from policygen.model.machine import AppliedState, NextStep, ProofState, Status
from policygen.model.trees import Cub
from policygen.paths import nearby
from policygen.process import which
from policygen.store.applies import Interrupted, interrupted
from policygen.store.journal import AppliedRecord, Journal, ProofRecord, proofs_of
from policygen.store.targets import content, real, uncommitted
from policygen.trees.layout import tree_content

EFFECT, SASS = ("verify-effect", "apply"), ("verify-sass",)
"""Commands that prove the same."""


def tree_status(cub: str | None = None, store: str | Path | None = None) -> Status:
    """Looks at a tree and its store, and changes nothing."""
    session = open_session(cub, store, bound=False)
    heard = heard_store(session.named)
    applies, undone = _applies(heard, session.root) if heard else ((), 0)
    problem = interruption(session)
    proofs = _proofs(heard, session)
    changed = _uncommitted(session)
    words = None if problem is None else problem.message
    ended = interrupted(heard, session.root) if heard and problem else ()
    options = _options(cub, session.named)
    return Status(
        cub=session.cub,
        named=session.cub.is_named,
        store=None if heard is None else str(heard),
        applies=applies,
        undone=undone,
        interrupted=words,
        uncommitted=changed,
        proofs=proofs,
        next=tuple(
            _endings(ended, session.named)
            if problem
            else _next(applies, changed or (), proofs, options, session.cub)
        ),
    )


def _applies(store: Path, root: Path) -> tuple[tuple[AppliedState, ...], int]:
    """Those in the tree, newest first, and how many were taken back."""
    with Journal.open(store) as journal:
        mine = [one for one in journal.applies() if one.root == real(root)]
        found, seen = [], set[str]()
        for one in reversed(mine):
            if one.state != "applied":
                continue
            found.append(_applied(journal, one, seen))
            seen.update(one.files)
        return tuple(found), sum(one.state == "undone" for one in mine)


def _applied(journal: Journal, applied: AppliedRecord, later: set[str]) -> AppliedState:
    """What a later apply wrote anew is compared with that one."""
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
    except InputError:  # it is another user's
        return None
    return tuple(map(nearby, uncommitted(trees.tuning_headers(session.cub))))


def _proofs(store: Path | None, session: Session) -> tuple[ProofState, ...]:
    """The last one of each command; of the tree as it is, where there is one."""
    if store is None:
        return ()
    here = tree_content(session.cub)
    last: dict[str, ProofRecord] = {}
    for one in proofs_of(store, session.root, here):
        known = last.setdefault(one.command, one)
        if one.content == here and known.content != here:
            last[one.command] = one
    found = sorted(last.values(), key=lambda one: one.proved_at, reverse=True)
    return tuple(
        ProofState(
            current=one.content == here,
            **one.model_dump(include={"command", "proved_at", "passed", "whole", "words"}),
        )
        for one in found
    )


def _options(cub: str | None, store: Path | None) -> str:
    named = "" if cub is None else f" --cub {shlex.quote(cub)}"
    return named + store_option_of(store)


def _endings(known: Sequence[Interrupted], store: Path | None) -> Iterator[NextStep]:
    """How an interrupted write is ended, where the store knows of it."""
    option = store_option_of(store)
    if known:
        yield NextStep(purpose="take it back", command=f"policygen undo{option}")
    if any(one.kind == "apply" for one in known):
        yield NextStep(purpose="or complete it", command=f"policygen apply --finish{option}")


def _next(
    applies: Sequence[AppliedState],
    changed: Sequence[str],
    proofs: Sequence[ProofState],
    options: str,
    cub: Cub,
) -> Iterator[NextStep]:
    """What is not known yet of what was written, else what can be written."""
    if not applies and not changed:
        plan = f"policygen plan --db DB --arch ARCH{options}"
        yield NextStep(purpose="see what results would change", command=plan)
        coverage = f"policygen audit coverage{options}"
        yield NextStep(purpose="see what is tuned where", command=coverage)
        if not cub.is_named:
            yield NextStep(
                purpose="work on a checkout of your own", command="policygen status --cub PATH"
            )
        return
    if applies and not _holds(proofs, EFFECT):
        effect = f"policygen verify-effect{options}"
        yield NextStep(purpose="prove what it does", command=effect)
    if offers_code(cub) and not _holds(proofs, SASS):
        sass = f"policygen verify-sass{options}"
        yield NextStep(purpose="compare the machine code of all else", command=sass)
    review = f"policygen review{options} -o review.md"
    yield NextStep(purpose="show it to others", command=review)
    if applies and not any(one.edited for one in applies):
        undo = f"policygen undo{options}"
        yield NextStep(purpose="take the last apply back", command=undo)


def _holds(proofs: Sequence[ProofState], commands: Sequence[str]) -> bool:
    """Whether something is proved of the tree as it is."""
    return any(
        one.command in commands and one.current and one.whole and one.passed for one in proofs
    )
