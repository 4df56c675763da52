"""Entries that keep for later architectures what a change of an earlier one would take."""

from collections.abc import Mapping, Sequence

from policygen.bindings.expected import kept_members
from policygen.bindings.recorded import benchmark_of
from policygen.errors import InputError
from policygen.model.arch import arch_number
from policygen.model.cub import Cub
from policygen.model.entry_text import Content
from policygen.model.selection import DeltaRow, Values
from policygen.model.tuning import TuningHeader
from policygen.model.workload import Point
from policygen.planning.cases import Spot, by_entry
from policygen.planning.decide import Write
from policygen.planning.destination import destination
from policygen.planning.keys import too_general
from policygen.planning.measured import in_line
from policygen.planning.oracle import Oracle

INHERIT = "Let later architectures inherit: --reach later"


class NotKeptError(Exception):
    """Workloads that no entry can keep as they are for later architectures, and why not each."""

    def __init__(self, told: Sequence[tuple[DeltaRow[Values], str]]) -> None:
        super().__init__(told[0][1])
        self.reasons: dict[Point, str] = {}
        for change, text in told:
            self.reasons.setdefault(change.point, in_line(InputError(text, INHERIT)))


def keep_later(
    changes: Sequence[DeltaRow[Values]],
    cub: Cub,
    headers: Mapping[str, TuningHeader],
    arch: str,
    oracle: Oracle,
) -> list[Write]:
    """One entry in a later family for each key that would change; it has the values of before."""
    writes: list[Write] = []
    later = sorted({c.arch for c in changes if arch_number(c.arch) > arch_number(arch)})
    for other in sorted(later, key=arch_number):
        found = [change for change in changes if change.arch == other]
        told = oracle.tell([change.point for change in found], other)
        spots: dict[int, DeltaRow[Values]] = {}
        places = []
        for change in found:
            benchmark = benchmark_of(change.benchmark, cub.version)
            to = destination(benchmark, cub, headers, other)
            if to.is_new or arch_number(to.family.arch) <= arch_number(arch):
                reason = (
                    f"{change.name} on {other} would change, and no family of {other} can keep it"
                )
                raise NotKeptError([(change, reason)])
            places.append(Spot(told[change.point], to))
            spots[id(places[-1])] = change
        for group in by_entry(places):
            try:
                writes.append(_kept(group, other))
            except InputError as error:
                reasons = [(spots[id(spot)], error.message) for spot in group]
                raise NotKeptError(reasons) from error
    return writes


def _kept(spots: Sequence[Spot], arch: str) -> Write:
    first = spots[0]
    members = [kept_members(s.to.site, s.to.binding, s.told.values, s.told.sizes) for s in spots]
    values = members[0]
    if values is None or any(other != values for other in members):
        raise InputError(f"{first.header}: one entry cannot keep for {arch} what its workloads had")
    entry = first.entry
    key = None if entry else first.key
    if key and (parameter := too_general(first.to.family, key)):
        raise InputError(
            f"{first.header}: an entry that keeps for {arch} what its workloads had, for"
            f" {parameter} no, would take every other type of this size, too"
        )
    content = Content("values", values)
    return Write(tuple(spots), content, entry, key, f"{arch} keeps what it had")
