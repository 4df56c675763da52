"""Fills the templates of `templates/`: all C++ and all pages that policygen writes are there."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from policygen import untrusted

if TYPE_CHECKING:
    from jinja2 import Environment


def fill(template: str, values: Mapping[str, object], *, trim: bool = True) -> str:
    """A template's text; a value that it names and is not given is an error.

    Lines that hold a loop or a condition alone leave nothing behind when they are trimmed.
    """
    page = template.endswith("html.j2")
    environment = _environment(folder("templates"), trim, page)
    return environment.get_template(template).render(values)


@cache
def _environment(
    folder: Path,
    trim: bool,  # noqa: FBT001  keys of the cache
    page: bool,  # noqa: FBT001
) -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=trim,
        # C++ is what it is.
        autoescape=select_autoescape(("html.j2",), default=False),
        finalize=_visible if page else None,
    )
    environment.filters["comment"] = untrusted.comment
    return environment


def _visible(value: object) -> object:
    """What stands in a page; what is HTML already stays so."""
    return type(value)(untrusted.visible(value, "\n\t")) if isinstance(value, str) else value


_PACKAGE = Path(__file__).resolve().parent


# Finds the project's data folders: beside the package in a checkout, inside it in a wheel.


def folder(name: str, package: Path = _PACKAGE) -> Path:
    """`templates`, `schemas` or `cub_headers`, wherever this installation has it."""
    for candidate in (package / name, package.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"policygen's own folder {name!r} is missing from {package}")
