"""A copy of a header whose pickers return the number of an entry in place of its config."""

from collections.abc import Mapping, Sequence

from policygen.dialects.configs.pickers import PICKER, find_pickers, gives_another, returns
from policygen.model.base import Span
from policygen.model.tuning import Entry, Family
from policygen.source.splice import replaced
from policygen.source.text import Text


def numbered(name: str, data: bytes, entries: Sequence[tuple[Family, Entry]]) -> bytes:
    """The copy; what returns what another target has stays, and so returns the number of that."""
    if not any(family.name.endswith(PICKER) for family, _ in entries):
        return data
    text = Text(name, data)
    numbers: Mapping[Span | None, int] = {e.inherits_span: n for n, (_, e) in enumerate(entries)}
    changes: list[tuple[Span, str]] = []
    for picker in find_pickers(text):
        if picker.returned is None:
            raise text.error(
                picker.name_span.start,
                f"{picker.name}: cannot tell what it returns",
                width=len(picker.name),
                remedy="Expected: -> std::enable_if_t<std::is_same_v<Target, …>, TYPE>",
            )
        changes.append((picker.returned, "int"))
        own = (one for one in returns(text, picker) if not gives_another(text.code, one.value))
        changes += [(one.value, str(numbers[one.value])) for one in own]
    return replaced(data, changes)
