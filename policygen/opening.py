"""Reads untrusted files safely: regular, limited in size, inside their tree; TOML as models.

A link in a tree could lead to a secret that an error message would quote, or to an endless device
or pipe. Documents are measured before they are parsed, because parsers need many times their size,
and some take quadratic time or recurse at each level.
"""

import errno
import os
import re
import stat
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from policygen.errors import InputError, SourceError

MAX_BYTES = 8 << 20
"""No source file of CUB is nearly as large."""
FOLDER = "cub/device/dispatch/tuning"
"""The folder of tuning headers below a tree's include folder."""
DOCUMENT = 32 << 20
"""Maximum bytes of a document, such as a plan, a review or NVBench's JSON; documents about whole
trees have a few megabytes."""
DEPTH = 64
"""Maximum depth of lists, objects and dotted keys; policygen's documents stay below twenty."""
SQLITE = b"SQLite format 3\0"
"""The first bytes of a database."""
MAX_TOML = 1 << 20
"""Maximum bytes of a TOML file; the largest shipped one has fewer than 60,000."""
_MAX_LINE, _MAX_FAULTS = 1000, 20
"""Maximum length of a quoted line, and maximum number of faults, in a message."""
# Invalid value (at line 3, column 5)
_POSITION = re.compile(r" \(at line (\d+), column (\d+)\)\Z")
_PYDANTIC_WORDS = {
    r"^Invalid JSON: .* at (line \d+) (column \d+)$": r"not JSON: \1, \2",
    "^Value error, ": "",
    "^(?:Input|String|Tuple|Dictionary) should ": "it should ",
    "^Field required$": "it is missing",
    "^Extra inputs are not permitted$": "it is an unknown key",
    ", (?:unable to|got a) .*": "",
    "valid dictionary(?: or .*)?$": "table",
    "valid tuple$": "list",
    " after validation": "",
}
"""Pydantic's own words, and their replacements."""
TOO_LONG = "a number has too many digits"
Model = TypeVar("Model", bound=BaseModel)
_PER_VALUE = 32
"""Minimum average bytes per value in a document of maximum size."""
# Strings and comments of JSON and TOML; an unterminated one extends to the end of the document
_TEXT = re.compile(
    rb"""(?s)"{3}(?:[^"\\]++|\\.|"(?!""))*(?:"{3,5}|\Z)|'{3}.*?(?:'{3,5}|\Z)"""
    rb"""|"(?:[^"\\\n]++|\\.)*"?|'[^'\n]*+'?|\#[^\n]*+"""
)
_DOTTED = re.compile(rb"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){%d}" % DEPTH)
_BRACES_TO_BRACKETS = bytes.maketrans(b"{}", b"[]")
_ALL_BUT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


class NotOpenedError(Exception):
    """Why a file is not read, with a remedy."""

    def __init__(self, reason: str, remedy: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


def read_inside(root: Path, path: Path, limit: int | None = None) -> bytes:
    """Reads a file of the tree at `root`; both paths may lead through the user's links."""
    remedy = "It is not a CUB source file." if limit is None else None
    return _read_bounded(_open(root, path), MAX_BYTES if limit is None else limit, remedy)


def read_named(path: Path, limit: int = DOCUMENT) -> bytes:
    """Reads a file that the user names; follows links, rejects pipes and devices."""
    try:
        _check_kind(path.stat().st_mode, "Name a file: pipes and devices are not accepted.")
        return _read_bounded(os.open(path, _READ), limit)
    except NotOpenedError as error:
        raise InputError(f"{path}: {error.reason}", error.remedy) from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def read_bytes(path: Path, root: Path | None = None) -> bytes:
    """Reads a file of the tree at `root`, or by default of the tree around a tuning header."""
    name = path.as_posix()
    try:
        return read_inside(root or tree_around(path), path)
    except NotOpenedError as error:
        raise SourceError(name, 1, 1, error.reason, remedy=error.remedy) from error
    except OSError as error:
        raise SourceError(name, 1, 1, f"cannot be read: {error.strerror or error}") from error


def tree_around(header: Path) -> Path:
    """Returns the include folder of a tuning header, or the folder of a standalone header."""
    folder = header.absolute().parent
    parts = Path(FOLDER).parts
    return folder.parents[len(parts) - 1] if folder.parts[-len(parts) :] == parts else folder


def read_document(path: Path, limit: int = DOCUMENT) -> bytes:
    """Reads a JSON or TOML document; rejects more values or levels than parsers can take."""
    data = read_named(path, limit)
    bare = _TEXT.sub(b"x", data)
    values = bare.count(b",") + bare.count(b"[") + bare.count(b"{")
    if values > (most_values := limit // _PER_VALUE):
        raise InputError(f"{path}: {values:,} values: more than the limit of {most_values:,}")
    if _is_deep(bare) or _DOTTED.search(bare):
        raise InputError(f"{path}: nested more deeply than the limit of {DEPTH} levels")
    return data


def plain_file(folder: Path, name: str) -> Path | None:
    """Returns a regular file below a folder, or `None`; raises for a symbolic link in its path."""
    path = folder
    for part in Path(name).parts:
        path /= part
        if path.is_symlink():
            raise NotOpenedError(f"{name} is a symbolic link", "Replace the link with the file.")
    return path if path.is_file() else None


def beside(path: Path, name: str, label: str = "") -> Path:
    """Opens a file beside a workload's; rejects links, since compiler messages quote the file."""
    try:
        file = plain_file(path.resolve().parent, name)
    except NotOpenedError as error:
        raise InputError(f"{path}: {error.reason}", error.remedy) from error
    if file is None:
        raise InputError(f"{path}: there is no {label}{name} next to it")
    return file


def _is_deep(bare: bytes) -> bool:
    """Returns whether lists and objects are nested more deeply than a parser should handle."""
    depth = 0
    for bracket in bare.translate(_BRACES_TO_BRACKETS, _ALL_BUT_BRACKETS):
        depth += 1 if bracket == ord("[") else -1
        if not 0 <= depth <= DEPTH:  # the parser reports unbalanced brackets
            return depth > DEPTH
    return False


def _read_bounded(descriptor: int, limit: int, remedy: str | None = None) -> bytes:
    """Reads an open regular file completely and closes it."""
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        _check_kind(status.st_mode)
        data = file.read(limit + 1) if status.st_size <= limit else None
    if data is not None and len(data) <= limit:  # otherwise it grew or reports no size
        return data
    size = f"{max(status.st_size, limit + 1):,} bytes"
    limit_text = f"{limit >> 20} MiB" if limit >> 20 else f"{limit:,} bytes"
    raise NotOpenedError(f"{size}: larger than the limit of {limit_text}", remedy)


def contained(root: Path, path: Path) -> Path:
    """Resolves a file of a tree; raises if a link points outside of the tree."""
    top = os.path.realpath(root)
    try:
        resolved = Path(os.path.realpath(path, strict=True))
    except (FileNotFoundError, NotADirectoryError):
        resolved = Path(os.path.realpath(path))
    if resolved.is_relative_to(top):
        return resolved
    unresolved = Path(os.path.abspath(path))  # noqa: PTH100  does not resolve links
    linked = any(unresolved.is_relative_to(base) for base in (top, os.path.abspath(root)))  # noqa: PTH100
    problem = "a link points outside of the tree" if linked else "it lies outside of the tree"
    raise NotOpenedError(
        f"{problem} {top}", "Replace the link with the file, or name the tree that it belongs to."
    )


def _open(root: Path, path: Path) -> int:
    """Opens a file by walking down from the root; rejects links that appeared in the meantime."""
    top = os.path.realpath(root)
    *folders, name = contained(root, path).relative_to(top).parts or (".",)
    directory = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            subdirectory = os.open(
                folder, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=directory
            )
            os.close(directory)
            directory = subdirectory
        # Check first, because opening a device can have side effects.
        _check_kind(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
        return os.open(name, _READ | _NO_LINK, dir_fd=directory)
    finally:
        os.close(directory)


_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC


def _check_kind(mode: int, remedy: str | None = None) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise NotOpenedError("not a regular file", remedy)


# Documents as models


def load_toml(path: Path, model: type[Model]) -> Model:
    """Loads a TOML file as a model; errors name the file, position and key."""
    try:
        text = read_document(path, MAX_TOML).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: byte {error.start}") from error
    # TOML allows both line endings, but tomllib counts columns for \n only.
    return as_model(path, model, _parse(path, text.replace("\r\n", "\n")))


def as_model(path: Path, model: type[Model], values: Mapping[str, Any]) -> Model:
    """Converts parsed values to a model; errors name the file and key."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _invalid(path, model, error) from error


def load_document(path: Path, kind: type[Model], description: str, remedy: str) -> Model:
    """Loads a JSON document; errors name the place where its kind or version is wrong."""
    try:
        return kind.model_validate_json(read_document(path))
    except ValidationError as error:
        raise InputError(f"{path} is not a {description}: {first_fault(error)}", remedy) from error


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        lines, position = text.split("\n"), _POSITION.search(str(error))
        end = len(lines), len(lines[-1]) + 1
        line, column = map(int, position.groups()) if position else end
        is_double = re.match("Cannot |Duplicate ", str(error))
        message = "a key or table is defined twice" if is_double else "not TOML"
        source_line = lines[line - 1] if len(lines[line - 1]) < _MAX_LINE else ""
        raise SourceError(str(path), line, column, message, source_line) from error
    except ValueError as error:
        raise InputError(f"{path}: {TOO_LONG}") from error


def _invalid(path: Path, model: type[BaseModel], error: ValidationError) -> InputError:
    rows = []
    for detail in error.errors(include_url=False)[:_MAX_FAULTS]:
        key = place_of(detail["loc"])
        is_unknown = detail["type"] == "extra_forbidden"
        rows.append(f"unknown key {key}" if is_unknown else f"{key}: {fault(detail)}")
    keys = ", ".join(field.alias or name for name, field in model.model_fields.items())
    return InputError(f"{path}: {'; '.join(rows)}", f"its keys are: {keys}")


def fault(detail: ErrorDetails) -> str:
    """Says what is wrong with a value without the words that Pydantic puts around it."""
    message = detail["msg"]
    for pattern, words in _PYDANTIC_WORDS.items():
        message = re.sub(pattern, words, message)
    return message


def first_fault(error: ValidationError) -> str:
    """Says what is wrong first, and where: `wheels[2].sha256: it is missing`."""
    detail = error.errors(include_url=False)[0]
    return ": ".join(filter(None, (place_of(detail["loc"]), fault(detail))))


def place_of(location: Sequence[int | str]) -> str:
    """Formats a key such as `wheels[2].sha256`."""
    parts = [
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in location if part != "[key]"
    ]
    return "".join(parts).removeprefix(".")
