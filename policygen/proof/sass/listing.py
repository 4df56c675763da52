"""Reads what `cuobjdump -sass -res-usage` prints: kernels, without what is no code."""

import hashlib
import re
from collections.abc import Mapping

from policygen.errors import InputError
from policygen.model.sass import Kernel

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
