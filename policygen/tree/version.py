"""Which version a tree holds, and in which dialect its tunings are written."""

import re
from pathlib import Path

from policygen.errors import InputError
from policygen.model.cub import CALLED, UNKNOWN, Dialect, Library
from policygen.tree.files import absolute, is_file, read
from policygen.tree.libraries import DialectRule
from policygen.tree.manifest import shipped

# "#define CUB_VERSION 300001 // macro expansion with ## requires this to be a single value"
# "#define ROCPRIM_VERSION 2 * 100000 + 13 * 100 + 1"
_TERMS = rb"((?:\d{1,9}[ \t]*[*+][ \t]*){0,8}\d{1,9})\b"
_DEFINED = rb"^[ \t]*#[ \t]*define[ \t]+%s[ \t]+" + _TERMS + rb"[ \t]*(?![ \t*+])"
# set(VERSION_STRING "3.3.0")
_SET = rb'^[ \t]*set[ \t]*\([ \t]*%s[ \t]+"(\d{1,4}\.\d{1,3}\.\d{1,2})"[ \t]*\)'


def read_version(root: Path, library: Library = "cub") -> str:
    """`3.0.1`, from `CUB_VERSION 300001` in `cub/version.cuh`; `unknown` where no file says it."""
    rule = shipped().libraries[library].tree.version
    path = root / rule.file
    if rule.project and not is_file(path):
        return _project_version(root, library) or UNKNOWN
    found = _search(_DEFINED, rule.macro, read(path, root))
    if not found:
        raise InputError(
            f"{path} does not define {rule.macro}", f"it is not {CALLED[library]}'s, or damaged"
        )
    number = _sum(found)
    return f"{number // 100000}.{number // 100 % 1000}.{number % 100}"


def _project_version(root: Path, library: Library) -> str | None:
    """What a checkout says, which has the header only as a template."""
    if (path := project_file(root, library)) is None:
        return None
    variable = shipped().libraries[library].tree.version.variable
    return _search(_SET, variable, read(path, path.parent))


def project_file(root: Path, library: Library) -> Path | None:
    """The file of a checkout that says its version, where a library has one."""
    rule = shipped().libraries[library].tree.version
    path = absolute(rule.project, root) if rule.project else None
    return path if path and is_file(path) else None


def _search(pattern: bytes, name: str, data: bytes) -> str | None:
    match = re.search(pattern % re.escape(name.encode()), data, re.MULTILINE)
    return match[1].decode() if match else None


def _sum(text: str) -> int:
    """`2 * 100000 + 10 * 100 + 9`, as C++ counts it."""
    total = 0
    for product in text.split("+"):
        value = 1
        for factor in product.split("*"):
            value *= int(factor)
        total += value
    return total


def read_dialect(root: Path, version: str, library: Library = "cub") -> Dialect:
    """Told by one small header; by the version where a tree lacks that header."""
    known = shipped().libraries[library]
    rule = known.dialect
    if not isinstance(rule, DialectRule):
        return rule
    header = root / known.tree.tunings / rule.header
    if is_file(header):
        has_selectors = rule.selectors.encode() in read(header, root)
    else:
        has_selectors = version_key(version) >= version_key(rule.since)
    return "selectors" if has_selectors else "specializations"


def version_key(version: str) -> tuple[int, ...]:
    """A key that sorts 3.10.0 behind 3.9.0."""
    return tuple(int(part) for part in version.split("."))
