"""Fills the templates of `templates/`: all C++ and all pages that policygen writes are there."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from policygen import resources

if TYPE_CHECKING:
    from jinja2 import Environment

# What Markdown would take for something else.
_MARKDOWN = re.compile(r"[\\`*\[\]|~]|(?<!\w)[_#]|_(?!\w)")


def fill(template: str, values: Mapping[str, object], *, trim: bool = True) -> str:
    """A template's text; a value that it names and is not given is an error.

    Lines that hold a loop or a condition alone leave nothing behind when they are trimmed.
    """
    return _environment(resources.folder("templates"), trim).get_template(template).render(values)


@cache
def _environment(folder: Path, trim: bool) -> "Environment":  # noqa: FBT001  keys of the cache
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=trim,
        # C++ and Markdown are what they are.
        autoescape=select_autoescape(("html.j2",), default=False),
    )
    environment.filters["md"] = markdown
    return environment


def markdown(text: str) -> str:
    """Text that stands in Markdown as it is, also in a table."""
    return _MARKDOWN.sub(r"\\\g<0>", " ".join(text.split())).replace("<", "&lt;")
