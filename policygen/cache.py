"""What was made before and would be made again: entries of the cache, each under a seal."""

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
"""Bytes of an entry; the machine code of a unit has a few megabytes."""
_DIGITS = hashlib.sha256().digest_size * 2


def digest(*parts: str | bytes) -> str:
    """Names something by all that it is made from; where one part ends matters."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()


@once
def written_by(*modules: ModuleType) -> str:
    """Names what some modules write: a change of them makes worthless what they kept."""
    sources = (Path(inspect.getfile(module)).read_bytes() for module in modules)
    return digest(policygen.__version__, *sources)


def place(kind: str, key: str, folder: Path | None = None) -> Path:
    """Where an entry is kept: in the user's cache, or in another."""
    return (folder or cache_folder()) / kind / key


def kept(kind: str, key: str, folder: Path | None = None) -> bytes | None:
    """An entry; one whose seal is not that of its key and content is as good as none."""
    try:
        sealed = read_named(place(kind, key, folder), _MOST)
    except (OSError, InputError):
        return None
    data = sealed[len(_SEAL) + _DIGITS + 1 :]
    return data if sealed == _sealed(kind, key, data) else None


def keep(kind: str, key: str, data: bytes, folder: Path | None = None) -> None:
    """Keeps an entry, whole or not at all."""
    write_atomically(place(kind, key, folder), _sealed(kind, key, data))


def _sealed(kind: str, key: str, data: bytes) -> bytes:
    return _SEAL + digest(policygen.__version__, kind, key, data).encode() + b"\n" + data
