"""The arguments under which an entry is written for a workload."""

from collections.abc import Sequence
from dataclasses import dataclass

from policygen.bindings.keys import as_slot, by_print, type_name
from policygen.bindings.load import types
from policygen.dialects.specializations.siblings import neighbour
from policygen.dialects.type_names import can_name
from policygen.errors import InputError
from policygen.model.entry_text import Slot
from policygen.model.tuning import Family


@dataclass(frozen=True, slots=True)
class EntryKey:
    """The slots of an entry, the condition that it needs, and those of its unsigned twin."""

    slots: tuple[Slot, ...]
    guard: str | None = None
    alias: tuple[Slot, ...] | None = None


def general_key(family: Family, args: Sequence[str]) -> EntryKey:
    """The broadest key that CUB writes for such arguments: any type of this size and class."""
    literal = tuple(as_slot(p, arg) for p, arg in zip(family.parameters, args, strict=True))
    classes = [p.type for p in family.parameters if p.type in types().open_classes]
    open_ones = sum(f"{name}::no" in literal for name in classes)
    guarded = [position for position in type_positions(family) if _guard(args[position])]
    # The accumulator of a sum of 128-bit integers is one, too: one name tells enough.
    named = guarded[: max(1, open_ones)]
    unsized = any(slot and slot.endswith("::unknown") for slot in literal)
    if not named and (unsized or not any(literal)):
        named = type_positions(family)[:1]
    return _key(family, args, named)


def named_key(family: Family, args: Sequence[str], position: int) -> EntryKey:
    """The same with one of the types by name, for an entry beside a more general one."""
    general = general_key(family, args)
    named = [i for i in type_positions(family) if general.slots[i] is not None]
    return _key(family, args, sorted({*named, position}))


def type_positions(family: Family) -> list[int]:
    """Where a family's arguments are types."""
    return [i for i, parameter in enumerate(family.parameters) if parameter.kind == "type"]


def too_general(family: Family, key: EntryKey) -> str | None:
    """The parameter by which an entry would take every type of a size that is no number."""
    named = sum(key.slots[position] is not None for position in type_positions(family))
    for parameter, slot in zip(family.parameters, key.slots, strict=True):
        if parameter.type in types().open_classes and slot == f"{parameter.type}::no":
            if named == 0:
                return parameter.label
            named -= 1
    return None


def _key(family: Family, args: Sequence[str], named: Sequence[int]) -> EntryKey:
    found = tuple(
        _spelled(arg) if position in named else as_slot(parameter, arg)
        for position, (parameter, arg) in enumerate(zip(family.parameters, args, strict=True))
    )
    found = _as_open_as_siblings(family, found)
    guards = [guard for position in named if (guard := _guard(args[position]))]
    twins = {t.cpp: t.twin for t in types().types if t.twin}
    twin = tuple(twins.get(slot, slot) if slot else None for slot in found)
    return EntryKey(found, guards[0] if guards else None, twin if twin != found else None)


def _as_open_as_siblings(family: Family, key: tuple[Slot, ...]) -> tuple[Slot, ...]:
    """A value that the closest sibling leaves open is left open here, too."""
    beside = neighbour(family, key)
    if beside is None:
        return key
    theirs = beside.entry.slots
    return tuple(
        None if slot is not None and other is None and parameter.kind == "value" else slot
        for slot, other, parameter in zip(key, theirs, family.parameters, strict=True)
    )


def _spelled(arg: str) -> str:
    """A type as headers call it: `__int128` is `__int128_t`."""
    if not can_name(arg):
        raise InputError(f"an entry cannot name the type {arg}", "The header does not know it.")
    return by_print().get(type_name(arg), type_name(arg))


def _guard(arg: str) -> str | None:
    """The condition under which CUB writes about a type."""
    spelled = by_print().get(type_name(arg), arg)
    return next((t.guard for t in types().types if t.cpp == spelled and t.guard), None)
