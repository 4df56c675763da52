"""What git says of files that are about to be changed."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from policygen.edit.target import real
from policygen.errors import InputError, MissingToolError, ProcessError
from policygen.git import Repository, find_repository
from policygen.git_objects import Objects, TreeEntry, object_id


def uncommitted(paths: Sequence[Path]) -> tuple[Path, ...]:
    """The files that are changed and not committed; none where there is no git or repository."""
    folders: defaultdict[Path, list[Path]] = defaultdict(list)
    for path in paths:
        folders[real(path).parent].append(path)
    changed = {path for folder, lot in folders.items() for path in _changed(folder, lot)}
    return tuple(path for path in paths if path in changed)


def _changed(folder: Path, paths: Sequence[Path]) -> list[Path]:
    try:
        repository = find_repository(folder)
        return [] if repository is None else _lost(repository, paths)
    except (MissingToolError, ProcessError, InputError):
        return []


def _lost(repository: Repository, paths: Sequence[Path]) -> list[Path]:
    """Those whose content the last commit does not have; not those that git is to ignore."""
    names = {path: real(path).relative_to(repository.top).as_posix() for path in paths}
    known = _committed(repository, list(names.values()))
    changed = [path for path in paths if not _is_known(path, known.get(names[path]))]
    untracked = [names[path] for path in changed if names[path] not in known]
    ignored = repository.ignored(untracked) if untracked else set()
    return [path for path in changed if names[path] not in ignored]


def _committed(repository: Repository, names: Sequence[str]) -> dict[str, TreeEntry]:
    try:
        commit = repository.commit("HEAD")
    except ProcessError:  # there is no commit yet
        return {}
    with Objects(repository) as objects:
        return objects.files(commit, names)


def _is_known(path: Path, entry: TreeEntry | None) -> bool:
    """Whether a file is that of a commit, but for line endings."""
    if entry is None or not path.is_file():
        return entry is None and not path.exists()
    data = path.read_bytes()
    both = (data, data.replace(b"\r\n", b"\n"))
    return entry.id in {object_id(one, entry.id) for one in both}
