"""A CUDA GPU: units and the runner are loaded as shared objects and called one at a time.

NVBench's Python package can run the functions of units, too.
"""

import ctypes
from array import array
from collections.abc import Sequence
from dataclasses import fields
from importlib import import_module
from operator import mul
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from policygen.gpu import machine
from policygen.gpu.device import (
    LONG,
    MEMORY,
    UNSUPPORTED,
    AroundPlace,
    Clocks,
    DeviceError,
    GpuFacts,
    Launch,
    RuntimeCase,
    VariantFunction,
)
from policygen.installation import add

FILLED, COMPARED, MODIFIED, EXACT = 1, 2, 4, 8
"""Buffer flags, as units define them."""
TEXT = 4096
KEPT = 0.5
"""Share of the GPU's memory that the buffers of runtime workloads may take together."""


class CudaDevice:
    """A GPU by its index among the visible ones."""

    def __init__(self, index: int, runner: Path, runtime: Path | None = None) -> None:
        """Load the CUDA runtime with global symbols for all units; the GPU is not touched yet."""
        if runtime is not None:
            ctypes.CDLL(str(runtime), mode=ctypes.RTLD_GLOBAL)
        self._runner = ctypes.CDLL(str(runner))
        self._index = index
        self._libraries: dict[str, ctypes.CDLL] = {}
        self._case: _OpenCase | None = None
        self._cases: dict[RuntimeCase, _OpenCase] = {}
        """Runtime workloads whose buffers are kept, the one used last at the end."""
        self._synchronizing: set[str] = set()
        """Units of workloads whose calls wait for the GPU, so that no kernel can hold them back."""
        self._is_open = False
        self._facts: GpuFacts | None = None

    def facts(self) -> GpuFacts:
        """Query the CUDA runtime and, if available, NVML; the result is cached."""
        if self._facts is not None:
            return self._facts
        text = ctypes.create_string_buffer(TEXT)
        self._call("policygen_describe", self._index, text, ctypes.c_size_t(TEXT))
        facts = dict(line.split("=", 1) for line in text.value.decode().splitlines())
        state = machine.gpu_state(facts["uuid"])
        self._facts = GpuFacts(
            name=facts["name"],
            uuid=facts["uuid"],
            arch=f"sm{facts['major']}{facts['minor']}",
            sms=int(facts["sms"]),
            bus_width=int(facts["bus"]),
            ecc=facts["ecc"] == "1",
            driver=machine.driver_version() or facts["driver"],
            l2=int(facts["l2"]),
            memory=int(facts["memory"]),
            sm_clock=(state and state.sm.most) or int(facts["sm_clock"]) // 1000,
            memory_clock=(state and state.memory_clock.most) or int(facts["memory_clock"]) // 1000,
            power_limit=state.power_limit if state else None,
        )
        return self._facts

    def holds(self, case: RuntimeCase) -> bool:
        """Whether the buffers and the baseline results of a runtime workload are kept."""
        return case in self._cases

    def open(self, case: RuntimeCase) -> bool:
        """Create the buffers and fill them with the contents for timing, unless they are kept.

        Those of the workloads used longest ago make room for new ones.
        """
        self._case = None
        if not self._is_open:
            # Open the GPU only now: a query of its facts may find that it is in use.
            self._call("policygen_open", self._index)
            self._is_open = True
        opened = self._cases.pop(case, None)
        if opened is None:
            opened = _OpenCase(self, self._library(case.inputs), case)
            if opened.skipped:
                return False
            while self._cases and self._kept() + opened.size > self.facts().memory * KEPT:
                self._cases.pop(next(iter(self._cases))).free()
            try:
                opened.make()
            except DeviceError as error:
                opened.free()
                if error.code != MEMORY or not self._cases:
                    raise
                self.close()
                return self.open(case)
        self._case = self._cases[case] = opened
        return True

    def reference(self, base: VariantFunction) -> None:
        """Store the baseline results for contents whose results are exact."""
        reference = self._hook(base, "reference")
        if reference is None:
            self._compute(base)
            self._opened.keep()
            return
        self._opened.fresh()
        self.run(reference, self._opened)
        self._opened.keep()
        if problem := self.check(base):
            raise DeviceError(UNSUPPORTED, f"base differs from its reference: {problem}")

    def check(self, function: VariantFunction) -> str | None:
        """Compare the results of a variant for the same contents."""
        self._compute(function)
        return self._opened.difference()

    def _compute(self, function: VariantFunction) -> None:
        """Run a function on exact contents."""
        self._opened.fresh()
        self._call_hook(function, "before")
        self.run(self._function(function), self._opened)
        self._call_hook(function, "after")

    def sample(self, function: VariantFunction) -> float:
        """Time one run with warm code and cold data."""
        case = self._opened
        entry = self._function(function)
        case.ready_to_time()
        is_warm = function not in case.ran or case.is_modified
        if is_warm:
            # Allocate temporary storage and load kernels.
            self._call_hook(function, "before")
            self.run(entry, case)
            case.ran.add(function)
            case.ready_to_time()
            self._call_hook(function, "before")
        milliseconds = self._time(entry, case, is_warm=is_warm or function in case.long)
        if milliseconds < 0:
            self._synchronizing.add(case.inputs)
            return self.sample(function)
        if milliseconds / 1000 > LONG:
            case.long.add(function)
        return milliseconds / 1000

    def _time(self, entry: object, case: "_OpenCase", *, is_warm: bool) -> float:
        """Time one run; negative if it waited for the GPU while a kernel held the stream back."""
        milliseconds = ctypes.c_float()
        is_held = case.inputs not in self._synchronizing
        arguments = (entry, case.buffers, case.sizes, int(is_warm), int(is_held))
        self._call("policygen_time", *arguments, ctypes.byref(milliseconds))
        return milliseconds.value

    def launch(self, function: VariantFunction) -> Launch | None:
        """Ask the unit for the launch configuration of a user kernel, if it has one."""
        query = self._hook(function, "facts")
        if query is None:
            return None
        case, values = self._opened, (ctypes.c_longlong * len(fields(Launch)))()
        self.checked(query(case.buffers, case.sizes, values))
        return Launch(*values)

    def nvbench(self, order: Sequence[VariantFunction], measure: AroundPlace) -> None:  # noqa: ARG002
        """Measure functions in order with NVBench, once per process."""
        raise DeviceError(UNSUPPORTED, "this worker was not started for NVBench")

    def bandwidth(self) -> float | None:
        """Measure the bytes that a copy reads and writes per second."""
        bytes_per_second = ctypes.c_double()
        self._call("policygen_bandwidth", ctypes.byref(bytes_per_second))
        return bytes_per_second.value

    def clocks(self) -> Clocks:
        """Query the clock from NVML; without it, count cycles in a kernel."""
        clocks = machine.clocks(self.facts().uuid)
        if clocks is not None:
            return clocks
        megahertz = ctypes.c_double()
        self._call("policygen_clock", ctypes.byref(megahertz))
        return Clocks(round(megahertz.value))

    def close(self) -> None:
        """Free the buffers."""
        self._case = None
        while self._cases:
            self._cases.popitem()[1].free()

    @property
    def _opened(self) -> "_OpenCase":
        if self._case is None:
            raise DeviceError(UNSUPPORTED, "no runtime workload is open")
        return self._case

    def _kept(self) -> int:
        return sum(case.size for case in self._cases.values())

    def _library(self, path: str) -> ctypes.CDLL:
        if path not in self._libraries:
            try:
                self._libraries[path] = ctypes.CDLL(path)
            except OSError as error:
                raise DeviceError(UNSUPPORTED, f"the unit cannot be loaded: {error}") from error
        return self._libraries[path]

    def _function(self, function: VariantFunction) -> Any:
        return getattr(self._library(function.library), function.function)

    def _hook(self, function: VariantFunction, suffix: str) -> Any | None:
        """Return a unit's hook of a function, which runs before or after it, if there is one."""
        return getattr(self._library(function.library), f"{function.function}_{suffix}", None)

    def _call_hook(self, function: VariantFunction, suffix: str) -> None:
        if (hook := self._hook(function, suffix)) is not None:
            self.checked(hook(self._opened.buffers, self._opened.sizes))

    def _call(self, name: str, *arguments: object) -> None:
        self.checked(getattr(self._runner, name)(*arguments))

    def checked(self, code: int) -> None:
        """Raise DeviceError for a CUDA error code."""
        if code:
            text = ctypes.create_string_buffer(TEXT)
            self._runner.policygen_error(code, text, ctypes.c_size_t(TEXT))
            raise DeviceError(code, text.value.decode(errors="replace"))

    def run(self, function: object, case: "_OpenCase") -> None:
        """Run a function once to completion."""
        self._call("policygen_run", function, case.buffers, case.sizes)

    def allocate(self, size: int) -> int:
        """Allocate GPU memory."""
        pointer = ctypes.c_void_p()
        self._call("policygen_allocate", ctypes.byref(pointer), ctypes.c_size_t(size))
        assert pointer.value is not None
        return pointer.value

    def release(self, pointers: Sequence[int]) -> None:
        """Free GPU memory."""
        for pointer in pointers:
            self._call("policygen_release", ctypes.c_void_p(pointer))

    def clear(self, pointer: int, size: int) -> None:
        """Fill memory with a constant."""
        self._call("policygen_clear", ctypes.c_void_p(pointer), ctypes.c_size_t(size))

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy on the GPU."""
        pointers = ctypes.c_void_p(target), ctypes.c_void_p(source)
        self._call("policygen_copy", *pointers, ctypes.c_size_t(size))


class _OpenCase:
    """Buffers of a runtime workload, their original contents, and the baseline results."""

    def __init__(self, device: CudaDevice, unit: ctypes.CDLL, case: RuntimeCase) -> None:
        self._device = device
        self._unit = unit
        self.inputs = case.inputs
        self._axes = (ctypes.c_longlong * max(1, len(case.axes)))(*case.axes)
        self.sizes = (ctypes.c_longlong * max(1, case.sizes))()
        byte_counts = (ctypes.c_longlong * case.buffers)()
        roles = (ctypes.c_int * case.buffers)()
        self.skipped = bool(unit.policygen_shape(self._axes, self.sizes, byte_counts))
        unit.policygen_roles(roles)
        self._bytes, self._roles = list(byte_counts), list(roles)
        self.buffers = (ctypes.c_void_p * case.buffers)()
        self._fresh: dict[int, int] = {}
        """Original contents of each buffer that a run modifies."""
        self._expected: dict[int, int] = {}
        self._exact: bool | None = None
        self.ran: set[VariantFunction] = set()
        self.long: set[VariantFunction] = set()

    @property
    def size(self) -> int:
        """Bytes of all buffers with their copies."""
        copies = (1 + bool(role & MODIFIED) + bool(role & COMPARED) for role in self._roles)
        return sum(map(mul, self._bytes, copies))

    @property
    def is_modified(self) -> bool:
        """Whether a run modifies its inputs."""
        return bool(self._fresh)

    def make(self) -> None:
        """Allocate and fill the buffers."""
        for index, size in enumerate(self._bytes):
            self.buffers[index] = self._device.allocate(size)
            if self._roles[index] & MODIFIED:
                self._fresh[index] = self._device.allocate(size)
            if self._roles[index] & COMPARED:
                self._expected[index] = self._device.allocate(size)
            self._device.clear(self._pointer(index), size)
        self._fill(exact=False)

    def free(self) -> None:
        """Free all memory."""
        pointers = [pointer for pointer in self.buffers if pointer]
        self._device.release([*pointers, *self._fresh.values(), *self._expected.values()])

    def ready_to_time(self) -> None:
        """Restore the contents for timing."""
        if self._exact and self._has_exact:
            self._fill(exact=False)
        self._restore()

    def fresh(self) -> None:
        """Restore the exact contents and clear the results."""
        if not self._exact and self._has_exact:
            self._fill(exact=True)
        self._restore()
        for index, role in enumerate(self._roles):
            if role & COMPARED and not role & FILLED:
                self._device.clear(self._pointer(index), self._bytes[index])

    def keep(self) -> None:
        """Store the current results as expected."""
        for index, pointer in self._expected.items():
            self._device.copy(pointer, self._pointer(index), self._bytes[index])

    @property
    def _has_exact(self) -> bool:
        return any(role & EXACT for role in self._roles)

    def _pointer(self, index: int) -> int:
        pointer = self.buffers[index]
        assert pointer is not None
        return int(pointer)

    def _fill(self, *, exact: bool) -> None:
        code = self._unit.policygen_fill(self.buffers, self._axes, self.sizes, int(exact))
        self._device.checked(code)
        self._exact = exact
        for index, pointer in self._fresh.items():
            self._device.copy(pointer, self._pointer(index), self._bytes[index])

    def _restore(self) -> None:
        for index, pointer in self._fresh.items():
            self._device.copy(self._pointer(index), pointer, self._bytes[index])

    def difference(self) -> str | None:
        """Describe how the results differ from the expected ones."""
        expected = (ctypes.c_void_p * len(self._roles))()
        for index, pointer in self._expected.items():
            expected[index] = pointer
        first, buffer = ctypes.c_longlong(-1), ctypes.c_int()
        compare = self._unit.policygen_compare
        compare.restype = ctypes.c_longlong
        is_exact, place = int(bool(self._exact)), (ctypes.byref(first), ctypes.byref(buffer))
        difference_count = compare(self.buffers, expected, self._axes, self.sizes, is_exact, *place)
        if difference_count < 0:
            raise DeviceError(1, "results could not be compared")
        if not difference_count:
            return None
        where = f", the first at {first.value:,}" if first.value >= 0 else ""
        elements, verb = ("element", "differs") if difference_count == 1 else ("elements", "differ")
        result = f"{difference_count:,} {elements} of result {buffer.value}"
        return f"{result} {verb} from base's{where}"


MODULE = "cuda.bench"
RESULT = "result.json"
PLACE = "place"
"""Axis of the NVBench benchmark: the index of the function in the order."""
GROWTHS = 8
"""Maximum number of times that temporary storage is enlarged."""


# Measuring with NVBench


class Arena(ctypes.Structure):
    """Temporary storage in the layout that units expect."""

    _fields_ = (
        ("base", ctypes.c_void_p),
        ("capacity", ctypes.c_size_t),
        ("used", ctypes.c_size_t),
        ("needed", ctypes.c_size_t),
    )


class NvbenchDevice(CudaDevice):
    """A GPU with NVBench's options."""

    def __init__(
        self, index: int, runner: Path, runtime: Path | None = None, options: Sequence[str] = ()
    ) -> None:
        """Load NVBench and open the GPU."""
        try:
            self._bench = import_module(MODULE)
            self._bench.run_all_benchmarks  # noqa: B018  loaded lazily on access
        except ImportError as error:
            message = f"cuda.bench cannot be loaded: {error}. Install it: {add('measure')}"
            raise DeviceError(UNSUPPORTED, message) from error
        super().__init__(index, runner, runtime)
        self._options = options
        self._storage = Arena()
        self._spent = False

    def nvbench(self, order: Sequence[VariantFunction], measure: AroundPlace) -> None:
        """Measure functions in order; NVBench can run only once per process."""
        case = self._opened
        if self._spent:
            raise DeviceError(UNSUPPORTED, "NVBench has run in this process already")
        if case.is_modified:
            raise DeviceError(
                UNSUPPORTED, "a run changes its inputs, and NVBench does not restore them"
            )
        self._spent = True
        # NVBench swallows exceptions of a benchmark.
        raised: list[BaseException] = []
        with TemporaryDirectory(prefix="policygen-") as temporary:
            result = Path(temporary) / RESULT

            def policygen(state: Any) -> None:
                index = state.get_int64(PLACE)
                if raised:
                    state.skip("measured before it failed")
                    return
                try:
                    measure(index, lambda: self._measure(state, order[index], result))
                except BaseException as error:  # noqa: BLE001  it is raised below
                    raised.append(error)
                    state.skip(str(error))

            self._bench.register(policygen).add_int64_axis(PLACE, list(range(len(order))))
            try:
                output = ("--quiet", "--jsonbin", str(result), "-d", str(self._index))
                self._bench.run_all_benchmarks(["policygen", *output, *self._options])
            except RuntimeError as error:
                if not raised:
                    raise DeviceError(0, f"NVBench failed: {error}") from error
        if raised:
            raise raised[0]

    def close(self) -> None:
        """Free the buffers and the temporary storage."""
        super().close()
        if self._storage.base:
            self.release([self._storage.base])
            self._storage = Arena()

    def _measure(self, state: Any, variant: VariantFunction, result: Path) -> list[float]:
        """Return the seconds of runs in measurement order."""
        # Load the kernels, and find out whether NVBench may block the GPU until all is launched.
        self.sample(variant)
        function, case = self._function(variant), self._opened
        self._make_storage(function)
        codes: list[int] = []

        def enqueue(launch: Any) -> None:
            stream = ctypes.c_void_p(launch.get_stream().addressof())
            if code := function(case.buffers, case.sizes, ctypes.byref(self._storage), stream):
                codes.append(code)

        earlier_files = _sample_files(result)
        try:
            state.exec(enqueue, batched=False, sync=case.inputs in self._synchronizing)
        except RuntimeError as error:
            raise DeviceError(codes[0] if codes else 0, f"NVBench failed: {error}") from error
        if codes:
            self.checked(codes[0])
        # The sample files are written when a benchmark ends, but the JSON only when all have ended.
        new_files = [file for file in _sample_files(result) if file not in earlier_files]
        samples = [sample for file in new_files for sample in array("f", file.read_bytes())]
        if not samples:
            raise DeviceError(
                UNSUPPORTED,
                "NVBench took no samples: the GPU was throttled, or the time limit was too short",
            )
        return samples

    def _make_storage(self, function: Any) -> None:
        """Allocate as much temporary storage as the function requests."""
        case, storage = self._opened, self._storage
        for _ in range(GROWTHS):
            code = function(case.buffers, case.sizes, ctypes.byref(storage), None)
            if code != MEMORY or storage.needed <= storage.capacity:
                self.checked(code)
                break
            needed = storage.needed
            if storage.base:
                self.release([storage.base])
                storage.base, storage.capacity = None, 0
            storage.base = self.allocate(needed)
            storage.capacity = needed
        case.ready_to_time()


def _sample_files(result: Path) -> list[Path]:
    """Return NVBench's sample files: one for each benchmark that has ended."""
    return sorted(result.with_name(f"{result.name}-bin").glob("*.bin"))
