"""What a wheel holds: nothing is taken of one that is not as a wheel has to be."""

import base64
import csv
import hashlib
import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path, PurePosixPath
from posixpath import normpath
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from policygen.errors import InputError
from policygen.model.trees import CALLED, Library
from policygen.paths import write_atomically
from policygen.trees.files import failure, is_file, read
from policygen.trees.layout import is_root, read_version
from policygen.trees.manifest import Release, Wheel, shipped

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


MOST_MEMORY = 256 << 20
"""Bytes that unpacking may take; packages are made to need 65 MiB."""
_DEB_SPACE = 1 << 20
"""Bytes that may be packed however well."""
_HEAD, _MAGIC, _END = 60, b"!<arch>\n", b"`\n"
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)


# What a Debian package holds: nothing is taken of one that is not as a package has to be.


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
        raise _deb_refusal(archive, str(error)) from error


def _data(archive: Path, data: bytes) -> bytes:
    """The packed files: `data.tar.xz`, the third member of an ar file."""
    if not data.startswith(_MAGIC):
        raise _deb_refusal(archive, "it is no ar file")
    members: list[str] = []
    at = len(_MAGIC)
    while at < len(data):
        # b"data.tar.xz     1711401461  0     0     100644  174220    `\n"
        head, start = data[at : at + _HEAD], at + _HEAD
        size = head[48:58].strip()
        if len(head) < _HEAD or head[58:] != _END or not size.isdigit():
            raise _deb_refusal(archive, "it is damaged")
        end = start + int(size)
        if end > len(data):
            raise _deb_refusal(archive, "it is cut off")
        members.append(head[:16].decode("latin-1").rstrip(" /"))
        if members[0] != "debian-binary":
            raise _deb_refusal(archive, "it does not begin with debian-binary")
        if members[-1] == "data.tar.xz":
            return data[start:end]
        at = end + end % 2
    names = ", ".join(map(repr, members)) or "nothing"
    raise _deb_refusal(archive, f"it has no data.tar.xz, but {names}")


def _unpacked(archive: Path, packed: bytes) -> bytes:
    most = min(MOST_BYTES, _DEB_SPACE + MOST_PACKED * len(packed))
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
    data = unpacker.decompress(packed, max_length=most + 1)
    if len(data) > most:
        raise _deb_refusal(archive, f"it holds over {most:,} bytes")
    if not unpacker.eof:
        raise _deb_refusal(archive, "it is cut off")
    return data


def _files(archive: Path, data: bytes, folder: str) -> Iterator[tuple[str, bytes]]:
    seen: set[str] = set()
    with tarfile.open(fileobj=BytesIO(data), mode="r:") as file:
        for count, member in enumerate(file, 1):
            if count > MOST_MEMBERS:
                raise _deb_refusal(archive, f"it has over {MOST_MEMBERS:,} members")
            name = member.name.removeprefix("./")
            if fault := _deb_fault(member, folder) or ("is there twice" if name in seen else None):
                raise _deb_refusal(archive, f"{member.name!r} {fault}")
            seen.add(name)
            if _is_below(name, folder) and member.type in _PLAIN:
                content = file.extractfile(member)
                assert content is not None
                yield name.removeprefix(f"{folder}/"), content.read()


def _deb_fault(member: tarfile.TarInfo, folder: str) -> str | None:
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


def _deb_refusal(archive: Path, reason: str) -> InputError:
    return InputError(f"{archive} is no package: {reason}")


# Unpacks what was downloaded to a folder of a tree: all of it or nothing.


def unpack(archive: Path, wheel: Wheel, target: Path, *, again: bool = False) -> None:
    """Writes what stands in a wheel's include folder to `target`, which appears whole.

    Where another process was faster, its tree stays; what is to be there again is replaced.
    """

    def check(folder: Path, files: str) -> None:
        _check(folder, str(archive), "cub", wheel.cub)
        if digest_of(files) != wheel.files:
            raise InputError(f"{archive} holds other files than CUB {wheel.cub} has")

    _write(read_files(archive, wheel.include), target, "cub", check, again=again)


def unpack_packages(
    archives: Sequence[Path], release: Release, target: Path, *, again: bool = False
) -> None:
    """Writes the headers of packages to an include folder in `target`, as a wheel's are."""
    library = release.library
    include = shipped().libraries[library].fetched.include
    names = ", ".join(map(str, archives))

    def check(folder: Path, files: str) -> None:
        _check(folder / include, names, library, release.version)
        if digest_of(files) != release.files:
            raise InputError(
                f"{names} hold other files than {CALLED[library]} {release.version} has"
            )

    contents = (
        (f"{include}/{PurePosixPath(part.folder).name}/{name}", data)
        for archive, part in zip(archives, release.parts, strict=True)
        for name, data in read_package(archive, part.folder)
    )
    _write(contents, target, library, check, again=again)


def _write(
    contents: Iterable[tuple[str, bytes]],
    target: Path,
    library: Library,
    check: Callable[[Path, str], None],
    *,
    again: bool,
) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # The name is one that .gitignore covers and that is no version.
        part = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{target.name}.part-"))
        try:
            files = _extract(contents, part / "tree")
            check(part / "tree", files)
            if again and target.exists():
                target.rename(part / "old")
            _move(part / "tree", target, library)
            write_atomically(listing_file(target), files.encode())
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise failure("unpack to", target, error) from error


def _extract(contents: Iterable[tuple[str, bytes]], folder: Path) -> str:
    """Writes the files; their listing."""
    digests = {}
    for name, data in contents:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        digests[name] = sha256(data).hexdigest()
    return listing(digests)


def _check(root: Path, archive: str, library: Library, version: str) -> None:
    called = CALLED[library]
    actual = f"{called} {read_version(root, library)}" if is_root(root, library) else f"no {called}"
    if actual != f"{called} {version}":
        raise InputError(f"{archive} holds {actual}, not {called} {version}")


def _move(folder: Path, target: Path, library: Library) -> None:
    try:
        folder.rename(target)
    except OSError:
        if not is_root(target / shipped().libraries[library].fetched.include, library):
            raise


@dataclass(frozen=True, slots=True)
class Difference:
    """A tree is not as it was fetched."""

    files: tuple[str, ...]
    """Those that were changed, added or removed; none where it is not known which."""


# Whether a fetched tree is as it was fetched: the one place that says so.
#
# The manifest has a digest of all files of a wheel, or of packages. Which they are stands beside
# the
# tree, so that what differs can be named.


def difference(root: Path, files: str) -> Difference | None:
    """How a fetched tree differs from what the manifest says of its files; all of them are read."""
    try:
        found = _digests(root)
    except OSError as error:
        raise failure("read", Path(error.filename or root), error) from error
    if digest_of(listing(found)) == files:
        return None
    known = _known(root, files)
    names = known.keys() | found.keys() if known else set()
    return Difference(tuple(sorted(n for n in names if known.get(n) != found.get(n))))


def listing(digests: Mapping[str, str]) -> str:
    """Files with their sha256, as `sha256sum --check` takes them."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))


def listing_file(root: Path) -> Path:
    """Where the listing of a fetched tree stands; hidden, and no version."""
    return root.with_name(f".{root.name}.sha256")


def digest_of(files: str) -> str:
    """What the manifest says of a listing."""
    return sha256(files.encode()).hexdigest()


def _known(root: Path, files: str) -> dict[str, str]:
    path = listing_file(root)
    text = read(path, path.parent).decode(errors="replace") if is_file(path) else ""
    if digest_of(text) != files:  # of a policygen that wrote none, or changed itself
        return {}
    return {name: digest for digest, _, name in (row.partition("  ") for row in text.splitlines())}


def _digests(root: Path) -> dict[str, str]:
    """Each file below a folder with its sha256; links are what they lead to, as for a compiler."""
    found: dict[str, str] = {}
    waiting, seen = [("", os.fspath(root))], set()
    while waiting:
        at, folder = waiting.pop()
        if (real := os.path.realpath(folder)) in seen:  # a link leads back
            continue
        seen.add(real)
        with os.scandir(folder) as items:
            for item in items:
                if item.is_dir():
                    waiting.append((f"{at}{item.name}/", item.path))
                elif item.is_file():
                    with open(item.path, "rb", buffering=0) as file:  # noqa: PTH123  thousands
                        found[f"{at}{item.name}"] = sha256(file.read()).hexdigest()
                else:
                    found[f"{at}{item.name}"] = ""  # a pipe, a link to nothing
    return found
