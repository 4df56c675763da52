"""Documents that were saved, and are given back."""

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from policygen import opening
from policygen.errors import InputError
from policygen.model.base import Document

Saved = TypeVar("Saved", bound=Document)


def read_document(path: Path, kind: type[Saved], called: str, remedy: str) -> Saved:
    """A document of a file; one of another kind or version is told, with the place."""
    try:
        return kind.model_validate_json(opening.read_document(path))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{path} is no {called}: {place + ': ' if place else ''}{first['msg']}", remedy
        ) from error
