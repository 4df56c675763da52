"""Compares what both sides of each workload come to, kernel by kernel."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from policygen.bindings.load import types
from policygen.errors import PolicygenError
from policygen.model.arch import arch_number
from policygen.model.sass import Different, KernelPlace, Refused, Renamed, SassRow, Side
from policygen.model.workload import Point
from policygen.proof.sass.calls import Called
from policygen.proof.sass.compiler import Compiler, Contents, Kernels, Spot
from policygen.proof.sass.difference import diff, summary
from policygen.proof.sass.dumps import Dumps
from policygen.proof.sass.names import demangled, function, lasting, short
from policygen.proof.sass.pairs import Pair, pairs, same, verdict

Found = Mapping[Spot, Kernels]


@dataclass(frozen=True, slots=True)
class Sides:
    """The kernels of both sides; identical are the workloads that need not be compiled."""

    before: Found
    after: Found
    identical: frozenset[Spot] = frozenset()


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
        """A row for each benchmark and architecture."""
        names = [name for name in SassRow.model_fields if name not in {"benchmark", "arch"}]
        return tuple(
            SassRow(benchmark=benchmark, arch=arch, **{name: found[name] for name in names})
            for (benchmark, arch), found in sorted(
                self.counts.items(), key=lambda item: (item[0][0], arch_number(item[0][1]))
            )
        )


def compile_side(calls: Mapping[Point, Called], archs: Iterable[str], compiler: Compiler) -> Found:
    """One side alone, with all instructions."""
    wanted = _spots(calls, archs)
    made = compiler.kernels(wanted, compiler.contents(wanted), listed=True)
    return {spot: kernels for (spot, _), kernels in zip(wanted, made, strict=True)}


def compile_sides(
    before: Mapping[Point, Called],
    after: Mapping[Point, Called],
    archs: Sequence[str],
    compiler: Compiler,
) -> Sides:
    """Both sides, but for workloads whose preprocessed source is the same."""
    old, new = _spots(before, archs), _spots(after, archs)
    contents = compiler.contents([*old, *new])
    same = _same(dict(old), dict(new), contents)
    old, new = [one for one in old if one[0] not in same], [n for n in new if n[0] not in same]
    # All in one lot: no core waits for the other side.
    sides = _made(old, new, contents, compiler, listed=False)
    unlike = {spot for spot in dict(old).keys() & dict(new).keys() if not _alike(sides, spot)}
    shown = _made(
        [one for one in old if one[0] in unlike],
        [one for one in new if one[0] in unlike],
        contents,
        compiler,
        listed=True,
    )
    return Sides({**sides.before, **shown.before}, {**sides.after, **shown.after}, same)


def _made(
    old: Sequence[tuple[Spot, Called]],
    new: Sequence[tuple[Spot, Called]],
    contents: Contents,
    compiler: Compiler,
    *,
    listed: bool,
) -> Sides:
    made = iter(compiler.kernels([*old, *new], contents, listed=listed))
    return Sides({spot: next(made) for spot, _ in old}, {spot: next(made) for spot, _ in new})


def _alike(sides: Sides, spot: Spot) -> bool:
    """Whether digests alone show that all kernels of a workload have a counterpart."""
    before, after = sides.before[spot], sides.after[spot]
    if isinstance(before, PolicygenError) or isinstance(after, PolicygenError):
        return True  # there is nothing to show
    if before == after:
        return True
    found = pairs(before, after, demangled(kernel.name for kernel in (*before, *after)))
    return all(p.before and p.after and same(p.before, p.after) for p in found)


def with_dumps(dumps: Dumps, after: Found) -> Sides:
    """Dumps as the side before; those of other workloads and architectures are left alone."""
    return Sides({spot: dumps[spot] for spot in after if spot in dumps}, after)


def verdicts(sides: Sides) -> Verdicts:
    """What became of each kernel; helpers that are never run do not count."""
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
        for pair in pairs(old, new, cpp):
            counts["kernels"] += 1
            counts[_count(found, spot, pair, cpp)] += 1
    return found


def _spots(calls: Mapping[Point, Called], archs: Iterable[str]) -> list[tuple[Spot, Called]]:
    return [((point, arch), called) for arch in archs for point, called in calls.items()]


def _same(
    old: Mapping[Spot, Called], new: Mapping[Spot, Called], contents: Contents
) -> frozenset[Spot]:
    """Workloads that both sides compile from the same text."""
    found = set()
    for spot in old.keys() & new.keys():
        before, after = old[spot], new[spot]
        content = contents[before.headers(spot[1])]
        known = isinstance(content, str) and content == contents[after.headers(spot[1])]
        if known and before.text == after.text:
            found.add(spot)
    return frozenset(found)


def _refused(spot: Spot, side: Side, made: Kernels) -> list[Refused]:
    if not isinstance(made, PolicygenError):
        return []
    (benchmark, workload), arch = spot
    return [
        Refused(
            benchmark=benchmark, workload=dict(workload), arch=arch, side=side, message=str(made)
        )
    ]


def _count(found: Verdicts, spot: Spot, pair: Pair, cpp: Mapping[str, str]) -> str:
    """Notes a pair; the name of the count that it belongs to."""
    (benchmark, workload), arch = spot
    kernel = pair.after or pair.before
    assert kernel is not None
    name = short(cpp[kernel.name])
    place = {"benchmark": benchmark, "workload": dict(workload), "arch": arch, "kernel": name}
    if pair.before is None:
        found.only_after.append(KernelPlace(**place))
        return "only_after"
    if pair.after is None:
        found.only_before.append(KernelPlace(**place))
        return "only_before"
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
    return kind
