"""Fills the templates of `templates/`, which contain all C++ and HTML that policygen writes."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from policygen import untrusted

if TYPE_CHECKING:
    from jinja2 import Environment

ESCAPED = ("html.j2", "svg.j2")
"""Endings of the templates whose values are escaped."""


def fill(template: str, values: Mapping[str, object], *, trim: bool = True) -> str:
    """Renders a template; raises for an undefined value.

    With `trim`, lines that only contain a loop or a condition leave no blank line.
    """
    page = template.endswith(ESCAPED)
    environment = _environment(folder("templates"), trim, page)
    return environment.get_template(template).render(values)


@cache
def _environment(
    folder: Path,
    trim: bool,  # noqa: FBT001  part of the cache key
    page: bool,  # noqa: FBT001
) -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=trim,
        # C++ is not escaped.
        autoescape=select_autoescape(ESCAPED, default=False),
        finalize=_visible if page else None,
    )
    environment.filters["comment"] = untrusted.comment
    return environment


def _visible(value: object) -> object:
    """Makes text visible for HTML and SVG; markup stays markup."""
    return type(value)(untrusted.visible(value, "\n\t")) if isinstance(value, str) else value


_PACKAGE = Path(__file__).resolve().parent


# Data folders: beside the package in a checkout, inside it in a wheel


def folder(name: str, package: Path = _PACKAGE) -> Path:
    """Returns the installed path of a data folder, such as `templates`."""
    for candidate in (package / name, package.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"policygen's own folder {name!r} is missing from {package}")
