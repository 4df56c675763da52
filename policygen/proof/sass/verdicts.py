"""Judges what became of each kernel between two sides."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from policygen.bindings.load import types
from policygen.errors import InputError, PolicygenError
from policygen.model.arch import arch_number
from policygen.model.sass import Different, KernelPlace, Refused, Renamed, SassRow, Side
from policygen.model.selection import Spot
from policygen.proof.sass.compiler import Kernels
from policygen.proof.sass.kernel_diff import diff, summary
from policygen.proof.sass.names import demangled, function, lasting, short
from policygen.proof.sass.pairs import Pair, pairs, verdict
from policygen.proof.sass.sides import Sides

HELPERS = "it has no kernels but helpers, which are never run: there is nothing to compare"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the comparison of all kernels comes to."""

    counts: dict[tuple[str, str], Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    """By benchmark and architecture, as `SassRow` calls them."""
    renamed: list[Renamed] = field(default_factory=list)
    different: list[Different] = field(default_factory=list)
    only_before: list[KernelPlace] = field(default_factory=list)
    only_after: list[KernelPlace] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)

    @property
    def rows(self) -> tuple[SassRow, ...]:
        """Makes a row for each benchmark and architecture."""
        names = [name for name in SassRow.model_fields if name not in {"benchmark", "arch"}]
        return tuple(
            SassRow(benchmark=benchmark, arch=arch, **{name: found[name] for name in names})
            for (benchmark, arch), found in sorted(
                self.counts.items(), key=lambda item: (item[0][0], arch_number(item[0][1]))
            )
        )


def verdicts(sides: Sides, meant: Collection[Spot] = ()) -> Verdicts:
    """Judges each kernel; helpers that are never run do not count.

    Where other values are `meant`, a difference is as written.
    """
    found = Verdicts()
    whole = [k for side in (sides.before, sides.after) for k in side.values()]
    cpp = demangled(one.name for k in whole if not isinstance(k, PolicygenError) for one in k)
    helpers = frozenset(types().helper_kernels)
    for spot in dict.fromkeys([*sides.after, *sides.before, *sorted(sides.identical)]):
        counts = found.counts[spot[0][0], spot[1]]
        counts["workloads"] += 1
        if spot in sides.identical:
            counts["identical"] += 1
            continue
        before, after = sides.before.get(spot, ()), sides.after.get(spot, ())
        refused = [*_refused(spot, "before", before), *_refused(spot, "after", after)]
        found.refused.extend(refused)
        counts["refused"] += bool(refused)
        if isinstance(before, PolicygenError) or isinstance(after, PolicygenError):
            continue
        old, new = (
            [k for k in side if function(lasting(cpp[k.name])) not in helpers]
            for side in (before, after)
        )
        if not old and not new:
            found.refused.extend(_refused(spot, "after", InputError(HELPERS)))
            counts["refused"] += 1
        for pair in pairs(old, new, cpp):
            counts["kernels"] += 1
            counts[_count(found, spot, pair, cpp, as_written=spot in meant)] += 1
    return found


def _refused(spot: Spot, side: Side, made: Kernels) -> list[Refused]:
    if not isinstance(made, PolicygenError):
        return []
    (benchmark, workload), arch = spot
    return [
        Refused(
            benchmark=benchmark, workload=dict(workload), arch=arch, side=side, message=str(made)
        )
    ]


def _count(
    found: Verdicts, spot: Spot, pair: Pair, cpp: Mapping[str, str], *, as_written: bool
) -> str:
    """Notes a pair, and names the count that it belongs to."""
    (benchmark, workload), arch = spot
    kernel = pair.after or pair.before
    assert kernel is not None
    name = short(cpp[kernel.name])
    place: dict[str, Any] = {"benchmark": benchmark, "workload": dict(workload), "arch": arch}
    place |= {"kernel": name, "as_written": as_written}
    if pair.before is None:
        found.only_after.append(KernelPlace(**place))
        return "as_written" if as_written else "only_after"
    if pair.after is None:
        found.only_before.append(KernelPlace(**place))
        return "as_written" if as_written else "only_before"
    kind = verdict(pair.before, pair.after)
    if kind == "equal":
        return kind
    if kind == "renamed":
        names = {"name_before": cpp[pair.before.name], "name_after": cpp[pair.after.name]}
        found.renamed.append(Renamed(**place, **names))
        return kind
    found.different.append(
        Different(
            **place,
            kind=kind,
            summary=summary(pair.before, pair.after),
            registers=(pair.before.registers, pair.after.registers),
            diff=diff(pair.before, pair.after),
        )
    )
    return "as_written" if as_written else kind
