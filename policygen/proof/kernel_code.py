"""Reads kernels out of a cubin: whether their code is the same, and their launch bounds."""

import hashlib
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from policygen.bindings.words import outside
from policygen.cache import digest
from policygen.errors import InputError
from policygen.model.machine_code import Kernel
from policygen.proof.lexemes import Spliced
from policygen.proof.units import PLACE, place_of

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


#  Function _ZN3cub…:
#   REG:64 STACK:0 SHARED:13328 LOCAL:0 CONSTANT[0]:580 TEXTURE:0 SURFACE:0 SAMPLER:0
_USAGE = re.compile(r"^ Function (\S+):\n +((?:[A-Z]+(?:\[\d+\])?:\d+ ?)+)\n", re.M)
_RESOURCE = re.compile(r"([A-Z]+(?:\[\d+\])?):(\d+)")
# \t\tFunction : _ZN3cub…
_FUNCTION = re.compile(r"^\t\tFunction : (\S+)\n", re.M)
#         /*00f0*/               @P0 BRA 0xf00 ;      /* 0x0000000c00e80947 */
#                                                      /* 0x000fea0003800000 */
_INSTRUCTION = re.compile(
    r"^ +/\*([0-9a-f]{4,})\*/ +([^;\n]*?) *; +/\* 0x[0-9a-f]{16} \*/\n +/\* 0x[0-9a-f]{16} \*/\n",
    re.M,
)
# @P0 BRA 0xf00, BSSY.RECONVERGENT B0, 0x19c0, BRA.DIV UR5, 0x4360
_BRANCH = re.compile(
    r"((?:@\S+ )?(?:BRA|BRX|BSSY|CALL|JMP|JMX|SSY|PBK|PCNT|CAL)\b[^;]*?)\b0x([0-9a-f]+)$"
)
# /* 0x0000000c00e80947 */ at the end of a line
_WORD = re.compile(r" /\* 0x([0-9a-f]{16}) \*/$", re.M)
_END = "\t\t..........\n"
_STEP = 16
"""Bytes of an instruction, on all architectures since sm70."""


# Reads what `cuobjdump -sass -res-usage` prints: kernels, without what is no code.


def read_listing(
    text: str, source: str, digests: Mapping[str, str] | None = None
) -> tuple[Kernel, ...]:
    """The kernels of a listing, by name; one that is cut short, or holds none, is an error.

    So is one that lists another code than a cubin holds, by the digest of each kernel.
    """
    usage = read_usage(text)
    _, *parts = _FUNCTION.split(text)
    bodies = dict(zip(parts[::2], parts[1::2], strict=True))
    if not bodies:
        raise _unreadable(source, "no kernel is recognised in it")
    if bodies.keys() != usage.keys():
        name = min(bodies.keys() ^ usage.keys())
        what = "code" if name in usage else "resource usage"
        raise _unreadable(source, f"{name} has no {what}: the listing is cut short")
    if digests is not None:
        _check(bodies, digests, source)
    return tuple(
        Kernel(name=name, code=_code(bodies[name], source, name), resources=usage[name])
        for name in sorted(bodies)
    )


def read_usage(text: str) -> dict[str, dict[str, int]]:
    """What each kernel needs, as `cuobjdump -res-usage` has it."""
    return {
        match[1]: {name: int(value) for name, value in _RESOURCE.findall(match[2])}
        for match in _USAGE.finditer(text)
    }


def _check(bodies: Mapping[str, str], digests: Mapping[str, str], source: str) -> None:
    """Instructions are listed with their encoding: it must be that of the cubin."""
    if other := sorted(bodies.keys() ^ digests.keys()):
        raise _unreadable(source, f"it and the cubin do not agree about {other[0]}")
    for name, body in sorted(bodies.items()):
        words = (int(word, 16) for word in _WORD.findall(body.partition(_END)[0]))
        code = b"".join(word.to_bytes(8, "little") for word in words)
        if hashlib.sha256(code).hexdigest() != digests[name]:
            raise _unreadable(source, f"it lists another code of {name} than the cubin has")


def _code(body: str, source: str, name: str) -> tuple[str, ...]:
    head, end, _ = body.partition(_END)
    if not end:
        raise _unreadable(source, f"the code of {name} has no end: the listing is cut short")
    found = _INSTRUCTION.findall(head)
    code = []
    for position, (address, instruction) in enumerate(found):
        if int(address, 16) != position * _STEP:
            raise _unreadable(source, f"{name}: an instruction is missing before {address}")
        code.append(_with_distance(instruction, position * _STEP))
    # One line names the target's flags, each instruction has two.
    if not found or head.count("\n") != 2 * len(found) + 1:
        raise _unreadable(source, f"{name} has lines that are no instructions")
    while code and code[-1] == "NOP":
        code.pop()
    return tuple(code)


def _with_distance(instruction: str, address: int) -> str:
    """`BRA 0xf00` at 0xf0 as `BRA +0xe10`: where it stands does not matter."""
    if match := _BRANCH.fullmatch(instruction):
        return f"{match[1]}{int(match[2], 16) - address:+#x}"
    return instruction


def _unreadable(source: str, why: str) -> InputError:
    return InputError(f"{source}: {why}", "Nothing is compared with it.")


NOTHING = "Nothing is compared with it."


# Names what the preprocessor makes of a unit, whatever lines and files it comes from.


def ended(unit: str, mark: str) -> str:
    """Ends a unit with its mark: what does not end with it is not all of it."""
    return f"{unit}\nextern int {mark};\n"


def content(text: bytes, mark: str, folders: Sequence[str]) -> str:
    """Names what is compiled: the same for the same text, wherever its lines come from.

    Where the text itself asks where it stands, its places count.
    """
    unit, quoted = _unit(text, mark), tuple(map(_quoted, folders))
    if quoted and not any(_name(place, quoted) for place in PLACE.finditer(unit)):
        raise InputError("the preprocessor read nothing of what the unit includes", NOTHING)
    raws = _raws(unit)
    if raws is None or _asks_for_places(unit, quoted):
        return digest(unit)
    parts, at = [], 0
    for start, end in (*raws, (len(unit), len(unit))):
        parts += [_lines(unit, at, start), unit[start:end]]
        at = end
    return digest(*parts)


def _unit(text: bytes, mark: str) -> bytes:
    """Takes what stands before the mark."""
    lines = text.rstrip().rpartition(b"\n")
    if lines[2] != f"extern int {mark};".encode() or mark.encode() in lines[0]:
        raise InputError(
            "what the preprocessor printed does not end with the unit that it was given", NOTHING
        )
    return lines[0]


def _raws(text: bytes) -> list[tuple[int, int]] | None:
    """Finds raw strings, whose lines are text; none where quotes do not tell them for certain."""
    if b'R"' not in text:
        return []  # nothing else spans lines
    found = []
    for one in Spliced(text, done=True).lexemes():
        if one.kind == "endless":
            return None
        if one.kind == "raw":
            found.append((one.start, one.end))
    return found


def _lines(text: bytes, start: int, end: int) -> bytes:
    """Leaves out `# 12 "file.cuh"`, and the space that comments leave."""
    # What follows a raw string does not begin a line.
    lines = (b" " * bool(start) + text[start:end]).split(b"\n")
    return b"\n".join(
        row
        for line in lines
        if (row := line.strip()) and not (line.startswith(b"# ") and PLACE.fullmatch(line))
    )


def _name(place: re.Match[bytes], quoted: Sequence[bytes]) -> str | None:
    """Names the file that lines come from, below the folders that headers are looked for in."""
    path = place[2]
    found = (path[len(folder) :] for folder in quoted if path.startswith(folder))
    return next((os.fsdecode(one) for one in found), None)


def _quoted(folder: str) -> bytes:
    """Spells a folder as gcc writes it between quotes."""
    return b"".join(
        b"\\%c" % byte if byte in b'"\\' else b"%c" % byte if 32 <= byte < 127 else b"\\%03o" % byte
        for byte in os.fsencode(f"{folder}{os.sep}")
    )


def _asks_for_places(text: bytes, quoted: Sequence[bytes]) -> bool:
    """Whether a header asks for lines or files when it is compiled, but where that is known."""
    for word in outside().places.words:
        asked = re.compile(rb"\b%b\b" % word.encode())
        at = -1
        # A pattern that begins with a boundary takes ten times as long to find.
        while (at := text.find(word.encode(), at + 1)) >= 0:
            if not asked.match(text, at) or PLACE.match(text, text.rfind(b"\n", 0, at) + 1):
                continue  # a part of a word, or of a file's name
            place = place_of(text, at)
            name = None if place is None else _name(place, quoted)
            if place is None or (name is not None and name not in outside().places.known):
                return True
    return False
