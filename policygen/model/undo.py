"""Applies that were taken back."""

from typing import Literal

from pydantic import AwareDatetime

from policygen.model.base import Document, Record


class UndoneApply(Record):
    """One apply; `files` are seen from `root`."""

    apply: int
    title: str
    applied_at: AwareDatetime
    root: str
    files: tuple[str, ...]


class Undo(Document):
    """What `policygen undo --json` prints; the newest apply first."""

    format: Literal["policygen/undo/1"] = "policygen/undo/1"
    written: bool
    """The tree has the old contents again; with `--check` nothing is written."""
    applies: tuple[UndoneApply, ...]
