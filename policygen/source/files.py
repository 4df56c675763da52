"""Reads source files, and refuses what cannot be one."""

import stat
from pathlib import Path

from policygen.errors import SourceError

MAX_BYTES = 8 << 20
"""No tuning header or benchmark comes near; a larger file is not one."""


def read_bytes(path: Path) -> bytes:
    """The bytes of a regular file of a sensible size."""
    name = path.as_posix()
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise SourceError(name, 1, 1, "not a regular file")
        if state.st_size > MAX_BYTES:
            size = f"{state.st_size:,} bytes: larger than the limit of {MAX_BYTES >> 20} MiB"
            raise SourceError(name, 1, 1, size, remedy="It is no source file of CUB.")
        return path.read_bytes()
    except OSError as error:
        raise SourceError(name, 1, 1, f"cannot be read: {error.strerror or error}") from error
