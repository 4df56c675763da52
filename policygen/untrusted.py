"""Makes untrusted text safe for a terminal, a comment, Markdown or JSON.

Headers, databases, plans and paths may contain what runs, hides or misleads: escape sequences,
bidirectional controls, line breaks and code fences.
"""

import re
from functools import lru_cache
from html import escape

# Anything but printable ASCII; some of it is harmless, such as "ü"
_CANDIDATE = re.compile(r"[^ -~]")
# Characters that are invisible although Python considers them printable: default ignorables
# (joiners, fillers, variation selectors) and a blank that is not a space
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
_SPACE = re.compile(r"[ \t\n]+")
_TRIGRAPH = re.compile(r"\?(?=\?[=/'()!<>-])")
# Markdown syntax: "_" and "#" are ordinary within a word
_MARKDOWN = re.compile(r"[\\`*\[\]|~]|(?<!\w)[_#]|_(?!\w)")
# Block syntax: "- ", "+ ", "> ", "=====", "1. ", but not "1.09"
_BLOCK = re.compile(r"^(?:[-+>=]|\d+(?=[.)](?: |$)))")
# GitHub's automatic links: "@user", "a@b.c", "#1", "owner/name#1", "GH-1", "https://", "www."
_LINK = re.compile(r"@(?=\w)|#(?=\d)|\bGH(?=-\d)|:(?=//)|\bwww(?=\.)", re.IGNORECASE)
_ZERO_WIDTH_SPACE = "&#8203;"
"""An invisible separator that prevents automatic links."""


def is_visible(char: str) -> bool:
    """Returns whether a character is visible and does not affect its surroundings."""
    return char.isprintable() and not _INVISIBLE.match(char)


def visible(text: str, keep: str = "") -> str:
    r"""Escapes control, line-break, bidirectional and invisible characters as `\x1b`, `\u202e`.

    Characters in `keep` are not escaped, such as newlines in text of several lines.
    """
    if text.isascii() and text.isprintable():
        return text
    return _CANDIDATE.sub(lambda match: _shown(match[0], keep), text)


def _shown(char: str, keep: str) -> str:
    if char in keep or is_visible(char):
        return char
    code_point = ord(char)
    if 0xDC80 <= code_point < 0xDD00:  # an undecodable byte (surrogate escape)
        code_point -= 0xDC00
    if code_point < 0x100:
        return f"\\x{code_point:02x}"
    return f"\\u{code_point:04x}" if code_point < 0x10000 else f"\\U{code_point:08x}"


def comment(text: str) -> str:
    """Reduces text to one line of printable ASCII that is safe in a `//` comment.

    A backslash, or its trigraph, at the end would continue the comment on the next line.
    """
    return _TRIGRAPH.sub("? ", re.sub(r"[^ -~]+", " ", text)).rstrip(" \\")


@lru_cache(maxsize=1 << 14)
def markdown(text: str) -> str:
    """Escapes text for a line or table cell of Markdown: no links, no mentions."""
    escaped = visible(_SPACE.sub(" ", text).strip(" "))
    escaped = re.sub(r"&(?=[#\w])", "&amp;", escaped)
    escaped = _MARKDOWN.sub(r"\\\g<0>", escaped)
    if mark := _BLOCK.match(escaped):  # a list number is escaped after its digits
        end = mark.end() if mark[0].isdigit() else 0
        escaped = f"{escaped[:end]}\\{escaped[end:]}"
    escaped = _LINK.sub(rf"\g<0>{_ZERO_WIDTH_SPACE}", escaped)
    # GitHub renders "$" as mathematics even if it is escaped.
    return escaped.replace("<", "&lt;").replace("$", "&#36;")


def code(text: str) -> str:
    """Formats text as a code span for a Markdown table."""
    shown = visible(_SPACE.sub(" ", text).strip(" ")).replace("|", "\\|")
    ticks = "`" * (_longest("`", shown) + 1)
    pad = " " if "`" in shown else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def fenced(text: str, language: str = "") -> str:
    r"""Formats text as a fenced code block that its contents cannot end.

    Only `\n` ends a line: Python and Markdown disagree about other line ends.
    """
    shown = visible(text, keep="\n\t")
    fence = "~" * max(3, _longest("~", shown) + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def _longest(mark: str, text: str) -> int:
    return max(map(len, re.findall(f"{mark}+", text)), default=0)


def html(text: str) -> str:
    """Escapes text for a line of HTML in Markdown, without line breaks that would end the HTML."""
    return _LINK.sub(rf"\g<0>{_ZERO_WIDTH_SPACE}", escape(visible(text), quote=False))


def annotation(
    kind: str, title: str, message: str, path: str | None = None, line: int | None = None
) -> str:
    """Formats a GitHub workflow annotation that cannot contain another command."""
    location = [f"file={_property(path)}", f"line={line}"] if path else []
    properties = ",".join([*location, f"title={_property(f'policygen {title}')}"])
    return f"::{kind} {properties}::{_message(message)}"


def _message(text: str) -> str:
    """Escapes percent signs and line ends for GitHub."""
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    """Escapes colons and commas of a property, too."""
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def json_text(text: str) -> str:
    """Escapes invisible characters in the strings of a JSON document."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _CANDIDATE.sub(lambda match: _json_shown(match[0]), text)


def _json_shown(char: str) -> str:
    if char in "\n\t\r" or is_visible(char):
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
