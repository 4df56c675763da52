"""What is here, and what is not."""

from collections.abc import Iterator

from policygen.model.doctor import Check, Doctor
from policygen.report.blocks import BLANK, Block, Note, Words
from policygen.report.console import plural, printed

MARKS = {"fine": ("ok", "green"), "optional": ("-", "dim")}
"""State → how it is marked; what is missing or broken says so."""
ROOM = 7
MENDS = {"missing": "install it", "broken": "mend it", "optional": "to have it", "fine": ""}


def doctor(document: Doctor, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show a line for each thing; under what is not there, who needs it and what mends it."""
    if head:
        how = "from a clone" if document.installed == "clone" else "installed as a package"
        yield Note(f"policygen {document.version}, {how}", "bold")
        yield BLANK
    checks = document.checks if head else document.problems
    room = max((len(check.name) for check in checks), default=0)
    for check in checks:
        yield from _check(check, room, verbose=verbose)
    if head:
        yield BLANK
        yield _summary(document)


def _check(check: Check, room: int, *, verbose: bool) -> Iterator[Block]:
    mark, style = MARKS.get(check.state, (check.state, "red"))
    begin = f"{mark:{ROOM}}  {check.name:{room}}  "
    later = " " * len(begin)
    yield Words(check.found, first=begin, later=later, mark=style, even=True)
    if check.needed_by and (verbose or check.state != "fine"):
        parts = [f"{one}," for one in check.needed_by[:-1]] + [check.needed_by[-1]]
        yield Words(parts, "dim", first=f"{later}needed by: ", later=f"{later}  ")
    if check.remedy:
        yield Note(f"{later}{MENDS[check.state]}: {check.remedy}", "dim" * (not check.is_problem))


def _summary(document: Doctor) -> Block:
    if not document.problems:
        return Note("everything is here that commands need", "green")
    count, names = len(document.problems), ", ".join(one.name for one in document.problems)
    return Words(f"{plural(count, 'thing')} to mend: {names}", "red")


print_doctor = printed(doctor)
