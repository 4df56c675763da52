"""What comments say of entries: the variant with its scores, or why there is no value."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policygen.headers import spelling
from policygen.headers.comments import Comments, comment_lines, read_notes
from policygen.headers.spelling import edit_at, line_end, line_start
from policygen.headers.syntax import Guards
from policygen.headers.text import Text
from policygen.model.edits import Content, Edit
from policygen.model.records import Span
from policygen.model.tuning import Entry, Label

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


# Where an entry stands in its header: the comment and the `#if` around it, the lines beside it.

# "same as previous tuning", "todo: … regresses for large input sizes. find better tuning."
_OUTDATED = re.compile(
    r"(?i)same as previous|find better|search more|need more|regress|insignificant"
)
# "8-bit key", "partition::flagged", "key_size = 8 bits": a few words, no sentence and no code
_HEADING = re.compile(r"[^\s<>;{}#]+(?:\s+[^\s<>;{}#]+){0,4}(?<![.,])")
# An empty line, "#endif", "}", "// clang-format on", or the end of the file
_NO_ENTRY = re.compile(rb"[ \t]*(?:[\r\n#}]|//[ \t]*clang-format\b|\Z)")
# The next thing that is neither a comment nor a directive
_CODE = re.compile(rb"(?m)^[ \t]*(?=[^\s#])")
_FORMAT_ON = re.compile(rb"\s*//[ \t]*clang-format\b")
_IF = re.compile(rb"\s*#[ \t]*if")
_ENDIF = re.compile(rb"\s*#[ \t]*endif\b")
_ONE_LINE = re.compile(rb"[ \t]*template\b.*\bstruct\b.*\}\s*;")
_OPENING = re.compile(r"(?i)(?:todo|same as)\b")


@dataclass(frozen=True, slots=True)
class CommentLines:
    """Lines of a comment that belong together, with their line endings."""

    span: Span
    text: str

    @property
    def outdated(self) -> bool:
        """Whether it says of values why they are not better."""
        return _OUTDATED.search(self.text) is not None


class Surroundings:
    """What stands around the entries of a header."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._guards = Guards(text)
        self._comments = Comments(text)

    def remarks(self, entry: Entry) -> list[CommentLines]:
        """What stands above an entry and is said of it alone, in `//` lines."""
        if entry.comment_span is None:
            return []
        data = self._text.data
        found: list[CommentLines] = []
        joining = False
        for comment in self._own(self._comments.above(entry.span.start, entry.comment_span.start)):
            if not data.startswith(b"//", comment.start):
                return []
            span = Span(line_start(data, comment.start), data.index(b"\n", comment.end - 1) + 1)
            lines = list(comment_lines(data, comment))
            text = " ".join(line.text for line in lines)
            labelled = bool(read_notes(lines, lives=True).labels)
            if joining and not labelled and not _OPENING.match(text):
                last = found.pop()
                found.append(CommentLines(Span(last.span.start, span.end), f"{last.text} {text}"))
            else:
                found.append(CommentLines(span, text))
            joining = not labelled
        return found

    def start(self, entry: Entry, *, inside: bool) -> int:
        """Before an entry and what is said of it, and before its `#if` unless that is shared."""
        around = None if inside else self._conditional(entry)
        at = entry.span.start if around is None else around.start
        own = self._own(self._comments.above(at))
        return line_start(self._text.data, own[0].start if own else at)

    def end(self, entry: Entry, *, inside: bool) -> int:
        """Behind an entry, what stands behind it on its line, and its `#if` unless shared."""
        around = None if inside else self._conditional(entry)
        return self.line_end(entry.span.end if around is None else around.end)

    def line_end(self, at: int) -> int:
        """The end of a line, or of the comment that begins on it."""
        end = line_end(self._text.data, at)
        for comment in self._text.comments:
            if comment.start < end < comment.end:
                end = line_end(self._text.data, comment.end)
        return end

    def headings(self, within: Span) -> list[Span]:
        """Comments that head what stands below them: the first of those on lines that follow."""
        found: list[Span] = []
        for comment in self._comments.inside(within):
            above = self._comments.above(comment.start)
            first = not self._comments.shares_line(comment) and all(c in found for c in above)
            if first and self._heads(comment):
                found.append(comment)
        return found

    def above(self, heading: Span) -> int:
        """Behind what stands above a heading."""
        return len(self._text.data[: heading.start].rstrip())

    def stands_alone(self, heading: Span) -> bool:
        """Whether there is a blank line below a heading."""
        data = self._text.data
        return not data[data.index(b"\n", heading.end) + 1 :].split(b"\n", 1)[0].strip()

    def section_end(self, entry: Entry, following: Span | None) -> int:
        """Behind all that stands in the section of its last entry: what is commented out, too."""
        end = self.end(entry, inside=False)
        code = _CODE.search(self._text.code, end)
        stop = code.start() if code else len(self._text.code)
        own = self._comments.above(stop)
        stop = min([stop, *(span.start for span in own[:1])])
        if following is not None:
            stop = min(stop, following.start)
        return self._last_line(end, stop)

    def _last_line(self, end: int, stop: int) -> int:
        """The end of the last line with something on it, and with each `#if` its `#endif`."""
        data, depth = self._text.data, 0
        at = end
        for row in data[end:stop].splitlines(keepends=True):
            at += len(row)
            if _FORMAT_ON.match(row):
                break
            depth += bool(_IF.match(row)) - bool(_ENDIF.match(row))
            if depth < 0:
                break
            if row.strip() and depth == 0:
                end = at - len(row) + len(row.rstrip())
        return end

    def packed(self, entry: Entry) -> bool:
        """Whether entries without labels stand line by line, without blank lines between them."""
        data = self._text.data
        start, end = line_start(data, entry.span.start), data.find(b"\n", entry.span.end) + 1
        rows = (data[line_start(data, start - 1) : start], data[end : line_end(data, end)])
        return (
            entry.layout == "line"
            and not entry.labels
            and any(_ONE_LINE.match(row) for row in rows)
        )

    def opens(self, at: int) -> bool:
        """Whether an entry can begin on a line without a blank one above it."""
        start = line_start(self._text.data, line_start(self._text.data, at) - 1)
        return not self._text.code[start:at].strip()

    def closes(self, at: int) -> bool:
        """Whether an entry can end on a line without a blank one below it."""
        data = self._text.data
        start = line_end(data, at) + data.startswith(b"\r", line_end(data, at)) + 1
        return _NO_ENTRY.match(data, start) is not None

    def comment_of(self, label: Label) -> Span:
        """The comment of a label, with its line where nothing else is on it."""
        data, at = self._text.data, label.span.start
        comment = next(c for c in self._text.comments if c.start <= at < c.end)
        end = comment.end - data.endswith(b"\r", 0, comment.end)
        start = line_start(data, comment.start)
        if b"\n" in data[comment.start : end]:
            return label.span
        if before := data[start : comment.start].rstrip():
            return Span(start + len(before), end)
        if data[end : line_end(data, end)].strip():
            return Span(comment.start, end + len(data[end:]) - len(data[end:].lstrip(b" \t")))
        return Span(start, data.index(b"\n", end) + 1)

    def _own(self, above: list[Span]) -> list[Span]:
        """Comments above an entry without those that head a section."""
        count = 0
        while count < len(above) and self._heads(above[count]):
            count += 1
        return above[count:]

    def _heads(self, comment: Span) -> bool:
        lines = list(comment_lines(self._text.data, comment))
        if len(lines) > 1 or read_notes(lines, lives=True).labels:
            return False
        text = lines[0].text
        said = _OPENING.match(text) or _OUTDATED.search(text)
        return not said and _HEADING.fullmatch(text) is not None

    def _conditional(self, entry: Entry) -> Span | None:
        """The outermost `#if` … `#endif` around an entry."""
        if entry.guard_span is None:
            return None
        guards = self._guards
        free = [c for c in guards.conditionals if not guards.at(c.span.start).conditions]
        closed = [c for c in guards.conditionals if not guards.at(c.span.end).conditions]
        first = next(c for c in reversed(free) if c.span.start < entry.span.start)
        last = next(c for c in closed if c.span.start >= entry.span.end)
        return Span(first.span.start, last.span.start)
