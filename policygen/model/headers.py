"""The trees that can be had and those that are here."""

from typing import Any, Literal

from policygen.model.base import Document, Record
from policygen.model.cub import Cub, Dialect, Library
from policygen.untrusted import json_text

State = Literal["fetched", "current", "absent"]


class HeadersEntry(Record):
    """One release."""

    version: str
    """By which it is named: `3.0.1`, `rocprim@5.7.1`."""
    library: Library = "cub"
    holds: str | None = None
    """What its headers say, where it is named by another version."""
    wheel: str | None
    """`nvidia-cuda-cccl==13.0.85`, or the package `librocprim-dev=5.7.1-2`; none for a tree that
    the manifest does not know."""
    dialect: Dialect
    specializations: int | None
    state: State
    changed: tuple[str, ...] | None = None
    """Files that are not as they were fetched, as far as they can be named; none when all are."""


class Headers(Document):
    """What `policygen headers` prints with `--json`."""

    format: Literal["policygen/headers/1"] = "policygen/headers/1"
    folder: str
    """Where fetched trees are kept."""
    trees: tuple[HeadersEntry, ...]
    used: Cub | None
    """The tree that the command names; for `list`, the one that other commands would use here."""

    def to_json(self, **options: Any) -> str:
        """As JSON text, with the paths as they are: where trees are is what is asked."""
        return json_text(self.model_dump_json(indent=1, **options))
