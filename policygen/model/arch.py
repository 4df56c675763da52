"""GPU architectures: `sm90`, `sm_90`, `90` and `9.0` are the same; AMD's are `gfx942`.

A suffix distinguishes AMD GPUs of the same architecture: `gfx942:mi300x`.
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
BEYOND = 998
"""Greater numbers of NVIDIA's architectures in headers count as this one."""
UNKNOWN = "unknown"
"""rocPRIM's name for an architecture without a config."""

_ARCH_PREFIX = re.compile(r"sm(\d+)_")


def parse_arch(text: str) -> str:
    """Normalizes the spelling of an architecture: `sm90`, `gfx942`."""
    text = text.strip()
    if amd := _AMD.fullmatch(text):
        return amd[0].lower()
    if text == UNKNOWN:
        return text
    match = _SPELLING.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not a GPU architecture; write sm90, sm_90, 90 or 9.0, or gfx942 for AMD"
        )
    major, minor, number, _ = match.groups()
    return f"sm{number or major + minor}"


@cache
def arch_number(arch: str) -> int:
    """Returns 90 for `sm90`; numbers of AMD's architectures only serve for sorting."""
    arch = parse_arch(arch)
    if arch == UNKNOWN:
        return 0
    if not is_amd(arch):
        return int(arch[2:])
    plain, gpu = arch_and_gpu(arch)
    return int.from_bytes(int(plain[3:], 16).to_bytes(2) + gpu.encode().ljust(_GPU_BYTES, b"\0"))


def capability_number(major: str, minor: str) -> int:
    """Returns 103 for `compute_capability{10, 3}`, and at most BEYOND, as CUB compares it."""
    return min(10 * int(major) + int(minor), BEYOND)


def arch_and_gpu(arch: str) -> tuple[str, str]:
    """Splits `gfx942:mi300x` into architecture and GPU, which may be empty."""
    plain, _, gpu = arch.partition(":")
    return plain, gpu


def is_amd(arch: str) -> bool:
    """Returns whether an architecture is AMD's."""
    return arch.startswith("gfx") or arch == UNKNOWN


@cache
def family_arch(name: str) -> int:
    """Returns 90 for `sm90_small_key_tuning`; 0 for a name without an architecture."""
    match = _ARCH_PREFIX.match(name)
    return int(match[1]) if match else 0


def ptx_version_to_arch(number: int) -> str:
    """Converts the number in a policy's name: `Policy900` is for `sm90`."""
    return f"sm{number // 10}"


Arch = Annotated[str, AfterValidator(parse_arch)]
