"""Finds the tree to work on: the first place that has one, in a fixed order."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from policygen.errors import InputError
from policygen.model.trees import CALLED, Cub, Library
from policygen.settings import NAME, VARIABLE, configured
from policygen.trees import fetched
from policygen.trees.fetched import fetched_name, headers_folder, open_fetched
from policygen.trees.files import absolute, is_file, is_folder, listing
from policygen.trees.layout import (
    check_library,
    is_root,
    libraries,
    open_root,
    readable_roots,
    roots,
    toolkit_folders,
)
from policygen.trees.manifest import shipped

USUAL: Library = "cub"
"""Whose trees are looked for beyond checkouts, where nobody says whose."""


def find(cub: str | None, cwd: Path, library: Library | None = None) -> Cub:
    """The tree that `--cub` names, else the first that is found; none is an error.

    A library is the one whose tree is looked for. Where none is named, a checkout around may be
    any's; elsewhere it is CUB's.
    """
    if found := find_any(cub, cwd, library):
        return found
    cwd, wanted = absolute(cwd, Path.cwd()), library or USUAL
    known = shipped().libraries[wanted]
    places = [
        "--cub: not given",
        f"{NAME}: none is named by --config or {VARIABLE}, or it names no tree",
        f"checkout: none around {cwd}",
        f"cub_headers: no version in {fetched.headers_folder(cwd)}",
        *([f"wheel: none installed for {sys.executable}"] if known.layouts.wheel else []),
        f"toolkit: none in {', '.join(map(str, toolkit_folders(wanted)))}",
    ]
    rows = "".join(f"\n    {place}" for place in places)
    raise InputError(
        f"no {CALLED[wanted]} tree found; looked at, in this order:{rows}",
        f"obtain one: policygen headers fetch {known.default}",
    )


def find_any(cub: str | None, cwd: Path, library: Library | None = None) -> Cub | None:
    """Find the tree that is named, or the first on the way, if there is any."""
    cwd = absolute(cwd, Path.cwd())
    if cub is not None:
        return open_given(cub, cwd, cwd, "--cub", library)
    if found := _configured(cwd, library) or _checkout(cwd, library):
        return found
    wanted = library or USUAL
    return _fetched(cwd, wanted) or _installed(wanted) or _toolkit(wanted)


def all_found(cwd: Path) -> dict[str, tuple[Cub, ...]]:
    """All trees of each kind of place that is looked at; fetched ones are told by their folder."""
    cwd = absolute(cwd, Path.cwd())
    checkout = _checkout(cwd)
    layouts = shipped().layouts
    return {
        "checkout": () if checkout is None else (checkout,),
        "wheel": _all(site_folders(), layouts.wheel, "wheel"),
        "toolkit": _all(toolkit_folders(), layouts.toolkit, "toolkit"),
    }


def _configured(cwd: Path, library: Library | None = None) -> Cub | None:
    """The tree that settings name; one of another library is none."""
    config = configured()
    if config is None or config.settings.cub is None:
        return None
    try:
        found = open_given(config.settings.cub, config.path.parent, cwd, NAME)
    except InputError as error:
        message = f"{config.path}: cub = {config.settings.cub!r}: {error.message}"
        raise InputError(message, error.remedy) from error
    return found if library in {None, found.library} else None


def _checkout(cwd: Path, library: Library | None = None) -> Cub | None:
    for folder in (cwd, *cwd.parents):
        for one in libraries(library):
            layouts = (*shipped().libraries[one].layouts.checkout, ".")
            if found := _first((folder,), layouts, "checkout", one):
                return found
    return None


def _fetched(cwd: Path, library: Library) -> Cub | None:
    folder = fetched.headers_folder(cwd)
    name = fetched.current_tree(folder, library)
    return fetched.open_fetched(folder, name) if name else None


def _installed(library: Library) -> Cub | None:
    return _first(site_folders(), shipped().libraries[library].layouts.wheel, "wheel", library)


def _toolkit(library: Library) -> Cub | None:
    layouts = shipped().libraries[library].layouts.toolkit
    return _first(toolkit_folders(library), layouts, "toolkit", library)


def _first(
    folders: tuple[Path, ...], layouts: tuple[str, ...], found: str, library: Library
) -> Cub | None:
    for folder in folders:
        if roots := readable_roots(folder, layouts, library):
            return open_root(roots[0], found, library)
    return None


def _all(folders: tuple[Path, ...], layouts: tuple[str, ...], found: str) -> tuple[Cub, ...]:
    places = {
        root.resolve(): root for folder in folders for root in readable_roots(folder, layouts)
    }
    return tuple(open_root(root, found) for root in places.values())


def site_folders() -> tuple[Path, ...]:
    """Where the running Python has its packages."""
    return tuple(Path(entry) for entry in sys.path if entry)


# 3.0.1, rocprim@5.7.1
_VERSION = re.compile(r"([a-z]+@)?\d+(\.\d+)+")


# Opens the tree that a user names: by any path that stands for it, or by a fetched version.


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
