"""Reads and unpacks wheels and Debian packages; a malformed archive is rejected as a whole."""

import base64
import csv
import lzma
import os
import stat
import tarfile
import zlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path, PurePosixPath
from posixpath import normpath
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from policygen.errors import InputError
from policygen.model.trees import CALLED, Library
from policygen.paths import write_atomically
from policygen.trees.files import failing, failure, is_file, read, staged
from policygen.trees.layout import is_root, read_version
from policygen.trees.manifest import Release, Wheel, shipped

MOST_MEMBERS = 20_000
MOST_BYTES = 256 << 20
MOST_PACKED = 200
"""Maximum compression ratio of a wheel's member; headers reach about 60."""
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_SMALL_MEMBER = 1 << 12
"""Unpacked bytes for which the compression ratio is not checked."""


def read_files(archive: Path, include: str) -> Iterator[tuple[str, bytes]]:
    """Yields the files in a folder of a wheel with contents that match its `RECORD`."""
    try:
        with ZipFile(BytesIO(_content(archive))) as file:
            members = _checked_members(archive, file.infolist())
            digests = _recorded_digests(archive, file, members)
            for name in (*members, *digests.keys() - members.keys()):
                if not name.startswith(f"{include}/"):
                    continue
                data = file.read(members[name]) if name in members else None
                if data is None or digests.get(name) != sha256(data).digest():
                    raise _invalid_wheel(archive, f"{name!r} does not match RECORD")
                yield name.removeprefix(f"{include}/"), data
    except (BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
        raise _invalid_wheel(archive, str(error) or "it is truncated") from error


def _content(archive: Path) -> bytes:
    with failing("read", archive):
        return archive.read_bytes()


def _checked_members(archive: Path, members: list[ZipInfo]) -> dict[str, ZipInfo]:
    """Returns the wheel's files by name; rejects the wheel if any member is unusual."""
    if len(members) > MOST_MEMBERS:
        raise _invalid_wheel(archive, f"it has over {MOST_MEMBERS:,} members")
    if sum(member.file_size for member in members) > MOST_BYTES:
        raise _invalid_wheel(archive, f"it holds over {MOST_BYTES:,} bytes")
    member_by_name: dict[str, ZipInfo] = {}
    for member in members:
        if fault := _wheel_member_error(member, member_by_name):
            raise _invalid_wheel(archive, f"{member.filename!r} {fault}")
        member_by_name[member.filename] = member
    return {name: member for name, member in member_by_name.items() if not member.is_dir()}


def _wheel_member_error(member: ZipInfo, earlier: Container[str]) -> str | None:
    path = PurePosixPath(name := member.filename)
    leaves = path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name
    kind = stat.S_IFMT(member.external_attr >> 16)
    faults = {
        "points outside of its folder": leaves,
        "is not a plain name": str(path) != name.removesuffix("/") or not name.isprintable(),
        "is encrypted": member.flag_bits & _ENCRYPTED,
        "is not a file": kind not in (0, stat.S_IFREG, stat.S_IFDIR),
        "is not compressed as in wheels": member.compress_type not in (ZIP_STORED, ZIP_DEFLATED),
        "expands too much when unpacked": (
            member.file_size > _SMALL_MEMBER + MOST_PACKED * member.compress_size
        ),
        "appears twice": name in earlier,
    }
    return next((reason for reason, applies in faults.items() if applies), None)


def _recorded_digests(
    archive: Path, file: ZipFile, members: Mapping[str, ZipInfo]
) -> dict[str, bytes]:
    """Returns the sha256 of each file according to the wheel's `RECORD`."""
    records = [name for name in members if PurePosixPath(name).match("*.dist-info/RECORD")]
    if len(records) != 1:
        raise _invalid_wheel(archive, f"it has {len(records)} files RECORD")
    rows = csv.reader(file.read(members[records[0]]).decode().splitlines(), strict=True)
    digests = {}
    try:
        # cuda/cccl/headers/include/cub/cub.cuh,sha256=7rlS9juxZaNeH242uG5zfVjx1lhVPuQemSx7tn-Q,229
        for name, digest, _ in rows:
            if digest.startswith("sha256="):
                digests[name] = base64.urlsafe_b64decode(f"{digest.removeprefix('sha256=')}=")
    except (ValueError, csv.Error) as error:
        raise _invalid_wheel(archive, f"{records[0]} cannot be read: {error}") from error
    return digests


def _invalid_wheel(archive: Path, reason: str) -> InputError:
    return InputError(f"{archive} is not a wheel: {reason}")


MOST_MEMORY = 256 << 20
"""Maximum memory in bytes for decompression; the packages need 65 MiB."""
_SMALL_PACKAGE = 1 << 20
"""Unpacked bytes for which the compression ratio is not checked."""
_HEADER_BYTES, _MAGIC, _HEADER_END = 60, b"!<arch>\n", b"`\n"
_REGULAR_TYPES = (tarfile.REGTYPE, tarfile.AREGTYPE)


# Debian packages


def read_package(archive: Path, folder: str) -> Iterator[tuple[str, bytes]]:
    """Yields the files in a folder of a package, such as `usr/include/hip`.

    Links inside the folder are skipped, since they are old names of files there.
    """
    data = _content(archive)
    try:
        yield from _files_below(archive, _unpack_data(archive, _packed_data(archive, data)), folder)
    except (lzma.LZMAError, tarfile.TarError, EOFError, ValueError) as error:
        raise _invalid_package(archive, str(error)) from error


def _packed_data(archive: Path, data: bytes) -> bytes:
    """Extracts `data.tar.xz`, the third member of the ar file."""
    if not data.startswith(_MAGIC):
        raise _invalid_package(archive, "it is not an ar archive")
    members: list[str] = []
    offset = len(_MAGIC)
    while offset < len(data):
        # b"data.tar.xz     1711401461  0     0     100644  174220    `\n"
        header, start = data[offset : offset + _HEADER_BYTES], offset + _HEADER_BYTES
        size = header[48:58].strip()
        if len(header) < _HEADER_BYTES or header[58:] != _HEADER_END or not size.isdigit():
            raise _invalid_package(archive, "it is damaged")
        end = start + int(size)
        if end > len(data):
            raise _invalid_package(archive, "it is truncated")
        members.append(header[:16].decode("latin-1").rstrip(" /"))
        if members[0] != "debian-binary":
            raise _invalid_package(archive, "it does not start with debian-binary")
        if members[-1] == "data.tar.xz":
            return data[start:end]
        offset = end + end % 2
    names = ", ".join(map(repr, members)) or "nothing"
    raise _invalid_package(archive, f"it has no data.tar.xz, but {names}")


def _unpack_data(archive: Path, packed: bytes) -> bytes:
    limit = min(MOST_BYTES, _SMALL_PACKAGE + MOST_PACKED * len(packed))
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
    data = unpacker.decompress(packed, max_length=limit + 1)
    if len(data) > limit:
        raise _invalid_package(archive, f"it holds over {limit:,} bytes")
    if not unpacker.eof:
        raise _invalid_package(archive, "it is truncated")
    return data


def _files_below(archive: Path, data: bytes, folder: str) -> Iterator[tuple[str, bytes]]:
    seen: set[str] = set()
    with tarfile.open(fileobj=BytesIO(data), mode="r:") as file:
        for count, member in enumerate(file, 1):
            if count > MOST_MEMBERS:
                raise _invalid_package(archive, f"it has over {MOST_MEMBERS:,} members")
            name = member.name.removeprefix("./")
            if fault := _package_member_error(member, folder, seen):
                raise _invalid_package(archive, f"{member.name!r} {fault}")
            seen.add(name)
            if _is_below(name, folder) and member.type in _REGULAR_TYPES:
                content = file.extractfile(member)
                assert content is not None
                yield name.removeprefix(f"{folder}/"), content.read()


def _package_member_error(
    member: tarfile.TarInfo, folder: str, earlier: Container[str]
) -> str | None:
    path = PurePosixPath(name := member.name)
    below = _is_below(name.removeprefix("./"), folder)
    faults = {
        "points outside of its folder": path.is_absolute() or ".." in path.parts or "\\" in name,
        "is not a plain name": (
            str(path) != (name.removeprefix("./") or ".") or not name.isprintable() or ":" in name
        ),
        "is not a file": below
        and not (member.isdir() or member.issym())
        and (member.type not in _REGULAR_TYPES or member.issparse()),
        "is a link that points outside of its folder": below
        and member.issym()
        and _leaves_folder(member, folder),
        "is larger than the remaining data": member.size > MOST_BYTES,
        "appears twice": name.removeprefix("./") in earlier,
    }
    return next((reason for reason, applies in faults.items() if applies), None)


def _leaves_folder(link: tarfile.TarInfo, folder: str) -> bool:
    if link.linkname.startswith("/"):
        return True
    parent = PurePosixPath(link.name.removeprefix("./")).parent
    return not _is_below(normpath(f"{parent}/{link.linkname}"), folder)


def _is_below(name: str, folder: str) -> bool:
    return name.startswith(f"{folder}/")


def _invalid_package(archive: Path, reason: str) -> InputError:
    return InputError(f"{archive} is not a package: {reason}")


# Atomic unpacking to a tree's folder


def unpack(archive: Path, wheel: Wheel, target: Path, *, again: bool = False) -> None:
    """Unpacks a wheel's include folder to `target` atomically.

    A tree that another process put there in the meantime is kept; with `again`, it is replaced.
    """
    contents = read_files(archive, wheel.include)
    _write(contents, [archive], target, "cub", wheel.cub, wheel.files, again=again)


def unpack_packages(
    archives: Sequence[Path], release: Release, target: Path, *, again: bool = False
) -> None:
    """Unpacks the headers of packages to an include folder in `target` atomically."""
    library, version = release.library, release.version
    include = shipped().libraries[library].fetched.include
    contents = (
        (f"{include}/{PurePosixPath(part.folder).name}/{name}", data)
        for archive, part in zip(archives, release.parts, strict=True)
        for name, data in read_package(archive, part.folder)
    )
    _write(contents, archives, target, library, version, release.files, again=again)


def _write(
    contents: Iterable[tuple[str, bytes]],
    archives: Sequence[Path],
    target: Path,
    library: Library,
    version: str,
    expected_files: str,
    *,
    again: bool,
) -> None:
    """Writes the files of archives; raises unless they are the expected ones of that version."""
    include, called = shipped().libraries[library].fetched.include, CALLED[library]
    names = ", ".join(map(str, archives))
    with failing("unpack to", target):
        with staged(target, lambda: is_root(target / include, library), again=again) as staging:
            files, root = _extract(contents, staging), staging / include
            actual = f"no {called}"
            if is_root(root, library):
                actual = f"{called} {read_version(root, library)}"
            if actual != f"{called} {version}":
                raise InputError(f"{names} contains {actual}, not {called} {version}")
            if digest_of(files) != expected_files:
                if len(archives) == 1:
                    raise InputError(f"{names} differs in files from {called} {version}")
                raise InputError(f"{names} differ in files from {called} {version}")
        write_atomically(listing_file(target), files.encode())


def _extract(contents: Iterable[tuple[str, bytes]], folder: Path) -> str:
    digests = {}
    for name, content in contents:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        digests[name] = sha256(content).hexdigest()
    return listing(digests)


# Detection of modified trees
#
# The manifest has a digest of all files of a wheel or of packages. The listing of those files is
# stored beside the tree, so that modified files can be named.


def difference(root: Path, files: str) -> tuple[str, ...] | None:
    """Compares all files of a fetched tree with the manifest's digest; `None` if unmodified.

    Otherwise returns the files that were changed, added or removed; none if they are unknown.
    """
    try:
        actual = _digests(root)
    except OSError as error:
        raise failure("read", Path(error.filename or root), error) from error
    if digest_of(listing(actual)) == files:
        return None
    expected = _read_listing(root, files)
    names = expected.keys() | actual.keys() if expected else set()
    return tuple(sorted(name for name in names if expected.get(name) != actual.get(name)))


def listing(digests: Mapping[str, str]) -> str:
    """Returns names and sha256 digests in the format of `sha256sum --check`."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))


def listing_file(root: Path) -> Path:
    """Returns the path of a tree's listing; it is hidden and does not look like a version."""
    return root.with_name(f".{root.name}.sha256")


def digest_of(files: str) -> str:
    """Returns the digest of a listing, as in the manifest."""
    return sha256(files.encode()).hexdigest()


def _read_listing(root: Path, files: str) -> dict[str, str]:
    path = listing_file(root)
    text = read(path, path.parent).decode(errors="replace") if is_file(path) else ""
    if digest_of(text) != files:  # missing, or modified
        return {}
    return {name: digest for digest, _, name in (row.partition("  ") for row in text.splitlines())}


def _digests(root: Path) -> dict[str, str]:
    """Returns the sha256 of each file below a folder; links are followed, as compilers do."""
    digests: dict[str, str] = {}
    pending, seen = [("", os.fspath(root))], set()
    while pending:
        prefix, folder = pending.pop()
        if (real := os.path.realpath(folder)) in seen:  # a cyclic link
            continue
        seen.add(real)
        with os.scandir(folder) as directory_entries:
            for directory_entry in directory_entries:
                if directory_entry.is_dir():
                    pending.append((f"{prefix}{directory_entry.name}/", directory_entry.path))
                elif directory_entry.is_file():
                    with open(directory_entry.path, "rb", buffering=0) as file:  # noqa: PTH123  thousands
                        digests[f"{prefix}{directory_entry.name}"] = sha256(file.read()).hexdigest()
                else:
                    digests[f"{prefix}{directory_entry.name}"] = ""  # a pipe or a dangling link
    return digests
