"""Which trees are here, and where policygen keeps what is its own."""

import os
from collections.abc import Container, Iterator
from pathlib import Path
from tempfile import TemporaryFile

from policygen import tree
from policygen.app.check_tools import COMPILING, failed, fine
from policygen.app.stores import STORE, heard_store
from policygen.edit.journal import history
from policygen.errors import PolicygenError
from policygen.model.cub import Cub
from policygen.model.doctor import Check
from policygen.paths import cache_folder, nearby
from policygen.report.console import plural, tree_line
from policygen.tree.manifest import shipped
from policygen.tree.search import all_found
from policygen.tree.store import current, differs, fetched

READING = ("scan", "headers path", *COMPILING)
CACHING = (*READING, "headers fetch")
WRITING = ("apply", "undo", "db choose --record")


def check_places(cub: str | None) -> Iterator[Check]:
    """The tree that is used, the others by kind of place, the cache, the store."""
    here = Path.cwd()
    yield _used(cub, here)
    yield _fetched(tree.headers_folder(here))
    for kind, words in (
        ("checkout", "around this folder"),
        ("wheel", "installed for this Python"),
        ("toolkit", "in CUDA_HOME, CUDA_PATH, beside nvcc or in /usr/local/cuda"),
    ):
        yield _others(kind, words, here)
    yield _cache()
    yield _store()


def _used(cub: str | None, here: Path) -> Check:
    try:
        found = tree.find_any(cub, here)
    except PolicygenError as error:
        return failed("tree", READING, error)
    if found is None:
        return Check(
            name="tree", state="missing", found="no CUB", needed_by=READING, remedy=_fetch()
        )
    return fine("tree", tree_line(found), READING)


def _fetch() -> str:
    return f"policygen headers fetch {shipped().default}"


def _named(cub: Cub) -> str:
    return f"{cub.called} {cub.version}, {nearby(Path(cub.root))}"


def _fetched(folder: Path) -> Check:
    try:
        versions = fetched(folder, None)
        used = {current(folder, library) for library in shipped().libraries}
        words = [_version(folder, one, used) for one in versions]
    except PolicygenError as error:
        return failed("fetched", (), error)
    if not words:
        found = f"none in {nearby(folder)}"
        return Check(name="fetched", state="optional", found=found, remedy=_fetch())
    return fine("fetched", f"{', '.join(words)} in {nearby(folder)}")


def _version(folder: Path, version: str, used: Container[str | None]) -> str:
    more = ["current"] if version in used else []
    more += ["changed"] if differs(folder, version) else []
    return f"{version} ({', '.join(more)})" if more else version


def _others(kind: str, words: str, here: Path) -> Check:
    try:
        found = all_found(here)[kind]
    except PolicygenError as error:
        return failed(kind, (), error)
    if not found:
        return Check(name=kind, state="optional", found=f"none {words}")
    return fine(kind, "; ".join(map(_named, found)))


def _cache() -> Check:
    try:
        folder = cache_folder()
    except PolicygenError as error:
        return failed("cache", CACHING, error)
    place = next(one for one in (folder, *folder.parents) if one.exists())
    try:
        if not place.is_dir():
            raise NotADirectoryError
        with TemporaryFile(dir=place):
            pass
    except OSError as error:
        return Check(
            name="cache",
            state="broken",
            found=f"{nearby(folder)} cannot be written: {error.strerror or 'it is no folder'}",
            needed_by=CACHING,
            remedy="export POLICYGEN_CACHE=FOLDER",
        )
    if place != folder:
        return fine("cache", f"{nearby(folder)}, not made yet, writable", CACHING)
    count, size = _size(folder)
    return fine(
        "cache", f"{nearby(folder)}, {_bytes(size)} in {plural(count, 'file')}, writable", CACHING
    )


def _size(folder: Path) -> tuple[int, int]:
    """Files and bytes; what goes meanwhile does not count."""
    count = size = 0
    folders = [os.fspath(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_size
                        count += 1
        except OSError:
            continue
    return count, size


def _bytes(size: float) -> str:
    """`512 B`, `2.8 GiB`."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def _store() -> Check:
    """What was applied from here; one that could be a stranger's is not looked into."""
    path = Path(STORE)
    if not path.exists():
        return Check(name="store", state="optional", found=f"no {STORE} in this folder")
    if (store := heard_store(None)) is None:
        return Check(
            name="store",
            state="optional",
            found=f"{STORE} is not known to be yours: it is not read",
            remedy=f"policygen status --store {STORE}",
        )
    try:
        applies = [one.state for one in history(store)]
    except PolicygenError as error:
        return failed("store", WRITING, error)
    writable = os.access(store, os.W_OK) and os.access(store.absolute().parent, os.W_OK)
    if not writable:
        return Check(
            name="store",
            state="broken",
            found=f"{STORE} cannot be written",
            needed_by=WRITING,
            remedy=f"chmod u+w {STORE} .",
        )
    count, there = len(applies), applies.count("applied")
    known = f"{plural(count, 'apply', 'applies')}, {there} of them in a tree"
    return fine("store", f"{STORE}, {_bytes(store.stat().st_size)}, {known}, writable", WRITING)
