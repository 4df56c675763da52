"""Finds guarded returns that no workload is decided by, by the marks that show in policies."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from policygen.bindings.load import bound
from policygen.model.arch import arch_number
from policygen.model.branches import steps
from policygen.model.cub import Cub
from policygen.model.marks import Marked
from policygen.model.reach import Unreachable
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.proof.compile import Progress
from policygen.proof.probe import Answered, Asked, Tree, ask, returned
from policygen.proof.reach import (
    Reached,
    Sightings,
    Tally,
    all_told,
    order,
    reach,
    tried_points,
    tried_sites,
    unasked,
)
from policygen.proof.toolchain import Toolchain

REASON = (
    "no policy shows its values: no workload has what it asks for, a return before it takes them,"
    " or what it returns is not used"
)


def tried_selectors(cub: Cub, headers: Sequence[TuningHeader]) -> tuple[Asked, ...]:
    """Every site whose selector has guarded returns, on the archs at which another may decide."""
    known = {header.name: header for header in headers if header.selectors}
    found = []
    for algorithm in bound(cub.version):
        for site in algorithm.sites:
            if site.dialect != "selectors" or site.header not in known:
                continue
            points = tried_points(algorithm, site, cub.version)
            archs = tuple(sorted(steps(known[site.header].selectors), key=arch_number))
            found.append(Asked(site, points, archs, values=False, branches=True))
    return tuple(found)


def reach_returns(
    cub: Cub,
    tried: Sequence[Asked],
    marked: Mapping[str, Marked],
    toolchain: Toolchain,
    *,
    progress: Progress | None = None,
) -> Reached:
    """Asks for every workload which return decides it, and tells those that never do."""
    told = ask(tried, Tree(cub.version, cub.include_folders, marked), toolchain, progress=progress)
    tally = Tally()
    aside: dict[str, None] = {}
    for name in dict.fromkeys(place.site.header for place in tried):
        copy, mine = marked[name], [place for place in tried if place.site.header == name]
        seen = _seen(mine, told, copy)
        complete = all(all_told(place, told) for place in mine)
        names = {copy.entries[n][0].name for n in (*seen.by_benchmark, *seen.by_call)}
        for number, (family, entry) in enumerate(copy.entries):
            if not entry.specific:
                continue  # a default: it asks for a compute capability alone
            if complete and family.name not in names:
                aside[f"{family.namespace}::{family.name}"] = None
                continue
            why = partial(_unseen, family, entry) if complete else None
            tally.count(number, family, entry, seen, why)
    return tally.reached(tried, told, unasked=aside)


def _unseen(family: Family, entry: Entry) -> Unreachable:
    return Unreachable.of(family, entry, cause="condition", reason=REASON)


def _seen(tried: Sequence[Asked], told: Answered, copy: Marked) -> Sightings:
    found = Sightings()
    for place in tried:
        for point in place.points:
            for arch in place.archs:
                row = told.of(point, arch, marked=True)
                number = returned((), point, row, copy).entry if row else None
                if number is not None:
                    found.note(number, point, arch)
    return found


def reach_both(
    cub: Cub,
    headers: Sequence[TuningHeader],
    families: Mapping[str, Marked],
    returns: Mapping[str, Marked],
    toolchain: Toolchain,
    *,
    progress: Progress | None = None,
) -> Reached:
    """What is never selected in families, and in the selectors that they may stand beside."""
    tried = tried_sites(cub, headers)
    own = reach(cub, tried, families, toolchain, progress=progress)
    own = replace(own, unasked=unasked(headers, tried))
    if not returns:
        return own
    asked = tried_selectors(cub, headers)
    other = reach_returns(cub, asked, returns, toolchain, progress=progress)
    archs = {*own.archs, *other.archs}
    return Reached(
        # A workload is tried for the old dispatcher and for the new one.
        workloads=max(own.workloads, other.workloads),
        entries=own.entries + other.entries,
        unreachable=tuple(sorted((*own.unreachable, *other.unreachable), key=order)),
        call_only=tuple(sorted((*own.call_only, *other.call_only), key=order)),
        unknown={
            n: own.unknown.get(n, 0) + other.unknown.get(n, 0)
            for n in sorted({*own.unknown, *other.unknown})
        },
        unasked=(*own.unasked, *other.unasked),
        archs=tuple(sorted(archs, key=arch_number)),
        errors=(*own.errors, *other.errors),
    )
