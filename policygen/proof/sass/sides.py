"""Compiles both sides of a comparison, as far as they can differ."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from policygen.errors import InputError, PolicygenError
from policygen.model.selection import Spot
from policygen.model.workload import Point, in_words
from policygen.proof.sass.calls import WorkloadUnit
from policygen.proof.sass.compiler import Contents, KernelCompiler, Kernels
from policygen.proof.sass.dumps import Dumps
from policygen.proof.sass.names import demangled, lasting
from policygen.proof.sass.pairs import pairs, same

Found = Mapping[Spot, Kernels]


@dataclass(frozen=True, slots=True)
class Sides:
    """The kernels of both sides; identical are the workloads that need not be compiled."""

    before: Found
    after: Found
    identical: frozenset[Spot] = frozenset()

    def refusal(self, spot: Spot) -> PolicygenError | None:
        """Why a side of a workload does not compile."""
        sides = (side.get(spot) for side in (self.before, self.after))
        return next((one for one in sides if isinstance(one, PolicygenError)), None)

    def same_code(self, spot: Spot) -> bool:
        """Whether all kernels of a workload have a counterpart; also where they do not compile."""
        if spot in self.identical:
            return True
        before, after = self.before.get(spot), self.after.get(spot)
        if isinstance(before, PolicygenError) or isinstance(after, PolicygenError):
            return True  # there is nothing to show
        if before is None or after is None:
            return False
        if before == after:
            return True
        found = pairs(before, after, demangled(kernel.name for kernel in (*before, *after)))
        return all(p.before and p.after and same(p.before, p.after) for p in found)


def compile_side(
    calls: Mapping[Point, WorkloadUnit], spots: Iterable[Spot], compiler: KernelCompiler
) -> Found:
    """Compiles one side alone, with all instructions, in the order that is given."""
    wanted = _units(calls, spots)
    return _made([], wanted, compiler.contents(wanted), compiler, listed=True).after


def compile_sides(
    before: Mapping[Point, WorkloadUnit],
    after: Mapping[Point, WorkloadUnit],
    spots: Sequence[Spot],
    compiler: KernelCompiler,
) -> Sides:
    """Compiles both sides in the order that is given, but for those with the same source."""
    old, new = _units(before, spots), _units(after, spots)
    contents = compiler.contents([*old, *new])
    alike = _same_source(dict(old), dict(new), contents)
    old, new = [one for one in old if one[0] not in alike], [n for n in new if n[0] not in alike]
    # All in one lot: no core waits for the other side.
    made = _made(old, new, contents, compiler, listed=False)
    unlike = {spot for spot in dict(old).keys() & dict(new).keys() if not made.same_code(spot)}
    shown = _made(
        [one for one in old if one[0] in unlike],
        [one for one in new if one[0] in unlike],
        contents,
        compiler,
        listed=True,
    )
    return Sides({**made.before, **shown.before}, {**made.after, **shown.after}, alike)


def _made(
    old: Sequence[tuple[Spot, WorkloadUnit]],
    new: Sequence[tuple[Spot, WorkloadUnit]],
    contents: Contents,
    compiler: KernelCompiler,
    *,
    listed: bool,
) -> Sides:
    made = _counted([*old, *new], compiler.kernels([*old, *new], contents, listed=listed))
    kernels = iter(made)
    return Sides({spot: next(kernels) for spot, _ in old}, {s: next(kernels) for s, _ in new})


def _counted(wanted: Sequence[tuple[Spot, WorkloadUnit]], made: Sequence[Kernels]) -> list[Kernels]:
    """Keeps the kernels that mention the namespace of their unit, where it has one."""
    both = [(spot, u.scope, kernels) for (spot, u), kernels in zip(wanted, made, strict=True)]
    cpp = demangled(
        kernel.name
        for _, scope, kernels in both
        if scope is not None and not isinstance(kernels, PolicygenError)
        for kernel in kernels
    )
    found: list[Kernels] = []
    for ((benchmark, workload), arch), scope, kernels in both:
        if scope is None or isinstance(kernels, PolicygenError):
            found.append(kernels)
            continue
        mention = f"::{scope}::"
        kept = tuple(kernel for kernel in kernels if mention in lasting(cpp[kernel.name]))
        where = f"{in_words(benchmark, dict(workload))} on {arch}"
        found.append(kept or InputError(f"{where}: no kernel of {len(kernels)} mentions {scope}"))
    return found


def with_dumps(dumps: Dumps, after: Found) -> Sides:
    """Takes dumps as the side before, as far as the side after has their workloads and archs."""
    return Sides({spot: dumps[spot] for spot in after if spot in dumps}, after)


def _units(
    calls: Mapping[Point, WorkloadUnit], spots: Iterable[Spot]
) -> list[tuple[Spot, WorkloadUnit]]:
    return [(spot, calls[spot[0]]) for spot in spots if spot[0] in calls]


def _same_source(
    old: Mapping[Spot, WorkloadUnit], new: Mapping[Spot, WorkloadUnit], contents: Contents
) -> frozenset[Spot]:
    """Finds the workloads that both sides compile from the same text."""
    found = set()
    for spot in old.keys() & new.keys():
        before, after = old[spot], new[spot]
        content = contents[before.headers(spot[1])]
        known = isinstance(content, str) and content == contents[after.headers(spot[1])]
        if known and before.text == after.text:
            found.add(spot)
    return frozenset(found)
