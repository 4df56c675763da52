"""Makes a version of CUB the current tree, and fetches it where it is not there yet."""

from collections.abc import Callable
from pathlib import Path

from policygen.model.cub import Cub
from policygen.tree import store, wheel
from policygen.tree.layout import open_root
from policygen.tree.manifest import shipped
from policygen.tree.unpack import unpack


def fetch(version: str, headers_folder: Path, progress: Callable[[str], None]) -> Cub:
    """The tree of a version, from its wheel; needs no network when it is unpacked already."""
    if store.fetched_root(headers_folder, version) is None:
        known = shipped().wheel(version)
        store.check_vacant(headers_folder / version)
        archive = wheel.obtain(known, progress)
        progress(f"{known.requirement}: unpacking")
        unpack(archive, known.include, headers_folder / version, version)
    cub = open_root(headers_folder / version, "cub_headers")
    store.make_current(headers_folder, version)
    return cub
