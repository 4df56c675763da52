"""Finds parts of a change that no compiled workload covers: their effect is not known."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from policygen.bindings.load import bound
from policygen.errors import SourceError, listed
from policygen.headers.text import Text, squeeze
from policygen.model.reviews import UNBOUND, ReviewedEntry, Uncovered
from policygen.model.selection import EntryPlace, Resolution
from policygen.model.trees import BoundVersion
from policygen.model.tuning import Entry, Family, PolicyChain, TuningHeader
from policygen.proof.changes import Touched
from policygen.proof.lexemes import code_changes
from policygen.proof.lint_subject import bases_of
from policygen.proof.sites import bound_headers

UNQUERIED = "no bound workload shows it, so the effect of its change is unknown"
UNDECIDED = "decides no bound workload, so the effect of its change is unknown"
UNMOVED = "differs but changes no bound workload, so its effect is unknown"
UNREACHED = "code that changes no bound workload, so the calls that it affects are unknown"
BESIDE = (
    "not a tuning header, but any workload may read it: not judged without the machine code of"
    " all workloads (--run-sass)"
)


def uncovered_headers(
    names: Iterable[str], version: BoundVersion, differs: Callable[[str], int | None]
) -> Iterator[Uncovered]:
    """Finds changed headers without a binding; `differs` returns the first changed line."""
    for name in sorted({*names} - bound_headers(version)):
        if line := differs(name):
            yield Uncovered(header=name, line=line, what=UNBOUND)


# "using SegmentedPolicy = AgentRadixSortDownsweepPolicy<192, 39, …>;"
_POLICY = re.compile(rb"\busing\s+(\w+)\s*=\s*([^;]+);")
# "SEGMENTED_RADIX_BITS = (sizeof(KeyT) > 1) ? 6 : 5,"
_CONSTANT = re.compile(rb"\b(\w+)\s*=(?!=)\s*([^,;}]+)")
_NAME = re.compile(rb"[A-Za-z_]\w*")
Definitions = Mapping[bytes, Sequence[bytes]]
"""The texts that define a name in a header."""


def unqueried_policies(
    headers: Iterable[TuningHeader],
    contents: Mapping[str, tuple[bytes, bytes]],
    version: BoundVersion,
    lines: Callable[[str], int | None],
) -> Iterator[Uncovered]:
    """Finds changed policies of chains that decide none of the values that are compared.

    The segmented policies in the hub of radix sort are an example.
    """
    for header in headers:
        queried = _queried_names(header.name, version)
        if not queried:
            continue
        before, after = (Text(header.name, data).uncommented for data in contents[header.name])
        old, new = _definitions(before), _definitions(after)
        compared = _reached(queried, old) | _reached(queried, new)
        names = (name for chain in header.chains for name in _policies_of_hub(after, chain))
        changed = [
            name.decode()
            for name in dict.fromkeys(names)
            if name not in compared
            and _meaning(name, old, compared) != _meaning(name, new, compared)
        ]
        if changed and (line := lines(header.name)):
            yield Uncovered(header=header.name, line=line, what=f"{listed(changed)}: {UNQUERIED}")


def _policies_of_hub(code: bytes, chain: PolicyChain) -> Iterator[bytes]:
    """Yields the aliases in a hub, except those that name a policy of the chain."""
    links = {policy.name.encode() for policy in chain.policies}
    start = code.rfind(b"struct " + chain.hub.encode(), 0, chain.policies[0].span.start)
    end = max(policy.span.end for policy in chain.policies)
    for match in _POLICY.finditer(code, max(start, 0), end):
        if not links & {*_NAME.findall(match[2])}:
            yield match[1]


def _queried_names(header: str, version: BoundVersion) -> set[bytes]:
    """Returns the names in what the sites of a header ask about its policies."""
    texts = [
        text
        for algorithm in bound(version)
        for site in algorithm.sites
        if site.header == header and not site.is_selector
        for text in (site.policy, *site.setup, *site.values.values(), *(site.delay or ()))
    ]
    return {*_NAME.findall(" ".join(texts).encode())}


def _definitions(code: bytes) -> Definitions:
    definitions: dict[bytes, list[bytes]] = {}
    for pattern in (_POLICY, _CONSTANT):
        for match in pattern.finditer(code):
            text = squeeze(match[2]).encode()
            definitions.setdefault(match[1], []).append(text)
    return definitions


def _reached(names: Collection[bytes], definitions: Definitions) -> set[bytes]:
    """Returns the names and all that their definitions use."""
    reached: set[bytes] = set()
    waiting = {*names}
    while waiting:
        reached |= waiting
        texts = (text for name in waiting for text in definitions.get(name, ()))
        waiting = {name for text in texts for name in _NAME.findall(text)} - reached
    return reached


def _meaning(name: bytes, definitions: Definitions, compared: Collection[bytes]) -> object:
    """Returns a name's definitions, and those of what it uses unless workloads show that."""
    names = _reached({name}, {k: v for k, v in definitions.items() if k not in compared})
    return {used: definitions.get(used) for used in names - {*compared}}


def unanswered(
    before: Sequence[Resolution], after: Sequence[Resolution], lines: Callable[[str], int | None]
) -> Iterator[Uncovered]:
    """Finds headers that one side could not resolve; `lines` returns where their code differs."""
    names_by_reason: dict[tuple[str, str], set[str]] = {}
    for side, when in ((before, "before"), (after, "after")):
        for unresolved in (unresolved for document in side for unresolved in document.unresolved):
            key = unresolved.header, f"{when} the change {unresolved.reason}"
            names_by_reason.setdefault(key, set()).add(unresolved.benchmark)
    for (header, reason), names in sorted(names_by_reason.items()):
        message = f"no answer: {', '.join(sorted(names))}: {reason}"
        yield Uncovered(header=header, line=lines(header) or 1, what=message)


def not_compared(
    reasons: Iterable[tuple[str, str]],
    gaps: Iterable[Uncovered],
    lines: Callable[[str], int | None],
) -> Iterator[Uncovered]:
    """Reports selectors that were not compared for all inputs, of headers that have answers."""
    failed = {gap.header for gap in gaps}
    for header, reason in (row for row in reasons if row[0] not in failed):
        what = f"not compared for all inputs: {reason}"
        yield Uncovered(header=header, line=lines(header) or 1, what=what)


def unread(errors: Iterable[SourceError]) -> Iterator[Uncovered]:
    """Reports headers that cannot be parsed, so that their entries are not known."""
    for error in errors:
        message = f"it cannot be read, so its entries are unknown: {error.message}"
        yield Uncovered(header=PurePath(error.path).name, line=error.line, what=message)


def undecided(
    entries: Sequence[Touched],
    sides: Sequence[Resolution],
    inherited: Mapping[EntryPlace, Sequence[EntryPlace]] | None = None,
) -> set[EntryPlace]:
    """Finds live or removed entries that decide none of the bound workloads.

    An entry that others inherit from shows in what these decide; an entry that takes all its values
    from its own family shows in what the base decides. A return that tests only the compute
    capability is a default, not a workload's entry.
    """
    decided = {row.entry for side in sides for row in side.rows}
    decided |= {
        base for place, bases in (inherited or {}).items() if place in decided for base in bases
    }
    after = (change.after for change in entries if change.after)
    bases = {_base(entry.inherits) for entry in after if entry.inherits}
    returns = all(side.cub.has_returns for side in sides)
    return {
        change.place
        for change in entries
        if (entry := change.after or change.before) is not None
        and entry.kind != "primary"
        and entry.specific
        and not _shows_elsewhere(change.family, entry, returns=returns)
        and change.place not in decided
        and change.family.name not in bases
    }


def _shows_elsewhere(family: Family, entry: Entry, *, returns: bool) -> bool:
    """Whether its values come from its own family, or from a return that computes them."""
    if entry.inherits is None:
        return False
    return (entry.kind == "branch" and returns) or _base(entry.inherits) == family.name


def _base(inherits: str) -> str:
    """`sm90_tuning` of `detail::sm90_tuning<T, primitive_op::yes>`."""
    return inherits.partition("<")[0].rpartition("::")[2].strip()


def uncovered_entries(entries: Sequence[ReviewedEntry]) -> Iterator[Uncovered]:
    """Finds entries that decide no bound workload, although they could be selected."""
    for entry in entries:
        if not entry.decides and entry.unreachable is None:
            message = f"{entry.place.name} {UNDECIDED}"
            yield Uncovered(header=entry.place.header, line=entry.place.line, what=message)


def unjudged_headers(lines: Mapping[str, int]) -> Iterator[Uncovered]:
    """Reports headers that are not tuning headers, with where their code begins to differ."""
    for path, line in sorted(lines.items()):
        yield Uncovered(header=path, line=line, what=BESIDE, by_machine_code=True)


@dataclass(frozen=True, slots=True)
class ChangedHeader:
    """The contents of a header before and after a change, and its entries on each side."""

    contents: tuple[bytes, bytes]
    headers: tuple[TuningHeader, TuningHeader]
    touched: Sequence[Touched]

    def places(self) -> Iterator[list[tuple[int, int, bool]]]:
        """Yields for each side the entries' first and last lines, and whether they differ."""
        ids = {id(entry) for change in self.touched for entry in (change.before, change.after)}
        for data, header in zip(self.contents, self.headers, strict=True):
            yield sorted(
                (data.count(b"\n", 0, start) + 1, data.count(b"\n", 0, end) + 1, id(entry) in ids)
                for family in header.tunings
                for entry in family.entries
                for start, end in (entry.span,)
            )


def uncovered_code(
    name: str, header: ChangedHeader, entries: Sequence[ReviewedEntry]
) -> Iterator[Uncovered]:
    """Finds what differs in a header without changing a bound workload.

    Code that only adds, or that names a value that changes or something new, serves the entries
    that do change a workload.
    """
    values = {value for entry in entries for row in entry.reached for value in row.changed}
    written_out = {
        change.place for change in header.touched if _writes_out(header.headers[0], change)
    }
    for entry in entries:
        if entry.change != "changed" or entry.reached or not entry.decides or entry.unreachable:
            continue
        keeps_values = entry.asks is None and entry.place in written_out
        if not (keeps_values or (values and _only_adds_values(entry))):
            message = f"{entry.place.name} {UNMOVED}"
            yield Uncovered(header=name, line=entry.place.line, what=message)
    places = list(header.places())
    before, after = ({*_NAME.findall(data)} for data in header.contents)
    names = {value.strip("_").encode() for value in values} | (after - before)
    for change in code_changes(name, *header.contents):
        sides = (change.before, change.after)
        if any(_is_of_entry(list(lines), of) for lines, of in zip(sides, places, strict=True)):
            continue
        used = {word for rows in sides for row in rows.values() for word in _NAME.findall(row)}
        if not (values and (not change.before or used & names)):
            yield Uncovered(header=name, line=change.line, what=UNREACHED)


def _is_of_entry(lines: Sequence[int], entries: Sequence[tuple[int, int, bool]]) -> bool:
    """Whether lines are in an entry that differs, or before it: conditions precede a return."""
    if not lines:
        return False
    first, last = lines[0], lines[-1]
    inside = any(differs and start <= last and end >= first for start, end, differs in entries)
    following = next((differs for start, _, differs in entries if start >= last), False)
    return inside or following


def _writes_out(before: TuningHeader, change: Touched) -> bool:
    """Whether an entry now has the values that it inherited from a full specialization."""
    old, new = change.before, change.after
    if old is None or new is None or new.inherits:
        return False
    bases = bases_of(before, change.family, old)
    return [base.kind for _, base in bases] == ["explicit"] and (
        {**bases[0][1].values, **old.values} == new.values
    )


def _only_adds_values(entry: ReviewedEntry) -> bool:
    before, after = entry.before or {}, entry.after or {}
    same = entry.asks is None and entry.inherits[0] == entry.inherits[1]
    return same and before.items() <= after.items()
