"""Finds the tree to work on: the first place that has one, in a fixed order."""

import sys
from pathlib import Path

from policygen.config import configured
from policygen.errors import InputError
from policygen.model.cub import CALLED, Cub, Library
from policygen.settings_file import NAME, VARIABLE
from policygen.tree import store
from policygen.tree.files import absolute
from policygen.tree.given import open_given
from policygen.tree.layout import libraries, open_root, readable_roots
from policygen.tree.manifest import shipped
from policygen.tree.toolkits import toolkit_folders

USUAL: Library = "cub"
"""Whose trees are looked for beyond checkouts, where nobody says whose."""


def find(cub: str | None, cwd: Path, library: Library | None = None) -> Cub:
    """The tree that `--cub` names, else the first that is found; none is an error.

    A library is the one whose tree is looked for. Where none is named, a checkout around may be
    any's; elsewhere it is CUB's.
    """
    if found := find_any(cub, cwd, library):
        return found
    cwd, wanted = absolute(cwd, Path.cwd()), library or USUAL
    known = shipped().libraries[wanted]
    places = [
        "--cub: not given",
        f"{NAME}: none is named by --config or {VARIABLE}, or it names no tree",
        f"checkout: none around {cwd}",
        f"cub_headers: no version in {store.headers_folder(cwd)}",
        *([f"wheel: none installed for {sys.executable}"] if known.layouts.wheel else []),
        f"toolkit: none in {', '.join(map(str, toolkit_folders(wanted)))}",
    ]
    rows = "".join(f"\n    {place}" for place in places)
    raise InputError(
        f"no {CALLED[wanted]} tree found; looked at, in this order:{rows}",
        f"obtain one: policygen headers fetch {known.default}",
    )


def find_any(cub: str | None, cwd: Path, library: Library | None = None) -> Cub | None:
    """Find the tree that is named, or the first on the way, if there is any."""
    cwd = absolute(cwd, Path.cwd())
    if cub is not None:
        return open_given(cub, cwd, cwd, "--cub", library)
    if found := _configured(cwd, library) or _checkout(cwd, library):
        return found
    wanted = library or USUAL
    return _fetched(cwd, wanted) or _installed(wanted) or _toolkit(wanted)


def all_found(cwd: Path) -> dict[str, tuple[Cub, ...]]:
    """All trees of each kind of place that is looked at; fetched ones are told by their folder."""
    cwd = absolute(cwd, Path.cwd())
    checkout = _checkout(cwd)
    layouts = shipped().layouts
    return {
        "checkout": () if checkout is None else (checkout,),
        "wheel": _all(site_folders(), layouts.wheel, "wheel"),
        "toolkit": _all(toolkit_folders(), layouts.toolkit, "toolkit"),
    }


def _configured(cwd: Path, library: Library | None = None) -> Cub | None:
    """The tree that settings name; one of another library is none."""
    config = configured()
    if config is None or config.settings.cub is None:
        return None
    try:
        found = open_given(config.settings.cub, config.path.parent, cwd, NAME)
    except InputError as error:
        message = f"{config.path}: cub = {config.settings.cub!r}: {error.message}"
        raise InputError(message, error.remedy) from error
    return found if library in {None, found.library} else None


def _checkout(cwd: Path, library: Library | None = None) -> Cub | None:
    for folder in (cwd, *cwd.parents):
        for one in libraries(library):
            layouts = (*shipped().libraries[one].layouts.checkout, ".")
            if found := _first((folder,), layouts, "checkout", one):
                return found
    return None


def _fetched(cwd: Path, library: Library) -> Cub | None:
    folder = store.headers_folder(cwd)
    name = store.current(folder, library)
    return store.open_fetched(folder, name) if name else None


def _installed(library: Library) -> Cub | None:
    return _first(site_folders(), shipped().libraries[library].layouts.wheel, "wheel", library)


def _toolkit(library: Library) -> Cub | None:
    layouts = shipped().libraries[library].layouts.toolkit
    return _first(toolkit_folders(library), layouts, "toolkit", library)


def _first(
    folders: tuple[Path, ...], layouts: tuple[str, ...], found: str, library: Library
) -> Cub | None:
    for folder in folders:
        if roots := readable_roots(folder, layouts, library):
            return open_root(roots[0], found, library)
    return None


def _all(folders: tuple[Path, ...], layouts: tuple[str, ...], found: str) -> tuple[Cub, ...]:
    places = {
        root.resolve(): root for folder in folders for root in readable_roots(folder, layouts)
    }
    return tuple(open_root(root, found) for root in places.values())


def site_folders() -> tuple[Path, ...]:
    """Where the running Python has its packages."""
    return tuple(Path(entry) for entry in sys.path if entry)
