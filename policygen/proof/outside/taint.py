"""Macros that ask for something outside, in themselves or by other macros."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from policygen.proof.outside.header import WORD, Directive

_PASTE = re.compile(rb"##|%:%:")
PASTE = b"##"
"""What stands for the words that a macro may put together."""


def tainted(defines: Iterable[Directive], words: Iterable[str]) -> Mapping[bytes, bytes]:
    """Macro → the word that it comes to, or `##`; a word counts more than what is put together."""
    reasons = {word.encode(): word.encode() for word in words}
    users: defaultdict[bytes, set[bytes]] = defaultdict(set)
    found: dict[bytes, bytes] = {}
    asked: list[bytes] = []
    pasted: list[bytes] = []
    for directive in defines:
        name = directive.macro
        body = directive.body[directive.body.find(name) + len(name) :]
        for word in set(WORD.findall(body)):
            users[word].add(name)
            if word in reasons:
                found.setdefault(name, reasons[word])
                asked.append(name)
        if _PASTE.search(body):
            pasted.append(name)
    _spread(asked, users, found)
    for name in pasted:
        found.setdefault(name, PASTE)
    _spread(pasted, users, found)
    return found


def _spread(
    names: Iterable[bytes], users: Mapping[bytes, set[bytes]], found: dict[bytes, bytes]
) -> None:
    """To the macros that use them."""
    todo = list(names)
    while todo:
        name = todo.pop()
        for user in users.get(name, ()):
            if user not in found:
                found[user] = found[name]
                todo.append(user)
