"""Compares each kernel between two sides."""

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from policygen.bindings.load import types
from policygen.errors import InputError, MissingToolError, PolicygenError
from policygen.libraries import part_of
from policygen.model.arch import arch_and_gpu, arch_number
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
from policygen.model.trees import Cub
from policygen.model.workload import Point, in_words
from policygen.process import run
from policygen.proof.kernel_build import KernelTools, LibraryKernels, Tools
from policygen.proof.kernel_calls import WorkloadUnit
from policygen.proof.kernel_units import Contents, KernelCompiler, Kernels
from policygen.proof.reading import read_tree
from policygen.proof.toolchain import find_toolchain

HELPERS = "it contains only helper kernels that are never launched; nothing to compare"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The result of comparing all kernels."""

    counts: dict[tuple[str, str], Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    """Counts by benchmark and architecture, named like the fields of `SassRow`."""
    renamed: list[Renamed] = field(default_factory=list)
    different: list[Different] = field(default_factory=list)
    only_before: list[KernelPlace] = field(default_factory=list)
    only_after: list[KernelPlace] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)

    @property
    def rows(self) -> tuple[SassRow, ...]:
        """Makes a row per benchmark and architecture."""
        names = [name for name in SassRow.model_fields if name not in {"benchmark", "arch"}]
        return tuple(
            SassRow(benchmark=benchmark, arch=arch, **{name: counts[name] for name in names})
            for (benchmark, arch), counts in sorted(
                self.counts.items(), key=lambda item: (item[0][0], arch_number(item[0][1]))
            )
        )


KernelsBySpot = Mapping[Spot, Kernels]


@dataclass(frozen=True, slots=True)
class Sides:
    """The kernels of both sides; `identical` workloads need not be compiled."""

    before: KernelsBySpot
    after: KernelsBySpot
    identical: frozenset[Spot] = frozenset()

    def refusal(self, spot: Spot) -> PolicygenError | None:
        """Returns the error if one side of a workload does not compile."""
        sides = (side.get(spot) for side in (self.before, self.after))
        return next((kernels for kernels in sides if isinstance(kernels, PolicygenError)), None)

    def same_code(self, spot: Spot) -> bool:
        """Whether all kernels of a workload match; also true if one side does not compile."""
        if spot in self.identical:
            return True
        before, after = self.before.get(spot), self.after.get(spot)
        if isinstance(before, PolicygenError) or isinstance(after, PolicygenError):
            return True  # there is nothing to show
        if before is None or after is None:
            return False
        if before == after:
            return True
        matched = pairs(before, after, _cpp_names([before, after]))
        return all(pair.before and pair.after and same(pair.before, pair.after) for pair in matched)


def verdicts(sides: Sides, meant: Collection[Spot] = ()) -> Verdicts:
    """Judges each kernel, except helpers that are never run.

    For spots in `meant`, whose values change on purpose, a difference counts as written.
    """
    result = Verdicts()
    cpp = _cpp_names([*sides.before.values(), *sides.after.values()])
    helpers = frozenset(types().helper_kernels)
    for spot in dict.fromkeys([*sides.after, *sides.before, *sorted(sides.identical)]):
        counts = result.counts[spot[0][0], spot[1]]
        counts["workloads"] += 1
        if spot in sides.identical:
            counts["identical"] += 1
            continue
        before, after = sides.before.get(spot, ()), sides.after.get(spot, ())
        if isinstance(before, PolicygenError):
            result.refused.append(_refused(spot, "before", before))
        if isinstance(after, PolicygenError):
            result.refused.append(_refused(spot, "after", after))
        if isinstance(before, PolicygenError) or isinstance(after, PolicygenError):
            counts["refused"] += 1
            continue
        old, new = (
            [kernel for kernel in side if function(lasting(cpp[kernel.name])) not in helpers]
            for side in (before, after)
        )
        if not old and not new:
            result.refused.append(_refused(spot, "after", InputError(HELPERS)))
            counts["refused"] += 1
        for pair in pairs(old, new, cpp):
            counts["kernels"] += 1
            counts[_record(result, spot, pair, cpp, as_written=spot in meant)] += 1
    return result


def _refused(spot: Spot, side: Side, error: PolicygenError) -> Refused:
    return Refused.of(spot[0], arch=spot[1], side=side, message=str(error))


@dataclass(frozen=True, slots=True)
class Pair:
    """A kernel on both sides, or on only one of them."""

    before: Kernel | None
    after: Kernel | None

    @property
    def name(self) -> str:
        """The name of the kernel, after the change if it differs."""
        kernel = self.after or self.before
        assert kernel is not None
        return kernel.name


def _record(
    result: Verdicts, spot: Spot, pair: Pair, cpp: Mapping[str, str], *, as_written: bool
) -> str:
    """Records a pair, and returns the name of the count that it belongs to."""
    point, arch = spot
    place: dict[str, Any] = {"arch": arch, "kernel": short(cpp[pair.name])}
    place |= {"as_written": as_written}
    if pair.before is None or pair.after is None:
        is_new = pair.before is None
        (result.only_after if is_new else result.only_before).append(KernelPlace.of(point, **place))
        return "as_written" if as_written else "only_after" if is_new else "only_before"
    kind = verdict(pair.before, pair.after)
    if kind == "equal":
        return kind
    if kind == "renamed":
        names = {"name_before": cpp[pair.before.name], "name_after": cpp[pair.after.name]}
        result.renamed.append(Renamed.of(point, **place, **names))
        return kind
    before, after = pair.before, pair.after
    place |= {"kind": kind, "registers": (before.registers, after.registers)}
    details = {"summary": summary(before, after), "diff": diff(before, after)}
    result.different.append(Different.of(point, **place, **details))
    return "as_written" if as_written else kind


Verdict = Literal["equal", "renamed", "moved", "different"]
# R12, UR4, P0, UP1, B3, R2.64, SB1; RZ and PT have a fixed meaning.
_REGISTER = re.compile(r"\b(U?R|U?P|B|SB)\d+\b")
# v12, s[4:5], a3: AMD registers
_AMD_REGISTER = re.compile(r"\b([vsa])(?:\d+|\[\d+:\d+\])(?!\w)")
_REUSE = re.compile(r"\.reuse\b")
# BRA +0xe10
_DISTANCE = re.compile(r"[+-]0x[0-9a-f]+$")


# Pairs the kernels of both sides, and compares them.


def verdict(before: Kernel, after: Kernel) -> Verdict:
    """Classifies the difference between two kernels."""
    if same(before, after):
        return "equal" if before.name == after.name else "renamed"
    same_instructions = _usage(before) == _usage(after) and _kinds(before) == _kinds(after)
    return "moved" if same_instructions else "different"


def same(before: Kernel, after: Kernel) -> bool:
    """Whether two kernels differ in their names at most."""
    return _content(before) == _content(after)


def pairs(
    before: Sequence[Kernel], after: Sequence[Kernel], cpp: Mapping[str, str]
) -> tuple[Pair, ...]:
    """Pairs kernels by lasting name, then by content, then by function.

    `cpp` has the C++ name of each kernel.
    """
    left, right = list(before), list(after)
    matched: list[Pair] = []
    rules: tuple[Callable[[Kernel], object], ...] = (
        lambda kernel: kernel.name,
        lambda kernel: (lasting(cpp[kernel.name]), _content(kernel)),
        lambda kernel: lasting(cpp[kernel.name]),
        _content,
        lambda kernel: function(lasting(cpp[kernel.name])),
    )
    for rule in rules:
        matched += _take_matching(left, right, rule)
    matched += [Pair(kernel, None) for kernel in left]
    matched += [Pair(None, kernel) for kernel in right]
    return tuple(sorted(matched, key=lambda pair: pair.name))


def _take_matching(
    left: list[Kernel], right: list[Kernel], rule: Callable[[Kernel], object]
) -> list[Pair]:
    """Pairs the kernels for which a rule gives equal keys, and removes them from both lists."""
    waiting: defaultdict[object, list[Kernel]] = defaultdict(list)
    for kernel in right:
        waiting[rule(kernel)].append(kernel)
    matched = [
        Pair(kernel, waiting[rule(kernel)].pop(0)) for kernel in left if waiting[rule(kernel)]
    ]
    taken = {id(kernel) for pair in matched for kernel in (pair.before, pair.after)}
    left[:] = [kernel for kernel in left if id(kernel) not in taken]
    right[:] = [kernel for kernel in right if id(kernel) not in taken]
    return matched


def _usage(kernel: Kernel) -> tuple[object, ...]:
    return tuple(sorted(kernel.resources.items())), kernel.max_threads


def _content(kernel: Kernel) -> tuple[object, ...]:
    return kernel.code, *_usage(kernel)


def _kinds(kernel: Kernel) -> Counter[str]:
    """Counts its instructions, ignoring registers and order."""
    return Counter(_kind(instruction) for instruction in kernel.code)


def _kind(instruction: str) -> str:
    text = _DISTANCE.sub("→", _REUSE.sub("", instruction))
    return _AMD_REGISTER.sub(r"\1", _REGISTER.sub(r"\1", text))


OPCODES = 5
"""The number of opcodes that a summary shows."""
_WORDS = {"REG": "registers", "SHARED": "bytes of shared memory", "STACK": "bytes of stack"}
_WORDS |= {"SGPR": "scalar registers", "AGPR": "accumulation registers"}


# Describes the difference between two kernels: as a summary, and as a diff.


def summary(before: Kernel, after: Kernel) -> str:
    """Returns `registers 32 → 40; +12 IMAD, -3 LDG; first difference at instruction 17`."""
    parts = [*_kernel_diff_usage(before, after)]
    if before.code != after.code:
        was, now = len(_instructions(before)), len(_instructions(after))
        if was != now:
            parts.append(f"instructions {was:,} → {now:,}")
        parts += _opcodes(before, after)
        instructions = enumerate(zip(before.code, after.code, strict=False))
        shorter = min(len(before.code), len(after.code))
        first = next((position for position, (old, new) in instructions if old != new), shorter)
        parts.append(f"first difference at instruction {first:,}")
    return "; ".join(parts)


def diff(before: Kernel, after: Kernel) -> tuple[str, ...]:
    """Makes a unified diff of the instructions."""
    return tuple(difflib.unified_diff(before.code, after.code, "before", "after", lineterm=""))


def _kernel_diff_usage(before: Kernel, after: Kernel) -> Iterator[str]:
    for name in sorted(before.resources.keys() | after.resources.keys()):
        was, now = before.resources.get(name, 0), after.resources.get(name, 0)
        if was != now:
            yield f"{_WORDS.get(name, name)} {was:,} → {now:,}"
    if before.max_threads != after.max_threads:
        yield f"launch bound {before.max_threads or 'none'} → {after.max_threads or 'none'}"
    if before.resident and after.resident and before.resident != after.resident:
        yield f"resident threads {before.resident:,} → {after.resident:,}"


def _opcodes(before: Kernel, after: Kernel) -> list[str]:
    counts = Counter(map(_opcode, _instructions(after)))
    counts.subtract(map(_opcode, _instructions(before)))
    changes = ((count, name) for name, count in counts.items() if count)
    changed = sorted(changes, key=lambda item: (-abs(item[0]), item[1]))
    if not changed:
        return []
    shown = [f"{count:+d} {name}" for count, name in changed[:OPCODES]]
    remaining = [f"{len(changed) - OPCODES} more opcodes"] if len(changed) > OPCODES else []
    return [", ".join([*shown, *remaining])]


def _instructions(kernel: Kernel) -> list[str]:
    """Drops the launch metadata after the instructions, such as `.amdhsa_next_free_vgpr 14`."""
    return [row for row in kernel.code if not row.startswith(".")]


def _opcode(instruction: str) -> str:
    """Returns the `LDG` of `@P0 LDG.E.64 R2, …`."""
    words = instruction.split(" ")
    word = words[1] if words[0].startswith("@") and len(words) > 1 else words[0]
    return word.partition(".")[0]


# Compiles both sides of a comparison, unless their sources are equal.


def compile_side(
    calls: Mapping[Point, WorkloadUnit], spots: Iterable[Spot], compiler: KernelCompiler
) -> KernelsBySpot:
    """Compiles one side, with all instructions, in the given order."""
    units = _units(calls, spots)
    return _compile_both([], units, compiler.contents(units), compiler, listed=True).after


def compile_sides(
    before: Mapping[Point, WorkloadUnit],
    after: Mapping[Point, WorkloadUnit],
    spots: Sequence[Spot],
    compiler: KernelCompiler,
) -> Sides:
    """Compiles both sides in the given order, except workloads with equal sources."""
    old, new = _units(before, spots), _units(after, spots)
    contents = compiler.contents([*old, *new])
    same_source = _same_source(dict(old), dict(new), contents)
    others = [spot for spot in spots if spot not in same_source]
    old, new = _units(before, others), _units(after, others)
    # One batch for both sides, so that no core has to wait.
    digested = _compile_both(old, new, contents, compiler, listed=False)
    both = [spot for spot in others if spot[0] in before and spot[0] in after]
    differing = [spot for spot in both if not digested.same_code(spot)]
    old, new = _units(before, differing), _units(after, differing)
    disassembled = _compile_both(old, new, contents, compiler, listed=True)
    return Sides(
        {**digested.before, **disassembled.before},
        {**digested.after, **disassembled.after},
        same_source,
    )


def _compile_both(
    old: Sequence[tuple[Spot, WorkloadUnit]],
    new: Sequence[tuple[Spot, WorkloadUnit]],
    contents: Contents,
    compiler: KernelCompiler,
    *,
    listed: bool,
) -> Sides:
    units = [*old, *new]
    compiled = compiler.kernels(units, contents, listed=listed)
    kernels = iter(_keep_scope_kernels(units, compiled))
    return Sides({spot: next(kernels) for spot, _ in old}, {spot: next(kernels) for spot, _ in new})


def _keep_scope_kernels(
    units: Sequence[tuple[Spot, WorkloadUnit]], compiled: Sequence[Kernels]
) -> list[Kernels]:
    """Keeps the kernels that mention their unit's namespace, if it has one."""
    rows = list(zip(units, compiled, strict=True))
    cpp = _cpp_names(kernels for (_, unit), kernels in rows if unit.scope is not None)
    result: list[Kernels] = []
    for (((benchmark, workload), arch), unit), kernels in rows:
        if unit.scope is None or isinstance(kernels, PolicygenError):
            result.append(kernels)
            continue
        mention = f"::{unit.scope}::"
        mentioning = tuple(kernel for kernel in kernels if mention in lasting(cpp[kernel.name]))
        location = f"{in_words(benchmark, dict(workload))} on {arch}"
        result.append(
            mentioning
            or InputError(f"{location}: none of {len(kernels)} kernels mentions {unit.scope}")
        )
    return result


def _units(
    calls: Mapping[Point, WorkloadUnit], spots: Iterable[Spot]
) -> list[tuple[Spot, WorkloadUnit]]:
    return [(spot, calls[spot[0]]) for spot in spots if spot[0] in calls]


def _same_source(
    old: Mapping[Spot, WorkloadUnit], new: Mapping[Spot, WorkloadUnit], contents: Contents
) -> frozenset[Spot]:
    """Finds the workloads that both sides compile from the same text."""
    same_spots = set()
    for spot in old.keys() & new.keys():
        before, after = old[spot], new[spot]
        content = contents[before.headers(spot[1])]
        has_same_content = isinstance(content, str) and content == contents[after.headers(spot[1])]
        if has_same_content and before.text == after.text:
            same_spots.add(spot)
    return frozenset(same_spots)


REMEDY = "Install it: apt-get install binutils"
# CUB_300001_SM_900::, _V_300200_SM_800::, THRUST_300001_SM_900_NS::, std::__4::, and the inline
# namespace of an overlay: policygen_add143b5e6c3::
_VERSIONED = re.compile(
    r"\b(?:(?:CUB|THRUST|_V|_CUDA_\w+?)_\d+_\w*?SM_\w+|__\d+|policygen_[0-9a-f]{12})::"
)
# policy_hub<int, int>::Policy1000
_POLICY = re.compile(r"(?<=::)Policy\d+\b")
# cub::detail::scan::, ::cuda::std::
_SCOPE = re.compile(r"(?:\b\w+::|\(anonymous namespace\)::)+(?=\w)")
LENGTH = 100
"""The maximum length of a displayed name."""


# Shortens kernel names: to the parts that last across releases, and for display.


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Demangles the names of kernels."""
    mangled = sorted(set(names))
    if not mangled:
        return {}
    cpp_names = run(["c++filt"], install=REMEDY, given="\n".join(mangled)).splitlines()
    if len(cpp_names) != len(mangled):
        raise MissingToolError("a working c++filt", REMEDY)
    return dict(zip(mangled, cpp_names, strict=True))


def _cpp_names(compiled: Iterable[Kernels]) -> dict[str, str]:
    built = (kernels for kernels in compiled if not isinstance(kernels, PolicygenError))
    return demangled(kernel.name for kernels in built for kernel in kernels)


def lasting(name: str) -> str:
    """Removes the release, architecture list and policy numbers from a name."""
    return _POLICY.sub("Policy", _VERSIONED.sub("", name))


def function(name: str) -> str:
    """Returns the `DeviceScanKernel` in a lasting name."""
    return split_name(name)[0].rpartition("::")[2]


def short(name: str) -> str:
    """Returns `DeviceScanKernel<policy_hub<int, int>::Policy1000, int*>`, shortened to fit."""
    head, args = split_name(_VERSIONED.sub("", name))
    text, plain = head.rpartition("::")[2], [_plain(arg) for arg in args]
    for count in range(len(plain), 0, -1):
        shown_args = plain if count == len(plain) else [*plain[:count], "…"]
        shortened = f"{text}<{', '.join(shown_args)}>"
        if len(shortened) <= LENGTH:
            return shortened
    return f"{text}<{_policy(args[0], LENGTH - len(f'{text}<, …>'))}, …>" if args else text


def _policy(arg: str, room: int) -> str:
    """Returns `policy_hub<int, …>::Policy1000` for an argument that is too long."""
    head, template, _ = arg.partition("<")
    name, member = _plain(head), arg.rpartition(">")[2] if template else ""
    plain = [_plain(inner) for inner in split_name(arg)[1]]
    for count in range(len(plain) - 1, 0, -1):
        shortened = f"{name}<{', '.join(plain[:count])}, …>{member}"
        if len(shortened) <= room:
            return shortened
    return f"{name}<…>{member}"


def _plain(text: str) -> str:
    """Removes namespaces; `Outer<int>::Inner` stays whole."""
    return _SCOPE.sub("", text).replace("> >", ">>")


def split_name(name: str) -> tuple[str, list[str]]:
    """Splits `void scope::kernel<A, B>(C, D)` into its qualified name and template arguments."""
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


# Finding the compiler for a tree's kernels, and its architectures.


def find_kernel_tools(
    cub: Cub, archs: Sequence[str] = (), hipcc: Path | None = None
) -> KernelTools:
    """Finds the compiler for a tree's kernels, for `archs` or else for all tuned architectures."""
    if kernels := part_of(cub.library, LibraryKernels):
        families = (family for header in read_tree(cub).headers for family in header.families)
        tuned = {arch_and_gpu(family.arch)[0] for family in families}
        return kernels.find_tools({*archs, *tuned}, hipcc)
    if hipcc is not None:
        raise InputError(
            f"--hipcc names a compiler for GPUs of AMD, and {cub.root} holds {cub.title}",
            "Omit it.",
        )
    return Tools.of(find_toolchain())
