"""What the driver's management library says of a GPU: clocks, limits, why it is slowed down."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from policygen.measure.device import Clocks

_VERSION_FILE = Path("/proc/driver/nvidia/version")
# NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.82.07  Thu Aug 28 …
_VERSION = re.compile(r"\s(\d+\.\d+(?:\.\d+)?)\s")
REASONS: Mapping[str, str] = {
    "nvmlClocksThrottleReasonHwSlowdown": "a slowdown by the hardware",
    "nvmlClocksEventReasonSwThermalSlowdown": "its temperature",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "its temperature",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "the power supply",
}


@dataclass(frozen=True, slots=True)
class DriverFacts:
    """What the library knows beyond the runtime; nothing where it is missing."""

    driver: str | None = None
    sm_clock: int | None = None
    memory_clock: int | None = None
    power_limit: float | None = None


def facts(uuid: str) -> DriverFacts:
    """Asks for the driver's version, the highest clocks and the power limit."""
    library = management_library()
    if library is None:
        return DriverFacts(driver=driver_of_kernel())
    handle = library.nvmlDeviceGetHandleByUUID(uuid)
    limit = _asked(lambda: library.nvmlDeviceGetEnforcedPowerLimit(handle))
    return DriverFacts(
        driver=str(library.nvmlSystemGetDriverVersion()),
        sm_clock=_asked(lambda: library.nvmlDeviceGetMaxClockInfo(handle, library.NVML_CLOCK_SM)),
        memory_clock=_asked(
            lambda: library.nvmlDeviceGetMaxClockInfo(handle, library.NVML_CLOCK_MEM)
        ),
        power_limit=None if limit is None else limit / 1000,
    )


def clocks(uuid: str) -> Clocks | None:
    """Asks how fast a GPU runs, and why not faster; nothing without the library."""
    library = management_library()
    if library is None:
        return None
    handle = library.nvmlDeviceGetHandleByUUID(uuid)
    now = _asked(lambda: library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_SM))
    bits = _asked(lambda: library.nvmlDeviceGetCurrentClocksEventReasons(handle)) or 0
    return Clocks(now or 0, slowed_by(library, bits))


def slowed_by(library: Any, bits: int) -> tuple[str, ...]:
    """Why a GPU runs slower than it may, in words, of the library's bits."""
    known = ((getattr(library, name, 0), words) for name, words in REASONS.items())
    return tuple(dict.fromkeys(words for bit, words in known if bits & bit))


def _asked(ask: Callable[[], int]) -> int | None:
    """Not every GPU, and not every user, is told everything."""
    library = management_library()
    assert library is not None
    with suppress(library.NVMLError, AttributeError):
        return int(ask())
    return None


@cache
def management_library() -> Any:
    """The library, ready to be asked; none where it, or the driver, is missing."""
    try:
        library = import_module("pynvml")
        library.nvmlInit()
    except Exception:  # noqa: BLE001  not installed, or no driver: whichever words it has
        return None
    return library


def driver_of_kernel() -> str | None:
    """The driver's version as the kernel tells it; none where no driver is loaded."""
    try:
        found = _VERSION.search(_VERSION_FILE.read_text(encoding="utf-8"))
    except OSError:
        return None
    return found and found[1]
