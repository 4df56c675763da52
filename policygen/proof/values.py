"""Lists what a tree selects for each workload, and the entry that it comes from."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

from policygen.bindings.load import bound
from policygen.bindings.variants import fits
from policygen.bindings.words import words
from policygen.errors import PolicygenError
from policygen.model.arch import arch_number
from policygen.model.bindings import Site
from policygen.model.selection import (
    Comparison,
    Differing,
    DisabledEntry,
    EntryPlace,
    Resolution,
    ResolvedRow,
    Selected,
    Unresolved,
    with_unnamed,
)
from policygen.model.trees import Cub
from policygen.model.tuning import Entry, Family, Marked, TuningHeader, used_families
from policygen.proof.ask import ask
from policygen.proof.compile import RefusedError
from policygen.proof.probe import LibraryCompiler, QueriedTree
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import SiteQuery, Workload
from policygen.steps import Progress

NONE: frozenset[str] = frozenset()


def resolve(
    cub: Cub,
    queries: Sequence[SiteQuery],
    marked: Mapping[str, Marked],
    archs: Sequence[str],
    toolchain: Toolchain | LibraryCompiler,
    *,
    enabled: Mapping[str, Marked] | None = None,
    replaced: Mapping[str, bytes] | None = None,
    progress: Progress | None = None,
) -> tuple[Resolution, tuple[PolicygenError, ...]]:
    """Resolves rows by benchmark, workload and architecture; `marked` has marked headers by name.

    Also returns the errors of the benchmarks that the compiler refused.

    In the headers of `enabled`, commented-out conditions are code. `replaced` has replacements for
    files by path, for a compiler that supports them.
    """
    selectors = {query.site.header for query in queries if query.site.is_selector}
    marked_queries = [_with_marks(query, tuple(archs), cub, selectors, marked) for query in queries]
    tree = QueriedTree(cub.bindings, cub.include_folders, marked, replaced or {})
    selection = ask(tree, marked_queries, toolchain, progress=progress)
    disabled, remarks = _find_commented_out(cub, marked_queries, enabled or {}, toolchain, progress)
    rows, refused = [], {}
    sites = [site for algorithm in bound(cub.bindings) for site in algorithm.sites]
    unseen = {name: unseen_since(copy.header, sites) for name, copy in marked.items()}
    for query in marked_queries:
        header = marked.get(query.site.header)
        used = {
            arch: used_families(header.header.chains, query.site.scope, arch) if header else NONE
            for arch in archs
        }
        for point, arch in product(query.points, archs):
            selected = selection.rows.get((point, arch))
            has_values = selected is not None and bool(selected.values)
            is_refused = point in selection.refused
            if is_refused or not has_values:
                name, _ = point.point
                reason = _refusal(selection.refused.get(point), has_values=has_values)
                refused[name] = Unresolved(benchmark=name, reason=reason, header=query.site.header)
            # Without marks, the entry of a family is unknown, and looks like a default.
            if selected is None or not has_values or (is_refused and query.families):
                continue
            row = _resolved_row(query, point, arch, selected, header, used[arch])
            first = unseen.get(query.site.header)
            if row.status == "default" and first is not None and first <= arch_number(arch):
                row = row.model_copy(update={"status": "unknown"})
            disabled_entry = disabled.get((point, arch))
            # Its condition would precede the return that decides now.
            if disabled_entry and arch_number(disabled_entry[0]) > arch_number(row.since or "sm00"):
                row = row.model_copy(update={"disabled": disabled_entry[1]})
            rows.append(row)
    rows.sort(key=lambda row: (row.benchmark, arch_number(row.arch)))
    document = Resolution(
        cub=cub,
        toolchain=toolchain.name,
        archs=tuple(archs),
        rows=tuple(rows),
        remarks=remarks,
        unresolved=tuple(refused.values()),
    )
    return document, selection.errors


def _refusal(error: PolicygenError | None, *, has_values: bool) -> str:
    """Describes why the compiler does not answer, with the place if it is in the tree."""
    if error is not None and not isinstance(error, RefusedError):
        return str(error).partition("\n")[0]
    message = f": {error.first}" if error else ""
    marked_copy = "its entries are unknown: a marked copy does not compile"
    return f"{marked_copy if has_values else 'it does not compile'}{message}"


DisabledFor = tuple[str, DisabledEntry]
"""The architecture that the entry would be for, and the entry with its condition."""


def _find_commented_out(
    cub: Cub,
    queries: Sequence[SiteQuery],
    enabled: Mapping[str, Marked],
    toolchain: Toolchain | LibraryCompiler,
    progress: Progress | None,
) -> tuple[dict[tuple[Workload, str], DisabledFor], tuple[str, ...]]:
    """Finds the workloads that commented-out conditions would decide."""
    selector_queries = [
        replace(query, families=(), values=False, branches=True)
        for query in queries
        if query.site.is_selector and query.site.header in enabled
    ]
    if not selector_queries:
        return {}, ()
    tree = QueriedTree(cub.bindings, cub.include_folders, enabled)
    selection = ask(tree, selector_queries, toolchain, progress=progress)
    if selection.errors:
        names = ", ".join(sorted({query.site.header for query in selector_queries}))
        text = "do not compile, so what they would decide is unknown"
        return {}, (f"commented-out conditions in {names} {text}",)
    return {
        spot: (row.entry[0].arch, _disabled_entry(*row.entry))
        for spot, row in selection.rows.items()
        if row.entry
    }, ()


def _disabled_entry(family: Family, entry: Entry) -> DisabledEntry:
    return DisabledEntry.of(family, entry, reason=" ".join(entry.remarks) or None)


def _with_marks(
    query: SiteQuery,
    archs: tuple[str, ...],
    cub: Cub,
    selectors: Collection[str],
    marked: Mapping[str, Marked],
) -> SiteQuery:
    """Asks for entries, too, if the site belongs to the header's own dialect and is marked."""
    own_dialect = cub.has_selectors or query.site.header in selectors
    is_marked = query.site.is_selector == own_dialect and query.site.header in marked
    return replace(
        query,
        archs=archs,
        since=True,
        families=query.families if is_marked else (),
        branches=is_marked and query.site.is_selector,
    )


def _resolved_row(
    query: SiteQuery,
    point: Workload,
    arch: str,
    selected: Selected,
    marked: Marked | None,
    used: Collection[str],
) -> ResolvedRow:
    family, entry = selected.entry or (None, None)
    passed = disabled = since = None
    if query.site.is_selector:
        if entry is not None and not entry.specific:
            family, entry = None, None  # a default tests only `cc`
        since = family.arch if family else selected.since if query.tuned else None
    else:
        since = family.arch if family and entry and entry.kind != "primary" else None
        if marked is not None:
            passed = _passed_over(selected, used)
            disabled = _disabled_match(query.site.scope, selected, marked, used, since)
    return ResolvedRow(
        benchmark=point.point[0],
        workload=dict(point.values),
        arch=arch,
        values=dict(selected.values),
        fields=selected.fields,
        entry=EntryPlace.of(family, entry) if family and entry else None,
        status="default" if since is None else "tuned" if since == arch else "inherited",
        since=since,
        note=f"{passed.where} ({passed.family}) has this key but is not selected"
        if passed
        else None,
        passed=passed,
        disabled=disabled,
    )


def _disabled_match(
    scope: str, selected: Selected, marked: Marked, used: Collection[str], since: str | None
) -> DisabledEntry | None:
    """Finds a disabled entry with the workload's key, in a newer family than the selected one."""
    for family in marked.header.families:
        key = selected.keys.get(family.name)
        is_newer = since is None or arch_number(family.arch) > arch_number(since)
        if key is None or family.name not in used or family.namespace != scope:
            continue
        for entry in family.entries if is_newer else ():
            if entry.disabled and fits(family.parameters, entry.slots, key.args):
                return _disabled_entry(family, entry)
    return None


def _passed_over(selected: Selected, used: Collection[str]) -> EntryPlace | None:
    """Finds an entry that has the workload's key but is not selected."""
    for name, key in selected.keys.items():
        if name in used and key.entry and key.number != selected.number:
            family, entry = key.entry
            if entry.kind != "primary":
                return EntryPlace.of(family, entry)
    return None


def unseen_since(header: TuningHeader, sites: Iterable[Site]) -> int | None:
    """Returns the first architecture with returns that show in nothing that a site asks for.

    Returns of a struct that is a part of the policy show where a site asks for that part.
    """
    structs = {name: dict(fields) for name, fields in header.aggregates.items()}
    members = [member for fields in structs.values() for member in fields.items()]
    policies = (site.policy for site in sites if site.header == header.name)
    parts = {"lookahead", *(policy.rpartition(".")[2] for policy in policies)}
    shown = structs.keys() - {made for name, made in members if name not in parts}
    unseen = {
        arch_number(family.arch)
        for family in header.selectors
        for entry in family.entries
        if entry.members and entry.specific and words().selectors.counts not in entry.values
        for made in ({n for n in structs if {m.name for m in entry.members} <= structs[n].keys()},)
        if made and not made & shown
    }
    return min(unseen, default=None)


# Compares what two trees select.


def compare_resolutions(before: Resolution, after: Resolution) -> Comparison:
    """Lists the workloads whose values differ, or that only one tree has.

    Benchmarks that one side could not resolve are reported as `unresolved` only.
    """
    unresolved = tuple(dict.fromkeys((*before.unresolved, *after.unresolved)))
    silent = {row.benchmark for row in unresolved}
    old, new = (
        {((row.benchmark, tuple(sorted(row.workload.items()))), row.arch): row for row in side.rows}
        for side in (before, after)
    )
    skipped = {spot for spot in old.keys() ^ new.keys() if spot[0][0] in silent}
    spots = [spot for spot in {**new, **old} if spot not in skipped]
    different = (_differing(old.get(spot), new.get(spot)) for spot in spots)
    return Comparison(
        before=before.cub,
        after=after.cub,
        toolchain=after.toolchain,
        archs=after.archs,
        compared=len(spots),
        different=tuple(filter(None, different)),
        remarks=tuple(dict.fromkeys((*before.remarks, *after.remarks))),
        unresolved=unresolved,
    )


def _differing(old: ResolvedRow | None, new: ResolvedRow | None) -> Differing | None:
    row = new or old
    assert row is not None
    before, after, changed = old and old.values, new and new.values, tuple[str, ...]()
    if old and new:
        before, after = map(dict, with_unnamed(old.values, old.fields, new.values, new.fields))
        # A field that only one tree has, such as the lookahead's, is not compared.
        changed = tuple(name for name in after if name in before and before[name] != after[name])
        if not changed:
            return None
    return Differing(
        benchmark=row.benchmark,
        workload=row.workload,
        arch=row.arch,
        before=before,
        after=after,
        changed=changed,
        entry_before=old.entry if old else None,
        entry_after=new.entry if new else None,
        passed=tuple(side.passed for side in (new, old) if side and side.passed),
    )
