"""GPU architectures: `sm90`, `sm_90`, `90` and `9.0` name the same one."""

import re
from functools import cache
from typing import Annotated

from pydantic import AfterValidator

# sm90, sm_90, 90, 9.0, SM_103, 12.0, sm_90a
_SPELLING = re.compile(r"(?i)(?:sm_?|compute_?)?(?:(\d+)\.(\d)|(\d{2,3}))([af]?)")

_CALLED = re.compile(r"sm(\d+)_")


def parse_arch(text: str) -> str:
    """The one spelling of an architecture: `sm90`."""
    match = _SPELLING.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no GPU architecture; write sm90, sm_90, 90 or 9.0")
    major, minor, number, _ = match.groups()
    return f"sm{number or major + minor}"


@cache
def arch_number(arch: str) -> int:
    """`sm90` as 90, for sorting."""
    return int(parse_arch(arch)[2:])


@cache
def family_arch(name: str) -> int:
    """`sm90_small_key_tuning` as 90; 0 for a name with no architecture."""
    match = _CALLED.match(name)
    return int(match[1]) if match else 0


def ptx_version_to_arch(number: int) -> str:
    """CUB's policies count in tens: `Policy900` serves `sm90`."""
    return f"sm{number // 10}"


Arch = Annotated[str, AfterValidator(parse_arch)]
