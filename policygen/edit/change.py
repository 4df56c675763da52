"""A change of one file."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Change:
    """What a file holds, and what it shall hold; `path` is absolute."""

    path: Path
    before: bytes
    after: bytes
