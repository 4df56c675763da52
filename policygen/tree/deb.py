"""What a Debian package holds: nothing is taken of one that is not as a package has to be."""

import lzma
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path, PurePosixPath
from posixpath import normpath

from policygen.errors import InputError
from policygen.tree.archive import MOST_BYTES, MOST_MEMBERS, MOST_PACKED
from policygen.tree.files import failure

MOST_MEMORY = 256 << 20
"""Bytes that unpacking may take; packages are made to need 65 MiB."""
_SPACE = 1 << 20
"""Bytes that may be packed however well."""
_HEAD, _MAGIC, _END = 60, b"!<arch>\n", b"`\n"
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)


def read_package(archive: Path, folder: str) -> Iterator[tuple[str, bytes]]:
    """The files below a folder of a package: `usr/include/hip`.

    Links that stay in the folder are left out: they are old names of what is there.
    """
    try:
        data = archive.read_bytes()
    except OSError as error:
        raise failure("read", archive, error) from error
    try:
        yield from _files(archive, _unpacked(archive, _data(archive, data)), folder)
    except (lzma.LZMAError, tarfile.TarError, EOFError, ValueError) as error:
        raise _refusal(archive, str(error)) from error


def _data(archive: Path, data: bytes) -> bytes:
    """The packed files: `data.tar.xz`, the third member of an ar file."""
    if not data.startswith(_MAGIC):
        raise _refusal(archive, "it is no ar file")
    members: list[str] = []
    at = len(_MAGIC)
    while at < len(data):
        # b"data.tar.xz     1711401461  0     0     100644  174220    `\n"
        head, start = data[at : at + _HEAD], at + _HEAD
        size = head[48:58].strip()
        if len(head) < _HEAD or head[58:] != _END or not size.isdigit():
            raise _refusal(archive, "it is damaged")
        end = start + int(size)
        if end > len(data):
            raise _refusal(archive, "it is cut off")
        members.append(head[:16].decode("latin-1").rstrip(" /"))
        if members[0] != "debian-binary":
            raise _refusal(archive, "it does not begin with debian-binary")
        if members[-1] == "data.tar.xz":
            return data[start:end]
        at = end + end % 2
    names = ", ".join(map(repr, members)) or "nothing"
    raise _refusal(archive, f"it has no data.tar.xz, but {names}")


def _unpacked(archive: Path, packed: bytes) -> bytes:
    most = min(MOST_BYTES, _SPACE + MOST_PACKED * len(packed))
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
    data = unpacker.decompress(packed, max_length=most + 1)
    if len(data) > most:
        raise _refusal(archive, f"it holds over {most:,} bytes")
    if not unpacker.eof:
        raise _refusal(archive, "it is cut off")
    return data


def _files(archive: Path, data: bytes, folder: str) -> Iterator[tuple[str, bytes]]:
    seen: set[str] = set()
    with tarfile.open(fileobj=BytesIO(data), mode="r:") as file:
        for count, member in enumerate(file, 1):
            if count > MOST_MEMBERS:
                raise _refusal(archive, f"it has over {MOST_MEMBERS:,} members")
            name = member.name.removeprefix("./")
            if fault := _fault(member, folder) or ("is there twice" if name in seen else None):
                raise _refusal(archive, f"{member.name!r} {fault}")
            seen.add(name)
            if _is_below(name, folder) and member.type in _PLAIN:
                content = file.extractfile(member)
                assert content is not None
                yield name.removeprefix(f"{folder}/"), content.read()


def _fault(member: tarfile.TarInfo, folder: str) -> str | None:
    path = PurePosixPath(name := member.name)
    below = _is_below(name.removeprefix("./"), folder)
    faults = {
        "leaves its folder": path.is_absolute() or ".." in path.parts or "\\" in name,
        "is no plain name": (
            str(path) != (name.removeprefix("./") or ".") or not name.isprintable() or ":" in name
        ),
        "is no file": below and not _is_usual(member),
        "is a link that leaves its folder": below and member.issym() and _leaves(member, folder),
        "is larger than what there is": member.size > MOST_BYTES,
    }
    return next((words for words, found in faults.items() if found), None)


def _is_usual(member: tarfile.TarInfo) -> bool:
    """A folder, a link that may be left out, a file that says all of its bytes."""
    return member.isdir() or member.issym() or (member.type in _PLAIN and not member.issparse())


def _leaves(link: tarfile.TarInfo, folder: str) -> bool:
    if link.linkname.startswith("/"):
        return True
    at = PurePosixPath(link.name.removeprefix("./")).parent
    return not _is_below(normpath(f"{at}/{link.linkname}"), folder)


def _is_below(name: str, folder: str) -> bool:
    return name.startswith(f"{folder}/")


def _refusal(archive: Path, reason: str) -> InputError:
    return InputError(f"{archive} is no package: {reason}")
