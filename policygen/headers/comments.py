"""Parses comments on entries: variant labels with their scores, and remarks."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from policygen.headers.syntax import Guards
from policygen.headers.text import Text, decode
from policygen.model.records import Span
from policygen.model.tuning import Label

# "ipt_18.tpb_512.ns_768.dcid_7.l2w_820.trp_1.ld_0 1.188818  1.005682  1.173041  1.305288"
# "ipt_11.tpb_128 ()  1.232089  1.002124  1.245336  1.582279"; "lbs_-2.ipt_4"
_VARIANT = re.compile(r"[a-z][a-z0-9]*_-?\d+(?:\.[a-z][a-z0-9]*_-?\d+)*(?=\s|$)")
_NUMBER = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)(?=\s|$)")
_ASIDE = re.compile(r"\s*\(([^()]*)\)")
# "static constexpr int threads = 512;" and the like: commented-out code, which is not a remark
_CODE = re.compile(
    r"(?:static\b|constexpr\b|using\b|template\b|struct\b|#\s*\w|[{}]).*|.*[;{}]\s*$|\w+(?:::\w+)?,$"
)
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


def comment_lines(data: bytes, comment: Span) -> Iterator[Line]:
    """Yields the lines of a comment."""
    offset = comment.start
    for row in data[slice(*comment)].split(b"\n"):
        yield _line(row, offset)
        offset += len(row) + 1


def _line(row: bytes, offset: int) -> Line:
    match = re.match(rb"\s*(?://[/!]?<?|/\*[*!]*|\*+/?)?\s*(//+)?\s*(.*?)\s*(?:\*/)?\s*$", row)
    assert match is not None
    return Line(
        text=decode(match[2]),
        span=Span(offset + match.start(2), offset + match.end(2)),
        nested=match[1] is not None,
    )


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
