"""Judges what became of each kernel between two sides."""

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from policygen.bindings.load import types
from policygen.errors import InputError, MissingToolError, PolicygenError
from policygen.model.arch import arch_number
from policygen.model.machine_code import (
    Different,
    Kernel,
    KernelPlace,
    Refused,
    Renamed,
    SassRow,
    Side,
)
from policygen.model.selection import Spot
from policygen.model.workload import Point, in_words
from policygen.process import run
from policygen.proof.kernel_calls import WorkloadUnit
from policygen.proof.kernel_units import Contents, Dumps, KernelCompiler, Kernels

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


@dataclass(frozen=True, slots=True)
class Pair:
    """A kernel on both sides, or on one of them."""

    before: Kernel | None
    after: Kernel | None


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


Verdict = Literal["equal", "renamed", "moved", "different"]
# R12, UR4, P0, UP1, B3, R2.64, SB1; RZ and PT are what they are.
_REGISTER = re.compile(r"\b(U?R|U?P|B|SB)\d+\b")
# v12, s[4:5], a3 of AMD
_OF_AMD = re.compile(r"\b([vsa])(?:\d+|\[\d+:\d+\])(?!\w)")
_REUSE = re.compile(r"\.reuse\b")
# BRA +0xe10
_DISTANCE = re.compile(r"[+-]0x[0-9a-f]+$")


# Pairs the kernels of before and after, and tells whether they are the same.


def verdict(before: Kernel, after: Kernel) -> Verdict:
    """Judges whether a kernel is the same."""
    if same(before, after):
        return "equal" if before.name == after.name else "renamed"
    alike = _usage(before) == _usage(after) and _kinds(before) == _kinds(after)
    return "moved" if alike else "different"


def same(before: Kernel, after: Kernel) -> bool:
    """Whether two kernels differ in their names at most."""
    return before.code == after.code and _usage(before) == _usage(after)


def pairs(
    before: Sequence[Kernel], after: Sequence[Kernel], cpp: Mapping[str, str]
) -> tuple[Pair, ...]:
    """Pairs by what remains of names, then by content, then by what kernels are called.

    `cpp` has the C++ name of each.
    """
    left, right = list(before), list(after)
    found: list[Pair] = []
    rules: tuple[Callable[[Kernel], object], ...] = (
        lambda kernel: kernel.name,
        lambda kernel: (lasting(cpp[kernel.name]), _content(kernel)),
        lambda kernel: lasting(cpp[kernel.name]),
        _content,
        lambda kernel: function(lasting(cpp[kernel.name])),
    )
    for rule in rules:
        found += _take(left, right, rule)
    found += [Pair(kernel, None) for kernel in left]
    found += [Pair(None, kernel) for kernel in right]
    return tuple(sorted(found, key=_name))


def _take(left: list[Kernel], right: list[Kernel], rule: Callable[[Kernel], object]) -> list[Pair]:
    """Pairs the kernels that a rule gives the same, and takes them from both lists."""
    waiting: defaultdict[object, list[Kernel]] = defaultdict(list)
    for kernel in right:
        waiting[rule(kernel)].append(kernel)
    found = [Pair(k, waiting[rule(k)].pop(0)) for k in left if waiting[rule(k)]]
    taken = {id(kernel) for pair in found for kernel in (pair.before, pair.after)}
    left[:] = [kernel for kernel in left if id(kernel) not in taken]
    right[:] = [kernel for kernel in right if id(kernel) not in taken]
    return found


def _usage(kernel: Kernel) -> tuple[dict[str, int], int | None]:
    return kernel.resources, kernel.max_threads


def _content(kernel: Kernel) -> object:
    return kernel.code, tuple(sorted(kernel.resources.items())), kernel.max_threads


def _kinds(kernel: Kernel) -> Counter[str]:
    """Its instructions without registers and order."""
    return Counter(_kind(instruction) for instruction in kernel.code)


def _kind(instruction: str) -> str:
    text = _DISTANCE.sub("→", _REUSE.sub("", instruction))
    return _OF_AMD.sub(r"\1", _REGISTER.sub(r"\1", text))


def _name(pair: Pair) -> str:
    kernel = pair.after or pair.before
    assert kernel is not None
    return kernel.name


OPCODES = 5
"""As many opcodes as a summary names."""
_WORDS = {"REG": "registers", "SHARED": "bytes of shared memory", "STACK": "bytes of stack"}
_WORDS |= {"SGPR": "scalar registers", "AGPR": "accumulation registers"}


# Tells in which way two kernels differ: in a line, and as a diff.


def summary(before: Kernel, after: Kernel) -> str:
    """Says `registers 32 → 40; +12 IMAD, -3 LDG; first difference at instruction 17`."""
    parts = [*_kernel_diff_usage(before, after)]
    if before.code != after.code:
        was, now = len(_instructions(before)), len(_instructions(after))
        if was != now:
            parts.append(f"instructions {was:,} → {now:,}")
        parts += _opcodes(before, after)
        parts.append(f"first difference at instruction {_first(before, after):,}")
    return "; ".join(parts)


def diff(before: Kernel, after: Kernel) -> tuple[str, ...]:
    """Makes a unified diff of the instructions."""
    lines = difflib.unified_diff(before.code, after.code, "before", "after", lineterm="", n=3)
    return tuple(lines)


def _kernel_diff_usage(before: Kernel, after: Kernel) -> Iterator[str]:
    for name in sorted(before.resources.keys() | after.resources.keys()):
        was, now = before.resources.get(name, 0), after.resources.get(name, 0)
        if was != now:
            yield f"{_WORDS.get(name, name)} {was:,} → {now:,}"
    if before.max_threads != after.max_threads:
        yield f"launch bound {before.max_threads or 'none'} → {after.max_threads or 'none'}"


def _opcodes(before: Kernel, after: Kernel) -> list[str]:
    counts = Counter(map(_opcode, _instructions(after)))
    counts.subtract(map(_opcode, _instructions(before)))
    changed = sorted(
        ((count, name) for name, count in counts.items() if count),
        key=lambda found: (-abs(found[0]), found[1]),
    )
    if not changed:
        return []
    told = [f"{count:+d} {name}" for count, name in changed[:OPCODES]]
    more = [f"{len(changed) - OPCODES} more opcodes"] if len(changed) > OPCODES else []
    return [", ".join([*told, *more])]


def _instructions(kernel: Kernel) -> list[str]:
    """Without what is told behind them: how a kernel is launched, `.amdhsa_next_free_vgpr 14`."""
    return [row for row in kernel.code if not row.startswith(".")]


def _opcode(instruction: str) -> str:
    """`LDG`, of `@P0 LDG.E.64 R2, …`."""
    words = instruction.split(" ")
    word = words[1] if words[0].startswith("@") and len(words) > 1 else words[0]
    return word.partition(".")[0]


def _first(before: Kernel, after: Kernel) -> int:
    both = zip(before.code, after.code, strict=False)
    same = next((i for i, (was, now) in enumerate(both) if was != now), None)
    return min(len(before.code), len(after.code)) if same is None else same


# Compiles both sides of a comparison, as far as they can differ.


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


REMEDY = "Install it: apt-get install binutils"
# CUB_300001_SM_900::, _V_300200_SM_800::, THRUST_300001_SM_900_NS::, std::__4::
_VERSIONED = re.compile(r"\b(?:(?:CUB|THRUST|_V|_CUDA_\w+?)_\d+_\w*?SM_\w+|__\d+)::")
# policy_hub<int, int>::Policy1000
_POLICY = re.compile(r"(?<=::)Policy\d+\b")
# cub::detail::scan::, ::cuda::std::
_SCOPE = re.compile(r"(?:\b\w+::|\(anonymous namespace\)::)+(?=\w)")
LENGTH = 100
"""Of a name that people read."""


# Shortens the names of kernels: without what a release or a policy changes, and for people.


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Finds the C++ names of kernels."""
    wanted = sorted(set(names))
    if not wanted:
        return {}
    told = run(["c++filt"], install=REMEDY, given="\n".join(wanted)).splitlines()
    if len(told) != len(wanted):
        raise MissingToolError("a working c++filt", REMEDY)
    return dict(zip(wanted, told, strict=True))


def lasting(name: str) -> str:
    """Leaves out of a name its release, architecture list and numbers of policies."""
    return _POLICY.sub("Policy", _VERSIONED.sub("", name))


def function(name: str) -> str:
    """Finds `DeviceScanKernel` in a lasting name."""
    return _split(name)[0].rpartition("::")[2]


def short(name: str) -> str:
    """Gives `DeviceScanKernel<policy_hub<int, int>::Policy1000, int*>`, as long as it fits."""
    head, args = _split(_VERSIONED.sub("", name))
    text, plain = head.rpartition("::")[2], [_plain(arg) for arg in args]
    for count in range(len(plain), 0, -1):
        kept = plain if count == len(plain) else [*plain[:count], "…"]
        whole = f"{text}<{', '.join(kept)}>"
        if len(whole) <= LENGTH:
            return whole
    return f"{text}<{_policy(args[0])}, …>" if args else text


def _policy(arg: str) -> str:
    """`policy_hub<…>::Policy1000`, of an argument that is too long."""
    head, _, rest = arg.partition("<")
    return f"{_plain(head)}<…>{'::' + rest.rpartition('>::')[2] if '>::' in rest else ''}"


def _plain(text: str) -> str:
    """Without the namespaces; `Outer<int>::Inner` stays whole."""
    return _SCOPE.sub("", text).replace("> >", ">>")


def _split(name: str) -> tuple[str, list[str]]:
    """`void scope::kernel<A, B>(C, D)` → its scope and name, and its template arguments."""
    start = name.find("<")
    if start < 0:
        return name.partition("(")[0].removeprefix("void "), []
    args, depth, begin = [], 0, start + 1
    for index in range(start, len(name)):
        char = name[index]
        if char in "<(":
            depth += 1
        elif char in ">)":
            depth -= 1
            if depth == 0:
                args.append(name[begin:index].strip())
                break
        elif char == "," and depth == 1:
            args.append(name[begin:index].strip())
            begin = index + 1
    return name[:start].removeprefix("void "), args
