"""The trees that can be had, and the ones that another is compared with."""

from collections.abc import Callable, Sequence
from pathlib import Path

from policygen.app.looking import looked
from policygen.app.session import Session, open_session
from policygen.errors import InputError
from policygen.model.cub import Cub
from policygen.model.headers import Headers
from policygen.tree import find_any, headers_folder
from policygen.tree.overview import all_versions, fetch_all, overview
from policygen.tree.revision import open_revision
from policygen.tree.store import open_fetched


def other_tree(session: Session, text: str) -> Cub:
    """The tree to compare with: a path or a fetched version, else a git revision."""
    try:
        return open_session(text, note=session.note).cub
    except InputError:
        if Path(text).exists():
            raise
        return looked(open_revision(session.cub, text))


def list_trees(cub: str | None = None) -> Headers:
    """The trees that can be had, and the one that is used here."""
    return overview(headers_folder(Path.cwd()), find_any(cub, Path.cwd()))


def fetch_trees(
    versions: Sequence[str],
    *,
    everything: bool = False,
    again: bool = False,
    progress: Callable[[str], None],
) -> tuple[Headers, tuple[Cub, ...]]:
    """Gets trees from PyPI or Debian; the last one becomes the current tree of its library."""
    folder = headers_folder(Path.cwd())
    wanted = all_versions(folder, versions) if everything else versions
    trees = fetch_all(wanted, folder, progress, again=again)
    return overview(folder, trees[-1]), tuple(trees)


def used_tree(session: Session) -> Headers:
    """The tree of a session, among those that can be had."""
    return overview(headers_folder(Path.cwd()), session.cub)


def fetched_session(version: str) -> Session:
    """A tree that was fetched."""
    return Session(open_fetched(headers_folder(Path.cwd()), version))
