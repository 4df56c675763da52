"""The architectures at which a tree is asked: no interval between two of them is left out."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from policygen.bindings.archs import ladder
from policygen.model.arch import arch_number
from policygen.model.resolve import Differing

# ::cuda::compute_capability{10, 3}, compute_capability(90)
_CAPABILITY = re.compile(rb"\bcompute_capability\s*[{(]\s*(\d+)\s*(?:,\s*(\d+)\s*)?[})]")
# get_sm107_tuning, arch_id::sm_90, Policy1000, ChainedPolicy<900
_NAMED = re.compile(rb"(?:sm_?|policy_?|\bchainedpolicy\s*<\s*)(\d{2,4})(?!\d)", re.IGNORECASE)
# cc >= 90, cc.major_cap() < 10
_COMPARED = re.compile(rb"\bcc\b[\w.()\s]{0,40}[<>=]=?\s*(\d+)\b(?!\s*[{,])")


@dataclass(frozen=True, slots=True)
class AskedArchs:
    """Where a tree is asked."""

    known: frozenset[str]
    """The architectures that are known, or that stand in a header."""
    between: frozenset[str] = frozenset()
    """Others: each stands for the interval up to the next that is known, or beyond all."""

    @property
    def ordered(self) -> tuple[str, ...]:
        """All of them, ascending."""
        return tuple(sorted(self.known | self.between, key=arch_number))


def asked_archs(contents: Iterable[bytes], listed: Iterable[str]) -> AskedArchs:
    """Finds where headers are asked, so that no return of theirs is left out.

    A return can begin or end only at what stands in a header, or right behind it.
    """
    named = {number for data in contents for number in _numbers(data)}
    known = {arch_number(arch) for arch in (*ladder(), *listed)}
    known |= {number for number in named if number >= min(known)}
    behind = {number + 1 for number in known} - known
    return AskedArchs(frozenset(map(_name, known)), frozenset(map(_name, behind)))


def without_repeats(rows: Sequence[Differing], archs: AskedArchs) -> list[Differing]:
    """Leaves out what changes between known architectures just as on the one before."""
    ordered = archs.ordered
    before = dict(zip(ordered[1:], ordered, strict=False))
    known = {(row.point, row.arch, row.legacy): (row.before, row.after) for row in rows}
    return [
        row
        for row in rows
        if row.arch not in archs.between
        or known.get((row.point, before[row.arch], row.legacy)) != (row.before, row.after)
    ]


def _name(number: int) -> str:
    return f"sm{number}"


def _numbers(data: bytes) -> Iterator[int]:
    for major, minor in _CAPABILITY.findall(data):
        yield int(major) * 10 + int(minor) if minor else _number(int(major))
    yield from (_number(int(text)) for text in _NAMED.findall(data))
    yield from (_number(int(text)) for text in _COMPARED.findall(data))


def _number(value: int) -> int:
    """10, 103 and 1030 are 10.0, 10.3 and 10.3."""
    if value < 20:
        return value * 10
    return value // 10 if value >= 300 else value
