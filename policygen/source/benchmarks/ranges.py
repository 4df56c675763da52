"""`%RANGE%` lines: the search space that a benchmark declares, as CMake reads it."""

import re

from policygen.errors import SourceError
from policygen.model.bench import ParameterRange
from policygen.model.labels import IDENTIFIER, LIMIT, MOST
from policygen.source.text import Text, decode

FORM = "the form is: // %RANGE% MACRO label start:end:step"

# // %RANGE% TUNE_ITEMS_PER_THREAD ipt 7:24:1
_LINE = re.compile(rb"//[ ]+%RANGE%[ ]+([^ \n]+)[ ]+([^ \n]+)[ ]+([^\n]*)")
# CMake passes over what the pattern above does not match; such a line was meant, though.
_BEGUN = re.compile(rb"//[ ]+%RANGE%(?=[ \r\n]|\Z)[^\n]*")
_MACRO = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL = re.compile(IDENTIFIER)
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")


def read_ranges(text: Text) -> tuple[tuple[ParameterRange, ...], tuple[SourceError, ...]]:
    """The parameters in the order of their lines, and the lines that are wrong."""
    found: list[ParameterRange] = []
    errors: list[SourceError] = []
    for line in _BEGUN.finditer(text.data):
        match = _LINE.match(text.data, line.start())
        try:
            if match is None:
                width = len(line.group().rstrip())
                raise text.error(line.start(), "incomplete %RANGE%", width=width, remedy=FORM)
            macro, label, bounds = (decode(part).strip() for part in match.groups())
            one = parse_range(text, match.start(3), macro, label, bounds)
            check_new(text, match.start(2), one, found)
            found.append(one)
        except SourceError as error:
            errors.append(error)
    return tuple(found), tuple(errors)


def parse_range(text: Text, offset: int, macro: str, label: str, bounds: str) -> ParameterRange:
    """`start:end:step`, which stands at `offset`."""
    width = max(1, len(bounds))
    if not _MACRO.fullmatch(macro):
        raise text.error(offset, f"{macro!r} is no macro name", width=width, remedy=FORM)
    if not _LABEL.fullmatch(label):
        raise text.error(offset, f"{label!r} is no label", width=width, remedy=FORM)
    parts = [part.strip() for part in bounds.split(":")]
    if len(parts) != 3:
        message = f"{bounds!r} is not three numbers"
        raise text.error(offset, message, width=width, remedy=FORM)
    for part in parts:
        if not _NUMBER.fullmatch(part) or abs(int(part)) >= LIMIT:
            message = f"{part!r} is not an integer that fits a macro"
            raise text.error(offset, message, width=width, remedy=FORM)
    start, end, step = (int(part) for part in parts)
    if step <= 0:
        raise text.error(offset, f"the step {step} leads nowhere", width=width)
    if end < start:
        raise text.error(offset, f"the end {end} is before the start {start}", width=width)
    return ParameterRange(macro=macro, label=label, start=start, end=end, step=step)


def check_new(text: Text, offset: int, one: ParameterRange, earlier: list[ParameterRange]) -> None:
    """A label names one parameter, and so does a macro."""
    width = len(one.label)
    if len(earlier) == MOST:
        raise text.error(offset, f"more than {MOST} parameters", width=width)
    if any(one.label == other.label for other in earlier):
        raise text.error(offset, f"the label {one.label!r} is used twice", width=width)
    if any(one.macro == other.macro for other in earlier):
        raise text.error(offset, f"the macro {one.macro} is used twice", width=width)
