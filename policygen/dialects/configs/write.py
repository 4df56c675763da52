"""Configs as edits of a header: other values for one, or one more for an architecture."""

import re
from collections.abc import Mapping, Sequence

from policygen.dialects.configs.expressions import applied
from policygen.dialects.configs.place import ConfigSpot
from policygen.dialects.insertions import Insertion, with_insertions
from policygen.dialects.protocol import EntryWrite, HeaderEdits
from policygen.dialects.specializations.member_edits import member_edits
from policygen.errors import InputError
from policygen.model.base import Span
from policygen.model.edit import Edit
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.source.spelling import newline
from policygen.source.splice import edit_at, replaced
from policygen.source.text import Text, decode

_TARGET = re.compile(rb"\btarget_arch::(\w+)")


def write_configs(
    header: TuningHeader, data: bytes, writes: Sequence[EntryWrite], arch: str
) -> HeaderEdits:
    """The edits of all configs of a header."""
    text = Text(header.name, data)
    edits: list[Edit] = []
    added: list[tuple[EntryWrite, Family, Entry]] = []
    for write in writes:
        spot = _spot(write)
        if spot.entry is not None:
            edits += updated(text, spot.entry, write.content.values, spot, write.reason)
        else:
            added.append((write, *spot.alike))
    inserted = _insertions(header, text, added, arch)
    return HeaderEdits(with_insertions(edits, inserted))


def updated(
    text: Text, entry: Entry, values: Mapping[str, str], spot: ConfigSpot, reason: str
) -> list[Edit]:
    """Other values for a config; of those that it leaves out, what it needs to say."""
    edits = member_edits(text, entry, values, reason)
    if unsaid := spot.left_out(entry, values):
        edits.append(_said(text, entry, unsaid, spot, reason))
    return edits


def _said(
    text: Text, entry: Entry, values: Mapping[str, str], spot: ConfigSpot, reason: str
) -> Edit:
    """Arguments behind the last one, up to those that have to be said."""
    assert entry.inherits_span is not None, "a config inherits its values"
    found = applied(text.code, entry.inherits_span)
    declared = spot.parameters.get(found.name, ()) if found else ()
    names = [name for name, _ in declared]
    if found is None or not found.args or any(name not in names for name in values):
        raise InputError(f"{spot.header}:{entry.line} has no place for {', '.join(values)}")
    last = max(names.index(name) for name in values)
    parts = []
    for name, kind in declared[len(found.args) : last + 1]:
        parts.append(spot.argument(kind, values.get(name), name))
    at = found.args[-1].end
    return edit_at(text.data, Span(at, at), "".join(f", {part}" for part in parts), reason)


def _insertions(
    header: TuningHeader,
    text: Text,
    added: Sequence[tuple[EntryWrite, Family, Entry]],
    arch: str,
) -> list[Insertion]:
    """New configs behind those of their architecture, else behind all; each as another one is."""
    gap = newline(text.data) * 2
    found: dict[int, tuple[str, list[str]]] = {}
    order = {id(e): n for f in header.families for n, e in enumerate(f.entries)}
    for write, _, entry in sorted(added, key=lambda one: order[id(one[2])]):
        spot = _spot(write)
        mine = [f for f in spot.families if f.arch == arch] or list(spot.families)
        end = max(e.span.end for f in mine for e in f.entries)
        made = _like(text, entry, write.content.values, spot, arch)
        found.setdefault(end, (write.reason, []))[1].append(made)
    return [(at, "".join(gap + one for one in made), why) for at, (why, made) in found.items()]


def _like(text: Text, entry: Entry, values: Mapping[str, str], spot: ConfigSpot, arch: str) -> str:
    """The text of a config with other values, for another architecture."""
    begin = entry.comment_span.start if entry.comment_span else entry.span.start
    within = text.code[entry.span.start : entry.span.end]
    named = _TARGET.search(within)
    if named is None:
        raise InputError(f"{spot.header}:{entry.line} names no architecture", "Write it by hand.")
    at = Span(*(entry.span.start + end for end in named.span(1)))
    edits = updated(text, entry, values, spot, "")
    changes = [(edit.span, edit.new) for edit in edits]
    whole = replaced(text.data, [*changes, *_rest(text, entry, values, spot), (at, arch)])
    grown = len(whole) - len(text.data)
    return decode(whole[begin : entry.span.end + grown])


def _rest(
    text: Text, entry: Entry, values: Mapping[str, str], spot: ConfigSpot
) -> list[tuple[Span, str]]:
    """The arguments behind the last one that is wanted, which the template gives by default."""
    kept = spot.said(entry, values)
    found = applied(text.code, entry.inherits_span) if entry.inherits_span else None
    if found is None or not kept or len(kept) == len(entry.members):
        return []
    last = next(arg for arg in found.args if arg.end >= kept[-1].value_span.end)
    return [(Span(last.end, found.args[-1].end), "")] if last != found.args[-1] else []


def _spot(write: EntryWrite) -> ConfigSpot:
    spot = write.spots[0]
    assert isinstance(spot, ConfigSpot), "it is a config"
    return spot
