"""`cub_headers/manifest.toml`: how trees are laid out and which wheel holds which version."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from policygen.config import load_toml
from policygen.errors import InputError
from policygen.model.base import Record
from policygen.model.cub import Dialect, Library
from policygen.resources import folder
from policygen.tree.libraries import Layouts, LibraryRow, TreeFiles, Version
from policygen.tree.packages import Archive, Release, Sha256

NAME = "manifest.toml"

# The file becomes part of a path.
WheelFile = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.+-]+\.whl$")]


class Tags(Record):
    """What pip is told, so that it takes this wheel on every machine."""

    python: str
    implementation: str
    abi: str
    platform: str


class Wheel(Record):
    """A wheel that holds one version of CUB."""

    cub: Version
    dialect: Dialect
    specializations: int
    distribution: str
    version: str
    file: WheelFile
    sha256: Sha256
    files: Sha256
    """Of the listing of all that stands in `include`."""
    include: str
    tags: Tags

    @property
    def requirement(self) -> str:
        """`nvidia-cuda-cccl==13.0.85`."""
        return f"{self.distribution}=={self.version}"


class Manifest(Record):
    """All that the file says."""

    format: Literal["policygen/manifest/2"]
    libraries: Mapping[Library, LibraryRow]
    wheels: tuple[Wheel, ...]
    archive: Archive
    releases: tuple[Release, ...]

    @property
    def default(self) -> str:
        """The version of CUB to begin with."""
        return self.libraries["cub"].default

    @property
    def tree(self) -> TreeFiles:
        """Where things stand in a tree of CUB."""
        return self.libraries["cub"].tree

    @property
    def layouts(self) -> Layouts:
        """Where the include folders of CUB stand."""
        return self.libraries["cub"].layouts

    def find_wheel(self, version: str) -> Wheel | None:
        """The wheel that holds a version of CUB, if one is known."""
        return next((wheel for wheel in self.wheels if wheel.cub == version), None)

    def wheel(self, version: str) -> Wheel:
        """The same; none is an error."""
        if wheel := self.find_wheel(version):
            return wheel
        known = ", ".join(wheel.cub for wheel in self.wheels)
        raise InputError(f"no wheel is known that holds CUB {version}", f"known versions: {known}")


def load(path: Path) -> Manifest:
    """A manifest file; a bad one is an error that names it."""
    return load_toml(path, Manifest)


@cache
def shipped() -> Manifest:
    """The manifest that came with this policygen."""
    return load(folder("cub_headers") / NAME)
