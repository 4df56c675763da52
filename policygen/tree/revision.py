"""A tree as a git revision has it, beside the work tree and never in it."""

import hashlib
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from policygen.errors import InputError, MissingToolError, ProcessError
from policygen.model.cub import Cub
from policygen.paths import cache_failure, cache_folder
from policygen.process import run
from policygen.tree.given import open_tree

REMEDY = "Install git: apt-get install git"


def open_revision(cub: Cub, revision: str) -> Cub:
    """The same tree at a revision of the repository that it stands in."""
    root = Path(cub.root)
    top = Path(_git(root, "rev-parse", "--show-toplevel", refused=revision).strip())
    commit = _git(
        root,
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        f"{revision}^{{commit}}",
        refused=revision,
    ).strip()
    folders = [_inside(Path(include), top) for include in cub.include_folders]
    digest = hashlib.sha256("\0".join(folders).encode()).hexdigest()[:8]
    folder = cache_folder() / "revisions" / f"{commit}-{digest}"
    if not folder.is_dir():
        try:
            _export(top, commit, folders, folder)
        except OSError as error:
            raise cache_failure(error) from error
        except tarfile.TarError as error:
            raise InputError(f"cannot unpack revision {commit}: {error}") from error
    return open_tree(folder / _inside(root, top), f"revision {revision}")


def paths_in_repository(paths: Sequence[Path], root: Path) -> tuple[str, ...]:
    """How git names files; where there is no repository, their paths from the tree's root."""
    try:
        top = run(["git", "-C", str(root), "rev-parse", "--show-toplevel"], install=REMEDY).strip()
        found = [path.resolve().relative_to(Path(top).resolve()) for path in paths]
    except (ProcessError, MissingToolError, ValueError):
        found = [path.relative_to(root) for path in paths]
    return tuple(path.as_posix() for path in found)


def _inside(folder: Path, top: Path) -> str:
    """A folder as git names it."""
    try:
        return str(folder.resolve().relative_to(top.resolve()))
    except ValueError as error:
        raise InputError(
            f"{folder} lies outside of the git repository {top}: no revision holds it"
        ) from error


def _git(folder: Path, *arguments: str, refused: str) -> str:
    try:
        return run(["git", "-C", str(folder), *arguments], install=REMEDY)
    except ProcessError as error:
        raise InputError(
            f"{refused!r} is no folder, no fetched version of CUB, and no revision of a git"
            f" repository around {folder}",
            error.stderr.strip() or None,
        ) from error


def _export(top: Path, commit: str, folders: list[str], target: Path) -> None:
    """Unpacks the include folders of a commit; the target appears whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        archive = Path(temporary) / "tree.tar"
        # A path that the revision lacks would fail the archive: older trees lie elsewhere.
        listed = _git(top, "ls-tree", "-z", "--name-only", commit, "--", *folders, refused=commit)
        _git(
            top,
            "archive",
            "--format=tar",
            f"--output={archive}",
            commit,
            "--",
            *(listed.split("\0")[:-1] or ["."]),
            refused=commit,
        )
        unpacked = Path(temporary) / "tree"
        with tarfile.open(archive) as tar:
            tar.extractall(unpacked, filter="data")
        try:
            unpacked.rename(target)
        except OSError:
            if not target.is_dir():  # else another process was faster
                raise
