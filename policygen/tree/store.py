"""The folder of fetched trees: where it is, what it holds, which tree is the current one."""

from pathlib import Path

from policygen.errors import InputError
from policygen.installation import clone
from policygen.model.cub import CALLED, Cub, Library
from policygen.paths import cache_folder, chosen_folder, write_atomically
from policygen.tree.files import failure, is_file, is_folder, listing, read
from policygen.tree.layout import is_root, open_root
from policygen.tree.names import Name, current_file, find_source, kept_as, name_of, parse, source
from policygen.tree.whole import Difference, difference

FOLDER = "cub_headers"


def headers_folder(cwd: Path) -> Path:
    """`$POLICYGEN_CUB_HEADERS`, that of the checkout that policygen runs from, else the cache.

    What lies in the current folder is not taken for a release of CUB: it may be a stranger's.
    """
    if chosen := chosen_folder("POLICYGEN_CUB_HEADERS", cwd):
        return chosen
    # An installed wheel has the folder inside the package, where trees would outlive it.
    own = clone()
    return (cache_folder() if own is None else own) / FOLDER


def fetched(folder: Path, library: Library | None = "cub") -> tuple[str, ...]:
    """The releases of a library that are unpacked, oldest first; of all, where none is named."""
    if not is_folder(folder):
        return ()
    names = [name for path in listing(folder) if (name := kept_as(path.name))]
    here = [one for one in names if library in {None, one.library} and _root(folder, one)]
    return tuple(str(name) for name in sorted(here, key=lambda name: name.key))


def fetched_root(folder: Path, version: str) -> Path | None:
    """The include folder of an unpacked release."""
    name = parse(version)
    return _root(folder, name) if name else None


def fetched_name(folder: Path, root: Path) -> str | None:
    """How the unpacked release is called that has an include folder."""
    if not root.is_relative_to(folder) or root == folder:
        return None
    name = kept_as(root.relative_to(folder).parts[0])
    return str(name) if name and _root(folder, name) == root else None


def _root(folder: Path, name: Name) -> Path | None:
    root = name.root(folder)
    return root if is_root(root, name.library) else None


def open_fetched(folder: Path, version: str, found: str = "cub_headers") -> Cub:
    """The tree of an unpacked release; one that is not there is an error with the way to it."""
    name = parse(version)
    if name and (root := _root(folder, name)):
        changed = differs(folder, version) is not None
        return open_root(root, found, name.library).model_copy(update={"changed": changed})
    source(version)
    called = f"{CALLED[name.library]} {name.version}" if name else version
    raise InputError(
        f"{called} is not in {folder}", f"obtain it: policygen headers fetch {version}"
    )


def differs(folder: Path, version: str) -> Difference | None:
    """How an unpacked release differs from what was fetched, where that is known."""
    known = find_source(version)
    return difference(name_of(known).place(folder), known.files) if known else None


def current(folder: Path, library: Library = "cub") -> str | None:
    """The release that was fetched last; the newest one where that is gone."""
    versions = fetched(folder, library)
    if is_file(path := folder / current_file(library)):
        chosen = read(path, folder).decode(errors="replace").strip()
        if chosen in versions:
            return chosen
    return versions[-1] if versions else None


def make_current(folder: Path, version: str) -> None:
    """Remembers a release as the one of its library to use."""
    name = parse(version)
    assert name is not None
    path = folder / current_file(name.library)
    if current(folder, name.library) == version and is_file(path):
        # A folder that cannot be written serves those who only read.
        return
    try:
        write_atomically(path, f"{version}\n".encode())
    except OSError as error:
        raise failure("write", path, error) from error


def check_vacant(folder: Path, name: Name) -> None:
    """An error where something that is no tree stands in a tree's place."""
    place = name.place(folder)
    # Looked at last: another process may have put the tree there since nobody found it.
    if is_folder(place) and listing(place) and _root(folder, name) is None:
        called = CALLED[name.library]
        raise InputError(f"{place} is there, but holds no {called}", "delete it and fetch again")
