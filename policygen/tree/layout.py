"""Where the include folder of a tree stands, and what belongs to it."""

from collections.abc import Sequence
from pathlib import Path

from policygen.errors import InputError
from policygen.model.cub import Cub
from policygen.tree.files import is_file, is_folder, listing
from policygen.tree.manifest import shipped
from policygen.tree.version import read_dialect, read_version


def roots(folder: Path, layouts: Sequence[str]) -> tuple[Path, ...]:
    """Include folders that hold `cub/version.cuh`, each once, in the order of the layouts."""
    found: dict[Path, Path] = {}
    for layout in layouts:
        candidates = sorted(folder.glob(layout)) if "*" in layout else [folder / layout]
        for root in candidates:
            if is_root(root):
                # A toolkit's `include` is a link to `targets/x86_64-linux/include`.
                found.setdefault(root.resolve(), root)
    return tuple(found.values())


def readable_roots(folder: Path, layouts: Sequence[str]) -> tuple[Path, ...]:
    """The same for a search, which passes by what it may not read."""
    try:
        return roots(folder, layouts)
    except (InputError, OSError):
        return ()


def is_root(folder: Path) -> bool:
    """Whether a folder is the include folder of a tree."""
    return is_file(folder / shipped().tree.version)


def open_root(root: Path, found: str) -> Cub:
    """The tree with this include folder."""
    version = read_version(root)
    return Cub(
        root=str(root),
        version=version,
        dialect=read_dialect(root, version),
        found=found,
        includes=tuple(str(folder) for folder in (root, *_beside(root))),
    )


def _beside(root: Path) -> tuple[Path, ...]:
    """Thrust and libcu++, which a checkout keeps beside CUB and all others with it."""
    layouts = shipped().layouts
    if root.name not in layouts.checkout:
        return ()
    folders = (root.parent / name for name in layouts.beside_checkout)
    return tuple(folder for folder in folders if is_folder(folder))


def tunings_folder(cub: Cub) -> Path:
    """Where a tree has its tuning headers."""
    return Path(cub.root) / shipped().tree.tunings


def tuning_headers(cub: Cub) -> tuple[Path, ...]:
    """The tuning headers of a tree, sorted by name; one that is broken is told when it is read."""
    files = shipped().tree
    folder = tunings_folder(cub)
    if not is_folder(folder):
        raise _no_tunings(cub, f"there is no folder {folder}")
    headers = [path for path in listing(folder) if path.match(files.headers) and not path.is_dir()]
    if not headers:
        raise _no_tunings(cub, f"{folder} holds no {files.headers}")
    return tuple(headers)


def _no_tunings(cub: Cub, where: str) -> InputError:
    return InputError(
        f"CUB {cub.version} in {cub.root} has no tuning headers: {where}",
        "name another tree with --cub",
    )
