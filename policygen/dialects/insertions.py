"""Text that goes to one place of a header as one edit."""

from collections.abc import Iterable

from policygen.model.base import Span
from policygen.model.edit import Edit

Insertion = tuple[int, str, str]
"""Where it goes, what, and why."""


def with_insertions(edits: Iterable[Edit], insertions: Iterable[Insertion]) -> list[Edit]:
    """Edits with what is inserted besides, in the order of the header."""
    found = list(edits)
    added: dict[int, list[tuple[str, str]]] = {}
    for at, text, reason in insertions:
        added.setdefault(at, []).append((text, reason))
    for at, texts in added.items():
        # The label that an update puts above its entry stands behind a new entry at that place.
        there = [edit for edit in found if edit.span == (at, at)]
        found = [edit for edit in found if edit not in there]
        for edit in there:
            _add(texts, edit)
        joined = _joined([text for text, _ in texts])
        reason = "; ".join(dict.fromkeys(reason for _, reason in texts))
        found.append(Edit(span=Span(at, at), old="", new=joined, reason=reason))
    return sorted(found, key=lambda edit: edit.span)


def _add(texts: list[tuple[str, str]], edit: Edit) -> None:
    """What an edit puts to the place of insertions; a blank line that they have is not doubled."""
    first, last = texts[0][0], texts[-1][0]
    blank = not edit.new.strip()
    if blank and (first.startswith(edit.new * 2) or last.endswith(edit.new * 2)):
        return
    at = 0 if blank and first.startswith(edit.new) else len(texts)
    texts.insert(at, (edit.new, edit.reason))


def _joined(texts: Iterable[str]) -> str:
    """One behind the other; the blank line between two is not doubled."""
    found = ""
    for text in texts:
        line = "\r\n" if text.startswith("\r\n") else "\n"
        if text.startswith(line * 2) and found.endswith(line):
            found = found.removesuffix(line)
        found += text
    return found
