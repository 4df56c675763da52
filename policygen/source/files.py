"""Reads source files, and refuses what cannot be one."""

from pathlib import Path

from policygen.errors import SourceError
from policygen.opening import NotOpenedError, read_inside

FOLDER = "cub/device/dispatch/tuning"
"""Where tuning headers are, below the include folder of a tree."""


def read_bytes(path: Path, root: Path | None = None) -> bytes:
    """The bytes of a source file of the tree at `root`; of a header, the tree around it."""
    name = path.as_posix()
    try:
        return read_inside(root or tree_around(path), path)
    except NotOpenedError as error:
        raise SourceError(name, 1, 1, error.reason, remedy=error.remedy) from error
    except OSError as error:
        raise SourceError(name, 1, 1, f"cannot be read: {error.strerror or error}") from error


def tree_around(header: Path) -> Path:
    """The include folder that a tuning header belongs to; one that lies by itself has its own."""
    folder = header.absolute().parent
    parts = Path(FOLDER).parts
    return folder.parents[len(parts) - 1] if folder.parts[-len(parts) :] == parts else folder
