"""Finds the tree to work on in fixed places, in a fixed order, or at a git revision."""

import hashlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from policygen.errors import InputError
from policygen.git import Objects, Repository, TreeEntry, find_commit, find_repository, is_at
from policygen.model.trees import CALLED, Cub, Library
from policygen.paths import cache_failures, cache_folder
from policygen.settings import NAME, VARIABLE, configured
from policygen.trees import fetched
from policygen.trees.fetched import fetched_name, headers_folder, open_fetched
from policygen.trees.files import absolute, is_file, is_folder, listing, staged
from policygen.trees.layout import (
    check_library,
    is_root,
    libraries,
    open_root,
    own_folders,
    project_file,
    readable_roots,
    roots,
    toolkit_folders,
)
from policygen.trees.manifest import shipped

USUAL: Library = "cub"
"""The library to search for outside of checkouts if none is named."""


def find(cub: str | None, cwd: Path, library: Library | None = None) -> Cub:
    """Returns the tree that `--cub` names, else the first one in the search order; raises if none.

    Without a library, an enclosing checkout of any library counts; elsewhere CUB is searched for.
    """
    if tree := find_any(cub, cwd, library):
        return tree
    cwd, searched_library = absolute(cwd, Path.cwd()), library or USUAL
    row = shipped().libraries[searched_library]
    places = [
        "--cub: not given",
        f"{NAME}: no settings file given by --config or {VARIABLE}, or it names no tree",
        f"checkout: none around {cwd}",
        f"cub_headers: no version in {fetched.headers_folder(cwd)}",
        *([f"wheel: none installed for {sys.executable}"] if row.layouts.wheel else []),
        f"toolkit: none in {', '.join(map(str, toolkit_folders(searched_library)))}",
    ]
    rows = "".join(f"\n    {place}" for place in places)
    raise InputError(
        f"no {CALLED[searched_library]} tree found; searched, in this order:{rows}",
        f"Fetch one: policygen headers fetch {row.default}",
    )


def find_any(cub: str | None, cwd: Path, library: Library | None = None) -> Cub | None:
    """Returns the named tree, else the first one in the search order, if any."""
    cwd = absolute(cwd, Path.cwd())
    if cub is not None:
        return open_given(cub, cwd, cwd, "--cub", library)
    if tree := _configured(cwd, library) or _checkout(cwd, library):
        return tree
    searched_library, folder = library or USUAL, fetched.headers_folder(cwd)
    if name := fetched.current_tree(folder, searched_library):
        return fetched.open_fetched(folder, name)
    layouts = shipped().libraries[searched_library].layouts
    return _first(site_folders(), layouts.wheel, "wheel", searched_library) or _first(
        toolkit_folders(searched_library), layouts.toolkit, "toolkit", searched_library
    )


def all_found(cwd: Path) -> dict[str, tuple[Cub, ...]]:
    """Lists all trees in each kind of place except the fetched ones, which their folder lists."""
    cwd = absolute(cwd, Path.cwd())
    checkout = _checkout(cwd)
    layouts = shipped().layouts
    return {
        "checkout": () if checkout is None else (checkout,),
        "wheel": _readable_trees(site_folders(), layouts.wheel, "wheel"),
        "toolkit": _readable_trees(toolkit_folders(), layouts.toolkit, "toolkit"),
    }


def _configured(cwd: Path, library: Library | None) -> Cub | None:
    """Returns the tree in the settings, unless it belongs to another library."""
    config = configured()
    if config is None or config.settings.cub is None:
        return None
    try:
        tree = open_given(config.settings.cub, config.path.parent, cwd, NAME)
    except InputError as error:
        message = f"{config.path}: cub = {config.settings.cub!r}: {error.message}"
        raise InputError(message, error.remedy) from error
    return tree if library in {None, tree.library} else None


def _checkout(cwd: Path, library: Library | None = None) -> Cub | None:
    for folder in (cwd, *cwd.parents):
        for candidate in libraries(library):
            layouts = (*shipped().libraries[candidate].layouts.checkout, ".")
            if tree := _first((folder,), layouts, "checkout", candidate):
                return tree
    return None


def _first(
    folders: tuple[Path, ...], layouts: tuple[str, ...], origin: str, library: Library
) -> Cub | None:
    for folder in folders:
        if roots := readable_roots(folder, layouts, library):
            return open_root(roots[0], origin, library)
    return None


def _readable_trees(
    folders: tuple[Path, ...], layouts: tuple[str, ...], origin: str
) -> tuple[Cub, ...]:
    places = {
        root.resolve(): root for folder in folders for root in readable_roots(folder, layouts)
    }
    return tuple(open_root(root, origin) for root in places.values())


def site_folders() -> tuple[Path, ...]:
    """Returns the folders in which the running Python finds packages."""
    return tuple(Path(entry) for entry in sys.path if entry)


# 3.0.1, rocprim@5.7.1
_VERSION = re.compile(r"([a-z]+@)?\d+(\.\d+)+")


# Trees that a user names by path or by fetched version


def open_given(
    path_or_version: str, base: Path, cwd: Path, origin: str, library: Library | None = None
) -> Cub:
    """Opens a path relative to `base`, or a fetched release such as `3.0.1` or `rocprim@5.7.1`.

    A folder named like a version must be given as `./3.0.1`: a local folder must not pass for a
    release.
    """
    if _VERSION.fullmatch(path_or_version):
        return check_library(open_fetched(headers_folder(cwd), path_or_version, origin), library)
    return open_tree(absolute(path_or_version, base), origin, library)


def open_tree(path: Path, origin: str = "--cub", library: Library | None = None) -> Cub:
    """Opens the only tree that a path identifies: its root, a folder around or below, or a header.

    A root is a checkout, an include folder, an unpacked wheel or a toolkit. Without a library, the
    first library that has a tree there is used.
    """
    path = absolute(path, Path.cwd())
    for find_roots in (_roots_at, _root_around, _roots_below):
        for candidate in libraries(library):
            if candidates := find_roots(path, candidate):
                if len(candidates) > 1:
                    raise _ambiguous(path, candidates, candidate)
                headers = headers_folder(Path.cwd())
                if name := fetched_name(headers, candidates[0]):
                    return open_fetched(headers, name, origin)
                return open_root(candidates[0], origin, candidate)
    tree = None
    if library is not None:
        with suppress(InputError):
            tree = open_tree(path, origin)
    if tree is not None:
        return check_library(tree, library)
    raise _no_tree(path, library)


def _roots_at(path: Path, library: Library) -> tuple[Path, ...]:
    if is_file(path):
        return ()
    if not is_folder(path):
        raise InputError(f"no such file or folder: {path}")
    layouts = shipped().libraries[library].layouts
    if found_roots := roots(path, (".", *layouts.checkout, *layouts.wheel), library):
        return found_roots
    # A toolkit's single tree can match several layouts.
    return roots(path, layouts.toolkit, library)[:1]


def _root_around(path: Path, library: Library) -> tuple[Path, ...]:
    """Returns the tree whose `cub` folder is the path or contains it."""
    name = shipped().libraries[library].tree.folder
    for folder in (path, *path.parents):
        if folder.name == name and is_root(folder.parent, library):
            return (folder.parent,)
    return ()


def _roots_below(path: Path, library: Library) -> tuple[Path, ...]:
    if is_file(path):
        return ()
    layouts = shipped().libraries[library].layouts
    layouts_without_toolkit = (".", *layouts.checkout, *layouts.wheel)
    found_roots: list[Path] = []
    for folder in listing(path):
        found_roots += (
            readable_roots(folder, layouts_without_toolkit, library)
            or readable_roots(folder, layouts.toolkit, library)[:1]
        )
    return tuple(found_roots)


def _no_tree(path: Path, library: Library | None) -> InputError:
    searched_libraries = libraries(library)
    kinds = (
        f"{shipped().libraries[candidate].kinds}: a folder with"
        f" {shipped().libraries[candidate].tree.marks[0]} in one of their places"
        for candidate in searched_libraries
    )
    names = " or ".join(CALLED[candidate] for candidate in searched_libraries)
    return InputError(f"no {names} tree at {path}", f"A tree is {'; or '.join(kinds)}")


def _ambiguous(path: Path, candidates: Sequence[Path], library: Library) -> InputError:
    trees = [open_root(root, "", library) for root in candidates]
    rows = "".join(f"\n    {cub.root} ({cub.called} {cub.version})" for cub in trees)
    message = f"{path} contains {len(trees)} {CALLED[library]} trees:{rows}"
    return InputError(message, "Choose one of them")


# Trees at a git revision, unpacked to the cache without touching the work tree


def open_revision(cub: Cub, revision: str) -> Cub:
    """Opens the same tree at a revision of its repository."""
    root = Path(cub.root)
    repository, commit = find_commit(root, revision)
    top = repository.top
    project = project_file(root, cub.library)
    inside = [_git_path(path, top) for path in (*own_folders(cub), *([project] if project else []))]
    with cache_failures():
        folder = _unpacked(repository, commit, inside)
    return open_tree(folder / _git_path(root, top), f"revision {revision}")


def paths_in_repository(paths: Sequence[Path], root: Path) -> tuple[str, ...]:
    """Returns paths relative to the repository, or to the tree's root if there is no repository."""
    try:
        if repository := find_repository(root):
            relative = [path.resolve().relative_to(repository.top) for path in paths]
            return tuple(path.as_posix() for path in relative)
    except (InputError, ValueError):
        pass
    return tuple(path.relative_to(root).as_posix() for path in paths)


def _git_path(folder: Path, top: Path) -> str:
    try:
        return folder.resolve().relative_to(top).as_posix()
    except ValueError as error:
        raise InputError(
            f"{folder} is outside of the git repository {top}, so no revision contains it"
        ) from error


def _unpacked(repository: Repository, commit: str, folders: Sequence[str]) -> Path:
    """Unpacks the include folders of a commit to the cache; a modified copy is replaced."""
    identity = "\0".join((str(repository.top), *folders))
    name = f"{commit}-{hashlib.sha256(os.fsencode(identity)).hexdigest()[:8]}"
    target = cache_folder() / "revisions" / name
    with Objects(repository) as objects:
        entries = objects.files(commit, folders)
        if not _is_intact(target, entries):
            _export(objects, entries, target, commit)
    return target


def _is_intact(folder: Path, entries: Mapping[str, TreeEntry]) -> bool:
    """Returns whether a folder contains exactly these files, unmodified."""
    files = {
        os.path.relpath(os.path.join(parent, name), folder)  # noqa: PTH118  thousands of them
        for parent, subfolders, names in os.walk(folder)
        for name in (
            *names,
            *(sub for sub in subfolders if os.path.islink(os.path.join(parent, sub))),  # noqa: PTH114, PTH118
        )
    }
    return (
        folder.is_dir()
        and files == entries.keys()
        and all(is_at(folder / path, entry) for path, entry in entries.items())
    )


def _export(objects: Objects, entries: Mapping[str, TreeEntry], target: Path, commit: str) -> None:
    contents = objects.contents(entries.values())
    with staged(target, lambda: _is_intact(target, entries)) as staging:
        staging.mkdir()
        # Create links last so that nothing is written through a link.
        for path, entry in sorted(entries.items(), key=lambda item: item[1].is_link):
            destination = staging / path
            destination.parent.mkdir(parents=True, exist_ok=True)
            if entry.is_link:
                destination.symlink_to(os.fsdecode(contents[entry.id]))
            else:
                destination.write_bytes(contents[entry.id])
        for path in (path for path, entry in entries.items() if entry.is_link):
            if not _stays_inside(staging, path):
                raise InputError(
                    f"cannot unpack revision {commit}: {path} is a link that points outside of it"
                )


def _stays_inside(folder: Path, path: str) -> bool:
    """Returns whether a link stays inside the folder even if the folder is moved."""
    link = folder / path
    target = os.path.join(os.path.dirname(path), link.readlink())  # noqa: PTH118, PTH120  as it is written
    if os.path.isabs(target) or Path(os.path.normpath(target)).parts[0] == os.pardir:  # noqa: PTH117
        return False
    return Path(os.path.realpath(link)).is_relative_to(os.path.realpath(folder))
