"""What comments say of entries: the variant with its scores, or why there is no value."""

from collections.abc import Iterable, Sequence

from policygen.dialects.surroundings import Surroundings
from policygen.model.base import Span
from policygen.model.edit import Edit
from policygen.model.entry_text import Content
from policygen.model.tuning import Entry, Label
from policygen.source import spelling
from policygen.source.splice import edit_at
from policygen.source.text import Text

EXPLICIT = "Fall back explicitly, so that the more general entry is not picked up"


def labelled(variant: str, scores: Sequence[float]) -> str:
    """`ipt_20.tpb_512 1.013282  0.967525  1.015764  1.047982`, as CUB's own comments are."""
    return f"{variant} {'  '.join(f'{score:.6f}' for score in scores)}".rstrip()


def known_label(labels: Iterable[Label]) -> str | None:
    """What an entry's comment says of the values that it has."""
    known = next((label for label in labels if not label.rejected), None)
    return None if known is None else labelled(known.variant, known.scores)


class Provenance:
    """The comments of a header's entries."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._newline = spelling.newline(text.data)
        self._places = Surroundings(text)

    def noted(
        self,
        entry: Entry,
        content: Content,
        reason: str,
        *,
        body: Span | None = None,
        above: bool | None = None,
    ) -> list[Edit]:
        """The provenance of new values in place of the old one, and no remark that is outdated.

        A `body` is rewritten with its labels, and has the new one unless that stands above.
        """
        kept = [label for label in entry.labels if not label.rejected and not _in(label, body)]
        wanted = None if above is False else content.label
        edits = [
            edit_at(self._text.data, remark.span, "", reason)
            for remark in self._places.remarks(entry)
            if remark.outdated or (body is not None and not entry.members)
            if not any(_in(label, remark.span) for label in entry.labels)
        ]
        if wanted and kept:
            first = kept.pop(0)
            if spelling.text_of(self._text.data, first.span) != wanted:
                edits.append(edit_at(self._text.data, first.span, wanted, reason))
        elif wanted:
            edits.append(self._label(entry, wanted, reason, above=body is not None))
        removed = [self._places.comment_of(label) for label in kept]
        return [*edits, *(edit_at(self._text.data, span, "", reason) for span in removed)]

    def _label(self, entry: Entry, label: str, reason: str, *, above: bool) -> Edit:
        """A provenance comment where there was none: above what has no lines of its own."""
        data, body = self._text.data, entry.body_span
        if entry.layout == "block" and entry.members and body is not None and not above:
            end = self._places.line_end(body.start)
            code = self._text.code[body.start : end]
            if not code.strip():
                at = end if data[body.start : end].strip() else body.start
                by = spelling.indent_of(data, entry.members[0].span.start)
                return edit_at(
                    self._text.data, Span(at, at), f"{self._newline}{by}// {label}", reason
                )
        at = spelling.line_start(data, entry.span.start)
        by = spelling.indent_of(data, entry.span.start)
        return edit_at(self._text.data, Span(at, at), f"{by}// {label}{self._newline}", reason)


def _in(label: Label, span: Span | None) -> bool:
    return span is not None and span.start <= label.span.start < span.end
