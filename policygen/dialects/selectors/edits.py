"""Other values for a guarded return, in the manner of the old ones."""

import re
from collections.abc import Iterator, Mapping

from policygen.dialects.selectors.functions import arguments
from policygen.errors import InputError
from policygen.model.base import Span
from policygen.model.edit import Edit
from policygen.model.tuning import Entry, Member
from policygen.source.spelling import indent_of, like, newline, text_of
from policygen.source.splice import edit_at

# "fixed_delay_constructor_t<350, 450>"
_DELAY = re.compile(r"(?:\w+::)*(\w+)_constructor_t<(\d+)(?:, (\d+))?>")
# "LookbackDelayPolicy{LookbackDelayAlgorithm::fixed_delay, 350, 450}"; "…_from_type<X<350, 450>>"
_FIELDS = re.compile(r"(.*\{\s*(?:\w+::)*)\w+(,\s*)\d+(,\s*)\d+(\s*\})", re.DOTALL)
_TYPE = re.compile(r"(\w+<\s*(?:\w+::)*)\w+_constructor_t<[\d\s,]+>(\s*>)", re.DOTALL)
# "104 - 1"
_LESS = re.compile(r"\d+(\s*-\s*)(\d+)")


def branch_edits(
    data: bytes, entry: Entry, values: Mapping[str, str], reason: str
) -> Iterator[Edit]:
    """An edit for each value that is another one than now, and for those that it has not."""
    yield from added_edit(data, entry, values, reason)
    own = {member.name: member for member in entry.members}
    for name, value in values.items():
        if name not in own:
            continue
        member = own[name]
        old = text_of(data, member.value_span)
        new = _spelled(member, old, value)
        if new != old:
            yield edit_at(data, member.value_span, new, reason)


def added_edit(data: bytes, entry: Entry, values: Mapping[str, str], reason: str) -> Iterator[Edit]:
    """An edit for the values that a return does not have yet: they come last."""
    own = {member.name for member in entry.members}
    new = [value for name, value in values.items() if name not in own]
    assert entry.body_span is not None, "it has values"
    end = len(data[: entry.body_span.end - 1].rstrip())
    if new:
        gap = _gap(data, entry.body_span)
        yield edit_at(data, Span(end, end), "".join(f",{gap}{value}" for value in new), reason)


def _gap(data: bytes, body: Span) -> str:
    """What stands between the values of a return: a space, or a line's end and its indent."""
    given = arguments(data, body)
    parts = given[1] if given else []
    if len(parts) < 2 or b"\n" not in data[parts[-2].end : parts[-1].start]:
        return " "
    return newline(data) + indent_of(data, parts[-1].start)


def _spelled(member: Member, old: str, value: str) -> str:
    if member.value is not None and str(member.value).lower() == value:
        return old
    if delay := _DELAY.fullmatch(value):
        return _delay(member, old, delay)
    if (less := _LESS.fullmatch(old)) and value.isdigit():
        return f"{int(value) + int(less[2])}{less[1]}{less[2]}"
    return like(old, value)


def delay_fields(delay: str) -> tuple[str, str, str] | None:
    """The algorithm, the delay and the write latency of `fixed_delay_constructor_t<350, 450>`."""
    match = _DELAY.fullmatch(delay)
    if match is None:
        return None  # "reduce_by_key_delay_constructor_t<350, 450, 500>": no benchmark tries it
    kind, first, second = match.groups()
    # One that waits for nothing has a write latency alone.
    return (kind, first, second) if second else (kind, "0", first)


def _delay(member: Member, old: str, delay: re.Match[str]) -> str:
    """A delay as fields, or as a type, whichever was there."""
    if found := _FIELDS.fullmatch(old):
        fields = delay_fields(delay[0])
        assert fields is not None, "it matches"
        kind, ns, l2w = fields
        new = f"{found[1]}{kind}{found[2]}{ns}{found[3]}{l2w}{found[4]}"
    elif found := _TYPE.fullmatch(old):
        new = f"{found[1]}{delay[0]}{found[2]}"
    else:
        raise InputError(f"{member.name}: {old!r} is no delay that can be written")
    return new
