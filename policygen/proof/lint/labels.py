"""Whether an entry has the values of the variant that its comment names."""

from collections.abc import Iterator, Mapping

from policygen.bindings.load import scaling
from policygen.model.bindings import FamilyBinding, MemberRule
from policygen.model.labels import parse_label
from policygen.model.tuning import Label, Member, Value, spell
from policygen.proof.lint.delays import delay_contradiction, delay_type
from policygen.proof.lint.subject import Remark, Subject
from policygen.proof.lint.units import role_sizes, scale_items

Parameters = Mapping[str, int]


def contradictions(subject: Subject) -> Iterator[Remark]:
    """A label records what was measured: a value that differs from it was mistyped, or never was.

    Where an entry has several labels, or several benchmarks fill it, the one that fits best counts.
    """
    found = [
        list(_compare(subject, binding, parse_label(label.variant) or {}))
        for binding in subject.bindings
        for label in _live(subject)
    ]
    yield from min(found, key=len, default=[])


def exponents(subject: Subject) -> Iterator[Remark]:
    """A benchmark takes 1 << ipv as vector length: an entry that has ipv was not measured."""
    found = [
        [r for member, rule in _ruled(subject, binding) if (r := _exponent(member, rule, values))]
        for binding in subject.bindings
        for label in _live(subject)
        if (values := parse_label(label.variant))
    ]
    yield from min(found, key=len, default=[])


def _live(subject: Subject) -> list[Label]:
    return [label for label in subject.entry.labels if not label.rejected]


def _ruled(subject: Subject, binding: FamilyBinding) -> Iterator[tuple[Member, MemberRule]]:
    for member in subject.entry.members:
        rule = binding.members.get(member.name)
        if rule is not None and (member.value is not None or rule.delay is not None):
            yield member, rule


def _compare(subject: Subject, binding: FamilyBinding, values: Parameters) -> Iterator[Remark]:
    sizes = role_sizes(binding, subject.entry)
    for member, rule in _ruled(subject, binding):
        if rule.delay is not None:
            delay = delay_type(member)
            said = delay_contradiction(delay, rule.delay, values) if delay else None
        elif rule.parameter is None or rule.parameter not in values or member.value is None:
            said = None
        elif rule.unit is None or _same_scale(subject, rule, values):
            said = _contradiction(member.value, rule, values[rule.parameter])
        else:
            said = _of_any_scale(member.value, rule, values[rule.parameter], sizes)
        if said:
            yield Remark(member.value_span, f"the label says {said}")


def _same_scale(subject: Subject, rule: MemberRule, values: Parameters) -> bool:
    """Whether the benchmarks that have such labels count in the same unit as the header."""
    known = (b for b in subject.benchmarks if b.writable and not b.returns)
    measured = [b for b in known if set(b.parameters) == set(values)]
    units = {unit.scaling if (unit := b.units.get(rule.parameter or "")) else "" for b in measured}
    return rule.unit is not None and units == {rule.unit.scaling}


def _of_any_scale(
    value: Value, rule: MemberRule, given: int, sizes: Mapping[str, int]
) -> str | None:
    """A contradiction whether a label is in the header's unit or, as of other versions, in none."""
    if type(value) is not int or rule.unit is None or scaling(rule.unit.scaling).bounded:
        return None
    if scale_items(rule.unit, value, sizes) in {None, given}:
        return None
    return _contradiction(value, rule, given)


def _contradiction(value: Value, rule: MemberRule, given: int) -> str | None:
    """What the label says instead of a value; nothing where it says nothing certain."""
    wanted = _wanted(rule, given)
    if wanted is None or _same(value, wanted) or (rule.power_of_two and value == given):
        return None
    label = f"{rule.parameter}_{given}"
    meant = label if wanted == given else f"{label}, which is {spell(wanted)}"
    return f"{meant}, the entry has {spell(value)}"


def _wanted(rule: MemberRule, given: int) -> Value | None:
    if rule.choices is not None:
        # A value beyond the choices is of a benchmark that had others.
        return rule.choices[given] if 0 <= given < len(rule.choices) else None
    if rule.power_of_two:
        return 1 << given if 0 <= given < 31 else None
    return given


def _same(value: Value, wanted: Value) -> bool:
    if isinstance(wanted, str):
        return spell(value).rpartition("::")[2] == wanted
    return value == wanted


def _exponent(member: Member, rule: MemberRule, values: Parameters) -> Remark | None:
    given = values.get(rule.parameter or "")
    if not rule.power_of_two or given is None or member.value != given:
        return None
    wanted = _wanted(rule, given)
    if wanted is None:
        return None
    return Remark(
        member.value_span,
        f"the label says {rule.parameter}_{given}, which is {wanted},"
        f" the entry has the exponent {given}",
    )
