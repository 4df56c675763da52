"""What tests of the probe share: real trees, and trees with a mistake in them."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from policygen import trees as trees_module
from policygen.model.bindings import BenchmarkBinding
from policygen.paths import cache_folder
from policygen.proof import unreachable
from policygen.proof.oracle import marked_copies
from policygen.proof.reading import ReadTree, read_tree
from policygen.proof.toolchain import find_toolchain
from policygen.proof.units import SiteQuery
from policygen.proof.unreachable import Reachability
from tests import real_trees as trees

TUNINGS = "cub/device/dispatch/tuning"
STORE = str(cache_folder())
"""Where the trees are kept, before a test points the cache elsewhere."""


@cache
def root(version: str) -> Path:
    """The include folder of a version of CUB, whatever `POLICYGEN_CACHE` is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLICYGEN_CACHE", STORE)
        return trees.tree(version)


def header(version: str, name: str) -> bytes:
    """A tuning header as CUB has it."""
    return (root(version) / TUNINGS / name).read_bytes()


def replaced(data: bytes, *changes: tuple[str, str]) -> bytes:
    """A header with other text in some places; each text must be there once."""
    for old, new in changes:
        assert data.count(old.encode()) == 1, (data.count(old.encode()), old)
        data = data.replace(old.encode(), new.encode())
    return data


def changed_tree(folder: Path, version: str, headers: Mapping[str, bytes]) -> Path:
    """A tree that shares its files with a real one, with others in place of some tuning headers.

    It has no links: one that leaves a tree is refused.
    """
    real, made = root(version), folder / "tree"
    made.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(real, made, copy_function=_share)
    for name, data in headers.items():
        header = made / TUNINGS / name
        header.unlink()
        header.write_bytes(data)
    return made


def _share(source: str, target: str) -> None:
    """The same file under a second name; on another file system, a copy of it."""
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def read(path: Path, *headers: str) -> ReadTree:
    """A tree with the headers that are named, or all."""
    return read_tree(trees_module.open_tree(path), headers)


def benchmarks(tried: SiteQuery, *, offsets: bool) -> SiteQuery:
    """The workloads of benchmarks alone; with one offset type they show most entries."""
    points = []
    first: dict[int, str | None] = {}
    for point in tried.points:
        offset = point.values.get("OffsetT")
        if isinstance(point.call, BenchmarkBinding) and (
            offsets or first.setdefault(id(point.call), offset) == offset
        ):
            points.append(point)
    return replace(tried, points=tuple(points))


def reached(
    path: Path, *headers: str, offsets: bool = False, archs: tuple[str, ...] = ()
) -> Reachability:
    """What the benchmarks of a tree select, as `audit reach` finds it out."""
    found, toolchain = read(path, *headers), find_toolchain()
    tried = unreachable.tried_sites(found.cub, found.headers, "specializations")
    fewer = [benchmarks(site, offsets=offsets) for site in tried]
    if archs:
        fewer = [replace(site, archs=archs) for site in fewer]
    result, marked = Reachability(), marked_copies(found, "specializations")
    unreachable.add_reachability(result, found.cub, fewer, marked, toolchain)
    return result


def copied_tree(folder: Path, version: str) -> Path:
    """A real copy, for what does not work on links: git."""
    for part in ("cub", "cuda", "thrust", "nv"):
        shutil.copytree(root(version) / part, folder / part)
    return folder
