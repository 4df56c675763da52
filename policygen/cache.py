"""A cache of results that can be computed again; each entry is sealed with a digest."""

import hashlib
import inspect
from functools import cache as once
from pathlib import Path
from types import ModuleType

import policygen
from policygen.errors import InputError
from policygen.opening import read_named
from policygen.paths import cache_folder, write_atomically

_SEAL = b"policygen 1 "
_MOST = 256 << 20
"""Maximum bytes of an entry; the machine code of a translation unit has a few megabytes."""
_DIGITS = hashlib.sha256().digest_size * 2


def digest(*parts: str | bytes) -> str:
    """Returns a digest of all parts, including their boundaries."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest()


def file_sha256(path: Path) -> str:
    """Returns the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@once
def written_by(*modules: ModuleType) -> str:
    """Returns a digest of modules' sources: when they change, what they cached becomes invalid."""
    sources = (Path(inspect.getfile(module)).read_bytes() for module in modules)
    return digest(policygen.__version__, *sources)


def place(kind: str, key: str, folder: Path | None = None) -> Path:
    """Returns the path of an entry, in the user's cache by default."""
    return (folder or cache_folder()) / kind / key


def kept(kind: str, key: str, folder: Path | None = None) -> bytes | None:
    """Returns an entry; `None` if it is missing or its seal does not match its key and data."""
    try:
        sealed = read_named(place(kind, key, folder), _MOST)
    except (OSError, InputError):
        return None
    data = sealed[len(_SEAL) + _DIGITS + 1 :]
    return data if sealed == _sealed(kind, key, data) else None


def keep(kind: str, key: str, data: bytes, folder: Path | None = None) -> None:
    """Stores an entry atomically."""
    write_atomically(place(kind, key, folder), _sealed(kind, key, data))


def _sealed(kind: str, key: str, data: bytes) -> bytes:
    return _SEAL + digest(policygen.__version__, kind, key, data).encode() + b"\n" + data
