"""`schemas/outside.toml`: what a header can ask of a compile beside its types, and who may."""

import re
from functools import cache
from typing import Annotated

from pydantic import AfterValidator, Field

from policygen.config import load_toml
from policygen.model.base import Record
from policygen.resources import folder


def _is_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error
    return text


Pattern = Annotated[str, AfterValidator(_is_pattern)]


class Places(Record):
    """Words that a compiler answers by where they stand, after the preprocessor."""

    words: tuple[str, ...]
    known: tuple[str, ...]
    """Files that hold them and are used by no tuning."""


class Allowed(Record):
    """What the files of one part of a tree may ask."""

    conditions: tuple[Pattern, ...]
    """Macros that may be tested without being defined before, in the tree."""
    macros: tuple[Pattern, ...]
    """Macros that may be used although they ask."""


class LibraryPart(Allowed):
    """A part of another library's tree, by the beginning of the names of its files."""

    prefix: str
    beneath: bool = False
    """Whether no tuning stands in it, so that it may ask for all but what no file needs."""


class Outside(Record):
    """The file."""

    words: dict[str, str]
    """What each tells."""
    nowhere: tuple[str, ...]
    """Words that no file of a tree needs; others are refused in `cub/` alone."""
    own: tuple[Pattern, ...]
    """What macros of the tree are called."""
    known: dict[str, tuple[str, ...]]
    files: tuple[str, ...]
    """Words that the macros of a file may mention."""
    tunings: Allowed
    cub: Allowed
    beneath: Allowed
    parts: tuple[LibraryPart, ...] = Field(alias="part", default=())
    """Of other libraries than CUB; the first that fits counts."""
    places: Places


@cache
def outside() -> Outside:
    """What is known."""
    return load_toml(folder("schemas") / "outside.toml", Outside)
