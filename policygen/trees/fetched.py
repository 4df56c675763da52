"""Manages the folder of fetched trees: its location, its contents and the current tree."""

import importlib.util
import re
import tempfile
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen import process
from policygen.cache import file_sha256
from policygen.errors import InputError, MissingToolError, PolicygenError, ProcessError, together
from policygen.installation import clone, this_python
from policygen.model.trees import CALLED, Cub, Headers, HeadersEntry, Library, State
from policygen.paths import cache_failure, cache_folder, chosen_folder, write_atomically
from policygen.process import stopping, which
from policygen.trees.archives import difference, unpack, unpack_packages
from policygen.trees.files import failing, is_file, is_folder, listing, read
from policygen.trees.layout import (
    Name,
    current_file,
    find_source,
    is_root,
    kept_as,
    name_of,
    open_root,
    parse,
    source,
    sources,
)
from policygen.trees.manifest import Package, Wheel, shipped

FOLDER = "cub_headers"


def headers_folder(cwd: Path) -> Path:
    """Returns `$POLICYGEN_CUB_HEADERS`, else the folder in policygen's checkout, else the cache.

    The current folder is never used: what lies there may not be a genuine release of CUB.
    """
    if chosen := chosen_folder("POLICYGEN_CUB_HEADERS", cwd):
        return chosen
    # An installed wheel contains the folder, but trees must not be unpacked into the package.
    clone_folder = clone()
    return (cache_folder() if clone_folder is None else clone_folder) / FOLDER


def fetched(folder: Path, library: Library | None = "cub") -> tuple[str, ...]:
    """Lists the unpacked releases of a library, or of all libraries, oldest first."""
    if not is_folder(folder):
        return ()
    names = [name for path in listing(folder) if (name := kept_as(path.name))]
    unpacked = [
        release
        for release in names
        if library in {None, release.library} and _root(folder, release)
    ]
    return tuple(str(name) for name in sorted(unpacked, key=lambda name: name.key))


def fetched_name(folder: Path, root: Path) -> str | None:
    """Returns the name of the unpacked release with this include folder."""
    if not root.is_relative_to(folder) or root == folder:
        return None
    name = kept_as(root.relative_to(folder).parts[0])
    return str(name) if name and _root(folder, name) == root else None


def _root(folder: Path, name: Name) -> Path | None:
    root = name.root(folder)
    return root if is_root(root, name.library) else None


def open_fetched(folder: Path, version: str, origin: str = "cub_headers") -> Cub:
    """Opens an unpacked release; if it is missing, the error says how to obtain it."""
    name = parse(version)
    if name and (root := _root(folder, name)):
        changed = differs(folder, version) is not None
        return open_root(root, origin, name.library).model_copy(update={"changed": changed})
    source(version)
    title = f"{CALLED[name.library]} {name.version}" if name else version
    raise InputError(f"{title} is not in {folder}", f"Fetch it: policygen headers fetch {version}")


def differs(folder: Path, version: str) -> tuple[str, ...] | None:
    """Returns the files of an unpacked release that differ; `None` if none does."""
    release_source = find_source(version)
    if release_source is None:
        return None
    return difference(name_of(release_source).place(folder), release_source.files)


def current_tree(folder: Path, library: Library = "cub") -> str | None:
    """Returns the most recently fetched release, or the newest if that was removed."""
    versions = fetched(folder, library)
    if is_file(path := folder / current_file(library)):
        chosen = read(path, folder).decode(errors="replace").strip()
        if chosen in versions:
            return chosen
    return versions[-1] if versions else None


def make_current(folder: Path, version: str) -> None:
    """Records a release as the current one of its library."""
    name = parse(version)
    assert name is not None
    path = folder / current_file(name.library)
    if current_tree(folder, name.library) == version and is_file(path):
        # Nothing to write, so a read-only folder works.
        return
    with failing("write", path):
        write_atomically(path, f"{version}\n".encode())


Progress = Callable[[str], None]


def fetch(version: str, headers_folder: Path, progress: Progress, *, again: bool = False) -> Cub:
    """Unpacks a release from its wheel or packages unless it is there, and makes it current.

    A modified tree is kept unless `again` is set.
    """
    unpacked = parse(version)
    if again or unpacked is None or _root(headers_folder, unpacked) is None:
        release_source = source(version)
        name = name_of(release_source)
        target, called = name.place(headers_folder), CALLED[name.library]
        # The last check: another process may have put the tree there in the meantime.
        if is_folder(target) and listing(target) and _root(headers_folder, name) is None:
            raise InputError(
                f"{target} exists, but contains no {called}", "Delete it and fetch again"
            )
        unpacking = f"{release_source.requirement}: unpacking"
        if isinstance(release_source, Wheel):
            archive = obtain_wheel(release_source, progress)
            progress(unpacking)
            unpack(archive, release_source, target, again=again)
        else:
            archives = obtain_packages(release_source.parts, progress)
            progress(unpacking)
            unpack_packages(archives, release_source, target, again=again)
    cub = open_fetched(headers_folder, version)
    make_current(headers_folder, version)
    return cub


# Lists of trees, and fetching several of them


def overview(headers_folder: Path, used: Cub | None) -> Headers:
    """Lists all releases that are in the manifest or unpacked, by library, oldest first."""
    unpacked = fetched(headers_folder, None)
    current = {current_tree(headers_folder, library) for library in shipped().libraries}
    names = {*map(name_of, sources()), *filter(None, map(parse, unpacked))}
    trees = tuple(
        _entry(name, headers_folder, unpacked, current)
        for name in sorted(names, key=lambda name: name.key)
    )
    return Headers(folder=str(headers_folder), trees=trees, used=used)


def _entry(
    name: Name, folder: Path, unpacked: Sequence[str], current: Container[str | None]
) -> HeadersEntry:
    version, release_source = str(name), find_source(str(name))
    state: State = "fetched" if version in unpacked else "absent"
    if version in current:
        state = "current"
    tree = release_source or open_root(name.root(folder), "cub_headers", name.library)
    return HeadersEntry(
        version=version,
        library=name.library,
        holds=tree.version if version != name.version else None,
        wheel=release_source and release_source.requirement,
        dialect=tree.dialect,
        specializations=tree.specializations if isinstance(tree, Wheel) else None,
        state=state,
        changed=differs(folder, version) if state != "absent" else None,
    )


def all_versions(headers_folder: Path, chosen: Sequence[str]) -> tuple[str, ...]:
    """Lists all CUB versions; the last of the chosen, the current or the default one comes last."""
    last = chosen[-1] if chosen else current_tree(headers_folder) or shipped().default
    known_versions = (wheel.cub for wheel in shipped().wheels)
    return (*(version for version in (*known_versions, *chosen) if version != last), last)


def fetch_all(
    versions: Sequence[str], headers_folder: Path, progress: Progress, *, again: bool = False
) -> tuple[Cub, ...]:
    """Fetches all versions, then reports failures together."""
    trees: list[Cub] = []
    errors: list[PolicygenError] = []
    distinct = tuple(dict.fromkeys(versions))
    for version in distinct:
        try:
            with stopping(lambda: _stop_note(len(trees), len(distinct))):
                trees.append(fetch(version, headers_folder, progress, again=again))
        except (InputError, ProcessError) as error:
            errors.append(error)
    if errors:
        raise together(errors)
    return tuple(trees)


def _stop_note(count: int, total: int) -> str:
    if not count:
        return "Nothing was fetched yet; run the same command again."
    return f"{count} of {total} trees were fetched and are kept; the same command fetches the rest."


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


def is_kept(download: Download, progress: Progress) -> bool:
    """Returns whether an intact file is in the cache; deletes a damaged one."""
    if not is_file(download.path):
        return False
    if sha256_of(download.path) == download.sha256:
        return True
    progress(f"{download.file}: the cached file is damaged")
    with failing("write", download.path.parent):
        download.path.unlink(missing_ok=True)
    return False


def keep(download: Download, bring: Callable[[Path], Path]) -> Path:
    """Moves the file that `bring` downloads to a temporary folder into the cache."""
    parent = download.path.parent
    with failing("write", parent):
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            bring(Path(folder)).replace(download.path)
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
    with failing("read", path):
        return file_sha256(path)


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


def obtain_packages(parts: Sequence[Package], progress: Progress) -> tuple[Path, ...]:
    """Returns the packages' verified files in the cache; missing ones are downloaded together."""
    downloads = {part: Download("packages", part.file, part.sha256) for part in parts}
    missing = [part for part in parts if not is_kept(downloads[part], progress)]
    if missing:
        _fetch({part: downloads[part] for part in missing}, progress)
    return tuple(download.path for download in downloads.values())


def _fetch(downloads: dict[Package, Download], progress: Progress) -> None:
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


def obtain_wheel(wheel: Wheel, progress: Callable[[str], None]) -> Path:
    """Returns the wheel's verified file in the cache, after downloading it if necessary."""
    download = Download("wheels", wheel.file, wheel.sha256)
    if is_kept(download, progress):
        return download.path
    progress(f"{wheel.requirement}: downloading")
    return keep(download, lambda folder: _wheel_download(wheel, download, folder))


def _wheel_download(wheel: Wheel, download: Download, folder: Path) -> Path:
    install, tags = f"{this_python()} -m ensurepip", wheel.tags
    if importlib.util.find_spec("pip") is None:
        raise MissingToolError("pip", install)
    command = (
        *process.python("-m", "pip", "download", "--quiet"),
        *("--no-input", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"),
        *("--platform", tags.platform, "--python-version", tags.python),
        *("--implementation", tags.implementation, "--abi", tags.abi),
        *("--dest", str(folder), wheel.requirement),
    )
    # No time limit for slow connections; pip itself gives up on a silent one.
    process.run(command, limit=None, network=True, install=install, remedy=_WHEEL_NETWORK)
    return checked(download, folder, "pip", "check which package index pip uses")
