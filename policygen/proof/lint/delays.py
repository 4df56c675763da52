"""Delay constructors: three parameters of a label are one type of an entry."""

from collections.abc import Mapping

from policygen.bindings.load import types
from policygen.model.bindings import DelayConstructor
from policygen.proof.lint.keys import split_template


def delay_contradiction(
    spelling: str, parameters: tuple[str, str, str], values: Mapping[str, int]
) -> str | None:
    """What a label says instead of a delay constructor; nothing where it names none."""
    if not set(parameters) <= set(values):
        return None
    identity, ns, l2w = (values[name] for name in parameters)
    meant = next((delay for delay in types().delays if delay.id == identity), None)
    if meant is None:
        return None
    name, args = split_template(spelling)
    label = f"{parameters[0]}_{identity}"
    if name != meant.type:
        return f"{label}, which is {meant.type}, the entry has {name}"
    wanted = {"ns": (parameters[1], ns), "l2w": (parameters[2], l2w)}
    return _arguments(meant, args, wanted)


def _arguments(
    meant: DelayConstructor, args: tuple[str, ...], wanted: Mapping[str, tuple[str, int]]
) -> str | None:
    """The first argument that is another than the label's."""
    if len(args) != len(meant.args):
        return None
    for name, arg in zip(meant.args, args, strict=True):
        label, number = wanted[name]
        if not arg.isdecimal() or int(arg) == number:
            continue
        others = [f"{who}_{what}" for who, what in wanted.values() if what == int(arg)]
        # no_delay_constructor_t takes the latency alone, and has been given the delay.
        swapped = f", which is {others[0]}" if others else ""
        return f"{label}_{number}, the entry has {arg}{swapped}"
    return None
