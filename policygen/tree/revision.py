"""A tree as a git revision has it, beside the work tree and never in it."""

import shutil
import tarfile
import tempfile
from pathlib import Path

from policygen.errors import InputError, ProcessError
from policygen.model.cub import Cub
from policygen.paths import cache_folder
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
    folder = cache_folder() / "revisions" / commit
    place = folder / root.resolve().relative_to(top.resolve())
    if not place.is_dir():
        folders = [str(Path(i).resolve().relative_to(top.resolve())) for i in cub.includes]
        _export(top, commit, folders or ["."], folder)
    return open_tree(place, f"revision {revision}")


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
        listed = _git(top, "ls-tree", "--name-only", commit, "--", *folders, refused=commit)
        _git(
            top,
            "archive",
            "--format=tar",
            f"--output={archive}",
            commit,
            "--",
            *(listed.splitlines() or ["."]),
            refused=commit,
        )
        unpacked = Path(temporary) / "tree"
        with tarfile.open(archive) as tar:
            tar.extractall(unpacked, filter="data")
        if target.exists():
            shutil.rmtree(target)
        unpacked.rename(target)
