"""Finds what a change touches and no bound workload tells of: what it selects is not known."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

from policygen.errors import SourceError
from policygen.model.resolve import EntryPlace, Resolution
from policygen.model.review import ReviewedEntry, Uncovered
from policygen.model.tuning import Entry, Family
from policygen.proof.review import Touched
from policygen.proof.sites import bound_headers

UNBOUND = "no binding covers this header: what its change selects is not known"
UNDECIDED = "decides no workload that is bound: what its change selects is not known"


def uncovered_headers(
    names: Iterable[str], version: str, differs: Callable[[str], int | None]
) -> Iterator[Uncovered]:
    """Finds headers that no binding names; `differs` tells the line at which their code does."""
    for name in sorted({*names} - bound_headers(version)):
        if line := differs(name):
            yield Uncovered(header=name, line=line, what=UNBOUND)


def unanswered(
    before: Sequence[Resolution], after: Sequence[Resolution], lines: Callable[[str], int | None]
) -> Iterator[Uncovered]:
    """Finds headers of which one side does not answer; `lines` tells where their code differs."""
    found: dict[tuple[str, str], set[str]] = {}
    for side, when in ((before, "before"), (after, "after")):
        for one in (one for document in side for one in document.unresolved):
            found.setdefault((one.header, f"{when} the change {one.reason}"), set()).add(
                one.benchmark
            )
    for (header, why), names in sorted(found.items()):
        told = f"not answered: {', '.join(sorted(names))}: {why}"
        yield Uncovered(header=header, line=lines(header) or 1, what=told)


def unread(errors: Iterable[SourceError]) -> Iterator[Uncovered]:
    """Tells headers that cannot be read: which entries they have is not known."""
    for one in errors:
        what = f"it cannot be read, nothing is known of its entries: {one.message}"
        yield Uncovered(header=PurePath(one.path).name, line=one.line, what=what)


def undecided(
    entries: Sequence[Touched],
    sides: Sequence[Resolution],
    inherited: Mapping[EntryPlace, Sequence[EntryPlace]] | None = None,
) -> set[EntryPlace]:
    """Finds live entries that decide none of the workloads that were asked.

    One that others inherit from shows in what these decide, and one for another type that takes all
    from an entry of its family in what this decides; a return that asks for a compute capability
    alone is a default, which is no workload's entry.
    """
    decided = {row.entry for side in sides for row in side.rows}
    decided |= {
        base for one, bases in (inherited or {}).items() if one in decided for base in bases
    }
    bases = {_base(one.after.inherits) for one in entries if one.after and one.after.inherits}
    returns = all(side.cub.has_returns for side in sides)
    return {
        one.place
        for one in entries
        if one.after is not None
        and one.after.kind != "primary"
        and one.after.specific
        and not _is_told_elsewhere(one.family, one.after, returns=returns)
        and one.place not in decided
        and one.family.name not in bases
    }


def _is_told_elsewhere(family: Family, entry: Entry, *, returns: bool) -> bool:
    """Whether it has its values from another of its family, or is a return that computes them."""
    if entry.inherits is None:
        return False
    return (entry.kind == "branch" and returns) or _base(entry.inherits) == family.name


def _base(inherits: str) -> str:
    """`sm90_tuning` of `detail::sm90_tuning<T, primitive_op::yes>`."""
    return inherits.partition("<")[0].rpartition("::")[2].strip()


def uncovered_entries(entries: Sequence[ReviewedEntry]) -> Iterator[Uncovered]:
    """Finds entries that decide nothing that was asked, and can be selected."""
    for one in entries:
        if not one.decides and one.unreachable is None:
            what = f"{one.place.name} {UNDECIDED}"
            yield Uncovered(header=one.place.header, line=one.place.line, what=what)
