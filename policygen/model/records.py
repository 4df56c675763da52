"""The base classes of records in files and APIs."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, model_validator

from policygen.portable import portable
from policygen.untrusted import json_text

Item = TypeVar("Item")
Key = TypeVar("Key")


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Groups items by a key; groups and items keep their order."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


class Span(NamedTuple):
    """Bytes of a file, end excluded; `[start, end]` in JSON."""

    start: int
    end: int


class Record(BaseModel):
    """An immutable value that rejects unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Derived(Record):
    """A record with computed fields, which are written but not read."""

    @model_validator(mode="before")
    @classmethod
    def _without_computed(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {name: data[name] for name in data if name not in cls.model_computed_fields}


class Document(Record):
    """A record that is written to a file or to standard output; `format` names its version."""

    def to_json(self, **options: Any) -> str:
        """Returns the document as JSON in field order, without machine-specific paths."""
        return json_text(portable(self).model_dump_json(indent=1, **options))

    def to_line(self) -> str:
        """Like `to_json`, on one line, for files of several documents."""
        return json_text(portable(self).model_dump_json())


class Problem(Record):
    """A part of the input that could not be read, while the rest was."""

    path: str
    line: int
    column: int
    message: str
