"""What this machine can measure: its driver, its GPUs, what compiles for them, and how noisily."""

import os
from collections.abc import Iterator, Mapping
from importlib import metadata

import numpy as np

from policygen import __version__
from policygen.app.doctor import failed, fine
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
from policygen.installation import add, clone
from policygen.model.machine import Check, CheckState, Doctor
from policygen.proof.kernel_units import MEMORY, workers_of
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.results.noise import prior_of

NEEDED_BY = ("measure",)
DRIVERS: Mapping[int, int] = {11: 450, 12: 525, 13: 580}
"""Major release of CUDA → the first driver that runs its programs (CUDA Toolkit Release Notes)."""
DRIVER = "NVIDIA's driver {}, or a newer one: https://www.nvidia.com/drivers"
PACKAGES = {
    "nvidia-ml-py": "clocks and why they are slow, before and while it measures",
    "cuda-bench": "measure --method nvbench, measure --benchmarks",
    "cuda-bindings": "measure --method nvbench",
    "nvidia-curand": "measure --benchmarks",
}
"""Of the extra, and who needs each."""
SHOWN = "cub.bench.reduce."
"""The benchmarks whose noise is shown."""
TIMES = (1e-5, 1e-4, 1e-3)
"""Seconds of a run for which the noise is shown."""
_GIB = 1 << 30
NO_GPU = 3
"""The exit status where there is nothing to measure on."""


def examine_measuring() -> Doctor:
    """Looks at everything, and changes no setting; what is missing is no error here."""
    return Doctor(
        version=__version__,
        installed="package" if clone() is None else "clone",
        checks=tuple(_checks()),
    )


def exit_status(document: Doctor) -> int:
    """3 where something is missing without which nothing is measured, 1 where it is broken."""
    states = {one.state for one in document.checks}
    return NO_GPU if "missing" in states else int("broken" in states)


def _checks() -> Iterator[Check]:
    toolchain, gpus = _toolchain(), _gpus()
    listed = () if isinstance(gpus, PolicygenError) else gpus
    driver = listed[0].driver if listed else driver_of_kernel()
    yield _driver(driver, None if isinstance(toolchain, PolicygenError) else toolchain)
    if isinstance(gpus, PolicygenError):
        yield _absent(gpus)
    for one in listed:
        yield from _gpu(one)
    yield _compiler(toolchain, listed)
    count = workers_of(None)
    yield fine(
        "compiles",
        f"{count} at once: {os.cpu_count()} cores, and {MEMORY // _GIB} GiB of free memory for"
        " each compile",
        NEEDED_BY,
    )
    for name, user in PACKAGES.items():
        yield _package(name, user)
    if listed:
        yield _permission()
    for name in dict.fromkeys(one.name for one in listed):
        yield _noise(name)


def _toolchain() -> Toolchain | PolicygenError:
    try:
        return find_toolchain()
    except PolicygenError as error:
        return error


def _gpus() -> tuple[ListedGpu, ...] | PolicygenError:
    try:
        return list_gpus()
    except PolicygenError as error:
        return error


def _absent(error: PolicygenError) -> Check:
    """None, or one that does not answer; nvidia-smi may say why."""
    cause = error.__cause__
    found = "no GPU here"
    if isinstance(cause, PolicygenError):
        words = cause.stderr if isinstance(cause, ProcessError) else str(cause)
        first = words.strip().partition("\n")[0]
        found = ": ".join(filter(None, ("nvidia-smi does not answer", first)))
    return Check(
        name="GPU",
        state="missing",
        found=f"{found}; policygen measure --compile-only needs none",
        needed_by=NEEDED_BY,
    )


def _driver(driver: str | None, toolchain: Toolchain | None) -> Check:
    """Whether the driver runs what nvcc makes."""
    major = int(toolchain.version.partition(".")[0]) if toolchain else max(DRIVERS)
    least = DRIVERS.get(major, DRIVERS[max(DRIVERS)])
    if driver is None:
        return _problem("driver", "missing", "no driver of NVIDIA here", DRIVER.format(least))
    if int(driver.partition(".")[0]) >= least:
        return fine("driver", f"{driver}; CUDA {major} needs {least} or newer", NEEDED_BY)
    older = max((one for one, first in DRIVERS.items() if first <= _major(driver)), default=None)
    remedy = DRIVER.format(least)
    if older is not None:
        remedy += (
            f"; or CUDA {older}: CUDA_HOME with its toolkit (its wheels have no nvcc), and"
            f" the packages cuda-bindings=={older}.* and nvidia-curand-cu{older}"
        )
    found = f"{driver}; what nvcc of CUDA {major} makes needs {least} or newer"
    return _problem("driver", "broken", found, remedy)


def _major(driver: str) -> int:
    return int(driver.partition(".")[0])


def _gpu(one: ListedGpu) -> Iterator[Check]:
    name, state = f"GPU {one.number}", gpu_state(one.uuid)
    words = f"{one.name}, {one.arch}"
    if state is None:
        yield fine(name, f"{words}; its clocks and limits are not known", NEEDED_BY)
        return
    yield fine(name, ", ".join([words, *_facts(state)]), NEEDED_BY)
    if state.divided:
        found = "divided into several (MIG): its parts share memory and power with each other"
        yield Check(name=f"{name} MIG", state="optional", found=found, needed_by=NEEDED_BY)
    yield _use(name, state)
    if state.slowed:
        found = f"slowed down now: {', '.join(state.slowed)}"
        yield Check(name=f"{name} speed", state="optional", found=found, needed_by=NEEDED_BY)


def _facts(state: GpuState) -> Iterator[str]:
    if state.memory is not None and state.used is not None:
        yield f"{state.memory / _GIB:.0f} GiB, {(state.memory - state.used) / _GIB:.0f} free"
    yield f"SM clock {_clock(state.sm)}"
    yield f"memory clock {_clock(state.memory_clock)}"
    if state.power_limit is not None:
        most = f" of at most {state.power_limits[1]:.0f}" if state.power_limits else ""
        yield f"power limit {state.power_limit:.0f}{most} W"
    if state.temperature is not None:
        yield f"{state.temperature} °C"
    yield f"persistence {_switch(state.persistence)}"
    yield f"ECC {_switch(state.ecc)}"
    if state.exclusive:
        yield "for one process at a time"


def _clock(clock: ClockState) -> str:
    if clock.most is None:
        return "not known" if clock.now is None else f"{clock.now} MHz"
    return f"{'not known' if clock.now is None else clock.now} of at most {clock.most} MHz"


def _switch(value: bool | None) -> str:  # noqa: FBT001  it is what is shown
    return "not known" if value is None else "on" if value else "off"


def _use(name: str, state: GpuState) -> Check:
    """Whether somebody else computes on it."""
    name = f"{name} use"
    if state.processes is None:
        found = "not known: the driver does not tell which processes use it"
        return Check(name=name, state="optional", found=found, needed_by=NEEDED_BY)
    others = [one for one in state.processes if one != os.getpid()]
    if not others:
        return fine(name, "no other process computes on it", NEEDED_BY)
    numbers = ", ".join(map(str, others))
    who = "1 other process computes on it, and disturbs"
    if len(others) > 1:
        who = f"{len(others)} other processes compute on it, and disturb"
    found = f"{who} what is measured: {numbers}"
    return Check(name=name, state="optional", found=found, needed_by=NEEDED_BY)


def _compiler(toolchain: Toolchain | PolicygenError, gpus: tuple[ListedGpu, ...]) -> Check:
    """Whether nvcc compiles for the GPUs that are here."""
    if isinstance(toolchain, PolicygenError):
        return failed("nvcc", NEEDED_BY, toolchain, add("measure"))
    archs = f"{toolchain.archs[0]} to {toolchain.newest}"
    lacking = sorted({one.arch for one in gpus} - set(toolchain.archs))
    if lacking:
        found = f"{toolchain.version} compiles for {archs}, and not for {', '.join(lacking)}"
        return _problem("nvcc", "broken", found, "CUDA_HOME with a toolkit that does")
    return fine("nvcc", f"{toolchain.version}, compiles for {archs}", NEEDED_BY)


def _package(name: str, user: str) -> Check:
    try:
        return fine(name, metadata.version(name), (user,))
    except metadata.PackageNotFoundError:
        return Check(
            name=name,
            state="optional",
            found="not installed",
            needed_by=(user,),
            remedy=add("measure"),
        )


def _permission() -> Check:
    """Whether clocks can be locked; nothing is tried."""
    if os.geteuid() == 0:
        found = (
            "root may lock clocks (nvidia-smi --lock-gpu-clocks), where no container forbids it;"
            " policygen never does"
        )
        return fine("clocks", found, NEEDED_BY)
    found = (
        "this user may not lock clocks, which takes root: they follow temperature and power."
        " Base and variants run in turns, so that it weighs on both; and samples of a GPU that is"
        " slowed down are taken again"
    )
    if management_library() is None:
        found += ", as far as a kernel that counts cycles can tell"
    return Check(name="clocks", state="optional", found=found, needed_by=NEEDED_BY)


def _noise(gpu: str) -> Check:
    """What is expected before it is measured."""
    prior = prior_of(gpu, SHOWN)
    shares = prior.deviation(np.array(TIMES))
    told = ", ".join(
        f"{share:.2%} of {seconds * 1e6:,.0f} µs"
        for seconds, share in zip(TIMES, shares, strict=True)
    )
    found = f"a run differs from the next by {told}, as known of: {prior.origin}"
    return fine(f"noise of {gpu}", found, NEEDED_BY)


def _problem(name: str, state: CheckState, found: str, remedy: str) -> Check:
    return Check(name=name, state=state, found=found, needed_by=NEEDED_BY, remedy=remedy)
