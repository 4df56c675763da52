"""What `policygen.toml` says, and how every TOML file of ours is read."""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from policygen.errors import InputError, SourceError
from policygen.model.records import Record
from policygen.model.results import Rules
from policygen.opening import read_document

MOST = 1 << 20
"""Bytes of a file; the largest of ours has fewer than 60,000."""
_WIDE, _SHOWN = 1000, 20
"""Characters of a line and faults of a file that a message shows."""
# Invalid value (at line 3, column 5)
_PLACE = re.compile(r"(?P<what>.*) \(at line (?P<line>\d+), column (?P<column>\d+)\)", re.DOTALL)
Model = TypeVar("Model", bound=BaseModel)


class Settings(Record):
    """What `policygen.toml` may say."""

    cub: str | None = None
    """A tree, relative to the file's folder, or a fetched version."""
    bindings: str | None = None
    """A folder with bindings of one's own, relative to the file's folder."""
    choose: Rules = Rules()
    """When a variant is worth writing into a header."""


@dataclass(frozen=True, slots=True)
class Config:
    """The settings and the file that they come from."""

    path: Path
    settings: Settings


def configured() -> Config | None:
    """The settings of the file that `--config` or the environment names; none where none does."""
    path = named()
    return None if path is None else Config(path, load_toml(path, Settings))


def load_toml(path: Path, model: type[Model]) -> Model:
    """A TOML file as a model; what is wrong is named with file, place and key."""
    try:
        text = read_document(path, MOST).decode()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: byte {error.start}") from error
    # TOML allows both line endings, tomllib none but \n in its count of columns.
    values = _parse(path, text.replace("\r\n", "\n"))
    return as_model(path, model, values)


def as_model(path: Path, model: type[Model], values: Mapping[str, Any]) -> Model:
    """What a file says as a model; what is wrong is named with file and key."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _refusal(path, model, error) from error


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:  # also of numbers with too many digits
        lines = text.split("\n")
        if place := _PLACE.fullmatch(str(error)):
            line, column, what = int(place["line"]), int(place["column"]), place["what"]
        else:
            what = str(error).removesuffix(" (at end of document)")
            line, column = len(lines), len(lines[-1]) + 1
        shown = lines[line - 1] if len(lines[line - 1]) < _WIDE else ""
        raise SourceError(str(path), line, column, what, shown) from error


def _refusal(path: Path, model: type[BaseModel], error: ValidationError) -> InputError:
    rows = []
    for detail in error.errors(include_url=False)[:_SHOWN]:
        key = _key(detail["loc"])
        unknown = detail["type"] == "extra_forbidden"
        rows.append(f"unknown key {key}" if unknown else f"{key}: {detail['msg']}")
    known = ", ".join(field.alias or name for name, field in model.model_fields.items())
    return InputError(f"{path}: {'; '.join(rows)}", f"its keys are: {known}")


def _key(location: Sequence[int | str]) -> str:
    """`wheels[2].sha256`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".")


NAME = "policygen.toml"
VARIABLE = "POLICYGEN_CONFIG"
"""The environment's variable that names one's own."""


# Which `policygen.toml` counts: the one that is named.
#
# Bindings are C++ that is compiled, and rules decide what is merged. So nothing is read because
# it
# lies in the current folder, which may be a stranger's checkout: the file is named, or is none.


def choose(path: str | None) -> None:
    """From now on that file counts; none: the one of the environment."""
    _chosen[:] = [] if path is None else [Path(path).absolute()]


def passed_by(folder: Path) -> Path | None:
    """The nearest `policygen.toml` in a folder or above it, where none is named: it is not read."""
    if named() is not None:
        return None
    paths = (place / NAME for place in (folder, *folder.parents))
    return next((path for path in paths if _is_there(path)), None)


def named() -> Path | None:
    """The file that counts, if one does."""
    if _chosen:
        return _chosen[0]
    named = os.environ.get(VARIABLE)
    return Path(named).absolute() if named else None


_chosen: list[Path] = []


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # A folder above that we may not enter.
        return False
