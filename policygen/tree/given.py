"""Opens the tree that a user names: by any path that stands for it, or by a fetched version."""

import re
from collections.abc import Sequence
from pathlib import Path

from policygen.errors import InputError
from policygen.model.cub import Cub
from policygen.tree.files import absolute, is_file, is_folder, listing
from policygen.tree.layout import is_root, open_root, readable_roots, roots
from policygen.tree.manifest import shipped
from policygen.tree.store import fetched_root, headers_folder, open_fetched

_VERSION = re.compile(r"\d+(\.\d+)+")


def open_given(given: str, base: Path, cwd: Path, found: str) -> Cub:
    """A path, against `base`, or a version such as `3.0.1` that has been fetched.

    A folder that is called as a version is `./3.0.1`: what lies here must not pass for a release.
    """
    if _VERSION.fullmatch(given):
        return open_fetched(headers_folder(cwd), given, found)
    return open_tree(absolute(given, base), found)


def open_tree(path: Path, found: str = "--cub") -> Cub:
    """The one tree that a path stands for: its root, a folder around or below, one of its headers.

    A root is a checkout, an include folder, an unpacked wheel, a CUDA toolkit.
    """
    path = absolute(path, Path.cwd())
    candidates = _at(path) or _around(path) or _below(path)
    if not candidates:
        raise InputError(
            f"no CUB tree at {path}",
            "a tree is a CCCL checkout, a CUDA toolkit or an unpacked wheel: a folder with"
            f" {shipped().tree.version} in one of their places",
        )
    if len(candidates) > 1:
        raise _ambiguous(path, candidates)
    root = candidates[0]
    if root.parent == headers_folder(Path.cwd()) and fetched_root(root.parent, root.name):
        return open_fetched(root.parent, root.name, found)
    return open_root(root, found)


def _at(path: Path) -> tuple[Path, ...]:
    if is_file(path):
        return ()
    if not is_folder(path):
        raise InputError(f"no such file or folder: {path}")
    layouts = shipped().layouts
    if found := roots(path, (".", *layouts.checkout, *layouts.wheel)):
        return found
    # A toolkit has one tree, reached through several of these places.
    return roots(path, layouts.toolkit)[:1]


def _around(path: Path) -> tuple[Path, ...]:
    """The tree whose `cub` folder is the path or holds it."""
    for folder in (path, *path.parents):
        if folder.name == "cub" and is_root(folder.parent):
            return (folder.parent,)
    return ()


def _below(path: Path) -> tuple[Path, ...]:
    if is_file(path):
        return ()
    layouts = shipped().layouts
    everywhere = (".", *layouts.checkout, *layouts.wheel)
    found: list[Path] = []
    for folder in listing(path):
        found += readable_roots(folder, everywhere) or readable_roots(folder, layouts.toolkit)[:1]
    return tuple(found)


def _ambiguous(path: Path, candidates: Sequence[Path]) -> InputError:
    trees = [open_root(root, "") for root in candidates]
    rows = "".join(f"\n    {cub.root} (CUB {cub.version})" for cub in trees)
    return InputError(f"{path} holds {len(trees)} CUB trees:{rows}", "name one of them")
