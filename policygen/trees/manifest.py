"""`cub_headers/manifest.toml`: the layout of trees, and their wheels and packages."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from policygen.errors import InputError
from policygen.model.records import Record
from policygen.model.trees import Dialect, Library
from policygen.opening import load_toml
from policygen.rendering import folder

NAME = "manifest.toml"
# The file name becomes part of a path.
WheelFile = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.+-]+\.whl$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Version = Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")]


class Tags(Record):
    """Tags for pip, so that it downloads the same wheel on every machine."""

    python: str
    implementation: str
    abi: str
    platform: str


class Wheel(Record):
    """A wheel that contains one version of CUB."""

    cub: Version
    dialect: Dialect
    specializations: int
    distribution: str
    version: str
    file: WheelFile
    sha256: Sha256
    files: Sha256
    """Digest of the listing of all files in `include`."""
    include: str
    tags: Tags

    @property
    def requirement(self) -> str:
        """A requirement such as `nvidia-cuda-cccl==13.0.85`."""
        return f"{self.distribution}=={self.version}"


class Archive(Record):
    """Debian's archive, from which packages are downloaded."""

    path: str
    """The last component of the archive's address on a mirror."""
    component: str
    architecture: str
    keyrings: tuple[str, ...]
    """Paths of Debian's keyrings, for machines whose apt does not trust them globally."""


class Layouts(Record):
    """Paths of include folders below a checkout, a site-packages folder or a toolkit."""

    checkout: tuple[str, ...]
    wheel: tuple[str, ...]
    toolkit: tuple[str, ...]
    beside_checkout: tuple[str, ...]


class DialectRule(Record):
    """How to detect a tree's dialect if its library has several."""

    header: str
    selectors: str
    since: Version


class FetchedRule(Record):
    """How fetched trees are named and stored: prefixes of their version."""

    name: str = ""
    folder: str = ""
    include: str = "."
    """The include folder, relative to the tree's folder."""


class Toolkits(Record):
    """How to find an installed toolkit."""

    variables: tuple[str, ...]
    program: str
    folders: tuple[str, ...]


class VersionRule(Record):
    """How to read a tree's version from a macro in a header."""

    file: str
    macro: str
    """The macro's value is major * 100,000 + minor * 100 + patch."""
    project: str | None = None
    """The file with a checkout's version, whose header is generated; from the include folder."""
    variable: str = ""


class TreeFiles(Record):
    """Paths below an include folder."""

    folder: str
    """The first component of paths in `#include`."""
    sources: str
    """The pattern of header names."""
    marks: tuple[str, ...]
    checkout_mark: str
    version: VersionRule
    tunings: str
    headers: str
    """The pattern of tuning headers in their folder."""
    older_tunings: tuple[str, ...] = ()
    """Alternatives if that folder is missing."""
    others: tuple[str, ...] = ()
    """Patterns of tuning headers elsewhere."""


class LibraryRow(Record):
    """Everything about a library's trees."""

    default: str
    kinds: str
    """The kinds of trees that a user may name."""
    dialect: DialectRule | Dialect
    needs: str | None = None
    """An external header that compilation requires."""
    fetched: FetchedRule = FetchedRule()
    tree: TreeFiles
    layouts: Layouts
    toolkits: Toolkits


Folder = Annotated[str, Field(pattern=r"^\w+(/\w+)*$")]
# These become parts of a path, of a command and of a list of sources.
PackageName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.+-]+$")]
PackageVersion = Annotated[str, Field(pattern=r"^[0-9][A-Za-z0-9.+~-]*$")]
Suite = Annotated[str, Field(pattern=r"^[a-z]+$")]


class Package(Record):
    """A Debian package from which one folder is taken."""

    package: PackageName
    version: PackageVersion
    architecture: Annotated[str, Field(pattern=r"^[a-z0-9]+$")]
    suite: Suite
    sha256: Sha256
    folder: Folder
    """The folder in the package; its last component is kept below the include folder."""

    @property
    def requirement(self) -> str:
        """A requirement such as `librocprim-dev=5.7.1-2`."""
        return f"{self.package}={self.version}"

    @property
    def file(self) -> str:
        """A file name such as `librocprim-dev_5.7.1-2_all.deb`."""
        return f"{self.package}_{self.version}_{self.architecture}.deb"


class Release(Record):
    """Packages that contain one release of a library, first, and its dependencies."""

    library: Library
    release: Version
    """The release's name, which is ROCm's version."""
    version: Version
    """The version in its headers."""
    dialect: Dialect
    files: Sha256
    """Digest of the listing of all unpacked files."""
    parts: Annotated[tuple[Package, ...], Field(min_length=1)]

    @property
    def requirement(self) -> str:
        """The requirement for the library's own package."""
        return self.parts[0].requirement


class Manifest(Record):
    """The contents of the manifest."""

    format: Literal["policygen/manifest/2"]
    libraries: Mapping[Library, LibraryRow]
    wheels: tuple[Wheel, ...]
    archive: Archive
    releases: tuple[Release, ...]

    @property
    def default(self) -> str:
        """The default version of CUB."""
        return self.libraries["cub"].default

    @property
    def tree(self) -> TreeFiles:
        """Paths in a tree of CUB."""
        return self.libraries["cub"].tree

    @property
    def layouts(self) -> Layouts:
        """Paths of CUB's include folders."""
        return self.libraries["cub"].layouts

    def wheel(self, version: str) -> Wheel:
        """Returns the wheel with a version of CUB; raises if there is none."""
        for wheel in self.wheels:
            if wheel.cub == version:
                return wheel
        versions = ", ".join(wheel.cub for wheel in self.wheels)
        raise InputError(f"no known wheel contains CUB {version}", f"Known versions: {versions}")


@cache
def shipped() -> Manifest:
    """Returns the manifest that this policygen ships."""
    return load_toml(folder("cub_headers") / NAME, Manifest)
