"""A copy of a header whose configs are the numbers of their entries, where nothing else tells."""

from collections.abc import Mapping, Sequence

from policygen.dialects.configs.entries import by_hand
from policygen.dialects.configs.pickers import PICKER, find_pickers, gives_another, returns
from policygen.model.base import Span
from policygen.model.tuning import Entry, Family
from policygen.source.splice import replaced
from policygen.source.text import Text

# It has no member that tables would take for the config.
_TELLING = "::rocprim::kernel_config<{}, 1>"


def numbered(name: str, data: bytes, entries: Sequence[tuple[Family, Entry]]) -> bytes:
    """The copy; what returns what another target has stays, and so returns the number of that."""
    if any(by_hand(family) for family, _ in entries):
        return _of_tables(data, entries)
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


def _of_tables(data: bytes, entries: Sequence[tuple[Family, Entry]]) -> bytes:
    """Each config is the first of its numbers: in a table several architectures can have it."""
    numbers: dict[Span, int] = {}
    for number, (family, entry) in enumerate(entries):
        if by_hand(family) and entry.inherits_span is not None:
            numbers.setdefault(entry.inherits_span, number)
    return replaced(data, [(span, _TELLING.format(number)) for span, number in numbers.items()])
