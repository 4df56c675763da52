"""The GPUs of this machine, as listed by nvidia-smi."""

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
    "An NVIDIA GPU and its driver are needed; policygen measure --doctor shows what is missing."
    " Without them, policygen measure --compile-only compiles variants."
)
# NVIDIA H200, GPU-0fc714b2-91ef-0806-7d53-e5d74e5359b4, 9.0, 580.159.04
VISIBLE = "CUDA_VISIBLE_DEVICES"
"""GPUs that a batch system assigned to a process: numbers, or prefixes of UUIDs."""
_ROW = re.compile(r"(.+), ((?:GPU|MIG)-[\w-]+), (\d+)\.(\d+), ([\d.]+)")


@dataclass(frozen=True, slots=True)
class ListedGpu:
    """A GPU with its index among the visible ones."""

    number: int
    name: str
    uuid: str
    arch: str
    driver: str


def find_gpu(number: int = 0) -> ListedGpu:
    """Return a GPU by its index; raise an error if there is none."""
    gpus = list_gpus()
    if number >= len(gpus):
        names = "; ".join(f"{gpu.number} is {gpu.name}" for gpu in gpus)
        raise InputError(f"there is no GPU {number}", f"Available: {names}")
    return gpus[number]


def find_gpus(numbers: Sequence[int] | None) -> tuple[ListedGpu, ...]:
    """Return GPUs of one model by index in ascending order; by default all."""
    gpus = list_gpus()
    chosen = [find_gpu(number) for number in sorted(set(numbers))] if numbers else gpus
    check_one_model({f"GPU {gpu.number}": gpu.name for gpu in chosen})
    return tuple(chosen)


def check_one_model(models: Mapping[str, str]) -> None:
    """Raise InputError for GPUs of different models; `models` maps places to model names."""
    if len(set(models.values())) > 1:
        listing = "; ".join(f"{place} is {visible(model)}" for place, model in models.items())
        raise InputError(
            f"the GPUs are different models, so their times are not comparable: {listing}",
            "Measure on the GPUs of one model, and on the others with another database.",
        )


def device_environment() -> dict[str, str]:
    """Return the environment that makes a GPU process number GPUs like this one."""
    environment = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if (visible := os.environ.get(VISIBLE)) is not None:
        environment[VISIBLE] = visible
    return environment


def list_gpus() -> tuple[ListedGpu, ...]:
    """List the visible GPUs; raise MissingToolError if there are none."""
    if which(PROGRAM) is None:
        raise MissingToolError("a GPU", _REMEDY)
    try:
        output = run([PROGRAM, _QUERY, "--format=csv,noheader"], limit=_SECONDS, install=_REMEDY)
    except PolicygenError as error:
        raise MissingToolError("a responding GPU", f"{error}\n  {_REMEDY}") from error
    rows = [match for row in output.splitlines() if (match := _ROW.fullmatch(row.strip()))]
    if not rows:
        raise MissingToolError("a GPU", _REMEDY)
    gpus = [
        ListedGpu(number, name, uuid, f"sm{major}{minor}", driver)
        for number, (name, uuid, major, minor, driver) in enumerate(row.groups() for row in rows)
    ]
    return tuple(_visible(gpus, os.environ.get(VISIBLE)))


def _visible(gpus: Sequence[ListedGpu], names: str | None) -> list[ListedGpu]:
    """Return the visible GPUs in CUDA's order; names after an unknown one are ignored."""
    if names is None:
        return list(gpus)
    visible_gpus: list[ListedGpu] = []
    for name in map(str.strip, names.split(",")):
        is_uuid = name.startswith("GPU-")
        matches = [
            gpu
            for gpu in gpus
            if name == str(gpu.number) or (is_uuid and gpu.uuid.startswith(name))
        ]
        if not matches:
            break
        visible_gpus.append(replace(matches[0], number=len(visible_gpus)))
    if not visible_gpus:
        raise MissingToolError(
            f"a visible GPU ({VISIBLE}={visible(names)!r} names none of the {len(gpus)} that the"
            " driver lists)",
            f"Unset {VISIBLE}, or correct it.",
        )
    return visible_gpus


Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class ClockState:
    """Current and maximum clock in MHz."""

    now: int | None
    most: int | None


@dataclass(frozen=True, slots=True)
class GpuState:
    """State of a GPU; None for values that the library does not report to this user."""

    memory: int | None
    """Total bytes."""
    used: int | None
    """Bytes in use."""
    sm: ClockState
    memory_clock: ClockState
    power_limit: float | None
    """Current limit in watts."""
    power_limits: tuple[float, float] | None
    """Minimum and maximum of the limit in watts."""
    slowed: tuple[str, ...]
    """Reasons why it currently runs below its clocks."""
    temperature: int | None
    """Degrees Celsius."""
    persistence: bool | None
    """Whether the driver stays loaded while the GPU is idle."""
    ecc: bool | None
    exclusive: bool | None
    """Whether only one process at a time may use it."""
    divided: bool | None
    """Whether it is partitioned (MIG)."""
    processes: tuple[int, ...] | None
    """IDs of the processes that compute on it."""


_VERSION_FILE = Path("/proc/driver/nvidia/version")
# NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.82.07  Thu Aug 28 …
_VERSION = re.compile(r"\s(\d+\.\d+(?:\.\d+)?)\s")
REASONS: Mapping[str, str] = {
    "nvmlClocksThrottleReasonHwSlowdown": "a slowdown by the hardware",
    "nvmlClocksEventReasonSwThermalSlowdown": "its temperature",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "its temperature",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "the power supply",
}


# GPU state from NVML


def gpu_state(uuid: str) -> GpuState | None:
    """Query the state of a GPU; None if the library or the GPU is missing."""
    library = management_library()
    if library is None:
        return None
    try:
        handle = library.nvmlDeviceGetHandleByUUID(uuid)
    except library.NVMLError:
        return None

    def clock(kind: int) -> ClockState:
        return ClockState(
            _query(lambda: int(library.nvmlDeviceGetClockInfo(handle, kind))),
            _query(lambda: int(library.nvmlDeviceGetMaxClockInfo(handle, kind))),
        )

    memory = _query(lambda: library.nvmlDeviceGetMemoryInfo(handle))
    limit = _query(lambda: int(library.nvmlDeviceGetEnforcedPowerLimit(handle)))
    limits = _query(lambda: library.nvmlDeviceGetPowerManagementLimitConstraints(handle))
    mode = _query(lambda: int(library.nvmlDeviceGetComputeMode(handle)))
    running = _query(lambda: library.nvmlDeviceGetComputeRunningProcesses(handle))
    return GpuState(
        memory=None if memory is None else int(memory.total),
        used=None if memory is None else int(memory.used),
        sm=clock(library.NVML_CLOCK_SM),
        memory_clock=clock(library.NVML_CLOCK_MEM),
        power_limit=None if limit is None else limit / 1000,
        power_limits=None if limits is None else (limits[0] / 1000, limits[1] / 1000),
        slowed=_slowed_by(library, handle),
        temperature=_query(
            lambda: int(library.nvmlDeviceGetTemperature(handle, library.NVML_TEMPERATURE_GPU))
        ),
        persistence=_query(lambda: bool(library.nvmlDeviceGetPersistenceMode(handle))),
        ecc=_query(lambda: bool(library.nvmlDeviceGetCurrentEccMode(handle))),
        exclusive=None if mode is None else mode == library.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
        divided=_query(lambda: bool(library.nvmlDeviceGetMigMode(handle)[0])),
        processes=None if running is None else tuple(sorted(process.pid for process in running)),
    )


def clocks(uuid: str) -> Clocks | None:
    """Query the current clock of a GPU and why it is slowed down; None without the library."""
    library = management_library()
    if library is None:
        return None
    handle = library.nvmlDeviceGetHandleByUUID(uuid)
    now = _query(lambda: int(library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_SM)))
    return Clocks(now or 0, _slowed_by(library, handle))


def driver_version() -> str | None:
    """Return the driver version from NVML or else from the kernel."""
    library = management_library()
    return str(library.nvmlSystemGetDriverVersion()) if library else driver_of_kernel()


def _slowed_by(library: Any, handle: Any) -> tuple[str, ...]:
    """Query why a GPU is slowed down, in words."""
    bits = _query(lambda: int(library.nvmlDeviceGetCurrentClocksEventReasons(handle))) or 0
    reasons = ((getattr(library, name, 0), words) for name, words in REASONS.items())
    return tuple(dict.fromkeys(words for bit, words in reasons if bits & bit))


def _query(ask: Callable[[], Told]) -> Told | None:
    """Query a value; None if the GPU does not support it or the user may not read it."""
    with suppress(management_library().NVMLError, AttributeError):
        return ask()
    return None


@cache
def management_library() -> Any:
    """Return the initialized NVML library; None if it or the driver is missing."""
    try:
        library = import_module("pynvml")
        library.nvmlInit()
    except Exception:  # noqa: BLE001  not installed, or no driver, whatever the error is
        return None
    return library


def driver_of_kernel() -> str | None:
    """Return the driver version from the kernel; None if no driver is loaded."""
    try:
        match = _VERSION.search(_VERSION_FILE.read_text(encoding="utf-8"))
    except OSError:
        return None
    return match and match[1]


SESSION = "session"
"""Lock role of a measurement, held from start to end."""
WORKER = "worker"
"""Lock role of the GPU process, which may end shortly after the one that started it."""
PLACES = (Path("/run/lock"), Path("/tmp"))  # noqa: S108  all users must look at the same place
_PAUSE = 0.05
_SHOWN = 200
# GPU-5f3b…, MIG-1c2d…
_UUID = re.compile(r"[\w-]{1,80}")


class BusyGpuError(InputError):
    """Another measurement is running on the GPU."""


# Machine-wide lock per GPU UUID


@contextmanager
def gpu_lock(
    uuid: str, role: str = SESSION, patience: float = 0.0, folder: Path | None = None
) -> Iterator[None]:
    """Keep other measurements off a GPU, waiting `patience` seconds for one that runs."""
    name = uuid if _UUID.fullmatch(uuid) else digest(uuid)
    path = (folder or _lock_folder()) / f"policygen-{name}.{role}"
    descriptor = _open_lock(path)
    try:
        _wait(descriptor, path, uuid, patience)
        with suppress(OSError):  # for others to read; another user's file is left unchanged
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} of user {os.getuid()}".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _lock_folder() -> Path:
    """Return a world-writable folder in which users cannot delete each other's files."""
    for folder in PLACES:
        with suppress(OSError):
            mode = folder.stat().st_mode
            if stat.S_ISDIR(mode) and mode & stat.S_ISVTX and mode & stat.S_IWOTH:
                return folder
    raise InputError(
        f"there is no folder for the lock of a GPU: none of {' nor '.join(map(str, PLACES))} is"
        " writable by all users",
        f"Make one writable: chmod 1777 {PLACES[-1]}",
    )


def _open_lock(path: Path) -> int:
    """Open the lock file, creating it if needed; files of other users can be locked, too."""
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # follow no link, wait for no pipe
    try:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o666)
        except PermissionError:  # Linux refuses to open another user's file with O_CREAT here
            descriptor = os.open(path, os.O_RDONLY | flags)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    status = os.fstat(descriptor)
    # A second hard link may point to a file that must not be written.
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(descriptor)
        raise _unusable(path, "it is not a regular file")
    if status.st_uid == os.getuid():
        os.fchmod(descriptor, 0o666)  # undo the umask
    return descriptor


def _unusable(path: Path, reason: str) -> InputError:
    return InputError(f"{path}: the lock of a GPU cannot be used: {reason}", f"Remove {path}.")


def _wait(descriptor: int, path: Path, uuid: str, patience: float) -> None:
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= end:
                text = os.pread(descriptor, _SHOWN, 0).decode(errors="replace")
                holder = visible(text.partition("\n")[0])
                raise BusyGpuError(
                    f"another measurement is running on {visible(uuid)}:"
                    f" {holder or 'of another user'}",
                    "Wait until it has finished, or choose another GPU.",
                ) from error
            time.sleep(_PAUSE)
        except OSError as error:
            raise _unusable(path, error.strerror or str(error)) from error
        else:
            return
