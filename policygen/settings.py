"""Reads `policygen.toml`, the settings file that the user names."""

import os
from dataclasses import dataclass
from pathlib import Path

from policygen.model.records import Record
from policygen.model.results import Rules
from policygen.opening import load_toml


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
