"""What CUB selects for each workload, by the compiler, and which entry it comes from."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.keys import fits
from policygen.errors import PolicygenError
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding
from policygen.model.cub import Cub
from policygen.model.marks import Marked
from policygen.model.resolve import DisabledEntry, EntryPlace, ResolvedRow, Status, Unresolved
from policygen.model.tuning import Entry, Family, PolicyChain
from policygen.proof.answers import value
from policygen.proof.compile import Progress
from policygen.proof.probe import Answered, Asked, Shown, Tree, ask, origin, shown, values
from policygen.proof.sites import Place
from policygen.proof.toolchain import Toolchain
from policygen.proof.unit import Workload

NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Resolved:
    """The rows that the compiler answered, and the benchmarks that it refused."""

    rows: tuple[ResolvedRow, ...]
    unresolved: tuple[Unresolved, ...]
    errors: tuple[PolicygenError, ...]
    remarks: tuple[str, ...] = ()


def resolve(
    cub: Cub,
    asked: Sequence[Place],
    marked: Mapping[str, Marked],
    archs: Sequence[str],
    toolchain: Toolchain,
    *,
    enabled: Mapping[str, Marked] | None = None,
    progress: Progress | None = None,
) -> Resolved:
    """Rows by benchmark, workload and architecture; `marked` holds marked headers by name.

    In those of `enabled` conditions that are commented out are code.
    """
    told = ask(
        [
            Asked(
                place.site,
                place.points,
                tuple(archs),
                place.families if _has_marks(place, cub, marked) else (),
                branches=place.site.dialect == "selectors" and _has_marks(place, cub, marked),
            )
            for place in asked
        ],
        Tree(cub.version, cub.include_folders, marked),
        toolchain,
        progress=progress,
    )
    off, remarks = _commented_out(cub, asked, enabled or {}, archs, toolchain, progress)
    rows, refused = [], {}
    for place in asked:
        header = marked.get(place.site.header)
        used = {
            arch: used_families(header.header.chains, place.site.scope, arch) if header else NONE
            for arch in archs
        }
        for point in place.points:
            for arch in archs:
                if row := _row(place, point, arch, told, header, used[arch]):
                    out = off.get((id(point), arch))
                    if out and place.site.dialect == "selectors" and _is_newer(out, row.since):
                        row = row.model_copy(update={"disabled": out[1]})
                    rows.append(row)
                else:
                    name = _name(point)
                    refused[name] = Unresolved(benchmark=name, reason="it does not compile")
    rows.sort(key=lambda row: (row.benchmark, arch_number(row.arch)))
    return Resolved(tuple(rows), tuple(refused.values()), told.errors, remarks)


Off = tuple[str, DisabledEntry]
"""The architecture that it would be for, and the condition."""


def _commented_out(
    cub: Cub,
    asked: Sequence[Place],
    enabled: Mapping[str, Marked],
    archs: Sequence[str],
    toolchain: Toolchain,
    progress: Progress | None,
) -> tuple[dict[tuple[int, str], Off], tuple[str, ...]]:
    """The workloads that conditions would decide if they were not commented out."""
    mine = [p for p in asked if p.site.dialect == "selectors" and p.site.header in enabled]
    questions = [
        Asked(place.site, place.points, tuple(archs), values=False, branches=True) for place in mine
    ]
    if not questions:
        return {}, ()
    tree = Tree(cub.version, cub.include_folders, enabled)
    told = ask(questions, tree, toolchain, progress=progress)
    names = sorted({place.site.header for place in mine})
    if told.errors:
        text = "do not compile as code: what they would decide is not known"
        return {}, (f"conditions that are commented out in {', '.join(names)} {text}",)
    found = {}
    for place in mine:
        copy = enabled[place.site.header]
        for point in place.points:
            for arch in archs:
                answer = told.of(point, arch, marked=True)
                number = copy.entry(value(answer[0])) if answer else None
                if number is not None:
                    family, entry = copy.entries[number]
                    reason = " ".join(entry.remarks) or None
                    off = DisabledEntry.of(family, entry, reason=reason)
                    found[id(point), arch] = (family.arch, off)
    return found, ()


def _is_newer(off: Off, since: str | None) -> bool:
    """Whether a condition would stand before the return that decides now."""
    return since is None or arch_number(off[0]) > arch_number(since)


def _has_marks(place: Place, cub: Cub, marked: Mapping[str, Marked]) -> bool:
    """Whether the entries of a site are marked: those of the tree's own dialect are."""
    return place.site.dialect == cub.dialect and place.site.header in marked


def _row(
    place: Place,
    point: Workload,
    arch: str,
    told: Answered,
    marked: Marked | None,
    used: Collection[str],
) -> ResolvedRow | None:
    row = told.of(point, arch)
    if row is None:
        return None
    entry: Entry | None = None
    family: Family | None = None
    passed = None
    disabled = None
    since: str | None
    if place.site.dialect == "selectors":
        since, default = origin(row)
        since = since if place.tuned and not default else None
        family, entry = _branch(told.of(point, arch, marked=True), marked)
        since = family.arch if family is not None else since
    else:
        answer = told.of(point, arch, marked=True)
        if answer is not None and marked is not None:
            found = shown(place.families, point, answer, marked)
            if found.entry is not None:
                family, entry = marked.entries[found.entry]
            passed = _passed(found, marked, used)
        since = family.arch if family and entry and entry.kind != "primary" else None
        if answer is not None and marked is not None:
            disabled = _disabled(place.site.scope, found, marked, used, since)
    return ResolvedRow(
        benchmark=_name(point),
        workload=dict(point.values),
        arch=arch,
        values=values(place.site, row),
        entry=EntryPlace.of(family, entry) if family and entry else None,
        status=_status(arch, since),
        since=since,
        note=_note(passed) if passed else None,
        passed=passed,
        disabled=disabled,
    )


def _branch(
    answer: tuple[str, ...] | None, marked: Marked | None
) -> tuple[Family | None, Entry | None]:
    """The guarded return that a policy comes from; what asks for `cc` alone is a default."""
    number = marked.entry(value(answer[0])) if answer and marked else None
    if number is None or marked is None:
        return None, None
    family, entry = marked.entries[number]
    return (family, entry) if entry.specific else (None, None)


def _disabled(
    scope: str, found: Shown, marked: Marked, used: Collection[str], since: str | None
) -> DisabledEntry | None:
    """The disabled entry with the workload's key, of a newer family than the one that decides."""
    for family in marked.header.families:
        known = found.keys.get(family.name)
        newer = since is None or arch_number(family.arch) > arch_number(since)
        if known is None or family.name not in used or family.namespace != scope:
            continue
        for entry in family.entries if newer else ():
            if entry.disabled and fits(family.parameters, entry.slots, known.args):
                reason = " ".join(entry.remarks) or None
                return DisabledEntry.of(family, entry, reason=reason)
    return None


def _passed(found: Shown, marked: Marked, used: Collection[str]) -> EntryPlace | None:
    """An entry that has the workload's key and is not selected."""
    for name, key in found.keys.items():
        if name not in used or key.entry in {-1, found.entry}:
            continue
        family, entry = marked.entries[key.entry]
        if entry.kind != "primary":
            return EntryPlace.of(family, entry)
    return None


def _note(passed: EntryPlace) -> str:
    place = f"{passed.header}:{passed.line}"
    return f"{place} ({passed.family}) has this key, and is not selected"


def used_families(chains: Sequence[PolicyChain], scope: str, arch: str) -> frozenset[str]:
    """The families that an architecture's policy reads, as the headers' text has it."""
    for chain in chains:
        if chain.namespace == scope:
            fitting = [p for p in chain.policies if arch_number(p.arch) <= arch_number(arch)]
            if fitting:
                newest = max(fitting, key=lambda policy: arch_number(policy.arch))
                return frozenset(use.family for use in newest.uses)
    return frozenset()


def _status(arch: str, since: str | None) -> Status:
    if since is None:
        return "default"
    return "tuned" if since == arch else "inherited"


def _name(point: Workload) -> str:
    assert isinstance(point.call, BenchmarkBinding)
    return point.call.name
