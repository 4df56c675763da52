"""Trees and wheels of a few bytes."""

import base64
import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

from policygen.trees import manifest
from policygen.trees.archives import digest_of, listing

RECORD = "toy-1.0.dist-info/RECORD"
TUNINGS = "cub/device/dispatch/tuning"
SPECIALIZED = "template <class T> struct sm90_tuning {};\n"


def version_text(version: str) -> str:
    """`cub/version.cuh`, as CUB writes it."""
    major, minor, patch = map(int, version.split("."))
    number = major * 100000 + minor * 100 + patch
    return f"#pragma once\n#define CUB_VERSION {number} // macro expansion with ##\n"


def make_root(root: Path, version: str = "3.0.1", tuning: str = SPECIALIZED) -> Path:
    """An include folder that holds a CUB."""
    folder = root / TUNINGS
    folder.mkdir(parents=True)
    (root / "cub/version.cuh").write_text(version_text(version))
    (folder / "tuning_for.cuh").write_text(tuning)
    return root


def make_checkout(folder: Path, version: str = "3.0.1") -> Path:
    """A CCCL checkout."""
    make_root(folder / "cub", version)
    (folder / "thrust/thrust").mkdir(parents=True)
    (folder / "libcudacxx/include").mkdir(parents=True)
    return folder


def record(members: dict[str, str]) -> str:
    """The `RECORD` of a wheel."""
    rows = ""
    for name, text in members.items():
        if name.endswith("/"):
            continue
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()
        rows += f"{name},sha256={digest.rstrip('=')},{len(text)}\n"
    return f"{rows}{RECORD},,\n"


def wheel_bytes(members: dict[str, str]) -> bytes:
    """A zip file with a `RECORD`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, text in {RECORD: record(members), **members}.items():
            # A fixed date: the same members are the same bytes.
            file.writestr(zipfile.ZipInfo(name), text)
    return buffer.getvalue()


MEMBERS = {
    "inc/cub/version.cuh": version_text("9.8.7"),
    "inc/cub/": "",
    f"inc/{TUNINGS}/tuning_for.cuh": SPECIALIZED,
    "inc/thrust/version.h": "",
    "toy-1.0.dist-info/METADATA": "",
}
GOOD = wheel_bytes(MEMBERS)


def files_of(members: dict[str, str]) -> str:
    """What the manifest says of the files below `inc`."""
    found = {
        name.removeprefix("inc/"): hashlib.sha256(text.encode()).hexdigest()
        for name, text in members.items()
        if name.startswith("inc/") and not name.endswith("/")
    }
    return digest_of(listing(found))


def toy_wheel(data: bytes = GOOD, version: str = "9.8.7", **changes: Any) -> manifest.Wheel:
    """The manifest's entry for a toy wheel."""
    values = {
        "cub": version,
        "dialect": "specializations",
        "specializations": 1,
        "distribution": "toy",
        "version": "1.0",
        "file": "toy-1.0-py3-none-any.whl",
        "sha256": hashlib.sha256(data).hexdigest(),
        "files": files_of(MEMBERS),
        "include": "inc",
        "tags": {"python": "3", "implementation": "py", "abi": "none", "platform": "any"},
    }
    return manifest.Wheel.model_validate(values | changes)


class FakePip:
    """Stands for `policygen.process.run`: writes files as `pip download` would."""

    def __init__(self, files: dict[str, bytes], error: Exception | None = None) -> None:
        self.files, self.error = files, error
        self.commands: list[list[str]] = []

    def __call__(self, command: Any, **_options: Any) -> str:
        self.commands.append(list(command))
        if self.error:
            raise self.error
        folder = Path(command[command.index("--dest") + 1])
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
        return ""
