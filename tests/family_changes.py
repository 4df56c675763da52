"""Random changes of the entries of families: of a value, of what it inherits, of its key."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from policygen.model.records import Span
from policygen.model.tuning import Entry, Family, TuningHeader

# "768", "1 << 2": the last number counts
NUMBER = re.compile(r"(?:.*<< )?(\d+)")
# "LOAD_CA", "true"
WORD = re.compile(r"[A-Za-z_]\w*")
# "fixed_delay_constructor_t<264, 1080>", "detail::no_delay_constructor_t<395>"
DELAY = re.compile(r"(?:\w+::)*\w+<[\d, ]+>")
# "input_size::_2", "4", "true"; no type, and no parameter of the entry's own
FIXED = re.compile(r"\w+::\w+|\d+|true|false")
# The numbers of "sm90_tuning_vals<T, 192, 22, 168, 1140>"; not those of names
COUNTS = re.compile(r"(?<![\w:])\d+(?!\w)")
KINDS = ("value", "base", "key")
"""What a change is of."""


@dataclass(frozen=True, slots=True)
class FamilyChange:
    """An entry that says something else."""

    family: Family
    entry: Entry
    old: str
    new: str
    data: bytes

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.family.name}<{', '.join(self.entry.args)}>: {self.old} → {self.new}"


def changed(header: TuningHeader, data: bytes, seed: str, kind: str) -> FamilyChange | None:
    """A random change of a random entry; none where a header has nothing of the kind."""
    rng = random.Random(seed)
    entries = [
        (family, entry)
        for family in header.families
        for entry in family.entries
        if not entry.disabled
    ]
    rng.shuffle(entries)
    for family, entry in entries:
        if able := list(_spots(header, family, entry, kind)):
            span, others = rng.choice(able)
            start, end = span
            new = rng.choice(others)
            old = data[start:end].decode()
            return FamilyChange(family, entry, old, new, data[:start] + new.encode() + data[end:])
    return None


def _spots(
    header: TuningHeader, family: Family, entry: Entry, kind: str
) -> Iterator[tuple[Span, list[str]]]:
    """What can be changed of an entry, each with what it may become."""
    if kind == "value":
        return _values(header, entry)
    return _base(entry) if kind == "base" else _keys(family, entry)


def _values(header: TuningHeader, entry: Entry) -> Iterator[tuple[Span, list[str]]]:
    for member in entry.members:
        if found := NUMBER.fullmatch(member.spelling):
            start = found.start(1)
            yield member.value_span, [f"{member.spelling[:start]}{int(found[1]) + 1}"]
            continue
        if member.spelling in {"true", "false"}:
            yield member.value_span, ["false" if member.spelling == "true" else "true"]
            continue
        form = next((f for f in (WORD, DELAY) if f.fullmatch(member.spelling)), None)
        spelled = {
            other.spelling
            for one in header.families
            for its in one.entries
            for other in its.members
            if other.name == member.name and form and form.fullmatch(other.spelling)
        }
        if others := sorted(spelled - {member.spelling}):
            yield member.value_span, others


def _base(entry: Entry) -> Iterator[tuple[Span, list[str]]]:
    if entry.inherits is None or entry.inherits_span is None:
        return
    start, _ = entry.inherits_span
    for found in COUNTS.finditer(entry.inherits):
        yield (start + found.start(), start + found.end()), [str(int(found[0]) + 1)]


def _keys(family: Family, entry: Entry) -> Iterator[tuple[Span, list[str]]]:
    """An argument becomes another of its kind, as far as no other entry has the same then."""
    taken = {one.slots for one in family.entries}
    if entry.kind == "primary" or len(entry.arg_spans) != len(entry.args):
        return
    for place, (span, arg) in enumerate(zip(entry.arg_spans, entry.args, strict=True)):
        if not FIXED.fullmatch(arg):
            continue
        others = []
        alike = [one for one in family.entries if len(one.args) == len(entry.args)]
        for other in sorted({one.args[place] for one in alike} - {arg}):
            slots = (*entry.slots[:place], other, *entry.slots[place + 1 :])
            if FIXED.fullmatch(other) and slots not in taken:
                others.append(other)
        if others:
            yield span, others
