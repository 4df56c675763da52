"""Which architecture the text of a config means: `target_arch::gfx942`, `ROCPRIM_ARCH_90a`."""

import re

from policygen.bindings.archs import of_table
from policygen.model.arch import UNKNOWN, parse_arch

# "static_cast<unsigned int>(target_arch::gfx942)", "target_arch::unknown"
_NAMED = re.compile(r"\btarget_arch::(\w+)")
# "ROCPRIM_ARCH_90a", "803"
_NUMBERED = re.compile(r"(?:ROCPRIM_ARCH_)?([0-9]{3,4}|[0-9]{2}[a-f])")


def arch_of(text: str) -> str | None:
    """The architecture that an argument names; none where it is a parameter's."""
    if named := _NAMED.search(text):
        return UNKNOWN if named[1] == UNKNOWN else known_arch(named[1])
    numbered = _NUMBERED.fullmatch(text.strip())
    if numbered is None:
        return None
    own = of_table(int(numbered[1])) if numbered[1].isdigit() else None
    return own or known_arch(f"gfx{numbered[1]}")


def known_arch(text: str) -> str | None:
    """An architecture as it is spelled; none where it is none."""
    try:
        return parse_arch(text)
    except ValueError:
        return None
