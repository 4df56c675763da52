"""Makes a release the current tree of its library, and fetches it where it is not there yet."""

from collections.abc import Callable
from pathlib import Path

from policygen.model.cub import Cub
from policygen.tree import apt, store, wheel
from policygen.tree.manifest import Wheel
from policygen.tree.names import name_of, source
from policygen.tree.packages import Release
from policygen.tree.unpack import unpack, unpack_packages

Progress = Callable[[str], None]


def fetch(version: str, headers_folder: Path, progress: Progress, *, again: bool = False) -> Cub:
    """The tree of a release, as its wheel or packages have it; what is unpacked needs no network.

    One that was changed stays as it is, unless it is wanted again.
    """
    if again or store.fetched_root(headers_folder, version) is None:
        known = source(version)
        name = name_of(known)
        store.check_vacant(headers_folder, name)
        _get(known, name.place(headers_folder), progress, again=again)
    cub = store.open_fetched(headers_folder, version)
    store.make_current(headers_folder, version)
    return cub


def _get(known: Wheel | Release, target: Path, progress: Progress, *, again: bool) -> None:
    if isinstance(known, Wheel):
        archive = wheel.obtain(known, progress)
        progress(f"{known.requirement}: unpacking")
        unpack(archive, known, target, again=again)
        return
    archives = apt.obtain(known.parts, progress)
    progress(f"{known.requirement}: unpacking")
    unpack_packages(archives, known, target, again=again)
