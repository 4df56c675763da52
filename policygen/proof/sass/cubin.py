"""Reads kernels out of a cubin: whether their code is the same, and their launch bounds."""

import hashlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from policygen.errors import InputError

_MAGIC = b"\x7fELF\x02\x01"
_TEXT, _INFO = ".text.", ".nv.info."
_SIZED = 4
"""The format of an attribute whose value has a size of its own; all others have two bytes."""
_MAX_THREADS, _REQUIRED_THREADS = 0x05, 0x10


@dataclass(frozen=True, slots=True)
class Sealed:
    """A kernel that is not disassembled."""

    digest: str
    """Of its code: the same for the same instructions, scheduled the same."""
    max_threads: int | None
    """The threads of a block that it was compiled for, where it has a bound."""
    resources: Mapping[str, int] = field(default_factory=dict)
    """Of what `cuobjdump -res-usage` tells, that which the cubin tells, too."""


def read_cubin(cubin: bytes, source: str) -> dict[str, Sealed]:
    """The kernels of a cubin, by name; one that is not whole, or has none, is an error."""
    try:
        sections = {name: data for name, data, _ in _sections(cubin)}
        sizes = {name: size for name, _, size in _sections(cubin)}
        found = {}
        for section, data in sections.items():
            if section.startswith(_TEXT):
                name = section.removeprefix(_TEXT)
                digest = hashlib.sha256(data).hexdigest()
                bound = _bound(sections.get(f"{_INFO}{name}", b""))
                found[name] = Sealed(digest, bound, _resources(name, sizes))
    except (struct.error, IndexError, ValueError) as error:
        raise InputError(f"{source} is no whole cubin: {error}") from error
    if not found:
        raise InputError(f"{source}: no kernel is recognised in it")
    return found


def check_usage(usage: Mapping[str, Mapping[str, int]], found: Mapping[str, Sealed]) -> None:
    """Raises where cuobjdump tells of other kernels, or of other needs, than the cubin holds."""
    wrong = sorted(usage.keys() ^ found.keys()) or [
        name
        for name, one in sorted(found.items())
        if not one.resources.items() <= usage[name].items()
    ]
    if wrong:
        raise InputError(f"cuobjdump and the cubin do not agree about {wrong[0]}")


def _bound(info: bytes) -> int | None:
    for attribute, value in _attributes(info):
        if attribute in {_MAX_THREADS, _REQUIRED_THREADS}:
            x, y, z = struct.unpack("<3I", value)
            return int(x * y * z)
    return None


def _resources(name: str, sizes: Mapping[str, int]) -> dict[str, int]:
    return {
        resource: sizes.get(f"{section}{name}", 0)
        for resource, section in (("SHARED", ".nv.shared."), ("CONSTANT[0]", ".nv.constant0."))
    }


def _sections(cubin: bytes) -> Iterator[tuple[str, bytes, int]]:
    """ELF64's section headers: offset at 0x28, then size, number and that of the names at 0x3a.

    The size is told of those, too, that have no bytes.
    """
    if not cubin.startswith(_MAGIC):
        raise ValueError("it is no ELF file of 64 bits")
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<3H", cubin, 0x3A)
    headers = [struct.unpack_from("<2I4Q", cubin, start + i * size) for i in range(count)]
    _, kind, _, _, where, length = headers[names]
    strings = cubin[where : where + length]
    for name, kind, _, _, where, length in headers:
        data = b"" if kind == 8 else cubin[where : where + length]  # 8: it has no bytes
        yield strings[name : strings.index(b"\0", name)].decode(), data, length


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Format, attribute, and a value of two bytes, or its size and then the value."""
    at = 0
    while at < len(data):
        kind, attribute, value = struct.unpack_from("<2BH", data, at)
        at += 4
        if kind == _SIZED:
            yield attribute, data[at : at + value]
            at += value
        else:
            yield attribute, struct.pack("<H", value)
