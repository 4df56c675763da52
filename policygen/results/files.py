"""Databases: opened only where they are files, as a pipe may never end."""

import stat
from pathlib import Path

from policygen.errors import InputError


def check_regular(path: Path) -> None:
    """Refuses pipes and devices; a file that is not there is an OSError."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise InputError(f"{path}: not a regular file", "Name a file: pipes and devices are none.")
