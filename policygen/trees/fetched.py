"""Manages the folder of fetched trees: its location, its contents and the current tree."""

from collections.abc import Callable, Container, Sequence
from pathlib import Path

from policygen.errors import InputError, PolicygenError, ProcessError, together
from policygen.installation import clone
from policygen.model.trees import CALLED, Cub, Headers, HeadersEntry, Library, State
from policygen.paths import cache_folder, chosen_folder, write_atomically
from policygen.process import stopping
from policygen.trees import downloads
from policygen.trees.archives import difference, unpack, unpack_packages
from policygen.trees.files import failure, is_file, is_folder, listing, read
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
from policygen.trees.manifest import Release, Wheel, shipped

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


def fetched_root(folder: Path, version: str) -> Path | None:
    """Returns the include folder of an unpacked release."""
    name = parse(version)
    return _root(folder, name) if name else None


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
    return (
        difference(name_of(release_source).place(folder), release_source.files)
        if release_source
        else None
    )


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
    try:
        write_atomically(path, f"{version}\n".encode())
    except OSError as error:
        raise failure("write", path, error) from error


def check_vacant(folder: Path, name: Name) -> None:
    """Raises if something other than a tree occupies a tree's place."""
    target = name.place(folder)
    # The last check: another process may have put the tree there in the meantime.
    if is_folder(target) and listing(target) and _root(folder, name) is None:
        library_name = CALLED[name.library]
        raise InputError(
            f"{target} exists, but contains no {library_name}", "Delete it and fetch again"
        )


Progress = Callable[[str], None]


# Fetching


def fetch(version: str, headers_folder: Path, progress: Progress, *, again: bool = False) -> Cub:
    """Unpacks a release from its wheel or packages unless it is there, and makes it current.

    A modified tree is kept unless `again` is set.
    """
    if again or fetched_root(headers_folder, version) is None:
        release_source = source(version)
        name = name_of(release_source)
        check_vacant(headers_folder, name)
        _obtain(release_source, name.place(headers_folder), progress, again=again)
    cub = open_fetched(headers_folder, version)
    make_current(headers_folder, version)
    return cub


def _obtain(
    release_source: Wheel | Release, target: Path, progress: Progress, *, again: bool
) -> None:
    if isinstance(release_source, Wheel):
        archive = downloads.obtain_wheel(release_source, progress)
        progress(f"{release_source.requirement}: unpacking")
        unpack(archive, release_source, target, again=again)
        return
    archives = downloads.obtain_packages(release_source.parts, progress)
    progress(f"{release_source.requirement}: unpacking")
    unpack_packages(archives, release_source, target, again=again)


# Lists of trees, and fetching several of them


def overview(headers_folder: Path, used: Cub | None) -> Headers:
    """Lists all releases that are in the manifest or unpacked, by library, oldest first."""
    unpacked = fetched(headers_folder, None)
    current = {current_tree(headers_folder, library) for library in shipped().libraries}
    names = {*map(name_of, sources()), *filter(None, map(parse, unpacked))}
    trees = tuple(
        _entry(name, headers_folder, _state(str(name), unpacked, current))
        for name in sorted(names, key=lambda name: name.key)
    )
    return Headers(folder=str(headers_folder), trees=trees, used=used)


def _entry(name: Name, folder: Path, state: State) -> HeadersEntry:
    version, release_source = str(name), find_source(str(name))
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
    versions: Sequence[str],
    headers_folder: Path,
    progress: Callable[[str], None],
    *,
    again: bool = False,
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


def _state(version: str, unpacked: Sequence[str], current: Container[str | None]) -> State:
    if version in current:
        return "current"
    return "fetched" if version in unpacked else "absent"
