"""What a header declares, by its text: template parameters, and the members of its structs."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

Structs = Mapping[str, Mapping[str, str]]
"""Struct → member → its type, by the last part of its name."""
_OPEN, _CLOSE = "<([{", ">)]}"
# struct reduce_policy {
_STRUCT = re.compile(r"\bstruct\s+(\w+)\s*(?:final\s*)?\{")
# using rle_encode_policy = reduce_by_key::reduce_by_key_policy;
_ALIAS = re.compile(r"\busing\s+(\w+)\s*=\s*(?:[\w:]*::)?(\w+)\s*;")
# scan_lookback_policy lookback = {}
_MEMBER = re.compile(r"([\w:]+(?:<[^()]*>)?)\s+(\w+)\s*(?:=[\s\S]*|\{\})?$")
_NESTED = re.compile(r"\{[^{}]*\}")
_DIRECTIVE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_TYPE = re.compile(r"(\w+)(?:<.*>)?$", re.DOTALL)
_ENDS = re.compile(r";|\{\}(?!\s*;)")


def parameters(text: str, name: str) -> list[tuple[int, int]]:
    """How many template arguments a name takes, at least and at most, for each declaration."""
    found = []
    for match in re.finditer(rf"\b(?:struct|class|using)\s+{name}\b(?!\s*[<])", text):
        before = text[: match.start()].rstrip()
        start = _opening(before) if before.endswith(">") else 0
        if not (start and re.search(r"\btemplate\s*$", before[:start])):
            found.append((0, 0))
            continue
        listed = split(before[start:])
        most = 1000 if any("..." in one for one in listed) else len(listed)
        found.append((sum("=" not in one and "..." not in one for one in listed), most))
    return found


def _opening(text: str) -> int:
    """Where the bracket opens that ends a text."""
    depth = 0
    for index in range(len(text) - 1, -1, -1):
        char = text[index]
        if char in _CLOSE and text[index - 1 : index + 1] != "->":
            depth += 1
        elif char in _OPEN:
            depth -= 1
            if depth == 0:
                return index
    return 0


def split(text: str) -> list[str]:
    """The parts of the bracket that begins a text: `<A, B<C, D>>` has two."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in _OPEN) - (char in _CLOSE)
        if depth == 0:
            break
        if char == "," and depth == 1:
            parts.append("")
        elif depth > 1 or char not in _OPEN:
            parts[-1] += char
    found = [part.strip() for part in parts]
    return found if found != [""] else []


@lru_cache(maxsize=256)
def structs(text: str) -> Structs:
    """The structs of a header with their members; an alias has those of its struct."""
    found: dict[str, dict[str, str]] = {}
    for match in _STRUCT.finditer(text):
        members = dict(_members(_body(text, match.end())))
        if members:
            found.setdefault(match[1], members)
    for match in _ALIAS.finditer(text):
        if match[2] in found:
            found.setdefault(match[1], found[match[2]])
    return found


def _body(text: str, start: int) -> str:
    depth = 1
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return text[start : match.start()]
    return text[start:]


def _members(body: str) -> Iterator[tuple[str, str]]:
    """Name and type of each; what has parameters is no member."""
    flat = _DIRECTIVE.sub("", body)
    while (less := _NESTED.sub("\0", flat)) != flat:
        flat = less
    for part in _ENDS.split(flat.replace("\0", "{}")):
        lines = " ".join(part.split())
        match = _MEMBER.match(lines)
        if match and "(" not in lines.partition("=")[0]:
            kind = _TYPE.search(match[1])
            yield match[2], kind[1] if kind else ""
