"""Which files differ between two trees."""

from collections.abc import Iterator
from pathlib import Path

from policygen.errors import InputError
from policygen.model.cub import Cub


def changed_files(before: Cub, after: Cub) -> tuple[Path, ...]:
    """Files and folders that differ, or that one tree lacks, as the tree after has them."""
    pairs = zip(before.include_folders, after.include_folders, strict=False)
    try:
        found = {path for old, new in pairs for path in _changed(Path(old), Path(new))}
    except (OSError, RuntimeError) as error:  # Python calls links in a circle a runtime error
        raise InputError(f"cannot compare {after.root} with {before.root}: {error}") from error
    return tuple(sorted(found))


def _changed(old: Path, new: Path) -> Iterator[Path]:
    if old.resolve() == new.resolve():
        return
    if old.is_dir() and new.is_dir():
        for name in {path.name for folder in (old, new) for path in folder.iterdir()}:
            yield from _changed(old / name, new / name)
    elif not (old.is_file() and new.is_file()) or not _same(old, new):
        yield new


def _same(old: Path, new: Path) -> bool:
    """What is of another size needs not be read."""
    return old.stat().st_size == new.stat().st_size and old.read_bytes() == new.read_bytes()
