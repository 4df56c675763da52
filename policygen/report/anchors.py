"""What a page calls its rows: the same as long as they hold the same, and each only once."""

import re
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256

# shares/reduce.sum, workloads/reduce.sum/T=I8/OffsetT=I32
_PLAIN = re.compile(r"[A-Za-z0-9._=/-]{1,100}")
_OTHER = re.compile(r"[^A-Za-z0-9._=/-]+")
_KEPT = 60
"""Letters of a text that is not taken as it is."""


def slug(text: str) -> str:
    """Make an identifier that depends on the text alone; two texts never have the same.

    What is more than plain letters is cut down to them, with a digest of the whole behind it.
    """
    if _PLAIN.fullmatch(text):
        return text
    plain = _OTHER.sub("-", text)[:_KEPT].strip("-")
    return f"{plain}~{sha256(text.encode(errors='surrogatepass')).hexdigest()[:10]}"


@dataclass(slots=True)
class Anchors:
    """The identifiers of one page, in the order in which it has them."""

    seen: Counter[str] = field(default_factory=Counter)

    def define(self, text: str) -> str:
        """Give the identifier of a row; that of a second one with the same text has a number."""
        name = slug(text)
        self.seen[name] += 1
        return name if self.seen[name] == 1 else f"{name}~{self.seen[name]}"

    def link(self, text: str) -> str:
        """Give the address of the first row with a text."""
        return f"#{slug(text)}"
