"""Which CUB a tree holds, and in which dialect its tunings are written."""

import re
from pathlib import Path

from policygen.errors import InputError
from policygen.model.cub import Dialect
from policygen.tree.files import is_file, read
from policygen.tree.manifest import shipped

# "#define CUB_VERSION 300001 // macro expansion with ## requires this to be a single value"
_CUB_VERSION = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+CUB_VERSION[ \t]+(\d+)\b", re.MULTILINE)


def read_version(root: Path) -> str:
    """`3.0.1`, from `CUB_VERSION 300001` in `cub/version.cuh`."""
    path = root / shipped().tree.version
    if not (match := _CUB_VERSION.search(read(path, root))):
        raise InputError(f"{path} does not define CUB_VERSION", "it is not CUB's, or damaged")
    number = int(match[1])
    return f"{number // 100000}.{number // 100 % 1000}.{number % 100}"


def read_dialect(root: Path, version: str) -> Dialect:
    """Told by one small header; by the version where a tree lacks that header."""
    rule = shipped().dialect
    header = root / shipped().tree.tunings / rule.header
    if is_file(header):
        has_selectors = rule.selectors.encode() in read(header, root)
    else:
        has_selectors = version_key(version) >= version_key(rule.since)
    return "selectors" if has_selectors else "specializations"


def version_key(version: str) -> tuple[int, ...]:
    """A key that sorts 3.10.0 behind 3.9.0."""
    return tuple(int(part) for part in version.split("."))
