"""Reads `policygen.toml` and, with the same error messages, all of policygen's TOML files."""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from policygen.errors import InputError, SourceError
from policygen.model.records import Record
from policygen.model.results import Rules
from policygen.opening import read_document

MOST = 1 << 20
"""Maximum bytes of a file; the largest shipped one has fewer than 60,000."""
_MAX_LINE, _MAX_FAULTS = 1000, 20
"""Maximum length of a quoted line, and maximum number of faults, in a message."""
# Invalid value (at line 3, column 5)
_POSITION = re.compile(r" \(at line (\d+), column (\d+)\)\Z")
_PYDANTIC_WORDS = {
    r"^Invalid JSON: .* at (line \d+) (column \d+)$": r"not JSON: \1, \2",
    "^Value error, ": "",
    "^(?:Input|String|Tuple|Dictionary) should ": "it should ",
    "^Field required$": "it is missing",
    "^Extra inputs are not permitted$": "it is an unknown key",
    ", (?:unable to|got a) .*": "",
    "valid dictionary(?: or .*)?$": "table",
    "valid tuple$": "list",
    " after validation": "",
}
"""Pydantic's own words, and their replacements."""
TOO_LONG = "a number has too many digits"
Model = TypeVar("Model", bound=BaseModel)


class Settings(Record):
    """The contents of `policygen.toml`."""

    cub: str | None = None
    """A tree, relative to the file's folder, or a fetched version."""
    bindings: str | None = None
    """A folder with the user's bindings, relative to the file's folder."""
    choose: Rules = Rules()
    """Rules for whether a variant is worth writing to a header."""


@dataclass(frozen=True, slots=True)
class Config:
    """Settings with the file that contains them."""

    path: Path
    settings: Settings


def configured() -> Config | None:
    """Returns the settings from the file that `--config` or the environment names, if any."""
    path = named()
    return None if path is None else Config(path, load_toml(path, Settings))


def load_toml(path: Path, model: type[Model]) -> Model:
    """Loads a TOML file as a model; errors name the file, position and key."""
    try:
        text = read_document(path, MOST).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: byte {error.start}") from error
    # TOML allows both line endings, but tomllib counts columns for \n only.
    return as_model(path, model, _parse(path, text.replace("\r\n", "\n")))


def as_model(path: Path, model: type[Model], values: Mapping[str, Any]) -> Model:
    """Converts parsed values to a model; errors name the file and key."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _invalid(path, model, error) from error


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        lines, position = text.split("\n"), _POSITION.search(str(error))
        end = len(lines), len(lines[-1]) + 1
        line, column = map(int, position.groups()) if position else end
        is_double = re.match("Cannot |Duplicate ", str(error))
        message = "a key or table is defined twice" if is_double else "not TOML"
        source_line = lines[line - 1] if len(lines[line - 1]) < _MAX_LINE else ""
        raise SourceError(str(path), line, column, message, source_line) from error
    except ValueError as error:
        raise InputError(f"{path}: {TOO_LONG}") from error


def _invalid(path: Path, model: type[BaseModel], error: ValidationError) -> InputError:
    rows = []
    for detail in error.errors(include_url=False)[:_MAX_FAULTS]:
        key = place_of(detail["loc"])
        is_unknown = detail["type"] == "extra_forbidden"
        rows.append(f"unknown key {key}" if is_unknown else f"{key}: {fault(detail)}")
    keys = ", ".join(field.alias or name for name, field in model.model_fields.items())
    return InputError(f"{path}: {'; '.join(rows)}", f"its keys are: {keys}")


def fault(detail: ErrorDetails) -> str:
    """Says what is wrong with a value without the words that Pydantic puts around it."""
    message = detail["msg"]
    for pattern, words in _PYDANTIC_WORDS.items():
        message = re.sub(pattern, words, message)
    return message


def first_fault(error: ValidationError) -> str:
    """Says what is wrong first, and where: `wheels[2].sha256: it is missing`."""
    detail = error.errors(include_url=False)[0]
    return ": ".join(filter(None, (place_of(detail["loc"]), fault(detail))))


def place_of(location: Sequence[int | str]) -> str:
    """Formats a key such as `wheels[2].sha256`."""
    parts = [
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in location if part != "[key]"
    ]
    return "".join(parts).removeprefix(".")


NAME = "policygen.toml"
VARIABLE = "POLICYGEN_CONFIG"
"""The environment variable that names the user's file."""


# Selection of `policygen.toml`
#
# Bindings contain C++ that is compiled, and rules decide what is merged. The current folder may be
# a stranger's checkout, so a file there is not read unless the user names it.


def choose(path: str | None) -> None:
    """Selects the settings file; `None` selects the environment's."""
    _chosen[:] = [] if path is None else [Path(path).absolute()]


def passed_by(folder: Path) -> Path | None:
    """Returns the nearest `policygen.toml` in or above a folder if it is ignored."""
    if named() is not None:
        return None
    paths = (parent / NAME for parent in (folder, *folder.parents))
    return next((path for path in paths if _is_file(path)), None)


def named() -> Path | None:
    """Returns the selected settings file, if any."""
    if _chosen:
        return _chosen[0]
    value = os.environ.get(VARIABLE)
    return Path(value).absolute() if value else None


_chosen: list[Path] = []


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # A folder above may be inaccessible.
        return False
