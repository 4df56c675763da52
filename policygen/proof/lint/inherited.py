"""Values that would be there without being written."""

from collections.abc import Iterator, Mapping

from policygen.model.tuning import Entry, Member, Value
from policygen.proof.lint.bases import inherited, without
from policygen.proof.lint.keys import mentions, normal, parameter_names
from policygen.proof.lint.subject import Remark, Subject


def repeats(subject: Subject) -> Iterator[Remark]:
    """What repeats its base stays behind when the base is tuned again.

    An entry that only inherits says on purpose that it is the same, and is left alone.
    """
    entry = subject.entry
    if not entry.values or entry.kind == "primary":
        return
    own = {m.name: m.value for m in entry.members if m.value is not None and _is_fixed(m, entry)}
    if entry.inherits is None:
        base = without(subject)
        if base and len(own) == len(entry.members) and _plain(base) == _plain(own):
            spelled = ", ".join(f"{name} {value}" for name, value in base.items())
            span = entry.args_span or entry.span
            yield Remark(span, f"the primary template gives the same: {spelled}")
        return
    values = _plain(inherited(subject) or {})
    for member in entry.members:
        if member.name in own and values.get(member.name) == _comparable(own[member.name]):
            yield Remark(member.span, f"{entry.inherits} gives the same {member.name}")


def _is_fixed(member: Member, entry: Entry) -> bool:
    """Whether a value means the same in another template."""
    return not mentions(member.spelling, parameter_names(entry))


def _plain(values: Mapping[str, Value]) -> dict[str, str]:
    return {name: _comparable(value) for name, value in values.items()}


def _comparable(value: Value) -> str:
    """A value as a text, so that 1 and true stay apart."""
    return normal(str(value).removeprefix("detail::")) if isinstance(value, str) else repr(value)
