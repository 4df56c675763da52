"""The folder of fetched trees: where it is, what it holds, which tree is the current one."""

from pathlib import Path

from policygen.errors import InputError
from policygen.installation import clone
from policygen.model.cub import Cub
from policygen.paths import cache_folder, chosen_folder, write_atomically
from policygen.tree.files import failure, is_file, is_folder, listing, read
from policygen.tree.layout import is_root, open_root
from policygen.tree.manifest import shipped
from policygen.tree.version import version_key
from policygen.tree.whole import Difference, difference

FOLDER = "cub_headers"
CURRENT = ".current"


def headers_folder(cwd: Path) -> Path:
    """`$POLICYGEN_CUB_HEADERS`, that of the checkout that policygen runs from, else the cache.

    What lies in the current folder is not taken for a release of CUB: it may be a stranger's.
    """
    if chosen := chosen_folder("POLICYGEN_CUB_HEADERS", cwd):
        return chosen
    # An installed wheel has the folder inside the package, where trees would outlive it.
    own = clone()
    return (cache_folder() if own is None else own) / FOLDER


def fetched(folder: Path) -> tuple[str, ...]:
    """The versions that are unpacked, oldest first."""
    if not is_folder(folder):
        return ()
    names = [path.name for path in listing(folder) if fetched_root(folder, path.name)]
    return tuple(sorted(names, key=version_key))


def fetched_root(folder: Path, version: str) -> Path | None:
    """The include folder of an unpacked version."""
    parts = version.split(".")
    named = len(parts) == 3 and all(part.isdecimal() for part in parts)
    root = folder / version
    return root if named and is_root(root) else None


def open_fetched(folder: Path, version: str, found: str = "cub_headers") -> Cub:
    """The tree of an unpacked version; one that is not there is an error with the way to it."""
    if root := fetched_root(folder, version):
        changed = differs(folder, version) is not None
        return open_root(root, found).model_copy(update={"changed": changed})
    shipped().wheel(version)
    raise InputError(
        f"CUB {version} is not in {folder}", f"obtain it: policygen headers fetch {version}"
    )


def differs(folder: Path, version: str) -> Difference | None:
    """How an unpacked version differs from its wheel, where one is known."""
    wheel = shipped().find_wheel(version)
    return difference(folder / version, wheel) if wheel else None


def current(folder: Path) -> str | None:
    """The version that was fetched last; the newest one where that is gone."""
    versions = fetched(folder)
    if is_file(path := folder / CURRENT):
        chosen = read(path, folder).decode(errors="replace").strip()
        if chosen in versions:
            return chosen
    return versions[-1] if versions else None


def make_current(folder: Path, version: str) -> None:
    """Remembers a version as the one to use."""
    if current(folder) == version and is_file(folder / CURRENT):
        # A folder that cannot be written serves those who only read.
        return
    try:
        write_atomically(folder / CURRENT, f"{version}\n".encode())
    except OSError as error:
        raise failure("write", folder / CURRENT, error) from error


def check_vacant(folder: Path) -> None:
    """An error where something that is no tree stands in a tree's place."""
    if is_folder(folder) and listing(folder):
        raise InputError(f"{folder} is there, but holds no CUB", "delete it and fetch again")
