"""Delay constructors: three parameters of a label are one type of an entry."""

import re
from collections.abc import Mapping

from policygen.bindings.load import types
from policygen.model.bindings import DelayConstructor
from policygen.model.tuning import Member
from policygen.proof.lint.keys import split_template

# LookbackDelayPolicy{LookbackDelayAlgorithm::fixed_delay, 350, 450}
_FIELDS = re.compile(r"LookbackDelayAlgorithm::(\w+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\}")
# lookback_delay_policy_from_type<fixed_delay_constructor_t<350, 450>>
_FROM_TYPE = re.compile(r"lookback_delay_policy_from_type<(.*)>$")


def delay_type(member: Member) -> str | None:
    """A delay as a type: a family names one, a return names it or gives its fields."""
    if member.value is not None:
        return str(member.value)
    if named := _FROM_TYPE.search(member.spelling):
        return named[1]
    if fields := _FIELDS.search(member.spelling):
        kind, ns, l2w = fields.groups()
        found = (d.spelled(ns, l2w) for d in types().delays if d.kind == kind)
        return next(found, None)
    return None


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
