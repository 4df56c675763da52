"""Makes a version of CUB the current tree, and fetches it where it is not there yet."""

from collections.abc import Callable
from pathlib import Path

from policygen.model.cub import Cub
from policygen.tree import store, wheel
from policygen.tree.manifest import shipped
from policygen.tree.unpack import unpack


def fetch(
    version: str, headers_folder: Path, progress: Callable[[str], None], *, again: bool = False
) -> Cub:
    """The tree of a version, from its wheel; needs no network when it is unpacked already.

    One that was changed stays as it is, unless it is wanted again.
    """
    if again or store.fetched_root(headers_folder, version) is None:
        known = shipped().wheel(version)
        if store.fetched_root(headers_folder, version) is None:
            store.check_vacant(headers_folder / version)
        archive = wheel.obtain(known, progress)
        progress(f"{known.requirement}: unpacking")
        unpack(archive, known, headers_folder / version, again=again)
    cub = store.open_fetched(headers_folder, version)
    store.make_current(headers_folder, version)
    return cub
