"""A tree as a git revision has it, beside the work tree and never in it."""

import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from policygen.errors import InputError
from policygen.git import Objects, Repository, TreeEntry, find_commit, find_repository, is_at
from policygen.model.trees import Cub
from policygen.paths import cache_failure, cache_folder
from policygen.trees.layout import own_folders, project_file
from policygen.trees.lookup import open_tree


def open_revision(cub: Cub, revision: str) -> Cub:
    """The same tree at a revision of the repository that it stands in."""
    root = Path(cub.root)
    repository, commit = find_commit(root, revision)
    top = repository.top
    project = project_file(root, cub.library)
    inside = [_inside(path, top) for path in (*own_folders(cub), *([project] if project else []))]
    try:
        folder = _unpacked(repository, commit, inside)
    except OSError as error:
        raise cache_failure(error) from error
    return open_tree(folder / _inside(root, top), f"revision {revision}")


def paths_in_repository(paths: Sequence[Path], root: Path) -> tuple[str, ...]:
    """How git names files; where there is no repository, their paths from the tree's root."""
    try:
        if repository := find_repository(root):
            found = [path.resolve().relative_to(repository.top) for path in paths]
            return tuple(path.as_posix() for path in found)
    except (InputError, ValueError):
        pass
    return tuple(path.relative_to(root).as_posix() for path in paths)


def _inside(folder: Path, top: Path) -> str:
    """A folder as git names it."""
    try:
        return folder.resolve().relative_to(top).as_posix()
    except ValueError as error:
        raise InputError(
            f"{folder} lies outside of the git repository {top}: no revision holds it"
        ) from error


def _unpacked(repository: Repository, commit: str, folders: Sequence[str]) -> Path:
    """The include folders of a commit, in the cache; what is not as git has it is made anew."""
    words = "\0".join((str(repository.top), *folders))
    name = f"{commit}-{hashlib.sha256(os.fsencode(words)).hexdigest()[:8]}"
    target = cache_folder() / "revisions" / name
    with Objects(repository) as objects:
        wanted = objects.files(commit, folders)
        if not _holds(target, wanted):
            _export(objects, wanted, target, commit)
    return target


def _holds(folder: Path, wanted: Mapping[str, TreeEntry]) -> bool:
    """Whether a folder has these files, unchanged, and no others."""
    found = {
        os.path.relpath(os.path.join(at, name), folder)  # noqa: PTH118  thousands of them
        for at, inner, names in os.walk(folder)
        for name in (*names, *(one for one in inner if os.path.islink(os.path.join(at, one))))  # noqa: PTH114, PTH118
    }
    return (
        folder.is_dir()
        and found == wanted.keys()
        and all(is_at(folder / path, entry) for path, entry in wanted.items())
    )


def _export(objects: Objects, wanted: Mapping[str, TreeEntry], target: Path, commit: str) -> None:
    """Writes files of a commit; the target appears whole or not at all."""
    contents = objects.contents(wanted.values())
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        made = Path(temporary) / "tree"
        made.mkdir()
        # Links come last, so that nothing is written through one.
        for path, entry in sorted(wanted.items(), key=lambda item: item[1].is_link):
            place = made / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if entry.is_link:
                place.symlink_to(os.fsdecode(contents[entry.id]))
            else:
                place.write_bytes(contents[entry.id])
        for path in (path for path, entry in wanted.items() if entry.is_link):
            if not _stays(made, path):
                raise InputError(f"cannot unpack revision {commit}: {path} is a link out of it")
        _move(made, target, wanted)


def _stays(folder: Path, path: str) -> bool:
    """Whether a link leads into the folder, wherever the folder stands."""
    link = folder / path
    target = os.path.join(os.path.dirname(path), link.readlink())  # noqa: PTH118, PTH120  as it is written
    if os.path.isabs(target) or Path(os.path.normpath(target)).parts[0] == os.pardir:  # noqa: PTH117
        return False
    return Path(os.path.realpath(link)).is_relative_to(os.path.realpath(folder))


def _move(made: Path, target: Path, wanted: Mapping[str, TreeEntry]) -> None:
    if target.exists():
        target.rename(made.parent / "old")
    try:
        made.rename(target)
    except OSError:
        if not _holds(target, wanted):  # else another process was faster
            raise
