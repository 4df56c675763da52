"""Where a tree stands."""

from collections.abc import Iterator
from datetime import datetime

from policygen.model.status import AppliedState, ProofState, Status
from policygen.report.blocks import BLANK, Block, Note, Words
from policygen.report.console import plural, printed, tree_line

ROOM = 13
LATER = " " * ROOM


def status(document: Status, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show the tree, what was written, what is left open, what was proved, what to type next."""
    yield _row("tree", tree_line(document.cub))
    if head:
        yield _row("", _writing(document), "dim")
    yield from _applies(document, verbose=verbose)
    if document.interrupted:
        yield _row("interrupted", document.interrupted, "red")
    yield from _uncommitted(document.uncommitted)
    yield from _proofs(document.proofs)
    if head and document.next:
        yield BLANK
        yield Note("next", "bold")
        for step in document.next:
            yield Note((("  ", ""), (f"{step.purpose}: ", "dim"), (step.command, "")))


def _row(name: str, words: str, style: str = "") -> Block:
    return Words(words, style, first=f"{name:{ROOM}}", later=LATER, even=True, mark="bold")


def _writing(document: Status) -> str:
    if document.named:
        return "apply writes to it"
    return "apply does not write to it: it was found, and is not named with --cub"


def _applies(document: Status, *, verbose: bool) -> Iterator[Block]:
    if document.store is None:
        yield _row("applied", "nothing is recorded here: there is no store", "dim")
        return
    undone = f", {document.undone:,} taken back" if document.undone else ""
    if not document.applies:
        yield _row("applied", f"nothing of {document.store} is in this tree{undone}")
        return
    count = plural(len(document.applies), "apply", "applies")
    yield _row("applied", f"{count} of {document.store}{undone}")
    for one in document.applies:
        yield from _applied(one, verbose=verbose)


def _applied(one: AppliedState, *, verbose: bool) -> Iterator[Block]:
    how = f"{plural(len(one.edited), 'file')} edited since" if one.edited else "as written"
    style = "yellow" if one.edited else ""
    yield Words(
        f"{one.apply}: {one.title}; {_when(one.applied_at)}, {how}", style, LATER, even=True
    )
    for name in one.files if verbose else one.edited:
        mark = "edited" if name in one.edited else "written"
        yield Note(f"{LATER}  {mark} {name}", "dim")


def _uncommitted(names: tuple[str, ...] | None) -> Iterator[Block]:
    if names is None:
        yield _row("uncommitted", "not known: no git repository is around the tree", "dim")
    elif not names:
        yield _row("uncommitted", "no tuning header")
    else:
        yield _row("uncommitted", plural(len(names), "tuning header"), "yellow")
        for name in names:
            yield Note(f"{LATER}{name}")


def _proofs(proofs: tuple[ProofState, ...]) -> Iterator[Block]:
    if not proofs:
        yield _row("proofs", "none is recorded", "dim")
    for index, one in enumerate(proofs):
        outcome = "passed" if one.passed else "failed"
        of = "" if one.whole else " for a part"
        when = "of the headers as they are" if one.current else "before the headers changed"
        style = "green" if one.passed and one.current else "yellow" if one.passed else "red"
        words = f"{one.command} {outcome}{of}, {_when(one.proved_at)}, {when}"
        yield _row("" if index else "proofs", words, style)
        yield Words(one.words, "dim", f"{LATER}  ", even=True)


def _when(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M %Z")


print_status = printed(status)
