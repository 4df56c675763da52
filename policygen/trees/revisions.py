"""Opens trees at a git revision, unpacked to the cache without touching the work tree."""

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
    """Opens the same tree at a revision of its repository."""
    root = Path(cub.root)
    repository, commit = find_commit(root, revision)
    top = repository.top
    project = project_file(root, cub.library)
    inside = [_git_path(path, top) for path in (*own_folders(cub), *([project] if project else []))]
    try:
        folder = _unpacked(repository, commit, inside)
    except OSError as error:
        raise cache_failure(error) from error
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
    """Returns a path relative to the repository's top folder."""
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
    """Writes the files of a commit to the target, atomically."""
    contents = objects.contents(entries.values())
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        staging = Path(temporary) / "tree"
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
        _move(staging, target, entries)


def _stays_inside(folder: Path, path: str) -> bool:
    """Returns whether a link stays inside the folder even if the folder is moved."""
    link = folder / path
    target = os.path.join(os.path.dirname(path), link.readlink())  # noqa: PTH118, PTH120  as it is written
    if os.path.isabs(target) or Path(os.path.normpath(target)).parts[0] == os.pardir:  # noqa: PTH117
        return False
    return Path(os.path.realpath(link)).is_relative_to(os.path.realpath(folder))


def _move(staging: Path, target: Path, entries: Mapping[str, TreeEntry]) -> None:
    if target.exists():
        target.rename(staging.parent / "old")
    try:
        staging.rename(target)
    except OSError:
        if not _is_intact(target, entries):  # else another process was faster
            raise
