"""What was read of a header, kept under the content that it was read from."""

import hashlib
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from policygen import resources
from policygen.model.tuning import TuningHeader
from policygen.paths import cache_folder, write_atomically


@cache
def _fingerprint() -> bytes:
    """The readers themselves: a change of theirs makes old results worthless."""
    package = Path(__file__).resolve().parent
    sources = [*sorted(package.rglob("*.py")), package.parent / "model" / "tuning.py"]
    sources.append(resources.folder("templates") / "scan" / "prelude.h")
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).digest()


def key(name: str, *contents: bytes) -> str:
    """Names what a header reads as: its bytes, those that it includes, and the readers'."""
    digest = hashlib.sha256(_fingerprint())
    for part in (name.encode(), *contents):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def load(name: str) -> TuningHeader | None:
    """A header that was read before; a damaged file counts as none."""
    try:
        return TuningHeader.model_validate_json(_path(name).read_bytes())
    except (OSError, ValidationError):
        return None


def store(name: str, header: TuningHeader) -> None:
    """Keeps a header; a folder that cannot be written costs speed, nothing else."""
    try:
        write_atomically(_path(name), header.model_dump_json().encode())
    except OSError:
        return


def _path(name: str) -> Path:
    return cache_folder() / "scan" / f"{name}.json"
