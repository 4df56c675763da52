"""What no header of CUB comes near, and what clang cannot take or takes too long for."""

import re

from policygen.source.text import Text

# clang calls itself once for each operator of an expression, until its stack is used up.
_OPERATORS = re.compile(rb"[-!~+*/%&|^<?=]")
_MOST_OPERATORS = 1500
_STATEMENT_ENDS = re.compile(rb"[;{}]")
# "struct A B A B": clang tries anew to make sense of the rest at each of the words.
_WORDS = re.compile(rb"\w++(?:\s++\w++)+")
_MOST_WORDS = 100


def check_limits(text: Text) -> None:
    """Raises at what would end the process inside clang, or keep it busy for minutes."""
    at = 0
    for stretch in _STATEMENT_ENDS.split(text.uncommented):
        if len(stretch) > _MOST_OPERATORS < len(_OPERATORS.findall(stretch)):
            raise text.error(at, "an expression with too many operators to be read")
        at += len(stretch) + 1
    for words in _WORDS.finditer(text.code):
        if len(words[0]) > 2 * _MOST_WORDS and len(words[0].split()) > _MOST_WORDS:
            raise text.error(words.start(), f"more than {_MOST_WORDS} words without a sign between")
