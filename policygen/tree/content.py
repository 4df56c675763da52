"""Names what a tree holds: what was proved of it holds as long as the name is the same."""

from collections.abc import Iterator
from pathlib import Path

from policygen.cache import digest
from policygen.model.cub import Cub
from policygen.tree.files import read
from policygen.tree.manifest import shipped


def tree_content(cub: Cub) -> str:
    """A digest of all headers of the library itself, by their places in the tree."""
    root = Path(cub.root)
    paths = sorted(path for path in own_sources(cub) if path.is_file())
    parts = (part for path in paths for part in (str(path.relative_to(root)), read(path, root)))
    return digest(*parts)


def own_sources(cub: Cub) -> Iterator[Path]:
    """The headers of the library itself, without those that a tree has beside it."""
    files = shipped().libraries[cub.library].tree
    return (Path(cub.root) / files.folder).rglob(files.sources)
