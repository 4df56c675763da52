"""Makes folders that stand before a tree and replace one of its headers."""

import hashlib

from policygen.paths import cache_failure, cache_folder, write_atomically
from policygen.tree.manifest import shipped


def overlay(name: str, data: bytes) -> str:
    """Makes an include folder with one tuning header; the same content has the same one."""
    digest = hashlib.sha256(data).hexdigest()[:32]
    folder = cache_folder() / "overlay" / digest
    path = folder / shipped().tree.tunings / name
    try:
        if not path.is_file() or path.read_bytes() != data:
            write_atomically(path, data)
    except OSError as error:
        raise cache_failure(error) from error
    return str(folder)
