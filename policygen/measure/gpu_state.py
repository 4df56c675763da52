"""How a GPU stands before it is measured on, as the driver's management library tells it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from policygen.measure.nvml import management_library, slowed_by

Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class ClockState:
    """A clock now, and at most, in MHz."""

    now: int | None
    most: int | None


@dataclass(frozen=True, slots=True)
class GpuState:
    """One GPU; nothing where the library does not tell, or not to this user."""

    memory: int | None
    """Bytes that it has."""
    used: int | None
    """Bytes that are taken."""
    sm: ClockState
    memory_clock: ClockState
    power_limit: float | None
    """Watts that it may take now."""
    power_limits: tuple[float, float] | None
    """Watts: the least and the most that the limit can be."""
    slowed: tuple[str, ...]
    """Why it runs slower than it may, now."""
    temperature: int | None
    """Degrees Celsius."""
    persistence: bool | None
    """Whether the driver stays loaded while nobody uses it."""
    ecc: bool | None
    exclusive: bool | None
    """Whether one process at a time may use it."""
    divided: bool | None
    """Whether it is divided into several (MIG)."""
    processes: tuple[int, ...] | None
    """Numbers of the processes that compute on it."""


def gpu_state(uuid: str) -> GpuState | None:
    """Asks for all that matters; nothing where the library or the GPU is missing."""
    library = management_library()
    if library is None:
        return None
    try:
        handle = library.nvmlDeviceGetHandleByUUID(uuid)
    except library.NVMLError:
        return None
    return _read(library, handle)


def _read(library: Any, handle: Any) -> GpuState:
    def told(ask: Callable[[], Told]) -> Told | None:
        # Not every GPU, and not every user, is told everything.
        with suppress(library.NVMLError, AttributeError):
            return ask()
        return None

    def clock(kind: int) -> ClockState:
        return ClockState(
            told(lambda: int(library.nvmlDeviceGetClockInfo(handle, kind))),
            told(lambda: int(library.nvmlDeviceGetMaxClockInfo(handle, kind))),
        )

    memory = told(lambda: library.nvmlDeviceGetMemoryInfo(handle))
    bits = told(lambda: int(library.nvmlDeviceGetCurrentClocksEventReasons(handle))) or 0
    limit = told(lambda: int(library.nvmlDeviceGetEnforcedPowerLimit(handle)))
    limits = told(lambda: library.nvmlDeviceGetPowerManagementLimitConstraints(handle))
    mode = told(lambda: int(library.nvmlDeviceGetComputeMode(handle)))
    running = told(lambda: library.nvmlDeviceGetComputeRunningProcesses(handle))
    return GpuState(
        memory=None if memory is None else int(memory.total),
        used=None if memory is None else int(memory.used),
        sm=clock(library.NVML_CLOCK_SM),
        memory_clock=clock(library.NVML_CLOCK_MEM),
        power_limit=None if limit is None else limit / 1000,
        power_limits=None if limits is None else (limits[0] / 1000, limits[1] / 1000),
        slowed=slowed_by(library, bits),
        temperature=told(
            lambda: int(library.nvmlDeviceGetTemperature(handle, library.NVML_TEMPERATURE_GPU))
        ),
        persistence=told(lambda: bool(library.nvmlDeviceGetPersistenceMode(handle))),
        ecc=told(lambda: bool(library.nvmlDeviceGetCurrentEccMode(handle))),
        exclusive=None if mode is None else mode == library.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
        divided=told(lambda: bool(library.nvmlDeviceGetMigMode(handle)[0])),
        processes=None if running is None else tuple(sorted(one.pid for one in running)),
    )
