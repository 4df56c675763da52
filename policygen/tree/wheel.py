"""Gets a wheel from PyPI or from the cache, and lets nothing through but the known bytes."""

import hashlib
import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path

from policygen import process
from policygen.errors import InputError, MissingToolError
from policygen.installation import this_python
from policygen.paths import cache_folder
from policygen.tree.files import failure, is_file
from policygen.tree.manifest import Wheel

_NETWORK = "check the network and pip's index settings, then run the command again"


def obtain(wheel: Wheel, progress: Callable[[str], None]) -> Path:
    """The wheel's file in the cache, its hash verified."""
    cached = cache_folder() / "wheels" / wheel.sha256 / wheel.file
    if is_file(cached):
        if _sha256(cached) == wheel.sha256:
            return cached
        progress(f"{wheel.file}: the cached file is damaged")
        cached.unlink(missing_ok=True)
    progress(f"{wheel.requirement}: downloading")
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cached.parent) as folder:
            _download(wheel, Path(folder)).replace(cached)
    except OSError as error:
        raise failure("write", cached.parent, error) from error
    return cached


def _download(wheel: Wheel, folder: Path) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise MissingToolError("pip", _install())
    # A line may be slow; pip itself gives up on one that is silent.
    process.run(
        _command(wheel, folder), limit=None, network=True, install=_install(), remedy=_NETWORK
    )
    file = folder / wheel.file
    if not file.is_file():
        names = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise InputError(f"pip was asked for {wheel.file} and brought {names}")
    if (actual := _sha256(file)) != wheel.sha256:
        raise InputError(
            f"{wheel.file} is not the file that it should be"
            f"\n    sha256 expected: {wheel.sha256}\n    sha256 actual:   {actual}",
            "nothing was unpacked; check which package index pip uses",
        )
    return file


def _install() -> str:
    return f"{this_python()} -m ensurepip"


def _command(wheel: Wheel, folder: Path) -> tuple[str, ...]:
    tags = wheel.tags
    return (
        *process.python("-m", "pip", "download", "--quiet"),
        *("--no-input", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"),
        *("--platform", tags.platform, "--python-version", tags.python),
        *("--implementation", tags.implementation, "--abi", tags.abi),
        *("--dest", str(folder), wheel.requirement),
    )


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise failure("read", path, error) from error
