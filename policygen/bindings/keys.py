"""The arguments that the compiler prints, in the words of headers."""

from collections.abc import Mapping, Sequence

from policygen.bindings.load import types
from policygen.model.entry_text import Slot
from policygen.model.tuning import TemplateParameter


def fits(
    parameters: Sequence[TemplateParameter], slots: Sequence[Slot], args: Sequence[str]
) -> bool:
    """Whether an entry with these slots would be there for the arguments; fewer are defaults."""
    literal = [
        by_print().get(type_name(arg), type_name(arg)) if p.kind == "type" else as_slot(p, arg)
        for p, arg in zip(parameters, args, strict=True)
    ]
    pairs = zip(slots, literal, strict=False)
    return len(slots) <= len(literal) and all(there in {None, own} for there, own in pairs)


def as_slot(parameter: TemplateParameter, arg: str) -> Slot:
    """An argument as a header writes it: `_4` of an `offset_size` is `offset_size::_4`."""
    if parameter.kind == "type":
        return None
    if arg in {"true", "false"} or arg.lstrip("-").isdigit():
        return arg
    return f"{parameter.type}::{arg}"


def type_name(arg: str) -> str:
    """A type that the compiler prints, by its usual name: `signed int` is `int`."""
    return arg if arg == "signed char" else arg.removeprefix("signed ")


def by_print() -> Mapping[str, str]:
    """What the compiler prints → what headers write: `long` is not as wide everywhere."""
    plain = {"int", "short"}
    return {shown: name for name, shown in types().spellings.items() if shown not in plain}
