"""What comments say about entries: variant labels with their scores, and remarks."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policygen.headers.syntax import Guards
from policygen.headers.text import Text, decode
from policygen.model.records import Span
from policygen.model.tuning import Label

# "ipt_18.tpb_512.ns_768.dcid_7.l2w_820.trp_1.ld_0 1.188818  1.005682  1.173041  1.305288"
# "ipt_11.tpb_128 ()  1.232089  1.002124  1.245336  1.582279"; "lbs_-2.ipt_4"
_VARIANT = re.compile(r"[a-z][a-z0-9]*_-?\d+(?:\.[a-z][a-z0-9]*_-?\d+)*(?=\s|$)")
_NUMBER = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)(?=\s|$)")
_ASIDE = re.compile(r"\s*\(([^()]*)\)")
# "static constexpr int threads = 512;" and the like: code that was commented out, no remark
_CODE = re.compile(
    r"(?:static\b|constexpr\b|using\b|template\b|struct\b|#\s*\w|[{}]).*|.*[;{}]\s*$|\w+(?:::\w+)?,$"
)
_FORMAT = re.compile(rb"(?://|/\*)\s*clang-format\s+(off|on)\b")
_ONE_LINE_BREAK = re.compile(rb"[ \t]*(?:\r?\n)?[ \t]*")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a comment, without its marks."""

    text: str
    span: Span
    nested: bool
    """A comment within the comment: `// // ipt_9…`."""


@dataclass(frozen=True, slots=True)
class Notes:
    """What the comments of one entry say."""

    labels: tuple[Label, ...]
    remarks: tuple[str, ...]


def comment_lines(data: bytes, comment: Span) -> Iterator[Line]:
    """The lines of one comment."""
    at = comment.start
    for row in data[comment.start : comment.end].split(b"\n"):
        yield _line(row, at)
        at += len(row) + 1


def _line(row: bytes, at: int) -> Line:
    match = re.match(rb"\s*(?://[/!]?<?|/\*[*!]*|\*+/?)?\s*(//+)?\s*(.*?)\s*(?:\*/)?\s*$", row)
    assert match is not None
    return Line(
        text=decode(match[2]),
        span=Span(at + match.start(2), at + match.end(2)),
        nested=match[1] is not None,
    )


def read_notes(lines: Sequence[Line], *, lives: bool) -> Notes:
    """Labels and remarks; a label of an entry without values of its own was rejected."""
    labels: list[Label] = []
    remarks: list[list[str]] = []
    joining = False
    for line in lines:
        found = _label(line, rejected=line.nested or not lives)
        if found is not None:
            label, rest = found
            labels.append(label)
            remarks += [[rest]] if rest else []
        if found is not None or not line.text or line.nested or _CODE.fullmatch(line.text):
            joining = False
        elif joining:
            remarks[-1].append(line.text)
        else:
            remarks.append([line.text])
            joining = True
    return Notes(tuple(labels), tuple(" ".join(words) for words in remarks))


def _label(line: Line, *, rejected: bool) -> tuple[Label, str] | None:
    match = _VARIANT.match(line.text)
    if match is None:
        return None
    scores: list[float] = []
    asides: list[str] = []
    at = match.end()
    while True:
        if (number := _NUMBER.match(line.text, at)) and len(scores) < 4:
            scores.append(float(number[1]))
            at = number.end()
        elif aside := _ASIDE.match(line.text, at):
            asides.append(aside[1].strip())
            at = aside.end()
        else:
            break
    rest = line.text[at:].strip()
    if "." not in match[0] and not scores and rest:
        return None  # "ipt_4 seems good": prose that begins with a parameter
    words = " ".join(word for word in [*asides, rest] if word)
    label = Label(variant=match[0], scores=tuple(scores), rejected=rejected, span=line.span)
    return label, words


class Comments:
    """The comments of one file, by place."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._spans = [s for s in text.comments if not _FORMAT.match(text.data, s.start)]
        self._starts = [s.start for s in self._spans]

    def inside(self, span: Span) -> list[Span]:
        """Comments that begin within a span."""
        left = bisect_left(self._starts, span.start)
        return self._spans[left : bisect_left(self._starts, span.end)]

    def above(self, offset: int, floor: int = 0) -> list[Span]:
        """Comments that end on the lines directly above, without a blank line between."""
        found: list[Span] = []
        for span in reversed(self._spans[: bisect_left(self._starts, offset)]):
            gap = self._text.data[span.end : offset]
            if span.start < floor or not _ONE_LINE_BREAK.fullmatch(gap):
                break
            if self.shares_line(span):
                break
            found.append(span)
            offset = span.start
        return found[::-1]

    def trailing(self, offset: int) -> list[Span]:
        """A comment that begins on the same line, behind an entry."""
        index = bisect_right(self._starts, offset - 1)
        if index == len(self._spans):
            return []
        gap = self._text.data[offset : self._starts[index]]
        return [self._spans[index]] if not gap.strip(b" \t") else []

    def groups(self) -> Iterator[list[Span]]:
        """Runs of comments with nothing but white space between them."""
        group: list[Span] = []
        for span in self._spans:
            if group and self._text.data[group[-1].end : span.start].strip():
                yield group
                group = []
            group.append(span)
        if group:
            yield group

    def shares_line(self, span: Span) -> bool:
        """Whether there is code before a comment on its line."""
        line = self._text.data.rfind(b"\n", 0, span.start) + 1
        return bool(self._text.data[line : span.start].strip())


def format_off_regions(text: Text) -> tuple[Span, ...]:
    """The regions that clang-format leaves alone."""
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


# One file, as what reads entries of it needs it.


@dataclass(frozen=True)
class SourceFile:
    """What reading the entries of one file needs."""

    text: Text
    guards: Guards
    comments: Comments
    format_off: tuple[Span, ...]

    def format_is_off(self, offset: int) -> bool:
        """Whether clang-format leaves a place alone."""
        return any(region.start <= offset < region.end for region in self.format_off)
