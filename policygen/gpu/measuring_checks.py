"""Reports what this machine can measure: driver, GPUs, compiler support, and expected noise."""

import os
from collections.abc import Iterator, Mapping
from importlib import metadata

import numpy as np

from policygen.errors import PolicygenError, ProcessError
from policygen.gpu.machine import (
    ClockState,
    GpuState,
    ListedGpu,
    driver_of_kernel,
    gpu_state,
    list_gpus,
    management_library,
)
from policygen.installation import add
from policygen.model.machine import Check, CheckState, failed_check
from policygen.process import MEMORY, cores, workers_of
from policygen.proof.compile import attempt
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.results.noise import prior_of

COMMAND = "measure"
"""Needs what is checked."""
DRIVERS: Mapping[int, int] = {11: 450, 12: 525, 13: 580}
"""Major CUDA release → the first driver that runs its programs (CUDA Toolkit Release Notes)."""
DRIVER = "NVIDIA's driver {}, or a newer one: https://www.nvidia.com/drivers"
PACKAGES = {
    "nvidia-ml-py": "clocks and throttling, before and during measurements",
    "cuda-bench": "measure --method nvbench, measure --benchmarks",
    "cuda-bindings": "measure --method nvbench",
    "nvidia-curand": "measure --benchmarks",
}
"""Packages of the extra, and what needs each."""
SHOWN = "cub.bench.reduce."
"""The benchmarks whose noise is shown."""
TIMES = (1e-5, 1e-4, 1e-3)
"""Run times in seconds for which the noise is shown."""
_GIB = 1 << 30


def measuring_checks() -> Iterator[Check]:
    """Yields all checks, without changing any setting. Missing tools do not raise errors."""
    toolchain, gpus = attempt(find_toolchain), attempt(list_gpus)
    listed = () if isinstance(gpus, PolicygenError) else gpus
    driver = listed[0].driver if listed else driver_of_kernel()
    yield _driver(driver, None if isinstance(toolchain, PolicygenError) else toolchain)
    if isinstance(gpus, PolicygenError):
        yield _absent(gpus)
    for gpu in listed:
        yield from _gpu(gpu)
    yield _compiler(toolchain, listed)
    count = workers_of(None)
    limits = f"{cores()} cores and by {MEMORY // _GIB} GiB of free memory per compile"
    yield _check("compiles", "fine", f"{count} at once: limited by {limits}")
    for name, user in PACKAGES.items():
        try:
            yield _check(name, "fine", metadata.version(name), user=user)
        except metadata.PackageNotFoundError:
            yield _check(name, "optional", "not installed", add("measure"), user=user)
    if listed:
        yield _permission()
    for name in dict.fromkeys(gpu.name for gpu in listed):
        yield _noise(name)


def _absent(error: PolicygenError) -> Check:
    """Reports that there is no GPU or that it does not respond; nvidia-smi may say why."""
    cause = error.__cause__
    detail = "no GPU on this machine"
    if isinstance(cause, PolicygenError):
        message = cause.stderr if isinstance(cause, ProcessError) else str(cause)
        first_line = message.strip().partition("\n")[0]
        detail = ": ".join(filter(None, ("nvidia-smi does not respond", first_line)))
    detail += "; policygen measure --compile-only works without a GPU"
    return _check("GPU", "missing", detail)


def _driver(driver: str | None, toolchain: Toolchain | None) -> Check:
    """Checks whether the driver runs programs built by nvcc."""
    major = int(toolchain.version.partition(".")[0]) if toolchain else max(DRIVERS)
    required = DRIVERS.get(major, DRIVERS[max(DRIVERS)])
    if driver is None:
        detail = "no NVIDIA driver on this machine"
        return _check("driver", "missing", detail, DRIVER.format(required))
    installed = int(driver.partition(".")[0])
    if installed >= required:
        return _check("driver", "fine", f"{driver}; CUDA {major} needs {required} or newer")
    older = max(
        (release for release, first_driver in DRIVERS.items() if first_driver <= installed),
        default=None,
    )
    remedy = DRIVER.format(required)
    if older is not None:
        remedy += (
            f"; or CUDA {older}: CUDA_HOME with its toolkit (its wheels have no nvcc), and"
            f" the packages cuda-bindings=={older}.* and nvidia-curand-cu{older}"
        )
    detail = f"{driver}; programs built by nvcc of CUDA {major} need {required} or newer"
    return _check("driver", "broken", detail, remedy)


def _gpu(gpu: ListedGpu) -> Iterator[Check]:
    name, state = f"GPU {gpu.number}", gpu_state(gpu.uuid)
    description = f"{gpu.name}, {gpu.arch}"
    if state is None:
        yield _check(name, "fine", f"{description}; its clocks and limits are unknown")
        return
    yield _check(name, "fine", ", ".join([description, *_facts(state)]))
    if state.divided:
        detail = "partitioned (MIG): its instances share memory bandwidth and power"
        yield _check(f"{name} MIG", "optional", detail)
    yield _use(f"{name} use", state)
    if state.slowed:
        yield _check(f"{name} speed", "optional", f"throttled now: {', '.join(state.slowed)}")


def _facts(state: GpuState) -> Iterator[str]:
    if state.memory is not None and state.used is not None:
        yield f"{state.memory / _GIB:.0f} GiB, {(state.memory - state.used) / _GIB:.0f} free"
    yield f"SM clock {_clock(state.sm)}"
    yield f"memory clock {_clock(state.memory_clock)}"
    if state.power_limit is not None:
        limit = f" of at most {state.power_limits[1]:.0f}" if state.power_limits else ""
        yield f"power limit {state.power_limit:.0f}{limit} W"
    if state.temperature is not None:
        yield f"{state.temperature} °C"
    yield f"persistence {_switch(state.persistence)}"
    yield f"ECC {_switch(state.ecc)}"
    if state.exclusive:
        yield "exclusive-process mode"


def _clock(clock: ClockState) -> str:
    if clock.most is None:
        return "not known" if clock.now is None else f"{clock.now} MHz"
    return f"{'not known' if clock.now is None else clock.now} of at most {clock.most} MHz"


def _switch(value: bool | None) -> str:  # noqa: FBT001  a value to display, not a flag
    return "not known" if value is None else "on" if value else "off"


def _use(name: str, state: GpuState) -> Check:
    """Checks whether another process computes on the GPU."""
    if state.processes is None:
        detail = "unknown: the driver does not report which processes use it"
        return _check(name, "optional", detail)
    other_pids = [pid for pid in state.processes if pid != os.getpid()]
    if not other_pids:
        return _check(name, "fine", "no other process is using it")
    numbers = ", ".join(map(str, other_pids))
    subject = "1 other process is using it and disturbs"
    if len(other_pids) > 1:
        subject = f"{len(other_pids)} other processes are using it and disturb"
    return _check(name, "optional", f"{subject} measurements: {numbers}")


def _compiler(toolchain: Toolchain | PolicygenError, gpus: tuple[ListedGpu, ...]) -> Check:
    """Checks whether nvcc compiles for the GPUs present."""
    if isinstance(toolchain, PolicygenError):
        return failed_check("nvcc", (COMMAND,), toolchain, add("measure"))
    archs = f"{toolchain.archs[0]} to {toolchain.newest}"
    missing = sorted({gpu.arch for gpu in gpus} - set(toolchain.archs))
    if missing:
        detail = f"{toolchain.version} compiles for {archs}, but not for {', '.join(missing)}"
        return _check("nvcc", "broken", detail, "set CUDA_HOME to a toolkit that does")
    return _check("nvcc", "fine", f"{toolchain.version}, compiles for {archs}")


def _permission() -> Check:
    """Reports whether the user may lock clocks, without trying it."""
    if os.geteuid() == 0:
        detail = (
            "root may lock clocks (nvidia-smi --lock-gpu-clocks), unless a container forbids it;"
            " policygen never does"
        )
        return _check("clocks", "fine", detail)
    detail = (
        "only root may lock clocks, so they follow temperature and power. Base and variants take"
        " turns, so drift affects both, and samples of a throttled GPU are repeated"
    )
    if management_library() is None:
        detail += ", as far as a kernel that counts cycles can detect"
    return _check("clocks", "optional", detail)


def _noise(gpu: str) -> Check:
    """Reports the expected noise before measuring."""
    prior = prior_of(gpu, SHOWN)
    shares = prior.deviation(np.array(TIMES))
    deviations = ", ".join(
        f"{share:.2%} of {seconds * 1e6:,.0f} µs"
        for seconds, share in zip(TIMES, shares, strict=True)
    )
    detail = f"consecutive runs differ by {deviations}, estimated from: {prior.origin}"
    return _check(f"noise of {gpu}", "fine", detail)


def _check(
    name: str, state: CheckState, detail: str, remedy: str | None = None, user: str = COMMAND
) -> Check:
    return Check(name=name, state=state, found=detail, needed_by=(user,), remedy=remedy)
