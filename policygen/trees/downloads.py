"""Downloads files into a cache keyed by their hash, and rejects files with any other hash."""

import importlib.util
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen import process
from policygen.cache import file_sha256
from policygen.errors import InputError, MissingToolError, ProcessError
from policygen.installation import this_python
from policygen.paths import cache_failure, cache_folder
from policygen.process import which
from policygen.trees.files import failure, is_file
from policygen.trees.manifest import Package, Wheel, shipped


@dataclass(frozen=True, slots=True)
class Download:
    """A file whose name and hash are known before it is downloaded."""

    kind: str
    """The cache's subfolder."""
    file: str
    sha256: str

    @property
    def path(self) -> Path:
        """The file's path in the cache."""
        return cache_folder() / self.kind / self.sha256 / self.file


def is_kept(download: Download, progress: Callable[[str], None]) -> bool:
    """Returns whether an intact file is in the cache; deletes a damaged one."""
    if not is_file(download.path):
        return False
    if sha256_of(download.path) == download.sha256:
        return True
    progress(f"{download.file}: the cached file is damaged")
    try:
        download.path.unlink(missing_ok=True)
    except OSError as error:
        raise failure("write", download.path.parent, error) from error
    return False


def keep(download: Download, bring: Callable[[Path], Path]) -> Path:
    """Moves the file that `bring` downloads to a temporary folder into the cache."""
    parent = download.path.parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            bring(Path(folder)).replace(download.path)
    except OSError as error:
        raise failure("write", parent, error) from error
    return download.path


def checked(download: Download, folder: Path, brought_by: str, remedy: str) -> Path:
    """Returns the file that a program downloaded to a folder; raises unless its hash matches."""
    file = folder / download.file
    if not file.is_file():
        names = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise InputError(
            f"{brought_by} should have downloaded {download.file}, but downloaded {names}"
        )
    if (actual := sha256_of(file)) != download.sha256:
        raise InputError(
            f"{download.file} does not have the expected digest"
            f"\n    sha256 expected: {download.sha256}\n    sha256 actual:   {actual}",
            f"Nothing was unpacked; {remedy}",
        )
    return file


def sha256_of(path: Path) -> str:
    """Returns a file's SHA-256 digest."""
    try:
        return file_sha256(path)
    except OSError as error:
        raise failure("read", path, error) from error


CHECKOUT = "on other systems, name a checkout: --cub PATH"
_NO_APT = "rocPRIM's headers come from Debian packages; " + CHECKOUT
_NETWORK = "Check the network and apt's sources, then run the command again; or " + CHECKOUT
# E: Version '5.7.1-2' for 'librocprim-dev' was not found
_NOT_AVAILABLE = re.compile(
    r"^E: (?:Version '.*' for '.*' was not found|Unable to locate package)", re.M
)
# 'https://mirror/debian/dists/bookworm/InRelease' mirror_debian_dists_bookworm_InRelease 0
_INDEX_URI = re.compile(
    r"^'((?:https?|file|copy|mirror\+\w+|tor\+\w+)://?[^'\s\[\]]+)/dists/", re.M
)
_SETTINGS = """\
Dir::State::lists "{lists}";
Dir::State::status "/dev/null";
Dir::Cache "{cache}";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Acquire::PDiffs "false";
Acquire::Languages "none";
APT::Update::Error-Mode "any";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""
_SOURCE_SETTINGS = """\
Dir::Etc::sourcelist "{sources}";
Dir::Etc::sourceparts "/dev/null";
APT::Architecture "{architecture}";
#clear APT::Architectures;
APT::Architectures "{architecture}";
"""


# Debian packages, downloaded from the mirror that apt uses, without root privileges
#
# apt's own lists and settings are left alone: it runs in a temporary folder, with the required
# suites as its only sources.


def obtain_packages(parts: Sequence[Package], progress: Callable[[str], None]) -> tuple[Path, ...]:
    """Returns the packages' verified files in the cache; missing ones are downloaded together."""
    downloads = {part: Download("packages", part.file, part.sha256) for part in parts}
    missing = [part for part in parts if not is_kept(downloads[part], progress)]
    if missing:
        _fetch({part: downloads[part] for part in missing}, progress)
    return tuple(download.path for download in downloads.values())


def _fetch(downloads: dict[Package, Download], progress: Callable[[str], None]) -> None:
    if which("apt-get") is None:
        raise InputError("there is no apt-get on PATH", _NO_APT)
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_folder(), prefix="apt-") as folder:
            settings = _write_settings(Path(folder), tuple(downloads))
            progress(f"Debian {', '.join(_suites(tuple(downloads)))}: reading the list of packages")
            _run("update", settings)
            for part, file in downloads.items():
                progress(f"{part.requirement}: downloading")
                keep(file, lambda to, part=part, file=file: _download(part, file, to, settings))  # type: ignore[misc]
    except OSError as error:
        raise cache_failure(error) from error


def _suites(parts: Sequence[Package]) -> tuple[str, ...]:
    return tuple(sorted({part.suite for part in parts}))


def _write_settings(folder: Path, parts: Sequence[Package]) -> Path:
    """Writes settings for a separate apt whose only sources are the required suites."""
    lists, cache = folder / "lists", folder / "cache"
    for subfolder in (lists / "partial", cache / "archives/partial"):
        subfolder.mkdir(parents=True)
    settings, sources = folder / "apt.conf", folder / "sources.list"
    common = _SETTINGS.format(lists=lists, cache=cache)
    settings.write_text(common)
    site, archive = _debian_mirror(settings), shipped().archive
    keys = next(
        (f" signed-by={keyring}" for keyring in archive.keyrings if Path(keyring).is_file()), ""
    )
    sources.write_text(
        "".join(
            f"deb [arch={archive.architecture} target=Packages{keys}]"
            f" {site} {suite} {archive.component}\n"
            for suite in _suites(parts)
        )
    )
    own_settings = _SOURCE_SETTINGS.format(sources=sources, architecture=archive.architecture)
    settings.write_text(common + own_settings)
    return settings


def _debian_mirror(settings: Path) -> str:
    """Returns the mirror that the machine's apt uses for Debian; it has all suites."""
    indexes = _run("update", settings, "--print-uris")
    sites = dict.fromkeys(_INDEX_URI.findall(indexes))
    path = shipped().archive.path
    mirrors: list[str] = [site for site in sites if site.rstrip("/").rpartition("/")[2] == path]
    if not mirrors:
        raise InputError("apt's sources have no Debian mirror", _NO_APT)
    return mirrors[0]


def _download(part: Package, download: Download, folder: Path, settings: Path) -> Path:
    try:
        _run("download", settings, part.requirement, folder=folder)
    except ProcessError as error:
        if not _NOT_AVAILABLE.search(error.stderr):
            raise
        raise InputError(
            f"Debian {part.suite} has no {part.package} {part.version} any more",
            "Choose another release (policygen headers list), or name a checkout: --cub PATH",
        ) from error
    return checked(download, folder, "apt-get", "check which mirror apt uses")


def _run(verb: str, settings: Path, *arguments: str, folder: Path | None = None) -> str:
    # No time limit for slow connections; apt itself gives up on a silent one.
    return process.run(
        ("apt-get", "--quiet", f"--config-file={settings}", verb, *arguments),
        limit=None,
        network=True,
        install=_NO_APT,
        remedy=_NETWORK,
        folder=folder,
    )


_WHEEL_NETWORK = "Check the network and pip's index settings, then run the command again"


# Wheels, downloaded from PyPI


def obtain_wheel(wheel: Wheel, progress: Callable[[str], None]) -> Path:
    """Returns the wheel's verified file in the cache, after downloading it if necessary."""
    download = Download("wheels", wheel.file, wheel.sha256)
    if is_kept(download, progress):
        return download.path
    progress(f"{wheel.requirement}: downloading")
    return keep(download, lambda folder: _wheel_download(wheel, download, folder))


def _wheel_download(wheel: Wheel, download: Download, folder: Path) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise MissingToolError("pip", _install())
    # No time limit for slow connections; pip itself gives up on a silent one.
    process.run(
        _command(wheel, folder), limit=None, network=True, install=_install(), remedy=_WHEEL_NETWORK
    )
    return checked(download, folder, "pip", "check which package index pip uses")


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
