"""What was read of a header, kept under the content that it was read from."""

import hashlib
from contextlib import suppress
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from policygen import resources
from policygen.cache import digest, keep, kept
from policygen.model.tuning import TuningHeader

KIND = "scan"


@cache
def _fingerprint() -> bytes:
    """The readers themselves: a change of theirs makes old results worthless."""
    package = Path(__file__).resolve().parent
    folders = (package, package.parent / "source")
    sources = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    sources.append(package.parent / "model" / "tuning.py")
    sources.append(resources.folder("templates") / "scan" / "prelude.h")
    sources += [resources.folder("schemas") / name for name in ("archs.toml", "words.toml")]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).digest()


def key(name: str, *contents: bytes) -> str:
    """Names what a header reads as: its bytes, those that it includes, and the readers'."""
    return digest(_fingerprint(), name, *contents)


def load(name: str) -> TuningHeader | None:
    """A header that was read before; a damaged file counts as none."""
    data = kept(KIND, name)
    try:
        return None if data is None else TuningHeader.model_validate_json(data)
    except ValidationError:  # of another Pydantic
        return None


def store(name: str, header: TuningHeader) -> None:
    """Keeps a header; a folder that cannot be written costs speed, nothing else."""
    with suppress(OSError):
        keep(KIND, name, header.model_dump_json().encode())
