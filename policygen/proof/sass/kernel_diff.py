"""Tells in which way two kernels differ: in a line, and as a diff."""

import difflib
from collections import Counter
from collections.abc import Iterator

from policygen.model.sass import Kernel

OPCODES = 5
"""As many opcodes as a summary names."""
_WORDS = {"REG": "registers", "SHARED": "bytes of shared memory", "STACK": "bytes of stack"}
_WORDS |= {"SGPR": "scalar registers", "AGPR": "accumulation registers"}


def summary(before: Kernel, after: Kernel) -> str:
    """Says `registers 32 → 40; +12 IMAD, -3 LDG; first difference at instruction 17`."""
    parts = [*_usage(before, after)]
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


def _usage(before: Kernel, after: Kernel) -> Iterator[str]:
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
