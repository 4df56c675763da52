"""Gets a wheel from PyPI or from the cache."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

from policygen import process
from policygen.errors import MissingToolError
from policygen.installation import this_python
from policygen.tree.downloads import Download, checked, is_kept, keep
from policygen.tree.manifest import Wheel

_NETWORK = "check the network and pip's index settings, then run the command again"


def obtain(wheel: Wheel, progress: Callable[[str], None]) -> Path:
    """The wheel's file in the cache, its hash verified."""
    wanted = Download("wheels", wheel.file, wheel.sha256)
    if is_kept(wanted, progress):
        return wanted.path
    progress(f"{wheel.requirement}: downloading")
    return keep(wanted, lambda folder: _download(wheel, wanted, folder))


def _download(wheel: Wheel, wanted: Download, folder: Path) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise MissingToolError("pip", _install())
    # A line may be slow; pip itself gives up on one that is silent.
    process.run(
        _command(wheel, folder), limit=None, network=True, install=_install(), remedy=_NETWORK
    )
    return checked(wanted, folder, "pip", "check which package index pip uses")


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
