"""Entries that keep for later architectures what a change of an earlier one would take."""

from collections.abc import Sequence

from policygen.bindings.expected import kept_members
from policygen.bindings.recorded import benchmark_of
from policygen.dialects.protocol import EntryWrite, NotKeptError, Tell, TuningTree
from policygen.dialects.specializations.keys import too_general
from policygen.dialects.specializations.place import Specialization, family_spot
from policygen.errors import InputError
from policygen.model.arch import arch_number
from policygen.model.entry_text import Content
from policygen.model.selection import DeltaRow, Values


def keep_later(
    changes: Sequence[DeltaRow[Values]], sources: TuningTree, arch: str, tell: Tell
) -> list[EntryWrite]:
    """One entry in a later family for each key that would change; it has the values of before."""
    writes: list[EntryWrite] = []
    later = sorted({c.arch for c in changes if arch_number(c.arch) > arch_number(arch)})
    for other in sorted(later, key=arch_number):
        found = [change for change in changes if change.arch == other]
        told = tell([change.point for change in found], other)
        groups: dict[object, list[tuple[DeltaRow[Values], Specialization]]] = {}
        for change in found:
            benchmark = benchmark_of(change.benchmark, sources.cub.bindings)
            spot = family_spot(benchmark, told[change.point], sources, other)
            if spot.is_new or arch_number(spot.family.arch) <= arch_number(arch):
                reason = (
                    f"{change.name} on {other} would change, and no family of {other} can keep it"
                )
                raise NotKeptError([(change, reason)])
            groups.setdefault(spot.place, []).append((change, spot))
        for group in groups.values():
            try:
                writes.append(_kept([spot for _, spot in group], other))
            except InputError as error:
                reasons = [(change, error.message) for change, _ in group]
                raise NotKeptError(reasons) from error
    return writes


def _kept(spots: Sequence[Specialization], arch: str) -> EntryWrite:
    first = spots[0]
    members = [kept_members(s.site, s.binding, s.told.values, s.told.sizes) for s in spots]
    values = members[0]
    if values is None or any(other != values for other in members):
        raise InputError(f"{first.header}: one entry cannot keep for {arch} what its workloads had")
    if not first.entry and (parameter := too_general(first.family, first.key)):
        raise InputError(
            f"{first.header}: an entry that keeps for {arch} what its workloads had, for"
            f" {parameter} no, would take every other type of this size, too"
        )
    return EntryWrite(tuple(spots), Content("values", values), f"{arch} keeps what it had")
