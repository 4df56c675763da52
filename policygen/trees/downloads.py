"""Keeps what was downloaded in the cache, by its hash; lets nothing but the known bytes through."""

import hashlib
import importlib.util
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen import process
from policygen.errors import InputError, MissingToolError, ProcessError
from policygen.installation import this_python
from policygen.paths import cache_failure, cache_folder
from policygen.process import which
from policygen.trees.files import failure, is_file
from policygen.trees.manifest import Package, Wheel, shipped


@dataclass(frozen=True, slots=True)
class Download:
    """A file that is known before it is there."""

    kind: str
    """The folder of the cache."""
    file: str
    sha256: str

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return cache_folder() / self.kind / self.sha256 / self.file


def is_kept(wanted: Download, progress: Callable[[str], None]) -> bool:
    """Whether a file is in the cache as it should be; a damaged one goes."""
    if not is_file(wanted.path):
        return False
    if sha256_of(wanted.path) == wanted.sha256:
        return True
    progress(f"{wanted.file}: the cached file is damaged")
    try:
        wanted.path.unlink(missing_ok=True)
    except OSError as error:
        raise failure("write", wanted.path.parent, error) from error
    return False


def keep(wanted: Download, bring: Callable[[Path], Path]) -> Path:
    """Keeps what is brought to a folder, and is no longer there then."""
    parent = wanted.path.parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            bring(Path(folder)).replace(wanted.path)
    except OSError as error:
        raise failure("write", parent, error) from error
    return wanted.path


def checked(wanted: Download, folder: Path, brought_by: str, remedy: str) -> Path:
    """The file that a program was to bring to a folder, if it is the one."""
    file = folder / wanted.file
    if not file.is_file():
        names = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise InputError(f"{brought_by} was asked for {wanted.file} and brought {names}")
    if (actual := sha256_of(file)) != wanted.sha256:
        raise InputError(
            f"{wanted.file} is not the file that it should be"
            f"\n    sha256 expected: {wanted.sha256}\n    sha256 actual:   {actual}",
            f"nothing was unpacked; {remedy}",
        )
    return file


def sha256_of(path: Path) -> str:
    """The digest of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise failure("read", path, error) from error


CHECKOUT = "elsewhere give a checkout: --cub PATH"
_NO_APT = "rocPRIM's headers come from Debian packages; " + CHECKOUT
_NETWORK = "check the network and apt's sources, then run the command again; or " + CHECKOUT
# E: Version '5.7.1-2' for 'librocprim-dev' was not found
_GONE = re.compile(r"^E: (?:Version '.*' for '.*' was not found|Unable to locate package)", re.M)
# 'https://mirror/debian/dists/bookworm/InRelease' mirror_debian_dists_bookworm_InRelease 0
_INDEX = re.compile(r"^'((?:https?|file|copy|mirror\+\w+|tor\+\w+)://?[^'\s\[\]]+)/dists/", re.M)
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
_OWN = """\
Dir::Etc::sourcelist "{sources}";
Dir::Etc::sourceparts "/dev/null";
APT::Architecture "{architecture}";
#clear APT::Architectures;
APT::Architectures "{architecture}";
"""


# Gets packages from the Debian mirror that apt knows, or from the cache, as an ordinary user.
#
# apt's own lists and settings stay as they are: it works in a folder of its own, with the suites
# that
# are wanted as its only sources.


def obtain_packages(parts: Sequence[Package], progress: Callable[[str], None]) -> tuple[Path, ...]:
    """The packages' files in the cache, their hashes verified; apt is asked once for what lacks."""
    wanted = {part: Download("packages", part.file, part.sha256) for part in parts}
    lacking = [part for part in parts if not is_kept(wanted[part], progress)]
    if lacking:
        _fetch({part: wanted[part] for part in lacking}, progress)
    return tuple(one.path for one in wanted.values())


def _fetch(wanted: dict[Package, Download], progress: Callable[[str], None]) -> None:
    if which("apt-get") is None:
        raise InputError("there is no apt-get on PATH", _NO_APT)
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_folder(), prefix="apt-") as folder:
            settings = _prepared(Path(folder), tuple(wanted))
            progress(f"Debian {', '.join(_suites(tuple(wanted)))}: reading the list of packages")
            _run("update", settings)
            for part, one in wanted.items():
                progress(f"{part.requirement}: downloading")
                keep(one, lambda at, part=part, one=one: _download(part, one, at, settings))  # type: ignore[misc]
    except OSError as error:
        raise cache_failure(error) from error


def _suites(parts: Sequence[Package]) -> tuple[str, ...]:
    return tuple(sorted({part.suite for part in parts}))


def _prepared(folder: Path, parts: Sequence[Package]) -> Path:
    """The settings of an apt of our own, whose sources are the suites that are wanted."""
    lists, cache = folder / "lists", folder / "cache"
    for one in (lists / "partial", cache / "archives/partial"):
        one.mkdir(parents=True)
    settings, sources = folder / "apt.conf", folder / "sources.list"
    common = _SETTINGS.format(lists=lists, cache=cache)
    settings.write_text(common)
    site, known = _site(settings), shipped().archive
    keys = next((f" signed-by={one}" for one in known.keyrings if Path(one).is_file()), "")
    sources.write_text(
        "".join(
            f"deb [arch={known.architecture} target=Packages{keys}]"
            f" {site} {suite} {known.component}\n"
            for suite in _suites(parts)
        )
    )
    own = _OWN.format(sources=sources, architecture=known.architecture)
    settings.write_text(common + own)
    return settings


def _site(settings: Path) -> str:
    """The mirror that this machine's apt uses for Debian, which has all suites."""
    indexes = _run("update", settings, "--print-uris")
    sites = dict.fromkeys(_INDEX.findall(indexes))
    path = shipped().archive.path
    found: list[str] = [site for site in sites if site.rstrip("/").rpartition("/")[2] == path]
    if not found:
        raise InputError("apt has no mirror of Debian among its sources", _NO_APT)
    return found[0]


def _download(part: Package, wanted: Download, folder: Path, settings: Path) -> Path:
    try:
        _run("download", settings, part.requirement, folder=folder)
    except ProcessError as error:
        if not _GONE.search(error.stderr):
            raise
        raise InputError(
            f"Debian {part.suite} has no {part.package} {part.version} any more",
            "take another release (policygen headers list), or give a checkout: --cub PATH",
        ) from error
    return checked(wanted, folder, "apt-get", "check which mirror apt uses")


def _run(verb: str, settings: Path, *arguments: str, folder: Path | None = None) -> str:
    # A line may be slow; apt itself gives up on one that is silent.
    return process.run(
        ("apt-get", "--quiet", f"--config-file={settings}", verb, *arguments),
        limit=None,
        network=True,
        install=_NO_APT,
        remedy=_NETWORK,
        folder=folder,
    )


_WHEEL_NETWORK = "check the network and pip's index settings, then run the command again"


# Gets a wheel from PyPI or from the cache.


def obtain_wheel(wheel: Wheel, progress: Callable[[str], None]) -> Path:
    """The wheel's file in the cache, its hash verified."""
    wanted = Download("wheels", wheel.file, wheel.sha256)
    if is_kept(wanted, progress):
        return wanted.path
    progress(f"{wheel.requirement}: downloading")
    return keep(wanted, lambda folder: _wheel_download(wheel, wanted, folder))


def _wheel_download(wheel: Wheel, wanted: Download, folder: Path) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise MissingToolError("pip", _install())
    # A line may be slow; pip itself gives up on one that is silent.
    process.run(
        _command(wheel, folder), limit=None, network=True, install=_install(), remedy=_WHEEL_NETWORK
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
