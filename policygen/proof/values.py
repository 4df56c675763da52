"""Lists what a tree selects for each workload, and the entry that it comes from."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from policygen.bindings.variants import fits
from policygen.errors import PolicygenError
from policygen.model.arch import arch_number
from policygen.model.edits import Marked
from policygen.model.selection import (
    DisabledEntry,
    EntryPlace,
    ResolvedRow,
    Selected,
    Status,
    Unresolved,
)
from policygen.model.trees import Cub
from policygen.model.tuning import Entry, Family, PolicyChain
from policygen.proof.ask import ask
from policygen.proof.compile import RefusedError
from policygen.proof.probe import Asked, AskedTree
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import Workload
from policygen.rocprim.host import HostCompiler
from policygen.steps import Progress

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
    asked: Sequence[Asked],
    marked: Mapping[str, Marked],
    archs: Sequence[str],
    toolchain: Toolchain | HostCompiler,
    *,
    enabled: Mapping[str, Marked] | None = None,
    replaced: Mapping[str, bytes] | None = None,
    progress: Progress | None = None,
) -> Resolved:
    """Asks for rows by benchmark, workload and architecture; `marked` has marked headers by name.

    In those of `enabled` conditions that are commented out are code. `replaced` has other content
    of files by path, for a compiler that takes it.
    """
    selectors = {place.site.header for place in asked if place.site.is_selector}
    places = [_with_marks(place, tuple(archs), cub, selectors, marked) for place in asked]
    tree = AskedTree(cub.bindings, cub.include_folders, marked, replaced or {})
    told = ask(tree, places, toolchain, progress=progress)
    disabled, remarks = _commented_out(cub, places, enabled or {}, toolchain, progress)
    rows, refused = [], {}
    for place in places:
        header = marked.get(place.site.header)
        used = {
            arch: used_families(header.header.chains, place.site.scope, arch) if header else NONE
            for arch in archs
        }
        for point, arch in product(place.points, archs):
            found = told.rows.get((point, arch))
            known = found is not None and bool(found.values)
            if point in told.refused or not known:
                name, _ = point.point
                why = _refusal(told.refused.get(point), known=known)
                refused[name] = Unresolved(benchmark=name, reason=why, header=place.site.header)
            # Without marks families do not tell which entry it is, and defaults look the same.
            if found is None or not known or (point in told.refused and place.families):
                continue
            row = _row(place, point, arch, found, header, used[arch])
            off = disabled.get((point, arch))
            if off and _is_newer(off, row.since):
                row = row.model_copy(update={"disabled": off[1]})
            rows.append(row)
    rows.sort(key=lambda row: (row.benchmark, arch_number(row.arch)))
    return Resolved(tuple(rows), tuple(refused.values()), told.errors, remarks)


def _refusal(error: PolicygenError | None, *, known: bool) -> str:
    """Words why the compiler does not answer, with the place as far as it is the tree's."""
    if error is not None and not isinstance(error, RefusedError):
        return str(error).partition("\n")[0]
    why = f": {error.first}" if error else ""
    return (
        f"its entries are not known, a marked copy does not compile{why}"
        if known
        else (f"it does not compile{why}")
    )


DisabledFor = tuple[str, DisabledEntry]
"""The architecture that it would be for, and the condition."""


def _commented_out(
    cub: Cub,
    asked: Sequence[Asked],
    enabled: Mapping[str, Marked],
    toolchain: Toolchain | HostCompiler,
    progress: Progress | None,
) -> tuple[dict[tuple[Workload, str], DisabledFor], tuple[str, ...]]:
    """Finds the workloads that conditions would decide if they were not commented out."""
    mine = [
        replace(place, families=(), values=False, branches=True)
        for place in asked
        if place.site.is_selector and place.site.header in enabled
    ]
    if not mine:
        return {}, ()
    told = ask(
        AskedTree(cub.bindings, cub.include_folders, enabled), mine, toolchain, progress=progress
    )
    if told.errors:
        names = ", ".join(sorted({place.site.header for place in mine}))
        text = "do not compile as code: what they would decide is not known"
        return {}, (f"conditions that are commented out in {names} {text}",)
    return {
        spot: (row.entry[0].arch, _disabled_entry(*row.entry))
        for spot, row in told.rows.items()
        if row.entry
    }, ()


def _disabled_entry(family: Family, entry: Entry) -> DisabledEntry:
    return DisabledEntry.of(family, entry, reason=" ".join(entry.remarks) or None)


def _is_newer(disabled: DisabledFor, since: str | None) -> bool:
    """Whether a condition would stand before the return that decides now."""
    return since is None or arch_number(disabled[0]) > arch_number(since)


def _with_marks(
    place: Asked,
    archs: tuple[str, ...],
    cub: Cub,
    selectors: Collection[str],
    marked: Mapping[str, Marked],
) -> Asked:
    """Asks for entries, too, where they are marked: those of the header's own dialect are."""
    own = cub.has_selectors or place.site.header in selectors
    marks = place.site.is_selector == own and place.site.header in marked
    return replace(
        place,
        archs=archs,
        since=True,
        families=place.families if marks else (),
        branches=marks and place.site.is_selector,
    )


def _row(
    place: Asked,
    point: Workload,
    arch: str,
    found: Selected,
    marked: Marked | None,
    used: Collection[str],
) -> ResolvedRow:
    family, entry = found.entry or (None, None)
    passed = disabled = since = None
    if place.site.is_selector:
        if entry is not None and not entry.specific:
            family, entry = None, None  # it asks for `cc` alone: a default
        since = family.arch if family else found.since if place.tuned else None
    else:
        since = family.arch if family and entry and entry.kind != "primary" else None
        if marked is not None:
            passed = _passed(found, used)
            disabled = _disabled(place.site.scope, found, marked, used, since)
    return ResolvedRow(
        benchmark=point.point[0],
        workload=dict(point.values),
        arch=arch,
        values=dict(found.values),
        fields=found.fields,
        entry=EntryPlace.of(family, entry) if family and entry else None,
        status=_status(arch, since),
        since=since,
        note=_note(passed) if passed else None,
        passed=passed,
        disabled=disabled,
    )


def _disabled(
    scope: str, found: Selected, marked: Marked, used: Collection[str], since: str | None
) -> DisabledEntry | None:
    """Finds a disabled entry with the workload's key, in a newer family than that which decides."""
    for family in marked.header.families:
        known = found.keys.get(family.name)
        newer = since is None or arch_number(family.arch) > arch_number(since)
        if known is None or family.name not in used or family.namespace != scope:
            continue
        for entry in family.entries if newer else ():
            if entry.disabled and fits(family.parameters, entry.slots, known.args):
                return _disabled_entry(family, entry)
    return None


def _passed(found: Selected, used: Collection[str]) -> EntryPlace | None:
    """Finds an entry that has the workload's key and is not selected."""
    for name, key in found.keys.items():
        if name in used and key.entry and key.number != found.number:
            family, entry = key.entry
            if entry.kind != "primary":
                return EntryPlace.of(family, entry)
    return None


def _note(passed: EntryPlace) -> str:
    place = f"{passed.header}:{passed.line}"
    return f"{place} ({passed.family}) has this key, and is not selected"


def used_families(chains: Sequence[PolicyChain], scope: str, arch: str) -> frozenset[str]:
    """Lists the families that an architecture's policy reads, as the headers' text has it."""
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
