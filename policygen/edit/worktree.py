"""What git says of files that are about to be changed."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from policygen.edit.target import real
from policygen.errors import MissingToolError, ProcessError
from policygen.process import run

_GIT = ("git", "--literal-pathspecs", "--no-optional-locks")
_STATUS = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--")


def uncommitted(paths: Sequence[Path]) -> tuple[Path, ...]:
    """The files that are changed and not committed; none where there is no git or repository."""
    folders: defaultdict[Path, list[Path]] = defaultdict(list)
    for path in paths:
        folders[real(path).parent].append(path)
    changed = {path for folder, lot in folders.items() for path in _changed(folder, lot)}
    return tuple(path for path in paths if path in changed)


def _changed(folder: Path, paths: Sequence[Path]) -> list[Path]:
    names = [real(path).name for path in paths]
    try:
        top = Path(_git(folder, "rev-parse", "--show-toplevel").removesuffix("\n"))
        status = _git(folder, *_STATUS, *names)
    except (MissingToolError, ProcessError):
        return []
    # ` M cub/device/reduce.cuh`, from the top of the repository.
    found = {real(top / entry[3:]) for entry in status.split("\0") if entry}
    return [path for path in paths if real(path) in found]


def _git(folder: Path, *arguments: str) -> str:
    return run([*_GIT, *arguments], cwd=folder, install="Install git.")
