"""What the manifest says of Debian's packages: which of them hold a release's headers."""

from typing import Annotated

from pydantic import Field

from policygen.model.base import Record
from policygen.model.cub import Dialect, Library
from policygen.tree.libraries import Version

# They become parts of a path, of a command and of a list of sources.
PackageName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.+-]+$")]
PackageVersion = Annotated[str, Field(pattern=r"^[0-9][A-Za-z0-9.+~-]*$")]
Suite = Annotated[str, Field(pattern=r"^[a-z]+$")]
Folder = Annotated[str, Field(pattern=r"^\w+(/\w+)*$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


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


class Archive(Record):
    """How packages are asked for."""

    path: str
    """Of Debian's archive on a mirror: the last part of its address."""
    component: str
    architecture: str
    keyrings: tuple[str, ...]
    """Where Debian's keys are, where apt does not trust them for all."""
