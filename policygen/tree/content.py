"""Names what a tree holds: what was proved of it holds as long as the name is the same."""

from pathlib import Path

from policygen.cache import digest
from policygen.model.cub import Cub
from policygen.tree.files import read


def tree_content(cub: Cub) -> str:
    """A digest of all headers of CUB itself, by their places in the tree."""
    root = Path(cub.root)
    paths = sorted(path for path in (root / "cub").rglob("*.cuh") if path.is_file())
    parts = (part for path in paths for part in (str(path.relative_to(root)), read(path, root)))
    return digest(*parts)
