"""The headers of rocPRIM that declare what configs are made of, with their parameters."""

from collections.abc import Iterator
from pathlib import Path

from policygen.errors import SourceError
from policygen.source.files import read_bytes

_TYPES = "config_types.hpp"
_HELPER = Path("detail", "device_config_helper.hpp")
_CONFIGS = "device_*_config.hpp"
_DEEPEST = 2
"""Folders between a header of configs and that of what declares them."""


def declaring(path: Path) -> dict[str, bytes]:
    """What declares the configs of a header, by name; nothing for a header that is none of them."""
    for folder in list(path.parents)[: _DEEPEST + 1]:
        if (folder / _TYPES).is_file():
            return {name: data for name, data in _readable(folder) if name != path.name}
    return {}


def _readable(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in (folder / _TYPES, folder / _HELPER, *sorted(folder.glob(_CONFIGS))):
        try:
            yield path.name, read_bytes(path)
        except SourceError:
            continue  # told when it is read for itself
