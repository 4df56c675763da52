"""Parses comments on entries: variant labels with their scores, and remarks."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import dropwhile

from policygen.headers.spelling import Change, indent_of, line_end, line_start, newline, text_of
from policygen.headers.syntax import Guards
from policygen.headers.text import Text, decode
from policygen.model.records import Span
from policygen.model.tuning import Content, Entry, Label

# "ipt_18.tpb_512.ns_768.dcid_7.l2w_820.trp_1.ld_0 1.188818  1.005682  1.173041  1.305288"
# "ipt_11.tpb_128 ()  1.232089  1.002124  1.245336  1.582279"; "lbs_-2.ipt_4"
_VARIANT = re.compile(r"[a-z][a-z0-9]*_-?\d+(?:\.[a-z][a-z0-9]*_-?\d+)*(?=\s|$)")
_NUMBER = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)(?=\s|$)")
_ASIDE = re.compile(r"\s*\(([^()]*)\)")
# "static constexpr int threads = 512;" and the like: commented-out code, which is not a remark
_CODE = re.compile(
    r"(?:static\b|constexpr\b|using\b|template\b|struct\b|#\s*\w|[{}]).*|.*[;{}]\s*$|\w+(?:::\w+)?,$"
)
# "// text", "/* text */", " * text", "// // text"
_MARKED = re.compile(rb"\s*(?://[/!]?<?|/\*[*!]*|\*+/?)?\s*(//+)?\s*(.*?)\s*(?:\*/)?\s*$")
_FORMAT = re.compile(rb"(?://|/\*)\s*clang-format\s+(off|on)\b")
_ONE_LINE_BREAK = re.compile(rb"[ \t]*(?:\r?\n)?[ \t]*")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a comment, without comment markers."""

    text: str
    span: Span
    nested: bool
    """Whether it is a comment within the comment: `// // ipt_9…`."""


@dataclass(frozen=True, slots=True)
class Notes:
    """The labels and remarks of one entry."""

    labels: tuple[Label, ...]
    remarks: tuple[str, ...]

    @property
    def variant(self) -> str | None:
        """The variant whose values the entry has."""
        label = live_label(self.labels)
        return label.variant if label else None

    @property
    def scores(self) -> tuple[float, ...] | None:
        """The scores of that variant, if there are any."""
        label = live_label(self.labels)
        return (label.scores or None) if label else None


def live_label(labels: Iterable[Label]) -> Label | None:
    """Returns the label of an entry's current values."""
    return next((label for label in labels if not label.rejected), None)


def comment_lines(data: bytes, comment: Span) -> Iterator[Line]:
    """Yields the lines of a comment."""
    offset = comment.start
    for row in data[slice(*comment)].split(b"\n"):
        match = _MARKED.match(row)
        assert match is not None, "all its parts may be empty"
        span = Span(offset + match.start(2), offset + match.end(2))
        yield Line(decode(match[2]), span, nested=match[1] is not None)
        offset += len(row) + 1


def read_notes(lines: Sequence[Line], *, lives: bool) -> Notes:
    """Reads labels and remarks; labels of an entry without own values were rejected."""
    labels: list[Label] = []
    remarks: list[list[str]] = []
    continues = False
    for line in lines:
        parsed = _parse_label(line, rejected=line.nested or not lives)
        if parsed is not None:
            label, rest = parsed
            labels.append(label)
            remarks += [[rest]] if rest else []
        if parsed is not None or not line.text or line.nested or _CODE.fullmatch(line.text):
            continues = False
        elif continues:
            remarks[-1].append(line.text)
        else:
            remarks.append([line.text])
            continues = True
    return Notes(tuple(labels), tuple(" ".join(words) for words in remarks))


def _parse_label(line: Line, *, rejected: bool) -> tuple[Label, str] | None:
    match = _VARIANT.match(line.text)
    if match is None:
        return None
    scores: list[float] = []
    asides: list[str] = []
    end = match.end()
    while True:
        if (number := _NUMBER.match(line.text, end)) and len(scores) < 4:
            scores.append(float(number[1]))
            end = number.end()
        elif aside := _ASIDE.match(line.text, end):
            asides.append(aside[1].strip())
            end = aside.end()
        else:
            break
    rest = line.text[end:].strip()
    if "." not in match[0] and not scores and rest:
        return None  # "ipt_4 seems good": prose that begins with a parameter
    words = " ".join(word for word in [*asides, rest] if word)
    label = Label(variant=match[0], scores=tuple(scores), rejected=rejected, span=line.span)
    return label, words


def joined(spans: Sequence[Span]) -> Span | None:
    """Returns the span from the first to the last of several comments; None if there are none."""
    return Span(spans[0].start, spans[-1].end) if spans else None


class Comments:
    """The comments of a file, by offset."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._spans = [span for span in text.comments if not _FORMAT.match(text.data, span.start)]
        self._starts = [span.start for span in self._spans]

    def inside(self, span: Span) -> list[Span]:
        """Returns the comments that start within a span."""
        first = bisect_left(self._starts, span.start)
        return self._spans[first : bisect_left(self._starts, span.end)]

    def above(self, offset: int, floor: int = 0) -> list[Span]:
        """Returns the comments on the lines directly above, without a blank line between."""
        comments: list[Span] = []
        for span in reversed(self._spans[: bisect_left(self._starts, offset)]):
            gap = self._text.data[span.end : offset]
            if span.start < floor or not _ONE_LINE_BREAK.fullmatch(gap):
                break
            if self.shares_line(span):
                break
            comments.append(span)
            offset = span.start
        return comments[::-1]

    def trailing(self, offset: int) -> list[Span]:
        """Returns the comment that starts on the same line behind an entry."""
        index = bisect_right(self._starts, offset - 1)
        if index == len(self._spans):
            return []
        gap = self._text.data[offset : self._starts[index]]
        return [self._spans[index]] if not gap.strip(b" \t") else []

    def groups(self) -> Iterator[list[Span]]:
        """Yields runs of comments with only white space between them."""
        group: list[Span] = []
        for span in self._spans:
            if group and self._text.data[group[-1].end : span.start].strip():
                yield group
                group = []
            group.append(span)
        if group:
            yield group

    def shares_line(self, span: Span) -> bool:
        """Tells whether code precedes a comment on its line."""
        line = self._text.data.rfind(b"\n", 0, span.start) + 1
        return bool(self._text.data[line : span.start].strip())


def format_off_regions(text: Text) -> tuple[Span, ...]:
    """Returns the regions in which clang-format is off."""
    regions: list[Span] = []
    off: int | None = None
    for span in text.comments:
        match = _FORMAT.match(text.data, span.start)
        if match is None:
            continue
        if match[1] == b"off" and off is None:
            off = span.start
        elif match[1] == b"on" and off is not None:
            regions.append(Span(off, span.end))
            off = None
    if off is not None:
        regions.append(Span(off, len(text.data)))
    return tuple(regions)


@dataclass(frozen=True)
class SourceFile:
    """The inputs for reading the entries of a file."""

    text: Text
    guards: Guards

    @cached_property
    def comments(self) -> Comments:
        """The comments, by offset."""
        return Comments(self.text)

    @cached_property
    def format_off(self) -> tuple[Span, ...]:
        """The regions in which clang-format is off."""
        return format_off_regions(self.text)

    def format_is_off(self, offset: int) -> bool:
        """Tells whether clang-format is off at an offset."""
        return any(region.start <= offset < region.end for region in self.format_off)


EXPLICIT = "Fall back explicitly, so that the more general entry is not picked up"


def labelled(variant: str, scores: Sequence[float]) -> str:
    """Formats `ipt_20.tpb_512 1.013282  0.967525  1.015764  1.047982`, like CUB's own comments."""
    return f"{variant} {'  '.join(f'{score:.6f}' for score in scores)}".rstrip()


def known_label(labels: Iterable[Label]) -> str | None:
    """Returns the text of the label of an entry's current values."""
    label = live_label(labels)
    return None if label is None else labelled(label.variant, label.scores)


# "same as previous tuning", "todo: … regresses for large input sizes. find better tuning."
_OUTDATED = re.compile(
    r"(?i)same as previous|find better|search more|need more|regress|insignificant"
)
# "8-bit key", "partition::flagged", "key_size = 8 bits": a few words, no sentence and no code
_HEADING = re.compile(r"[^\s<>;{}#]+(?:\s+[^\s<>;{}#]+){0,4}(?<![.,])")
# An empty line, "#endif", "}", "// clang-format on", or the end of the file
_NO_ENTRY = re.compile(rb"[ \t]*(?:[\r\n#}]|//[ \t]*clang-format\b|\Z)")
# The next thing that is neither a comment nor a directive
_NEXT_CODE = re.compile(rb"(?m)^[ \t]*(?=[^\s#])")
_FORMAT_ON = re.compile(rb"\s*//[ \t]*clang-format\b")
_IF = re.compile(rb"\s*#[ \t]*if")
_ENDIF = re.compile(rb"\s*#[ \t]*endif\b")
_ONE_LINE = re.compile(rb"[ \t]*template\b.*\bstruct\b.*\}\s*;")
_OPENING = re.compile(r"(?i)(?:todo|same as)\b")


@dataclass(frozen=True, slots=True)
class CommentLines:
    """The joined lines of a comment, with their line endings."""

    span: Span
    text: str

    @property
    def outdated(self) -> bool:
        """Whether the comment explains why values are not better."""
        return _OUTDATED.search(self.text) is not None


def _is_inside(label: Label, span: Span | None) -> bool:
    return span is not None and span.start <= label.span.start < span.end


class Surroundings:
    """The text around the entries of a header: their comments, conditions and headings."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._guards = Guards(text)
        self._comments = Comments(text)

    def noted(self, entry: Entry, content: Content, body: Span | None = None) -> list[Change]:
        """Replaces the label of an entry's values, and removes outdated remarks.

        A `body` is rewritten with its labels; a new label goes above it.
        """
        data = self._text.data
        changes = [
            (remark.span, "")
            for remark in self.remarks(entry)
            if remark.outdated or (body is not None and not entry.members)
            if not any(_is_inside(label, remark.span) for label in entry.labels)
        ]
        kept = [
            label for label in entry.labels if not label.rejected and not _is_inside(label, body)
        ]
        if content.label and kept:
            span = kept.pop(0).span
            if text_of(data, span) != content.label:
                changes.append((span, content.label))
        elif content.label:
            offset, line = self._labelled_line(entry, content.label, above=body is not None)
            changes.append((Span(offset, offset), line))
        return [*changes, *((self._comment_of(label), "") for label in kept)]

    def _labelled_line(self, entry: Entry, label: str, *, above: bool) -> tuple[int, str]:
        """Returns a line with a label: inside a block, or above an entry without own lines."""
        data, body, ending = self._text.data, entry.body_span, newline(self._text.data)
        if entry.layout == "block" and entry.members and body is not None and not above:
            end = self.line_end(body.start)
            if not self._text.code[body.start : end].strip():
                offset = end if data[body.start : end].strip() else body.start
                return offset, f"{ending}{indent_of(data, entry.members[0].span.start)}// {label}"
        indentation = indent_of(data, entry.span.start)
        return line_start(data, entry.span.start), f"{indentation}// {label}{ending}"

    def remarks(self, entry: Entry) -> list[CommentLines]:
        """Returns the `//` remarks above an entry that refer to it alone."""
        if entry.comment_span is None:
            return []
        data = self._text.data
        remarks: list[CommentLines] = []
        continues = False
        for comment in self._own(self._comments.above(entry.span.start, entry.comment_span.start)):
            if not data.startswith(b"//", comment.start):
                return []
            span = Span(line_start(data, comment.start), data.index(b"\n", comment.end - 1) + 1)
            lines = list(comment_lines(data, comment))
            text = " ".join(line.text for line in lines)
            is_labelled = bool(read_notes(lines, lives=True).labels)
            if continues and not is_labelled and not _OPENING.match(text):
                previous = remarks.pop()
                remarks.append(
                    CommentLines(Span(previous.span.start, span.end), f"{previous.text} {text}")
                )
            else:
                remarks.append(CommentLines(span, text))
            continues = not is_labelled
        return remarks

    def start(self, entry: Entry, *, inside: bool) -> int:
        """Returns the offset before an entry, its remarks, and its `#if` unless that is shared."""
        conditional = None if inside else self._conditional(entry)
        offset = entry.span.start if conditional is None else conditional.start
        own_comments = self._own(self._comments.above(offset))
        return line_start(self._text.data, own_comments[0].start if own_comments else offset)

    def end(self, entry: Entry, *, inside: bool) -> int:
        """Returns the offset behind an entry, its trailing comment, and its `#if` unless shared."""
        conditional = None if inside else self._conditional(entry)
        return self.line_end(entry.span.end if conditional is None else conditional.end)

    def line_end(self, offset: int) -> int:
        """Returns the end of a line, or of the comment that starts on it."""
        end = line_end(self._text.data, offset)
        for comment in self._text.comments:
            if comment.start < end < comment.end:
                end = line_end(self._text.data, comment.end)
        return end

    def headings(self, span: Span) -> list[Span]:
        """Returns the comments that head a section: the first of each run of lines."""
        headings: list[Span] = []
        for comment in self._comments.inside(span):
            above = self._comments.above(comment.start)
            first = {*above} <= {*headings} and not self._comments.shares_line(comment)
            if first and self._heads(comment):
                headings.append(comment)
        return headings

    def stands_alone(self, heading: Span) -> bool:
        """Tells whether a blank line follows a heading."""
        data = self._text.data
        return not data[data.index(b"\n", heading.end) + 1 :].split(b"\n", 1)[0].strip()

    def section_end(self, entry: Entry, following: Span | None) -> int:
        """Returns the end of a section behind its last entry, including commented-out code."""
        end = self.end(entry, inside=False)
        code = _NEXT_CODE.search(self._text.code, end)
        stop = code.start() if code else len(self._text.code)
        own_comments = self._comments.above(stop)
        stop = min([stop, *(span.start for span in own_comments[:1])])
        if following is not None:
            stop = min(stop, following.start)
        return self._last_line(end, stop)

    def _last_line(self, end: int, stop: int) -> int:
        """Returns the end of the last nonblank line, with each `#if` closed."""
        data, depth = self._text.data, 0
        row_end = end
        for row in data[end:stop].splitlines(keepends=True):
            row_end += len(row)
            if _FORMAT_ON.match(row):
                break
            depth += bool(_IF.match(row)) - bool(_ENDIF.match(row))
            if depth < 0:
                break
            if row.strip() and depth == 0:
                end = row_end - len(row) + len(row.rstrip())
        return end

    def packed(self, entry: Entry) -> bool:
        """Tells whether unlabeled entries stand on consecutive lines."""
        data = self._text.data
        start, end = line_start(data, entry.span.start), data.find(b"\n", entry.span.end) + 1
        rows = (data[line_start(data, start - 1) : start], data[end : line_end(data, end)])
        is_unlabeled_line = entry.layout == "line" and not entry.labels
        return is_unlabeled_line and any(map(_ONE_LINE.match, rows))

    def opens(self, offset: int) -> bool:
        """Tells whether an entry can start here without a blank line above."""
        start = line_start(self._text.data, line_start(self._text.data, offset) - 1)
        return not self._text.code[start:offset].strip()

    def closes(self, offset: int) -> bool:
        """Tells whether an entry can end here without a blank line below."""
        data = self._text.data
        start = line_end(data, offset) + data.startswith(b"\r", line_end(data, offset)) + 1
        return _NO_ENTRY.match(data, start) is not None

    def _comment_of(self, label: Label) -> Span:
        """Returns the comment of a label, with its whole line if it stands alone."""
        data, offset = self._text.data, label.span.start
        comment = next(span for span in self._text.comments if span.start <= offset < span.end)
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
        """Drops section headings from the comments above an entry."""
        return list(dropwhile(self._heads, above))

    def _heads(self, comment: Span) -> bool:
        lines = list(comment_lines(self._text.data, comment))
        if len(lines) > 1 or read_notes(lines, lives=True).labels:
            return False
        text = lines[0].text
        is_remark = _OPENING.match(text) or _OUTDATED.search(text)
        return not is_remark and _HEADING.fullmatch(text) is not None

    def _conditional(self, entry: Entry) -> Span | None:
        """Returns the outermost `#if` … `#endif` around an entry."""
        if entry.guard_span is None:
            return None
        start = entry.span.start
        return next(group for group in self._guards.groups if group.start < start < group.end)
