"""Fills the templates of `templates/`: all C++ that policygen writes comes from there."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from policygen import resources

if TYPE_CHECKING:
    from jinja2 import Environment


def fill(template: str, values: Mapping[str, object], *, trim: bool = True) -> str:
    """A template's text; a value that it names and is not given is an error.

    Lines that hold a loop or a condition alone leave nothing behind when they are trimmed.
    """
    return _environment(resources.folder("templates"), trim).get_template(template).render(values)


@cache
def _environment(folder: Path, trim: bool) -> "Environment":  # noqa: FBT001  keys of the cache
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=trim,
        autoescape=False,  # noqa: S701  it is C++
    )
