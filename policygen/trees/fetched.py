"""The folder of fetched trees: where it is, what it holds, which tree is the current one."""

from collections.abc import Callable, Container, Sequence
from pathlib import Path

from policygen.errors import InputError, PolicygenError, ProcessError, together
from policygen.installation import clone
from policygen.model.trees import CALLED, Cub, Headers, HeadersEntry, Library, State
from policygen.paths import cache_folder, chosen_folder, write_atomically
from policygen.process import stopping
from policygen.trees import downloads
from policygen.trees.archives import Difference, difference, unpack, unpack_packages
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
    """`$POLICYGEN_CUB_HEADERS`, that of the checkout that policygen runs from, else the cache.

    What lies in the current folder is not taken for a release of CUB: it may be a stranger's.
    """
    if chosen := chosen_folder("POLICYGEN_CUB_HEADERS", cwd):
        return chosen
    # An installed wheel has the folder inside the package, where trees would outlive it.
    own = clone()
    return (cache_folder() if own is None else own) / FOLDER


def fetched(folder: Path, library: Library | None = "cub") -> tuple[str, ...]:
    """The releases of a library that are unpacked, oldest first; of all, where none is named."""
    if not is_folder(folder):
        return ()
    names = [name for path in listing(folder) if (name := kept_as(path.name))]
    here = [one for one in names if library in {None, one.library} and _root(folder, one)]
    return tuple(str(name) for name in sorted(here, key=lambda name: name.key))


def fetched_root(folder: Path, version: str) -> Path | None:
    """The include folder of an unpacked release."""
    name = parse(version)
    return _root(folder, name) if name else None


def fetched_name(folder: Path, root: Path) -> str | None:
    """How the unpacked release is called that has an include folder."""
    if not root.is_relative_to(folder) or root == folder:
        return None
    name = kept_as(root.relative_to(folder).parts[0])
    return str(name) if name and _root(folder, name) == root else None


def _root(folder: Path, name: Name) -> Path | None:
    root = name.root(folder)
    return root if is_root(root, name.library) else None


def open_fetched(folder: Path, version: str, found: str = "cub_headers") -> Cub:
    """The tree of an unpacked release; one that is not there is an error with the way to it."""
    name = parse(version)
    if name and (root := _root(folder, name)):
        changed = differs(folder, version) is not None
        return open_root(root, found, name.library).model_copy(update={"changed": changed})
    source(version)
    called = f"{CALLED[name.library]} {name.version}" if name else version
    raise InputError(
        f"{called} is not in {folder}", f"obtain it: policygen headers fetch {version}"
    )


def differs(folder: Path, version: str) -> Difference | None:
    """How an unpacked release differs from what was fetched, where that is known."""
    known = find_source(version)
    return difference(name_of(known).place(folder), known.files) if known else None


def current_tree(folder: Path, library: Library = "cub") -> str | None:
    """The release that was fetched last; the newest one where that is gone."""
    versions = fetched(folder, library)
    if is_file(path := folder / current_file(library)):
        chosen = read(path, folder).decode(errors="replace").strip()
        if chosen in versions:
            return chosen
    return versions[-1] if versions else None


def make_current(folder: Path, version: str) -> None:
    """Remembers a release as the one of its library to use."""
    name = parse(version)
    assert name is not None
    path = folder / current_file(name.library)
    if current_tree(folder, name.library) == version and is_file(path):
        # A folder that cannot be written serves those who only read.
        return
    try:
        write_atomically(path, f"{version}\n".encode())
    except OSError as error:
        raise failure("write", path, error) from error


def check_vacant(folder: Path, name: Name) -> None:
    """An error where something that is no tree stands in a tree's place."""
    place = name.place(folder)
    # Looked at last: another process may have put the tree there since nobody found it.
    if is_folder(place) and listing(place) and _root(folder, name) is None:
        called = CALLED[name.library]
        raise InputError(f"{place} is there, but holds no {called}", "delete it and fetch again")


Progress = Callable[[str], None]


# Makes a release the current tree of its library, and fetches it where it is not there yet.


def fetch(version: str, headers_folder: Path, progress: Progress, *, again: bool = False) -> Cub:
    """The tree of a release, as its wheel or packages have it; what is unpacked needs no network.

    One that was changed stays as it is, unless it is wanted again.
    """
    if again or fetched_root(headers_folder, version) is None:
        known = source(version)
        name = name_of(known)
        check_vacant(headers_folder, name)
        _get(known, name.place(headers_folder), progress, again=again)
    cub = open_fetched(headers_folder, version)
    make_current(headers_folder, version)
    return cub


def _get(known: Wheel | Release, target: Path, progress: Progress, *, again: bool) -> None:
    if isinstance(known, Wheel):
        archive = downloads.obtain_wheel(known, progress)
        progress(f"{known.requirement}: unpacking")
        unpack(archive, known, target, again=again)
        return
    archives = downloads.obtain_packages(known.parts, progress)
    progress(f"{known.requirement}: unpacking")
    unpack_packages(archives, known, target, again=again)


# Which trees can be had and which are here, and fetching several of them.


def overview(headers_folder: Path, used: Cub | None) -> Headers:
    """All releases of the manifest and all that are unpacked, by library, oldest first."""
    here = fetched(headers_folder, None)
    current = {current_tree(headers_folder, library) for library in shipped().libraries}
    entries = {
        name_of(one): _known(one, headers_folder, _state(str(name_of(one)), here, current))
        for one in sources()
    }
    others = (name for one in here if (name := parse(one)) and name not in entries)
    entries |= {
        name: _unknown(name, headers_folder, _state(str(name), here, current)) for name in others
    }
    found = tuple(entries[name] for name in sorted(entries, key=lambda name: name.key))
    return Headers(folder=str(headers_folder), trees=found, used=used)


def _known(one: Wheel | Release, folder: Path, state: State) -> HeadersEntry:
    name = name_of(one)
    return HeadersEntry(
        version=str(name),
        library=name.library,
        holds=one.version if isinstance(one, Release) else None,
        wheel=one.requirement,
        dialect=one.dialect,
        specializations=one.specializations if isinstance(one, Wheel) else None,
        state=state,
        changed=_changed(folder, str(name), state),
    )


def _unknown(name: Name, folder: Path, state: State) -> HeadersEntry:
    cub = open_root(name.root(folder), "cub_headers", name.library)
    return HeadersEntry(
        version=str(name),
        library=name.library,
        holds=cub.version if str(name) != name.version else None,
        wheel=None,
        dialect=cub.dialect,
        specializations=None,
        state=state,
    )


def all_versions(headers_folder: Path, chosen: Sequence[str]) -> tuple[str, ...]:
    """Every version of CUB in the manifest; the chosen one, the current or the default is last."""
    last = chosen[-1] if chosen else current_tree(headers_folder) or shipped().default
    others = (wheel.cub for wheel in shipped().wheels)
    return (*(version for version in (*others, *chosen) if version != last), last)


def fetch_all(
    versions: Sequence[str],
    headers_folder: Path,
    progress: Callable[[str], None],
    *,
    again: bool = False,
) -> tuple[Cub, ...]:
    """Fetches one after the other; what failed is reported when all have been tried."""
    trees: list[Cub] = []
    errors: list[PolicygenError] = []
    wanted = tuple(dict.fromkeys(versions))
    for version in wanted:
        try:
            with stopping(lambda: _kept(len(trees), len(wanted))):
                trees.append(fetch(version, headers_folder, progress, again=again))
        except (InputError, ProcessError) as error:
            errors.append(error)
    if errors:
        raise together(errors)
    return tuple(trees)


def _kept(count: int, wanted: int) -> str:
    if not count:
        return "Nothing was fetched yet: the same command begins again."
    return (
        f"{count} of {wanted} trees were fetched and are kept: the same command fetches the rest."
    )


def _state(version: str, here: Sequence[str], current: Container[str | None]) -> State:
    if version in current:
        return "current"
    return "fetched" if version in here else "absent"


def _changed(folder: Path, version: str, state: State) -> tuple[str, ...] | None:
    found = differs(folder, version) if state != "absent" else None
    return None if found is None else found.files
