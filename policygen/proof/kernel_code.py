"""Reads kernels from cubins and listings, and digests preprocessed units."""

import hashlib
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence

from policygen.bindings.words import outside
from policygen.cache import digest
from policygen.errors import InputError
from policygen.model.machine_code import Kernel
from policygen.proof.lexemes import Spliced
from policygen.proof.units import PLACE, place_of

_MAGIC = b"\x7fELF\x02\x01"
_TEXT, _INFO = ".text.", ".nv.info."
_RESOURCE_SECTIONS = {"SHARED": ".nv.shared.", "CONSTANT[0]": ".nv.constant0."}
_NOBITS = 8
"""The kind of a section without bytes."""
_SIZED = 4
"""The format of attributes with a size of their own; all other values have two bytes."""
_MAX_THREADS, _REQUIRED_THREADS = 0x05, 0x10


def read_cubin(cubin: bytes, source: str) -> dict[str, Kernel]:
    """Returns a cubin's kernels by name; raises if it is incomplete or has none.

    In place of its code, a kernel has a digest of it: equal for equal instructions with equal
    scheduling. Of the resources in `cuobjdump -res-usage`, it has those that the cubin has, too.
    """
    try:
        sections = {name: data for name, data, _ in _sections(cubin)}
        sizes = {name: size for name, _, size in _sections(cubin)}
        sealed_by_name = {}
        for section, data in sections.items():
            if section.startswith(_TEXT):
                name = section.removeprefix(_TEXT)
                sealed_by_name[name] = Kernel(
                    name=name,
                    code=(hashlib.sha256(data).hexdigest(),),
                    resources={
                        resource: sizes.get(f"{prefix}{name}", 0)
                        for resource, prefix in _RESOURCE_SECTIONS.items()
                    },
                    max_threads=_launch_bound(sections.get(f"{_INFO}{name}", b"")),
                )
    except (struct.error, IndexError, ValueError) as error:
        raise InputError(f"{source} is not a complete cubin: {error}") from error
    if not sealed_by_name:
        raise InputError(f"{source}: it contains no recognizable kernel")
    return sealed_by_name


def check_usage(
    usage: Mapping[str, Mapping[str, int]], sealed_by_name: Mapping[str, Kernel]
) -> None:
    """Raises if cuobjdump's kernels or their resources are not those in the cubin."""
    mismatched = sorted(usage.keys() ^ sealed_by_name.keys()) or [
        name
        for name, sealed in sorted(sealed_by_name.items())
        if not sealed.resources.items() <= usage[name].items()
    ]
    if mismatched:
        raise InputError(f"cuobjdump and the cubin disagree about {mismatched[0]}")


def _launch_bound(info: bytes) -> int | None:
    for attribute, value in _attributes(info):
        if attribute in {_MAX_THREADS, _REQUIRED_THREADS}:
            x, y, z = struct.unpack("<3I", value)
            return int(x * y * z)
    return None


def _sections(cubin: bytes) -> Iterator[tuple[str, bytes, int]]:
    """Yields ELF64 sections as name, data and size.

    The offset of the headers is at 0x28; their size, number and name section are at 0x3a. Sections
    without bytes have a size, too.
    """
    if not cubin.startswith(_MAGIC):
        raise ValueError("not a 64-bit ELF file")
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<3H", cubin, 0x3A)
    headers = [struct.unpack_from("<2I4Q", cubin, start + index * size) for index in range(count)]
    _, kind, _, _, offset, length = headers[names]
    strings = cubin[offset : offset + length]
    for name, kind, _, _, offset, length in headers:
        data = b"" if kind == _NOBITS else cubin[offset : offset + length]
        yield strings[name : strings.index(b"\0", name)].decode(), data, length


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields attributes with their values, which are two bytes, or a size and its bytes."""
    offset = 0
    while offset < len(data):
        kind, attribute, value = struct.unpack_from("<2BH", data, offset)
        offset += 4
        if kind == _SIZED:
            yield attribute, data[offset : offset + value]
            offset += value
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


# Reads what `cuobjdump -sass -res-usage` prints.


def read_listing(
    text: str, source: str, sealed_by_name: Mapping[str, Kernel] | None = None
) -> tuple[Kernel, ...]:
    """Returns a listing's kernels by name; raises if it is incomplete or has none.

    Also raises if its code is not that of the kernels in the cubin.
    """
    usage = read_usage(text)
    _, *parts = _FUNCTION.split(text)
    bodies = dict(zip(parts[::2], parts[1::2], strict=True))
    if not bodies:
        raise _unreadable(source, "it contains no recognizable kernel")
    if bodies.keys() != usage.keys():
        name = min(bodies.keys() ^ usage.keys())
        part = "code" if name in usage else "resource usage"
        raise _unreadable(source, f"{name} has no {part}: the listing is truncated")
    if sealed_by_name is not None:
        _check_encodings(bodies, sealed_by_name, source)
    return tuple(
        Kernel(name=name, code=_code(bodies[name], source, name), resources=usage[name])
        for name in sorted(bodies)
    )


def read_usage(text: str) -> dict[str, dict[str, int]]:
    """Returns each kernel's resources, as printed by `cuobjdump -res-usage`."""
    return {
        match[1]: {name: int(value) for name, value in _RESOURCE.findall(match[2])}
        for match in _USAGE.finditer(text)
    }


def _check_encodings(
    bodies: Mapping[str, str], sealed_by_name: Mapping[str, Kernel], source: str
) -> None:
    """Checks that the listed encodings are those in the cubin."""
    if mismatched := sorted(bodies.keys() ^ sealed_by_name.keys()):
        raise _unreadable(source, f"it disagrees with the cubin about {mismatched[0]}")
    for name, body in sorted(bodies.items()):
        words = (int(word, 16) for word in _WORD.findall(body.partition(_END)[0]))
        code = b"".join(word.to_bytes(8, "little") for word in words)
        if (hashlib.sha256(code).hexdigest(),) != sealed_by_name[name].code:
            raise _unreadable(source, f"its code of {name} differs from the cubin's")


def _code(body: str, source: str, name: str) -> tuple[str, ...]:
    head, end, _ = body.partition(_END)
    if not end:
        raise _unreadable(source, f"the code of {name} is incomplete: the listing is truncated")
    instructions = _INSTRUCTION.findall(head)
    code = []
    for position, (address, instruction) in enumerate(instructions):
        if int(address, 16) != position * _STEP:
            raise _unreadable(source, f"{name}: an instruction is missing before {address}")
        if match := _BRANCH.fullmatch(instruction):
            # `BRA 0xf00` at 0xf0 is `BRA +0xe10`, which does not depend on the address.
            code.append(f"{match[1]}{int(match[2], 16) - position * _STEP:+#x}")
        else:
            code.append(instruction)
    # One line names the target's flags, and each instruction has two lines.
    if not instructions or head.count("\n") != 2 * len(instructions) + 1:
        raise _unreadable(source, f"{name} has lines that are not instructions")
    while code and code[-1] == "NOP":
        code.pop()
    return tuple(code)


def _unreadable(source: str, why: str) -> InputError:
    return InputError(f"{source}: {why}", NOTHING)


NOTHING = "It is not used for comparisons."


# Digests preprocessed units, ignoring line numbers and file names.


def ended(unit: str, mark: str) -> str:
    """Ends a unit with its mark, so that truncated output can be detected."""
    return f"{unit}\nextern int {mark};\n"


def content(text: bytes, mark: str, folders: Sequence[str]) -> str:
    """Returns a digest of the compiled text, independent of line and file markers.

    If the text itself depends on its location, the markers count.
    """
    unit, _, last = text.rstrip().rpartition(b"\n")
    if last != f"extern int {mark};".encode() or mark.encode() in unit:
        raise InputError("the preprocessor's output does not end with the given unit", NOTHING)
    quoted = tuple(map(_quote, folders))
    if quoted and not any(_file_name(marker, quoted) for marker in PLACE.finditer(unit)):
        raise InputError("the preprocessor read none of the unit's includes", NOTHING)
    raws = _raw_strings(unit)
    if raws is None or _depends_on_places(unit, quoted):
        return digest(unit)
    parts, position = [], 0
    for start, end in (*raws, (len(unit), len(unit))):
        parts += [_without_markers(unit, position, start), unit[start:end]]
        position = end
    return digest(*parts)


def _raw_strings(text: bytes) -> list[tuple[int, int]] | None:
    """Finds raw strings, in which lines matter; None if the quotes are ambiguous."""
    if b'R"' not in text:
        return []  # no other literal spans lines
    spans = []
    for lexeme in Spliced(text, done=True).lexemes():
        if lexeme.kind == "endless":
            return None
        if lexeme.kind == "raw":
            spans.append((lexeme.start, lexeme.end))
    return spans


def _without_markers(text: bytes, start: int, end: int) -> bytes:
    """Drops `# 12 "file.cuh"` markers, and the whitespace that comments leave."""
    # Text after a raw string is not at the beginning of a line.
    lines = (b" " * bool(start) + text[start:end]).split(b"\n")
    return b"\n".join(
        stripped
        for line in lines
        if (stripped := line.strip()) and not (line.startswith(b"# ") and PLACE.fullmatch(line))
    )


def _file_name(marker: re.Match[bytes], quoted: Sequence[bytes]) -> str | None:
    """Returns the file that lines come from, relative to the include folders."""
    path = marker[2]
    names = (path[len(folder) :] for folder in quoted if path.startswith(folder))
    return next((os.fsdecode(name) for name in names), None)


def _quote(folder: str) -> bytes:
    """Escapes a folder as gcc does between quotes."""
    return b"".join(
        b"\\%c" % byte if byte in b'"\\' else b"%c" % byte if 32 <= byte < 127 else b"\\%03o" % byte
        for byte in os.fsencode(f"{folder}{os.sep}")
    )


def _depends_on_places(text: bytes, quoted: Sequence[bytes]) -> bool:
    """Whether a header uses its line or file name, except where that is known to be harmless."""
    for word in outside().places.words:
        whole_word = re.compile(rb"\b%b\b" % word.encode())
        position = -1
        # A search for the pattern, which begins with a boundary, would take ten times as long.
        while (position := text.find(word.encode(), position + 1)) >= 0:
            if not whole_word.match(text, position) or PLACE.match(
                text, text.rfind(b"\n", 0, position) + 1
            ):
                continue  # part of another word, or of a file name
            marker = place_of(text, position)
            name = None if marker is None else _file_name(marker, quoted)
            if marker is None or (name is not None and name not in outside().places.known):
                return True
    return False
