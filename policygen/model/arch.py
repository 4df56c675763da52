"""GPU architectures: `sm90`, `sm_90`, `90` and `9.0` name the same one; AMD's are `gfx942`.

One of AMD's GPUs is told from others of its architecture by a name behind it: `gfx942:mi300x`.
"""

import re
from functools import cache
from typing import Annotated

from pydantic import AfterValidator

# sm90, sm_90, 90, 9.0, SM_103, 12.0, sm_90a
_SPELLING = re.compile(r"(?i)(?:sm_?|compute_?)?(?:(\d+)\.(\d)|(\d{2,3}))([af]?)")
# gfx942, gfx90a, gfx1100, gfx942:mi300x
_AMD = re.compile(r"(?i)gfx([0-9a-f]{3,4})(:[a-z]\w{0,15})?")
_GPU_BYTES = 16
UNKNOWN = "unknown"
"""What rocPRIM calls an architecture that none of its configs is for."""

_CALLED = re.compile(r"sm(\d+)_")


def parse_arch(text: str) -> str:
    """The one spelling of an architecture: `sm90`, `gfx942`."""
    text = text.strip()
    if amd := _AMD.fullmatch(text):
        return amd[0].lower()
    if text == UNKNOWN:
        return text
    match = _SPELLING.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is no GPU architecture; write sm90, sm_90, 90 or 9.0, or AMD's as gfx942"
        )
    major, minor, number, _ = match.groups()
    return f"sm{number or major + minor}"


@cache
def arch_number(arch: str) -> int:
    """`sm90` as 90; AMD's stand in no line of descent, theirs are for sorting alone."""
    arch = parse_arch(arch)
    if arch == UNKNOWN:
        return 0
    if not is_amd(arch):
        return int(arch[2:])
    plain, gpu = arch_and_gpu(arch)
    return int.from_bytes(int(plain[3:], 16).to_bytes(2) + gpu.encode().ljust(_GPU_BYTES, b"\0"))


def arch_and_gpu(arch: str) -> tuple[str, str]:
    """`gfx942:mi300x` as its architecture and its GPU, which is empty where it names none."""
    plain, _, gpu = arch.partition(":")
    return plain, gpu


def is_amd(arch: str) -> bool:
    """Whether an architecture is AMD's."""
    return arch.startswith("gfx") or arch == UNKNOWN


@cache
def family_arch(name: str) -> int:
    """`sm90_small_key_tuning` as 90; 0 for a name with no architecture."""
    match = _CALLED.match(name)
    return int(match[1]) if match else 0


def ptx_version_to_arch(number: int) -> str:
    """CUB's policies count in tens: `Policy900` serves `sm90`."""
    return f"sm{number // 10}"


Arch = Annotated[str, AfterValidator(parse_arch)]
