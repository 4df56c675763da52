"""Where the include folder of a tree stands, and what belongs to it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from policygen.errors import InputError
from policygen.model.cub import CALLED, Cub, Dialect, Library
from policygen.tree.files import is_file, is_folder, listing, seems_file
from policygen.tree.libraries import DialectRule
from policygen.tree.manifest import shipped
from policygen.tree.toolkits import toolkit_folders
from policygen.tree.version import read_dialect, read_version


def libraries(library: Library | None = None) -> tuple[Library, ...]:
    """The libraries that are looked for, in their order: one, or all."""
    return tuple(shipped().libraries) if library is None else (library,)


def roots(folder: Path, layouts: Sequence[str], library: Library = "cub") -> tuple[Path, ...]:
    """Include folders of a library's trees, each once, in the order of the layouts."""
    checkouts = shipped().libraries[library].layouts.checkout
    found: dict[Path, Path] = {}
    for layout in layouts:
        candidates = sorted(folder.glob(layout)) if "*" in layout else [folder / layout]
        for root in candidates:
            if is_root(root, library, checkout=layout in checkouts):
                # A toolkit's `include` is a link to `targets/x86_64-linux/include`.
                found.setdefault(root.resolve(), root)
    return tuple(found.values())


def readable_roots(
    folder: Path, layouts: Sequence[str], library: Library = "cub"
) -> tuple[Path, ...]:
    """The same for a search, which passes by what it may not read."""
    try:
        return roots(folder, layouts, library)
    except (InputError, OSError):
        return ()


def is_root(folder: Path, library: Library = "cub", *, checkout: bool = False) -> bool:
    """Whether a folder is the include folder of a library's tree."""
    known = shipped().libraries[library].tree
    marks = (known.checkout_mark,) if checkout else known.marks
    return any(is_file(folder / mark) for mark in marks)


def open_root(root: Path, found: str, library: Library = "cub") -> Cub:
    """The tree with this include folder."""
    version = read_version(root, library)
    return Cub(
        root=str(root),
        version=version,
        dialect=read_dialect(root, version, library),
        found=found,
        includes=tuple(
            str(folder) for folder in (root, *_beside(root, library), *_needed(root, library))
        ),
    )


def _beside(root: Path, library: Library) -> tuple[Path, ...]:
    """Thrust and libcu++, which a checkout keeps beside CUB and all others with it."""
    layouts = shipped().libraries[library].layouts
    if root.name not in layouts.checkout:
        return ()
    folders = (root.parent / name for name in layouts.beside_checkout)
    return tuple(folder for folder in folders if is_folder(folder))


def _needed(root: Path, library: Library) -> tuple[Path, ...]:
    """The first toolkit's folder that has the header of others, where the tree itself has not."""
    known = shipped().libraries[library]
    if known.needs is None or is_file(root / known.needs):
        return ()
    places = (
        folder / layout
        for folder in toolkit_folders(library)
        for layout in known.layouts.toolkit
        if seems_file(folder / layout / known.needs)
    )
    return tuple(places)[:1]


def own_folders(cub: Cub) -> tuple[Path, ...]:
    """The include folders of a tree without those of toolkits, which have others' headers."""
    needs = shipped().libraries[cub.library].needs
    folders = tuple(map(Path, cub.include_folders))
    return tuple(
        one for one in folders if one == folders[0] or not (needs and is_file(one / needs))
    )


def tunings_folder(cub: Cub) -> Path:
    """Where a tree has its tuning headers, and where they are written."""
    files, root = shipped().libraries[cub.library].tree, Path(cub.root)
    older = (root / name for name in files.older_tunings)
    newest = root / files.tunings
    return next((one for one in (newest, *older) if is_folder(one)), newest)


def tuning_folders(cub: Cub) -> tuple[Path, ...]:
    """All folders that have tuning headers, that where they are written first."""
    files, root = shipped().libraries[cub.library].tree, Path(cub.root)
    others = ((root / pattern).parent for pattern in files.others)
    return tuple(dict.fromkeys((tunings_folder(cub), *others)))


def tuning_headers(cub: Cub) -> tuple[Path, ...]:
    """The tuning headers of a tree, sorted by name; one that is broken is told when it is read."""
    files, root = shipped().libraries[cub.library].tree, Path(cub.root)
    folder = tunings_folder(cub)
    if not is_folder(folder):
        raise _no_tunings(cub, f"there is no folder {folder}")
    headers = other_headers(cub)
    if folder == root / files.tunings:
        headers |= {*_matching(folder / files.headers)}
    if not headers:
        raise _no_tunings(cub, f"{folder} holds no {files.headers}")
    return tuple(sorted(headers, key=lambda path: path.name))


def other_headers(cub: Cub) -> set[Path]:
    """The tuning headers beside the folder of these."""
    files, root = shipped().libraries[cub.library].tree, Path(cub.root)
    patterns = [root / name for name in files.others if is_folder((root / name).parent)]
    return {path for pattern in patterns for path in _matching(pattern)}


def _matching(pattern: Path) -> Iterator[Path]:
    for path in listing(pattern.parent):
        if path.match(pattern.name) and not path.is_dir():
            yield path


def _no_tunings(cub: Cub, where: str) -> InputError:
    return InputError(
        f"{cub.called} {cub.version} in {cub.root} has no tuning headers: {where}",
        "name another tree with --cub",
    )


def lone_dialect(header: Path) -> Dialect:
    """What a header without a tree is written in, as far as its name says; CUB's older one else."""
    for known in shipped().libraries.values():
        if header.match(known.tree.sources) and not isinstance(known.dialect, DialectRule):
            return known.dialect
    return read_dialect(header.parent, "0")


def check_library(cub: Cub, library: Library | None) -> Cub:
    """The tree; an error where another library's was asked for."""
    if library in {None, cub.library}:
        return cub
    assert library is not None
    raise InputError(
        f"{cub.root} holds {cub.called} {cub.version}, not {CALLED[library]}",
        f"name a tree of {CALLED[library]}, or give --library {cub.library}",
    )
