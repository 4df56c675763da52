"""What a wheel holds: nothing is taken of one that is not as a wheel has to be."""

import base64
import csv
import hashlib
import stat
import zlib
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path, PurePosixPath
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from policygen.errors import InputError
from policygen.tree.files import failure

MOST_MEMBERS = 20_000
MOST_BYTES = 256 << 20
MOST_PACKED = 200
"""How many times larger a member may be than it is in the wheel; headers are up to 60 times."""
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_SPACE = 1 << 12
"""Bytes that may be packed however well."""


def read_files(archive: Path, include: str) -> Iterator[tuple[str, bytes]]:
    """The files below a folder of a wheel, each with the content that its `RECORD` tells."""
    try:
        with ZipFile(BytesIO(_content(archive))) as file:
            members = _checked(archive, file.infolist())
            digests = _record(archive, file, members)
            for name in (*members, *digests.keys() - members.keys()):
                if not name.startswith(f"{include}/"):
                    continue
                data = file.read(members[name]) if name in members else None
                if data is None or digests.get(name) != hashlib.sha256(data).digest():
                    raise _refusal(archive, f"{name!r} is not what RECORD says")
                yield name.removeprefix(f"{include}/"), data
    except (BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
        raise _refusal(archive, str(error)) from error


def _content(archive: Path) -> bytes:
    try:
        return archive.read_bytes()
    except OSError as error:
        raise failure("read", archive, error) from error


def _checked(archive: Path, members: list[ZipInfo]) -> dict[str, ZipInfo]:
    """Its files by name; anything that is odd is refused, wherever it stands."""
    if len(members) > MOST_MEMBERS:
        raise _refusal(archive, f"it has over {MOST_MEMBERS:,} members")
    if sum(member.file_size for member in members) > MOST_BYTES:
        raise _refusal(archive, f"it holds over {MOST_BYTES:,} bytes")
    found: dict[str, ZipInfo] = {}
    for member in members:
        name = member.filename
        if fault := _fault(member) or ("is there twice" if name in found else None):
            raise _refusal(archive, f"{name!r} {fault}")
        found[name] = member
    return {name: member for name, member in found.items() if not member.is_dir()}


def _fault(member: ZipInfo) -> str | None:
    path = PurePosixPath(name := member.filename)
    leaves = path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name
    kind = stat.S_IFMT(member.external_attr >> 16)
    faults = {
        "leaves its folder": leaves,
        "is no plain name": str(path) != name.removesuffix("/") or not name.isprintable(),
        "is encrypted": member.flag_bits & _ENCRYPTED,
        "is no file": kind not in (0, stat.S_IFREG, stat.S_IFDIR),
        "is not packed as in wheels": member.compress_type not in (ZIP_STORED, ZIP_DEFLATED),
        "grows too much when it is unpacked": (
            member.file_size > _SPACE + MOST_PACKED * member.compress_size
        ),
    }
    return next((words for words, found in faults.items() if found), None)


def _record(archive: Path, file: ZipFile, members: Mapping[str, ZipInfo]) -> dict[str, bytes]:
    """The sha256 of each file, as the wheel tells it."""
    records = [name for name in members if PurePosixPath(name).match("*.dist-info/RECORD")]
    if len(records) != 1:
        raise _refusal(archive, f"it has {len(records)} files RECORD")
    rows = csv.reader(file.read(members[records[0]]).decode().splitlines(), strict=True)
    found = {}
    try:
        # cuda/cccl/headers/include/cub/cub.cuh,sha256=7rlS9juxZaNeH242uG5zfVjx1lhVPuQemSx7tn-Q,229
        for name, digest, _ in rows:
            if digest.startswith("sha256="):
                found[name] = base64.urlsafe_b64decode(f"{digest.removeprefix('sha256=')}=")
    except (ValueError, csv.Error) as error:
        raise _refusal(archive, f"{records[0]} cannot be read: {error}") from error
    return found


def _refusal(archive: Path, reason: str) -> InputError:
    return InputError(f"{archive} is no wheel: {reason}")
