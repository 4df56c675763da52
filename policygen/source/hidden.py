"""Spellings that hide code from a reader that does not preprocess: refused where they stand."""

import re
from collections.abc import Iterator, Mapping

from policygen.model.base import Span
from policygen.source.text import Text

# "\\u00e9" is part of a name, "\\" at the end of a line joins two
_BACKSLASH = re.compile(rb"\\(u|U|\r?\n|)")
_JOINED = re.compile(rb"\\\r?\n")
# "<%", "%:": other spellings of "{" and "#"; but "<::" begins the name of a type
_DIGRAPH = re.compile(rb"<%|%>|%:|<:(?!:(?![:>]))|(?<!:):>")
# "#  define TUNED(x) {x, 256}"
_DEFINE = re.compile(rb"[ \t]*#[ \t]*define[ \t]+(\w+)(\([^()\n]*\))?([\s\S]*)")
_INCLUDE = re.compile(rb"[ \t]*#[ \t]*(include_next|include|import|embed)\b[ \t]*([\s\S]*)")
_NAMED = re.compile(rb"<[^<>\n]+>|\"[^\"\n]+\"")
# "256", "(1 << 4)", "": what cannot be anything but a number
_NUMBER = re.compile(rb"(?:[-+*/%()<>&|^~!\s]|\\|\b\d[\w']*)*")
_WORD = re.compile(rb"[A-Za-z_]\w*")
_BRACE = re.compile(rb"[{}]|\bCUB_NAMESPACE_(?:BEGIN|END)\b")
_PLAIN = "Write it out: policygen reads what stands in the header."


def check_hidden(text: Text, beside: Mapping[str, bytes]) -> None:
    """Raises at the first place where the compiler sees something else than what stands there.

    `beside` are the neighbours that the header includes, whose macros reach into it.
    """
    for match in _BACKSLASH.finditer(text.code):
        what = "a name with a universal character" if match[1] in b"uU" and match[1] else None
        what = what or ("a line that goes on in the next" if match[1] else "a stray backslash")
        raise text.error(match.start(), f"{what}: cannot be read", remedy=_PLAIN)
    if sign := _DIGRAPH.search(text.code):
        words = f"{sign[0].decode()!r} stands for another sign: cannot be read"
        raise text.error(sign.start(), words, width=len(sign[0]), remedy=_PLAIN)
    _check_macros(text, beside)
    _check_includes(text)


def _check_macros(text: Text, beside: Mapping[str, bytes]) -> None:
    """A macro that stands for more than a number may be defined, but not be used in code."""
    macros = {name: f"line {line}" for name, line in _macros(text)}
    for path, data in beside.items():
        macros |= {name: f"{path}:{line}" for name, line in _macros(Text(path, data))}
    if not macros:
        return
    for word in _WORD.finditer(text.code):
        if word[0] in macros:
            name = word[0].decode("utf-8", "replace")
            raise text.error(
                word.start(),
                f"{name} is a macro of {macros[word[0]]}: cannot read what it expands to",
                width=len(word[0]),
                remedy=_PLAIN,
            )


def _macros(text: Text) -> Iterator[tuple[bytes, int]]:
    for span in text.directives:
        match = _DEFINE.fullmatch(_joined(text, span))
        if match and (match[2] or not _NUMBER.fullmatch(match[3])):
            yield match[1], text.line(span.start)


def _check_includes(text: Text) -> None:
    """Code may come from another file only where nothing is open, and that file must be named."""
    depth, at = 0, 0
    for span in text.directives:
        match = _INCLUDE.fullmatch(_joined(text, span))
        if match is None:
            continue
        depth += sum(_opens(brace[0]) for brace in _BRACE.finditer(text.code, at, span.start))
        at = span.end
        if match[1] != b"include" or not _NAMED.fullmatch(match[2].strip()):
            raise text.error(_word(span, text), "cannot tell what this includes", remedy=_PLAIN)
        if depth > 0:
            words = "an include inside of a declaration: cannot read what it adds"
            raise text.error(_word(span, text), words, remedy=_PLAIN)


def _joined(text: Text, directive: Span) -> bytes:
    """A directive on one line, as the preprocessor joins it."""
    return _JOINED.sub(b"", text.uncommented[directive.start : directive.end])


def _opens(brace: bytes) -> int:
    return -1 if brace in {b"}", b"CUB_NAMESPACE_END"} else 1


def _word(span: Span, text: Text) -> int:
    """Where the `#` of a directive is."""
    return text.uncommented.index(b"#", span.start)
