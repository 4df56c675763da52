"""The GPUs of this machine, as the driver's own program lists them."""

import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from policygen.cache import digest
from policygen.errors import InputError, MissingToolError, PolicygenError
from policygen.gpu.device import Clocks
from policygen.process import run, which
from policygen.untrusted import visible

PROGRAM = "nvidia-smi"
_QUERY = "--query-gpu=name,uuid,compute_cap,driver_version"
_SECONDS = 20.0
_REMEDY = (
    "A GPU of NVIDIA and its driver are needed; without them --compile-only compiles variants, and"
    " policygen measure --doctor says what is missing."
)
# NVIDIA H200, GPU-0fc714b2-91ef-0806-7d53-e5d74e5359b4, 9.0, 580.159.04
VISIBLE = "CUDA_VISIBLE_DEVICES"
"""Which GPUs are meant for a process, as batch systems tell it: numbers, or the beginnings of
UUIDs."""
_ROW = re.compile(r"(.+), ((?:GPU|MIG)-[\w-]+), (\d+)\.(\d+), ([\d.]+)")


@dataclass(frozen=True, slots=True)
class ListedGpu:
    """One GPU, by its number among those that CUDA shows."""

    number: int
    name: str
    uuid: str
    arch: str
    driver: str


def find_gpu(number: int = 0) -> ListedGpu:
    """Finds a GPU by its number; what is missing is an error."""
    found = list_gpus()
    if number >= len(found):
        names = "; ".join(f"{one.number} is {one.name}" for one in found)
        raise InputError(f"there is no GPU {number}", f"There are: {names}")
    return found[number]


def find_gpus(numbers: Sequence[int] | None) -> tuple[ListedGpu, ...]:
    """Finds GPUs of one model by their numbers, in their order; all of them where none is given."""
    found = list_gpus()
    chosen = [find_gpu(number) for number in sorted(set(numbers))] if numbers else found
    check_one_model({f"GPU {one.number}": one.name for one in chosen})
    return tuple(chosen)


def check_one_model(models: Mapping[str, str]) -> None:
    """Refuses GPUs of different models, by what each is called and where it is."""
    if len(set(models.values())) > 1:
        told = "; ".join(f"{place} is {visible(model)}" for place, model in models.items())
        raise InputError(
            f"the GPUs are of different models, and their times cannot be compared: {told}",
            "Measure on those of one model, and on the others with another database.",
        )


def device_environment() -> dict[str, str]:
    """What a process that uses a GPU is told, so that it counts GPUs as we do."""
    found = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if (visible := os.environ.get(VISIBLE)) is not None:
        found[VISIBLE] = visible
    return found


def list_gpus() -> tuple[ListedGpu, ...]:
    """Lists the GPUs that are meant for this process; none is an error."""
    if which(PROGRAM) is None:
        raise MissingToolError("a GPU", _REMEDY)
    try:
        told = run([PROGRAM, _QUERY, "--format=csv,noheader"], limit=_SECONDS, install=_REMEDY)
    except PolicygenError as error:
        raise MissingToolError("a GPU that answers", f"{error}\n  {_REMEDY}") from error
    rows = [match for row in told.splitlines() if (match := _ROW.fullmatch(row.strip()))]
    if not rows:
        raise MissingToolError("a GPU", _REMEDY)
    found = [
        ListedGpu(number, name, uuid, f"sm{major}{minor}", driver)
        for number, (name, uuid, major, minor, driver) in enumerate(row.groups() for row in rows)
    ]
    return tuple(_visible(found, os.environ.get(VISIBLE)))


def _visible(gpus: Sequence[ListedGpu], names: str | None) -> list[ListedGpu]:
    """Those that CUDA shows, in its order: what stands behind a name of none is not looked at."""
    if names is None:
        return list(gpus)
    found: list[ListedGpu] = []
    for name in map(str.strip, names.split(",")):
        one = next((gpu for gpu in gpus if _names(name, gpu)), None)
        if one is None:
            break
        found.append(replace(one, number=len(found)))
    if not found:
        raise MissingToolError(
            f"a GPU: {VISIBLE}={visible(names)!r} names none of the {len(gpus)} that the driver"
            " lists",
            f"Unset {VISIBLE}, or correct it.",
        )
    return found


def _names(name: str, gpu: ListedGpu) -> bool:
    return name == str(gpu.number) or (name.startswith("GPU-") and gpu.uuid.startswith(name))


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


# How a GPU stands before it is measured on, as the driver's management library tells it.


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


# What the driver's management library says of a GPU: clocks, limits, why it is slowed down.


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


SESSION = "session"
"""Who measures: held from the first question to the last answer."""
WORKER = "worker"
"""The process that has the GPU: it may end a moment after the one that started it."""
PLACES = (Path("/run/lock"), Path("/tmp"))  # noqa: S108  all users must look at the same place
_PAUSE = 0.05
_SHOWN = 200
# GPU-5f3b…, MIG-1c2d…
_UUID = re.compile(r"[\w-]{1,80}")


class BusyGpuError(InputError):
    """Somebody else measures on the GPU."""


# One measurement at a time on a GPU: a lock for the whole machine, on the GPU's UUID.


@contextmanager
def gpu_lock(
    uuid: str, role: str = SESSION, patience: float = 0.0, folder: Path | None = None
) -> Iterator[None]:
    """Keeps other measurements off a GPU; waits so many seconds for one that runs."""
    name = uuid if _UUID.fullmatch(uuid) else digest(uuid)
    path = (folder or _place()) / f"policygen-{name}.{role}"
    descriptor = _opened(path)
    try:
        _wait(descriptor, path, uuid, patience)
        _sign(descriptor)
        yield
    finally:
        os.close(descriptor)


def _place() -> Path:
    """A folder in which each user may make a file, and none take away another's."""
    for place in PLACES:
        with suppress(OSError):
            mode = place.stat().st_mode
            if stat.S_ISDIR(mode) and mode & stat.S_ISVTX and mode & stat.S_IWOTH:
                return place
    raise InputError(
        f"there is no folder for the lock of a GPU: neither {' nor '.join(map(str, PLACES))}"
        " is one that all users may write",
        f"Make one: chmod 1777 {PLACES[-1]}",
    )


def _opened(path: Path) -> int:
    """The file, made where there is none; what another user made can be locked, too."""
    safe = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # no link is followed, no pipe waited for
    try:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | safe, 0o666)
        except PermissionError:  # Linux refuses to make what another user has made here
            descriptor = os.open(path, os.O_RDONLY | safe)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    found = os.fstat(descriptor)
    # Of a file with two names the other one may be something that is not to be written.
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(descriptor)
        raise _unusable(path, "it is no file of its own")
    if found.st_uid == os.getuid():
        os.fchmod(descriptor, 0o666)  # what the user's mask took away
    return descriptor


def _unusable(path: Path, why: str) -> InputError:
    return InputError(f"{path}: the lock of a GPU cannot be used: {why}", f"Remove {path}.")


def _wait(descriptor: int, path: Path, uuid: str, patience: float) -> None:
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= end:
                who = _signed(descriptor)
                raise BusyGpuError(
                    f"another measurement runs on {visible(uuid)}: {who or 'of somebody else'}",
                    "Wait until it has ended, or choose another GPU.",
                ) from error
            time.sleep(_PAUSE)
        except OSError as error:
            raise _unusable(path, error.strerror or str(error)) from error
        else:
            return


def _sign(descriptor: int) -> None:
    """Who has it, for others to read; where the file is another user's it stays as it is."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} of user {os.getuid()}".encode(), 0)


def _signed(descriptor: int) -> str:
    text = os.pread(descriptor, _SHOWN, 0).decode(errors="replace").partition("\n")[0]
    return visible(text)
