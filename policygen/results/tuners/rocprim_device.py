"""Where rocPRIM's results were measured, as files of either kind say it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from policygen.errors import InputError
from policygen.model.arch import is_amd, parse_arch
from policygen.results.tuners.tuner_json import quoted, text_at

# gfx942:sramecc+:xnack-
_TARGET = re.compile(r"(gfx[0-9a-f]{3,4})(?::[\w+-]+)*", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)
_MHZ = 1000
"""HIP counts clocks in kHz."""
MOST_MHZ = 1_000_000
ARCH_KEYS = ("hdp_gcn_arch_name", "gcnArchName", "hdp_gcnArchName")


def arch_at(path: Path, place: str, found: object) -> str | None:
    """The architecture of a target: `gfx942:sramecc+:xnack-` is one of gfx942."""
    text = text_at(path, place, found)
    if text is None:
        return None
    match = _TARGET.fullmatch(text.lower())
    if match is None or not is_amd(arch := parse_arch(match[1])):
        raise InputError(
            f"{path}: {place}, {quoted(text)}, is no architecture of AMD's",
            "Such as gfx942, or gfx942:sramecc+:xnack-.",
        )
    return arch


def context_arch(path: Path, context: Mapping[str, Any]) -> str | None:
    """The architecture that a benchmark's context names."""
    key = next((key for key in ARCH_KEYS if key in context), ARCH_KEYS[0])
    return arch_at(path, f"context {key}", context.get(key))


def context_device(path: Path, context: Mapping[str, Any], arch: str | None) -> str | None:
    """The GPU as CCCL's search names one: its bus, its processors, and whether it has ECC."""
    name = text_at(path, "context hdp_name", context.get("hdp_name")) or arch
    bus = number_of(context.get("hdp_memory_bus_width"))
    count = number_of(context.get("hdp_multi_processor_count"))
    if name is None or not bus or not count or "(" in name:
        return name
    ecc = number_of(context.get("hdp_ecc_enabled"))
    told = "" if ecc is None else f", ecc{'on' if ecc else 'off'}"
    return f"{name} ({bus}, {count}{told})"


def context_clocks(context: Mapping[str, Any]) -> tuple[int, int]:
    """MHz of the processor and of its memory, 0 where they are not said."""
    keys = ("hdp_clock_rate", "hdp_memory_clock_rate")
    rates = [(number_of(context.get(key)) or 0) // _MHZ for key in keys]
    processor, memory = (rate if rate <= MOST_MHZ else 0 for rate in rates)
    return processor, memory


def number_of(found: object) -> int | None:
    """A count, also where it is written as a text, as contexts have all of theirs."""
    text = str(found) if isinstance(found, int | str) else ""
    return int(text) if _NUMBER.fullmatch(text) else None
