"""Edits to bytes: checked for what they expect and for overlap, then spliced once."""

from collections.abc import Iterable, Sequence

from policygen.errors import InputError
from policygen.model.base import Span
from policygen.model.edit import Edit
from policygen.source.text import Text


def edit_at(data: bytes, span: Span, new: str, reason: str) -> Edit:
    """An edit of what a place holds now."""
    try:
        old = data[span.start : span.end].decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"byte {span.start + error.start} of a comment that is to be replaced is not UTF-8",
            "Save the header as UTF-8; a plan can then hold what it replaces.",
        ) from error
    return Edit(span=span, old=old, new=new, reason=reason)


def splice(path: str, data: bytes, edits: Sequence[Edit]) -> bytes:
    """The bytes with all edits done; nothing else moves."""
    parts: list[bytes] = []
    at = 0
    before: Span | None = None
    for edit in sorted(edits, key=lambda edit: edit.span):
        start, end = edit.span
        # Two insertions at one place have no order; one behind what is replaced has.
        if start < at or edit.span == before:
            raise InputError(f"{path}: two edits meet at byte {start}", edit.reason)
        if end > len(data) or data[start:end] != edit.old.encode():
            raise Text(path, data).error(
                start,
                f"the header is not what the plan was made for: expected {edit.old!r} here",
                remedy="Make the plan again.",
            )
        parts += [data[at:start], edit.new.encode()]
        at, before = end, edit.span
    parts.append(data[at:])
    return b"".join(parts)


def replaced(data: bytes, changes: Iterable[tuple[Span, str]]) -> bytes:
    """A copy with other text at some places, whatever stands there."""
    for span, text in sorted(changes, reverse=True):
        data = data[: span.start] + text.encode() + data[span.end :]
    return data
