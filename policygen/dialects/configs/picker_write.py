"""Configs of pickers as edits of a header: other values, a return more, a target more."""

import re
from collections.abc import Iterator, Mapping, Sequence

from policygen.dialects.configs.picker_values import with_values
from policygen.dialects.configs.pickers import Picker, find_pickers, returns
from policygen.dialects.configs.place import PickerSpot
from policygen.dialects.configs.targets import (
    commented,
    laid_out,
    listed,
    spelled_like,
    target_changes,
    words_of,
)
from policygen.dialects.insertions import Insertion, with_insertions
from policygen.dialects.protocol import EntryWrite, HeaderEdits
from policygen.errors import InputError
from policygen.model.base import Span
from policygen.model.edit import Edit
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.source.comments import Comments
from policygen.source.spelling import line_start, newline
from policygen.source.splice import replaced
from policygen.source.text import Text, decode, squeeze

Added = tuple[EntryWrite, PickerSpot, Family, Entry]


def write_pickers(
    header: TuningHeader, data: bytes, writes: Sequence[EntryWrite], arch: str
) -> HeaderEdits:
    """The edits of all configs of a header."""
    text = Text(header.name, data)
    edits: list[Edit] = []
    added: list[Added] = []
    for write in writes:
        spot = _spot(write)
        if spot.entry is not None:
            edits += with_values(text, spot.entry, write.content.values, spot, write.reason)
        else:
            added.append((write, spot, *spot.alike))
    return HeaderEdits(with_insertions(edits, _insertions(header, text, added, arch)))


def _insertions(
    header: TuningHeader, text: Text, added: Sequence[Added], arch: str
) -> list[Insertion]:
    """New returns before what a picker returns else; with a picker, where there is none yet."""
    if not added:
        return []
    order = {id(e): n for f in header.families for n, e in enumerate(f.entries)}
    ordered = sorted(added, key=lambda one: order[id(one[3])])
    reason = "; ".join(dict.fromkeys(write.reason for write, *_ in ordered))
    made = "".join(
        _like(text, entry, write.content.values, spot) for write, spot, _, entry in ordered
    )
    (_, spot, _, alike), *_ = ordered
    pickers = [one for one in find_pickers(text) if one.name == spot.binding.name]
    own = next((one for one in pickers if one.arch == arch), None)
    if own is not None:
        _check_parameters(text, own, [entry for *_, entry in ordered], spot)
        return [(_otherwise(text, own, spot), made, reason)]
    other = next(one for one in pickers if _has(one, alike))
    _check_parameters(text, other, [entry for *_, entry in ordered], spot)
    return list(_new_target(text, pickers, other, made, spot, reason))


def _like(text: Text, entry: Entry, values: Mapping[str, str], spot: PickerSpot) -> str:
    """The text of a return with other values, from its comment to the end of its line."""
    begin = entry.comment_span.start if entry.comment_span else entry.span.start
    begin = line_start(text.data, begin)
    edits = with_values(text, entry, values, spot, "")
    whole = replaced(text.data, [(edit.span, edit.new) for edit in edits])
    grown = len(whole) - len(text.data)
    return decode(whole[begin : entry.span.end + grown]) + newline(text.data)


def _has(picker: Picker, entry: Entry) -> bool:
    return picker.span.start <= entry.span.start < picker.span.end


def _check_parameters(
    text: Text, picker: Picker, entries: Sequence[Entry], spot: PickerSpot
) -> None:
    """Refuses to copy what calls the types otherwise than the picker that it goes into."""
    mine = squeeze(text.code[picker.parameters.start : picker.parameters.end])
    if any(", ".join(entry.template_parameters) != mine for entry in entries):
        raise InputError(
            f"{spot.header}:{text.line(picker.name_span.start)} calls its types otherwise",
            "Write it by hand.",
        )


def _otherwise(text: Text, picker: Picker, spot: PickerSpot) -> int:
    """Where the line begins of what a picker returns without a condition, with its comment."""
    found = _default(text, picker)
    if found is None:
        raise InputError(
            f"{spot.header}:{text.line(picker.name_span.start)} returns nothing for other types",
            "Write it by hand.",
        )
    return line_start(text.data, found.start)


def _default(text: Text, picker: Picker) -> Span | None:
    """What a picker returns without a condition, from the comment above it."""
    last = [one for one in returns(text, picker) if not one.facts]
    if not last:
        return None
    above = Comments(text).above(last[-1].span.start, last[-1].floor)
    return Span(above[0].start if above else last[-1].span.start, last[-1].span.end)


def _new_target(
    text: Text,
    pickers: Sequence[Picker],
    like: Picker,
    made: str,
    spot: PickerSpot,
    reason: str,
) -> Iterator[Insertion]:
    """A picker like another one, where all else is as it was, and its place in the list."""
    words, end = words_of(spot.arch), newline(text.data)
    above = Comments(text).above(like.span.start)
    comments = "".join(decode(text.data[s.start : s.end]) + end for s in above)
    begin = line_start(text.data, like.span.start)
    changes = [
        (Span(span.start - begin, span.end - begin), word)
        for span, word in target_changes(text.code, like.target, words)
    ]
    head = decode(replaced(text.data[begin : like.body.start], changes))
    head = end.join(laid_out("\n".join(head.split(end))).split("\n"))
    body = f"{end}{made}{_as_before(text, pickers, like, spot)}{end}}}"
    before = next((one for one in pickers if one.arch == "unknown"), pickers[-1])
    at = _begin(text, before)
    yield at, f"{commented(comments, words)}{head}{body}{end}{end}", reason
    place, item = listed(text, spot.site.targets, spelled_like(text, like.target, words), spot.arch)
    yield place, item.replace("\n", end), reason


def _begin(text: Text, picker: Picker) -> int:
    """Where the first comment above a picker begins."""
    above = Comments(text).above(picker.span.start)
    return above[0].start if above else line_start(text.data, picker.span.start)


def _as_before(text: Text, pickers: Sequence[Picker], like: Picker, spot: PickerSpot) -> str:
    """For other types: what the devices of the new target have now."""
    found = spot.told.entry
    now = next((one for one in pickers if found and _has(one, found[1])), like)
    end, names = newline(text.data), _names(text, like)
    default = _default(text, like)
    comment = ""
    if default is not None:
        lead = text.data[default.start : text.code.index(b"return", default.start)]
        comment = decode(lead).rstrip()
    target = squeeze(text.code[now.target.start : now.target.end])
    other = f"    return {like.name}<{end}        comp_target<{target}>,{end}        {names}>();"
    return f"    {comment}{end}{other}" if comment else other


def _names(text: Text, picker: Picker) -> str:
    """The types that a picker is asked with besides its target."""
    declared = squeeze(text.code[picker.parameters.start : picker.parameters.end]).split(",")
    return ", ".join(re.split(r"\W+", one.strip())[-1] for one in declared[1:])


def _spot(write: EntryWrite) -> PickerSpot:
    spot = write.spots[0]
    assert isinstance(spot, PickerSpot), "it is of a picker"
    return spot
