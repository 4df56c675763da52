"""`cub_headers/manifest.toml`: how trees are laid out and which wheel holds which version."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from policygen.errors import InputError
from policygen.model.records import Record
from policygen.model.trees import Dialect, Library
from policygen.rendering import folder
from policygen.settings import load_toml

NAME = "manifest.toml"
# The file becomes part of a path.
WheelFile = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.+-]+\.whl$")]


class Tags(Record):
    """What pip is told, so that it takes this wheel on every machine."""

    python: str
    implementation: str
    abi: str
    platform: str


# What the manifest says of Debian's packages: which of them hold a release's headers.

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# What the manifest says of a library: where its trees have what, and where they are looked for.

Version = Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")]


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


class Archive(Record):
    """How packages are asked for."""

    path: str
    """Of Debian's archive on a mirror: the last part of its address."""
    component: str
    architecture: str
    keyrings: tuple[str, ...]
    """Where Debian's keys are, where apt does not trust them for all."""


class Layouts(Record):
    """Where include folders stand below a checkout, a site-packages folder, a toolkit."""

    checkout: tuple[str, ...]
    wheel: tuple[str, ...]
    toolkit: tuple[str, ...]
    beside_checkout: tuple[str, ...]


class DialectRule(Record):
    """How the dialect of a tree is told, where a library has several."""

    header: str
    selectors: str
    since: Version


class FetchedRule(Record):
    """How fetched trees are called and kept: what stands before their version."""

    name: str = ""
    folder: str = ""
    include: str = "."
    """The include folder in that of a tree."""


class Toolkits(Record):
    """What leads to an installed toolkit."""

    variables: tuple[str, ...]
    program: str
    folders: tuple[str, ...]


class VersionRule(Record):
    """How the version of a tree is told: by a macro of a header."""

    file: str
    macro: str
    """Its number is 100,000 times the first part, 100 times the second, and the third."""
    project: str | None = None
    """What says it in a checkout, where the header is not made yet; from the include folder."""
    variable: str = ""


class TreeFiles(Record):
    """Where things stand below an include folder."""

    folder: str
    """What `#include` names first."""
    sources: str
    """How its files are called."""
    marks: tuple[str, ...]
    checkout_mark: str
    version: VersionRule
    tunings: str
    headers: str
    """How tuning headers are called in their folder."""
    older_tunings: tuple[str, ...] = ()
    """Where that folder is missing."""
    others: tuple[str, ...] = ()
    """Tuning headers elsewhere."""


class LibraryRow(Record):
    """All that is known of a library's trees."""

    default: str
    kinds: str
    """What a person may name."""
    dialect: DialectRule | Dialect
    needs: str | None = None
    """A header of others, without which it cannot be compiled."""
    fetched: FetchedRule = FetchedRule()
    tree: TreeFiles
    layouts: Layouts
    toolkits: Toolkits


Folder = Annotated[str, Field(pattern=r"^\w+(/\w+)*$")]
# They become parts of a path, of a command and of a list of sources.
PackageName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.+-]+$")]
PackageVersion = Annotated[str, Field(pattern=r"^[0-9][A-Za-z0-9.+~-]*$")]
Suite = Annotated[str, Field(pattern=r"^[a-z]+$")]


class Package(Record):
    """One package, of which one folder is taken."""

    package: PackageName
    version: PackageVersion
    architecture: Annotated[str, Field(pattern=r"^[a-z0-9]+$")]
    suite: Suite
    sha256: Sha256
    folder: Folder
    """Whose last name is that below the include folder."""

    @property
    def requirement(self) -> str:
        """`librocprim-dev=5.7.1-2`."""
        return f"{self.package}={self.version}"

    @property
    def file(self) -> str:
        """`librocprim-dev_5.7.1-2_all.deb`."""
        return f"{self.package}_{self.version}_{self.architecture}.deb"


class Release(Record):
    """Packages that hold one release of a library, and what it needs; its own comes first."""

    library: Library
    release: Version
    """By which it is named, which is ROCm's."""
    version: Version
    """What its headers say."""
    dialect: Dialect
    files: Sha256
    """Of the listing of all that is taken."""
    parts: Annotated[tuple[Package, ...], Field(min_length=1)]

    @property
    def requirement(self) -> str:
        """Its own package."""
        return self.parts[0].requirement


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
