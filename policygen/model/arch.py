"""GPU architectures: `sm90`, `sm_90`, `90` and `9.0` name the same one; AMD's are `gfx942`."""

import re
from functools import cache
from typing import Annotated

from pydantic import AfterValidator

# sm90, sm_90, 90, 9.0, SM_103, 12.0, sm_90a
_SPELLING = re.compile(r"(?i)(?:sm_?|compute_?)?(?:(\d+)\.(\d)|(\d{2,3}))([af]?)")
# gfx942, gfx90a, gfx1100
_AMD = re.compile(r"(?i)gfx([0-9a-f]{3,4})")
UNKNOWN = "unknown"
"""What rocPRIM calls an architecture that none of its configs is for."""

_CALLED = re.compile(r"sm(\d+)_")


def parse_arch(text: str) -> str:
    """The one spelling of an architecture: `sm90`, `gfx942`."""
    text = text.strip()
    if amd := _AMD.fullmatch(text):
        return f"gfx{amd[1].lower()}"
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
    """`sm90` as 90, `gfx90a` as 0x90a, for sorting; AMD's stand in no line of descent."""
    arch = parse_arch(arch)
    if arch == UNKNOWN:
        return 0
    return int(arch[3:], 16) if is_amd(arch) else int(arch[2:])


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
