"""Finds benchmark sources and gives them CCCL's names."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from policygen.errors import InputError, SourceError
from policygen.source.benchmarks.knowledge import knowledge

SUFFIX = ".cu"
BENCH = "bench"


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """A source and the name of its benchmark."""

    path: Path
    name: str
    root: Path
    """The folder that it and all that it includes lie in."""


def around(folder: Path) -> Path:
    """The checkout that a folder is in: the nearest one above that has benchmarks."""
    if found := _above(folder):
        return found
    raise InputError(
        f"no benchmarks here: no folder above {folder.absolute().as_posix()} has {_folders()}",
        "name a .cu file, a folder of benchmarks, a CCCL checkout or a cccl_meta_bench.csv",
    )


def top(folder: Path) -> Path:
    """The checkout that a folder is in; a folder of one's own is all there is."""
    return _above(folder) or folder


def _above(folder: Path) -> Path | None:
    start = Path(os.path.abspath(folder))  # noqa: PTH100  links stay as the user typed them
    folders = knowledge().files.folders
    candidates = (start, *start.parents)
    return next((c for c in candidates if any((c / known).is_dir() for known in folders)), None)


def checkout(path: Path) -> Path:
    """The checkout that `--cub` names."""
    if not any((path / known).is_dir() for known in knowledge().files.folders):
        raise InputError(
            f"{path.as_posix()} has no {_folders()}",
            "toolkits, wheels and fetched versions have no benchmarks: name a CCCL checkout",
        )
    return path


def benchmarks_folder(path: Path) -> Path:
    """Where a checkout keeps its benchmarks; a folder of another kind is taken for one itself."""
    known = (path / folder for folder in knowledge().files.folders)
    return next((folder for folder in known if folder.is_dir()), path)


def helper_folders(path: Path) -> list[Path]:
    """The folders of a checkout that hold what several benchmarks include."""
    found = (path / helper for helper in knowledge().files.helpers)
    return [helper.parent for helper in found if helper.is_file()]


def _folders() -> str:
    return " or ".join(knowledge().files.folders)


def find(path: Path, errors: list[SourceError]) -> list[BenchmarkFile]:
    """The sources of a file or folder by name; what is wrong goes to `errors`."""
    if not path.is_dir():
        return [BenchmarkFile(path, _name(path, None), top(path.parent))]
    root, above = benchmarks_folder(path), top(path)
    files = _walk(root, frozenset(), errors)
    found = [BenchmarkFile(file, _name(file, root), above) for file in files]
    if not found and not errors:
        raise InputError(
            f"{path.as_posix()} has no benchmark sources", f"their names end in {SUFFIX}"
        )
    return sorted(found, key=lambda file: (file.name, file.path.as_posix()))


def _walk(folder: Path, above: frozenset[Path], errors: list[SourceError]) -> Iterator[Path]:
    """Every .cu below a folder; a link that leads back up is reported, not followed."""
    try:
        real = folder.resolve()
        if real in above:
            errors.append(SourceError(folder.as_posix(), 1, 1, "link to a folder that it is in"))
            return
        entries = sorted(folder.iterdir())
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "links in a circle"
        errors.append(SourceError(folder.as_posix(), 1, 1, f"cannot be read: {reason}"))
        return
    for entry in entries:
        if entry.is_dir():
            yield from _walk(entry, above | {real}, errors)
        elif entry.suffix == SUFFIX:
            yield entry
        elif entry.is_symlink() and not entry.exists():
            errors.append(SourceError(entry.as_posix(), 1, 1, "link that leads nowhere"))


def _name(path: Path, root: Path | None) -> str:
    """`cub.bench.` and the path below the folder `bench`, without the last extension."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100  links stay as the user typed them
    parts = whole.with_suffix("").parts if whole.suffix else whole.parts
    library = "cub"
    if BENCH in parts[:-1]:
        at = len(parts) - 2 - parts[:-1][::-1].index(BENCH)
        if parts[max(0, at - 2) : at] == ("thrust", "benchmarks"):
            library = "thrust"
        below = parts[at + 1 :]
    elif root is None:
        below = parts[-1:]
    else:
        top = len(Path(os.path.abspath(root)).parts)  # noqa: PTH100
        below = parts[top:]
    return ".".join((library, BENCH, *below))
