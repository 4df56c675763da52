"""Gets packages from the Debian mirror that apt knows, or from the cache, as an ordinary user.

apt's own lists and settings stay as they are: it works in a folder of its own, with the suites that
are wanted as its only sources.
"""

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from policygen import process
from policygen.environment import which
from policygen.errors import InputError, ProcessError
from policygen.paths import cache_failure, cache_folder
from policygen.tree.downloads import Download, checked, is_kept, keep
from policygen.tree.manifest import shipped
from policygen.tree.packages import Package

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


def obtain(parts: Sequence[Package], progress: Callable[[str], None]) -> tuple[Path, ...]:
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
