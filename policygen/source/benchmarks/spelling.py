"""What bindings say in C++, as a benchmark's source says it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding
from policygen.model.run_binding import BufferBinding, RunBinding
from policygen.source.benchmarks.knowledge import WrittenFill, knowledge

OPERATOR = "op_t"
ELEMENTS, ENTROPY = "Elements", "Entropy"
_AXIS = re.compile(r"axis::(\w+)")
# "axis::T", "AccumT"; no member, no rest of a qualified name, no scope
_NAME = re.compile(r"(?<![\w:.>])(axis::)?([A-Za-z_]\w*)(?!\w|::)")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# uniform(to, count, Entropy), power_law_offsets(to, num_segments, Elements)
_CALL = re.compile(r"(\w+)\(to(?:, count)?(?:, (.*))?\)", re.DOTALL)
_OPENING, _CLOSING = "(<{", ")>}"


def in_style(name: str) -> str:
    """`AccumT` as CUB's benchmarks call such a thing in a function: `accum_t`."""
    return _HUMP.sub("_", name).lower()


@dataclass(frozen=True, slots=True)
class SourceNames:
    """What each name of a binding is in the source."""

    known: Mapping[str, str]
    roles: Mapping[str, str]
    """Role that is more than an axis → its type in the binding's words."""

    def spell(self, text: str) -> str:
        """C++ of a binding as C++ of the source."""
        return _NAME.sub(lambda match: self.known.get(match[0], match[0]), text.strip())

    def needed(self, texts: list[str]) -> set[str]:
        """The roles that some C++ of the binding names, and those that these need."""
        found: set[str] = set()
        waiting = {match[0] for text in texts for match in _NAME.finditer(text)}
        while more := (waiting & self.roles.keys()) - found:
            found |= more
            waiting = {match[0] for one in more for match in _NAME.finditer(self.roles[one])}
        return found


def source_names(
    benchmark: BenchmarkBinding,
    run: RunBinding,
    constants: Mapping[str, str],
    operator: str,
    declared: Mapping[str, str],
) -> SourceNames:
    """Those of a benchmark; `constants` are the axes that are no types, `operator` that of one.

    What the source declares itself is called as it says.
    """
    known = {**knowledge().written.words, **declared}
    for axis in benchmark.axes:
        known[f"axis::{axis}"] = f"{axis}::value" if axis in constants else axis
    known[f"axis::{operator}"] = OPERATOR
    roles: dict[str, str] = {}
    for role, text in benchmark.roles.items():
        if match := _AXIS.fullmatch(text):
            known[role] = known[match[0]]
        elif text in known and text not in roles:
            known[role] = known[text]
        else:
            known[role], roles[role] = in_style(role), text
    names = SourceNames(known, roles)
    known |= {name: names.spell(text) for name, text in benchmark.constants.items()}
    known |= {(plain := _plain(axis)): in_style(plain) for axis in run.axes}
    for size, text in run.sizes.items():
        known[size] = known.get(text, size)
    known |= {name: f"d_{name}" for name in run.buffers}
    return names


def _plain(axis: str) -> str:
    """`Elements{io}[pow2]` as C++ of a binding calls it."""
    return re.sub(r"\{[^}]*\}|\[[^\]]*\]|\W", "", axis)


@dataclass(frozen=True, slots=True)
class FilledVector:
    """How a vector of the source gets its contents."""

    init: str
    then: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()


def filled(name: str, one: BufferBinding, names: SourceNames) -> FilledVector:
    """What makes a buffer; refused where a checkout has nothing that makes such contents."""
    given = {"name": name, "type": names.spell(one.type), "count": names.spell(one.count)}
    if one.fill is None:
        return FilledVector(f"({given['count']})")
    match = _CALL.fullmatch(one.fill.strip())
    parts = _split(match[2]) if match and match[2] else []
    fill = next(
        (f for f in knowledge().written.fills if match and _takes(f, match[1], parts)), None
    )
    if fill is None:
        raise InputError(
            f"no benchmark's source can make what {name} holds: {one.fill.partition('(')[0]}",
            "Such a workload is measured without one: policygen measure --workload FILE.",
        )
    spelled = [names.spell(part) for part in parts]
    if fill.entropy is not None and (digits := parts[fill.entropy]).isdigit():
        spelled[fill.entropy] = f"bit_entropy::_{int(digits) // 1000}_{int(digits) % 1000:03}"
    return FilledVector(
        fill.init.format(*spelled, **given),
        tuple(line.format(*spelled, **given) for line in fill.then),
        fill.includes,
    )


def _takes(fill: WrittenFill, name: str, parts: list[str]) -> bool:
    called, _, arguments = fill.call.partition("(")
    return called == name and len(re.findall(r"\{\d\}", arguments)) == len(parts)


def _split(text: str) -> list[str]:
    """The arguments of a call."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in _OPENING) - (char in _CLOSING)
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]
