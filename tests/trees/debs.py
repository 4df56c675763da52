"""Debian packages of a few bytes, and what the manifest says of them."""

import hashlib
import io
import lzma
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from policygen.errors import ProcessError
from policygen.trees.archives import digest_of, listing
from policygen.trees.manifest import Package, Release

CONFIGS = "rocprim/device/detail/config"
Member = tuple[tarfile.TarInfo, bytes]


def version_header(version: str) -> str:
    """`rocprim/rocprim_version.hpp`, as rocPRIM writes it since 3.5."""
    major, minor, patch = map(int, version.split("."))
    return f"#pragma once\n#define ROCPRIM_VERSION {major * 100000 + minor * 100 + patch}\n"


def make_rocprim(root: Path, version: str = "4.2.0") -> Path:
    """An include folder that holds a rocPRIM."""
    (root / CONFIGS).mkdir(parents=True)
    (root / "rocprim/rocprim_version.hpp").write_text(version_header(version))
    for name in (
        f"{CONFIGS}/device_scan.hpp",
        "rocprim/device/device_scan_config.hpp",
        "rocprim/device/device_scan.hpp",
        "rocprim/device/detail/device_config_helper.hpp",
    ):
        (root / name).touch()
    return root


def make_rocprim_checkout(folder: Path, project: str = 'set(VERSION_STRING "3.3.0")\n') -> Path:
    """A checkout of rocPRIM, in which CMake has made nothing."""
    root = make_rocprim(folder / "rocprim/include")
    (root / "rocprim/rocprim_version.hpp").rename(root / "rocprim/rocprim_version.hpp.in")
    (folder / "CMakeLists.txt").write_text(f"project(rocprim LANGUAGES CXX)\n{project}")
    return root


ROCPRIM = {
    "./usr/include/rocprim/rocprim_version.hpp": version_header("9.8.7"),
    f"./usr/include/{CONFIGS}/device_scan.hpp": "",
    "./usr/share/doc/copyright": "not taken",
}
HIP = {"./usr/include/hip/hip_runtime.h": "#pragma once\n"}


def plain(name: str, text: str = "", **fields: Any) -> Member:
    """A file of a package, or what its fields make of it."""
    info = tarfile.TarInfo(name)
    info.size = len(text)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, text.encode()


def tar_bytes(members: Sequence[Member]) -> bytes:
    """A tar file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as file:
        for info, data in members:
            file.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def ar_bytes(members: Mapping[str, bytes]) -> bytes:
    """An ar file."""
    found = b"!<arch>\n"
    for name, data in members.items():
        found += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
        found += data + b"\n" * (len(data) % 2)
    return found


def deb_bytes(members: Sequence[Member]) -> bytes:
    """A package with these files."""
    packed = lzma.compress(tar_bytes(members))
    return ar_bytes({"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": packed})


def package(files: Mapping[str, str]) -> bytes:
    """A package with a folder and files."""
    folder = plain("./usr/", type=tarfile.DIRTYPE)
    return deb_bytes([folder, *(plain(name, text) for name, text in files.items())])


GOOD_DEBS = {
    "librocprim-dev_9.8.7-1_all.deb": package(ROCPRIM),
    "libamdhip64-dev_9.8.7-2_amd64.deb": package(HIP),
}


def toy_part(file: str, folder: str, data: bytes | None = None, suite: str = "sid") -> Package:
    """The manifest's entry for a package."""
    name, version, rest = file.removesuffix(".deb").split("_")
    return Package(
        package=name,
        version=version,
        architecture=rest,
        suite=suite,
        sha256=hashlib.sha256(GOOD_DEBS[file] if data is None else data).hexdigest(),
        folder=folder,
    )


def toy_release(**changes: Any) -> Release:
    """The manifest's entry for a toy release."""
    files = {
        name.replace("./usr/", ""): hashlib.sha256(text.encode()).hexdigest()
        for name, text in (ROCPRIM | HIP).items()
        if "/include/" in name
    }
    rocprim, hip = GOOD_DEBS
    values = {
        "library": "rocprim",
        "release": "9.9.9",
        "version": "9.8.7",
        "dialect": "configs",
        "files": digest_of(listing(files)),
        "parts": (toy_part(rocprim, "usr/include/rocprim"), toy_part(hip, "usr/include/hip")),
    }
    return Release.model_validate(values | changes)


URIS = """\
'https://mirror.invalid/debian-security/dists/bookworm-security/InRelease' a_InRelease 0
'https://mirror.invalid/debian/dists/bookworm/InRelease' b_InRelease 0
"""


class FakeApt:
    """Stands for `policygen.process.run`: writes files as `apt-get download` would."""

    def __init__(self, files: Mapping[str, bytes] = GOOD_DEBS, uris: str = URIS) -> None:
        self.files, self.uris = files, uris
        self.commands: list[list[str]] = []
        self.settings = self.sources = ""
        self.error: ProcessError | None = None

    def __call__(self, command: Any, *, folder: Path | None = None, **options: Any) -> str:
        assert options["network"]
        assert options["limit"] is None
        program, quiet, config, *words = command
        assert (program, quiet) == ("apt-get", "--quiet")
        self.commands.append(words)
        settings = Path(config.removeprefix("--config-file="))
        self.settings = settings.read_text()
        if words == ["update", "--print-uris"]:
            return self.uris
        self.sources = (settings.parent / "sources.list").read_text()
        if words == ["update"]:
            return ""
        if self.error:
            raise self.error
        assert folder is not None
        package, _, version = words[1].partition("=")
        for name, data in self.files.items():
            if name.startswith(f"{package}_{version}_"):
                (folder / name).write_bytes(data)
        return ""
