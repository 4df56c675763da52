"""Text of strangers, made safe for where it goes: a terminal, a comment, Markdown, JSON.

What stands in a header, a database, a plan or a path may hold what runs, hides or lies: escape
sequences, characters that turn the line around, ends of lines and of fences.
"""

import re
from functools import lru_cache
from html import escape

# All but printable ASCII: what is in it may be fine, as "ü" is
_CANDIDATE = re.compile(r"[^ -~]")
# What Unicode calls default ignorable, and a blank that is none, though Python prints them:
# joiners, fillers, variation selectors
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
_SPACE = re.compile(r"[ \t\n]+")
_TRIGRAPH = re.compile(r"\?(?=\?[=/'()!<>-])")
# What Markdown takes for something else: "_" and "#" are letters within a word
_MARKDOWN = re.compile(r"[\\`*\[\]|~]|(?<!\w)[_#]|_(?!\w)")
# A block: "- ", "+ ", "> ", "=====", "1. ", and not "1.09"
_BLOCK = re.compile(r"^(?:[-+>=]|\d+(?=[.)](?: |$)))")
# What GitHub makes links of: "@user", "a@b.c", "#1", "owner/name#1", "GH-1", "https://", "www."
_LINK = re.compile(r"@(?=\w)|#(?=\d)|\bGH(?=-\d)|:(?=//)|\bwww(?=\.)", re.IGNORECASE)
_APART = "&#8203;"
"""Nothing to be seen, and no link with it in the middle."""


def is_visible(char: str) -> bool:
    """Whether a character shows, and changes nothing around it."""
    return char.isprintable() and not _INVISIBLE.match(char)


def visible(text: str, keep: str = "") -> str:
    r"""Control, line-separating, direction-changing and invisible characters as `\x1b`, `\u202e`.

    Those in `keep` stay: the end of a line where the text has several.
    """
    if text.isascii() and text.isprintable():
        return text
    return _CANDIDATE.sub(lambda match: _shown(match[0], keep), text)


def _shown(char: str, keep: str) -> str:
    if char in keep or is_visible(char):
        return char
    number = ord(char)
    if 0xDC80 <= number < 0xDD00:  # a byte that is no UTF-8, as Python reads it
        number -= 0xDC00
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def comment(text: str) -> str:
    """One line of printable ASCII that ends with its `//` comment.

    A backslash at its end, or the trigraph of one, would carry the comment on to the next line.
    """
    line = re.sub(r"[^ -~]+", " ", text)
    return _TRIGRAPH.sub("? ", line).rstrip(" \\")


@lru_cache(maxsize=1 << 14)
def markdown(text: str) -> str:
    """Text that stands in a line of Markdown as it is, also in a table: no link, no mention."""
    words = visible(_SPACE.sub(" ", text).strip(" "))
    words = re.sub(r"&(?=[#\w])", "&amp;", words)
    words = _MARKDOWN.sub(r"\\\g<0>", words)
    words = _BLOCK.sub(lambda match: _escaped_block(match[0]), words)
    words = _LINK.sub(rf"\g<0>{_APART}", words)
    # GitHub takes "$" for mathematics, escaped or not.
    return words.replace("<", "&lt;").replace("$", "&#36;")


def _escaped_block(mark: str) -> str:
    """The number of a list is escaped behind its digits."""
    return f"{mark}\\" if mark.isdigit() else f"\\{mark}"


def code(text: str) -> str:
    """Text as a span of code in a table of Markdown."""
    shown = visible(_SPACE.sub(" ", text).strip(" ")).replace("|", "\\|")
    ticks = "`" * (_longest("`", shown) + 1)
    pad = " " if "`" in shown else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def fenced(text: str, language: str = "") -> str:
    r"""Text as a block of code of Markdown; nothing in it can end the block.

    Only `\n` ends a line: Python and Markdown differ about what else does.
    """
    shown = visible(text, keep="\n\t")
    fence = "~" * max(3, _longest("~", shown) + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def _longest(mark: str, text: str) -> int:
    return max(map(len, re.findall(f"{mark}+", text)), default=0)


def html(text: str) -> str:
    """Text in a line of HTML that stands in Markdown: no end of a line ends the HTML."""
    return _LINK.sub(rf"\g<0>{_APART}", escape(visible(text), quote=False))


def annotation(
    kind: str, title: str, message: str, path: str | None = None, line: int | None = None
) -> str:
    """Text as a workflow's annotation, as GitHub reads it; nothing of it begins another command."""
    place = [f"file={_property(path)}", f"line={line}"] if path else []
    properties = ",".join([*place, f"title={_property(f'policygen {title}')}"])
    return f"::{kind} {properties}::{_message(message)}"


def _message(text: str) -> str:
    """Percent and line ends mean something to GitHub."""
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    """So do, in a property, colons and commas."""
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def json_text(text: str) -> str:
    """A JSON document whose strings have escapes for what `visible` shows."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _CANDIDATE.sub(lambda match: _json_shown(match[0]), text)


def _json_shown(char: str) -> str:
    if char in "\n\t\r" or is_visible(char):
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
