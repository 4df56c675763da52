"""Opens the tree that a user names: by any path that stands for it, or by a fetched version."""

import re
from collections.abc import Sequence
from pathlib import Path

from policygen.errors import InputError
from policygen.model.cub import CALLED, Cub, Library
from policygen.tree.files import absolute, is_file, is_folder, listing
from policygen.tree.layout import (
    check_library,
    is_root,
    libraries,
    open_root,
    readable_roots,
    roots,
)
from policygen.tree.manifest import shipped
from policygen.tree.store import fetched_name, headers_folder, open_fetched

# 3.0.1, rocprim@5.7.1
_VERSION = re.compile(r"([a-z]+@)?\d+(\.\d+)+")


def open_given(
    given: str, base: Path, cwd: Path, found: str, library: Library | None = None
) -> Cub:
    """A path, against `base`, or a release that has been fetched: `3.0.1`, `rocprim@5.7.1`.

    A folder that is called as a version is `./3.0.1`: what lies here must not pass for a release.
    """
    if _VERSION.fullmatch(given):
        return check_library(open_fetched(headers_folder(cwd), given, found), library)
    return open_tree(absolute(given, base), found, library)


def open_tree(path: Path, found: str = "--cub", library: Library | None = None) -> Cub:
    """The one tree that a path stands for: its root, a folder around or below, one of its headers.

    A root is a checkout, an include folder, an unpacked wheel, a toolkit. Of a library, if one is
    named; else of any, the first one's where several have trees there.
    """
    path = absolute(path, Path.cwd())
    for look in (_at, _around, _below):
        for one in libraries(library):
            if candidates := look(path, one):
                return _opened(path, candidates, one, found)
    if library is not None and (other := _other(path, found)):
        return check_library(other, library)
    raise _nothing(path, library)


def _opened(path: Path, candidates: Sequence[Path], library: Library, found: str) -> Cub:
    if len(candidates) > 1:
        raise _ambiguous(path, candidates, library)
    root = candidates[0]
    headers = headers_folder(Path.cwd())
    if name := fetched_name(headers, root):
        return open_fetched(headers, name, found)
    return open_root(root, found, library)


def _other(path: Path, found: str) -> Cub | None:
    """What is there of any library."""
    try:
        return open_tree(path, found)
    except InputError:
        return None


def _at(path: Path, library: Library) -> tuple[Path, ...]:
    if is_file(path):
        return ()
    if not is_folder(path):
        raise InputError(f"no such file or folder: {path}")
    layouts = shipped().libraries[library].layouts
    if found := roots(path, (".", *layouts.checkout, *layouts.wheel), library):
        return found
    # A toolkit has one tree, reached through several of these places.
    return roots(path, layouts.toolkit, library)[:1]


def _around(path: Path, library: Library) -> tuple[Path, ...]:
    """The tree whose `cub` folder is the path or holds it."""
    name = shipped().libraries[library].tree.folder
    for folder in (path, *path.parents):
        if folder.name == name and is_root(folder.parent, library):
            return (folder.parent,)
    return ()


def _below(path: Path, library: Library) -> tuple[Path, ...]:
    if is_file(path):
        return ()
    layouts = shipped().libraries[library].layouts
    everywhere = (".", *layouts.checkout, *layouts.wheel)
    found: list[Path] = []
    for folder in listing(path):
        found += (
            readable_roots(folder, everywhere, library)
            or readable_roots(folder, layouts.toolkit, library)[:1]
        )
    return tuple(found)


def _nothing(path: Path, library: Library | None) -> InputError:
    known = libraries(library)
    kinds = (
        f"{shipped().libraries[one].kinds}: a folder with"
        f" {shipped().libraries[one].tree.marks[0]} in one of their places"
        for one in known
    )
    names = " or ".join(CALLED[one] for one in known)
    return InputError(f"no {names} tree at {path}", f"a tree is {'; or '.join(kinds)}")


def _ambiguous(path: Path, candidates: Sequence[Path], library: Library) -> InputError:
    trees = [open_root(root, "", library) for root in candidates]
    rows = "".join(f"\n    {cub.root} ({cub.called} {cub.version})" for cub in trees)
    message = f"{path} holds {len(trees)} {CALLED[library]} trees:{rows}"
    return InputError(message, "name one of them")
