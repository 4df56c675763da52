"""Two entries for the same arguments."""

import re
from collections.abc import Iterator
from itertools import takewhile

from policygen.model.tuning import Entry
from policygen.proof.lint.keys import key, normal
from policygen.proof.lint.subject import Remark, Subject


def duplicate(subject: Subject) -> Iterator[Remark]:
    """C++ allows one specialization for each list of arguments, whatever its parameters' names."""
    entry = subject.entry
    if entry.kind == "primary":
        return
    told = key if subject.returns else _asked
    own = told(entry)
    for other in takewhile(lambda e: e is not entry, subject.family.specializations):
        if told(other) == own and _together(entry, other):
            span = entry.args_span or entry.span
            yield Remark(span, f"line {other.line} is a specialization for the same arguments")
            return


def _asked(entry: Entry) -> tuple[str, ...]:
    """What a config asks of types, in whatever order, and which of them it is told."""
    return (*entry.template_parameters, *sorted(map(normal, entry.args)))


def _together(one: Entry, other: Entry) -> bool:
    """Whether a compiler surely sees both: where one is, the other is too."""
    mine, theirs = conditions(one.guard), conditions(other.guard)
    return mine <= theirs or theirs <= mine


def conditions(guard: str | None) -> frozenset[str]:
    """`A() && (B || C)` as its two parts; `A || B && C` is one."""
    parts, depth = [""], 0
    for piece in re.findall(r"&&|\|\||[()]|[^()&|]+|.", guard or ""):
        depth += (piece == "(") - (piece == ")")
        if piece == "||" and not depth:
            return frozenset({"".join((guard or "").split())})
        if piece == "&&" and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return frozenset("".join(part.split()) for part in parts if part.strip())
