"""Finds the tree to work on: the first place that has one, in a fixed order."""

import sys
from collections.abc import Callable
from pathlib import Path

from policygen.config import configured
from policygen.environment import named_folder, which
from policygen.errors import InputError
from policygen.model.cub import Cub
from policygen.settings_file import NAME, VARIABLE
from policygen.tree import store
from policygen.tree.files import absolute
from policygen.tree.given import open_given
from policygen.tree.layout import open_root, readable_roots
from policygen.tree.manifest import shipped

TOOLKITS = (Path("/usr/local/cuda"),)
"""Where NVIDIA's installers put a toolkit."""


def find(cub: str | None, cwd: Path) -> Cub:
    """The tree that `--cub` names, else the first that is found; none is an error."""
    if found := find_any(cub, cwd):
        return found
    cwd = absolute(cwd, Path.cwd())
    places = (
        "--cub: not given",
        f"{NAME}: none is named by --config or {VARIABLE}, or it names no tree",
        f"checkout: none around {cwd}",
        f"cub_headers: no version in {store.headers_folder(cwd)}",
        f"wheel: none installed for {sys.executable}",
        f"toolkit: none in {', '.join(map(str, _toolkits()))}",
    )
    rows = "".join(f"\n    {place}" for place in places)
    default = shipped().default
    raise InputError(
        f"no CUB tree found; looked at, in this order:{rows}",
        f"obtain one: policygen headers fetch {default}",
    )


def find_any(cub: str | None, cwd: Path) -> Cub | None:
    """Find the tree that is named, or the first on the way, if there is any."""
    cwd = absolute(cwd, Path.cwd())
    if cub is not None:
        return open_given(cub, cwd, cwd, "--cub")
    searches: tuple[Callable[[Path], Cub | None], ...] = (
        _configured,
        _checkout,
        _fetched,
        _installed,
        _toolkit,
    )
    for search in searches:
        if found := search(cwd):
            return found
    return None


def all_found(cwd: Path) -> dict[str, tuple[Cub, ...]]:
    """All trees of each kind of place that is looked at; fetched ones are told by their folder."""
    cwd = absolute(cwd, Path.cwd())
    checkout = _checkout(cwd)
    layouts = shipped().layouts
    return {
        "checkout": () if checkout is None else (checkout,),
        "wheel": _all(site_folders(), layouts.wheel, "wheel"),
        "toolkit": _all(_toolkits(), layouts.toolkit, "toolkit"),
    }


def _configured(cwd: Path) -> Cub | None:
    config = configured()
    if config is None or config.settings.cub is None:
        return None
    try:
        return open_given(config.settings.cub, config.path.parent, cwd, NAME)
    except InputError as error:
        message = f"{config.path}: cub = {config.settings.cub!r}: {error.message}"
        raise InputError(message, error.remedy) from error


def _checkout(cwd: Path) -> Cub | None:
    layouts = (*shipped().layouts.checkout, ".")
    return _first((cwd, *cwd.parents), layouts, "checkout")


def _fetched(cwd: Path) -> Cub | None:
    folder = store.headers_folder(cwd)
    version = store.current(folder)
    return store.open_fetched(folder, version) if version else None


def _installed(_cwd: Path) -> Cub | None:
    return _first(site_folders(), shipped().layouts.wheel, "wheel")


def _toolkit(_cwd: Path) -> Cub | None:
    return _first(_toolkits(), shipped().layouts.toolkit, "toolkit")


def _first(folders: tuple[Path, ...], layouts: tuple[str, ...], found: str) -> Cub | None:
    for folder in folders:
        if roots := readable_roots(folder, layouts):
            return open_root(roots[0], found)
    return None


def _all(folders: tuple[Path, ...], layouts: tuple[str, ...], found: str) -> tuple[Cub, ...]:
    places = {
        root.resolve(): root for folder in folders for root in readable_roots(folder, layouts)
    }
    return tuple(open_root(root, found) for root in places.values())


def site_folders() -> tuple[Path, ...]:
    """Where the running Python has its packages."""
    return tuple(Path(entry) for entry in sys.path if entry)


def _toolkits() -> tuple[Path, ...]:
    named = (named_folder(name) for name in ("CUDA_HOME", "CUDA_PATH"))
    folders = [folder for folder in named if folder]
    if nvcc := which("nvcc"):
        # TOOLKIT/bin/nvcc, often behind a link in a common folder.
        folders.append(Path(nvcc).resolve().parent.parent)
    return tuple(dict.fromkeys((*folders, *TOOLKITS)))
