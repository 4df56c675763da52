"""Which `policygen.toml` counts: the one that is named.

Bindings are C++ that is compiled, and rules decide what is merged. So nothing is read because it
lies in the current folder, which may be a stranger's checkout: the file is named, or is none.
"""

import os
from pathlib import Path

NAME = "policygen.toml"
VARIABLE = "POLICYGEN_CONFIG"
"""The environment's variable that names one's own."""


def choose(path: str | None) -> None:
    """From now on that file counts; none: the one of the environment."""
    _chosen[:] = [] if path is None else [Path(path).absolute()]


def passed_by(folder: Path) -> Path | None:
    """The nearest `policygen.toml` in a folder or above it, where none is named: it is not read."""
    if named() is not None:
        return None
    paths = (place / NAME for place in (folder, *folder.parents))
    return next((path for path in paths if _is_there(path)), None)


def named() -> Path | None:
    """The file that counts, if one does."""
    if _chosen:
        return _chosen[0]
    named = os.environ.get(VARIABLE)
    return Path(named).absolute() if named else None


_chosen: list[Path] = []


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # A folder above that we may not enter.
        return False
