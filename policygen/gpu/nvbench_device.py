"""A GPU measured by NVBench, whose Python package runs the functions of units."""

import ctypes
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from policygen.gpu.cuda_device import CudaDevice
from policygen.gpu.device import MEMORY, UNSUPPORTED, AroundPlace, DeviceError, VariantFunction
from policygen.installation import add

MODULE = "cuda.bench"
RESULT = "result.json"
PLACE = "place"
"""Axis of the NVBench benchmark: the index of the function in the order."""
GROWTHS = 8
"""Maximum number of times that temporary storage is enlarged."""


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
                UNSUPPORTED, "a run changes its inputs, which NVBench does not make anew"
            )
        self._spent = True
        # NVBench swallows exceptions of a benchmark.
        raised: list[BaseException] = []
        with TemporaryDirectory(prefix="policygen-") as temporary:
            result = Path(temporary) / RESULT

            def policygen(state: Any) -> None:
                index = state.get_int64(PLACE)
                if raised:
                    state.skip("what was measured before it failed")
                    return
                try:
                    measure(index, lambda: self._measure(state, order[index], result))
                except BaseException as error:  # noqa: BLE001  it is raised below
                    raised.append(error)
                    state.skip(str(error))

            self._bench.register(policygen).add_int64_axis(PLACE, list(range(len(order))))
            try:
                self._bench.run_all_benchmarks(self._arguments(result))
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

    def _arguments(self, result: Path) -> list[str]:
        result_options = ["--quiet", "--jsonbin", str(result), "-d", str(self._index)]
        return ["policygen", *result_options, *self._options]

    def _measure(self, state: Any, variant: VariantFunction, result: Path) -> list[float]:
        """Return the seconds of runs in measurement order."""
        # Load the kernels, and refuse functions that wait for the GPU: NVBench blocks the GPU until
        # everything is launched.
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
            state.exec(enqueue, batched=False)
        except RuntimeError as error:
            raise DeviceError(codes[0] if codes else 0, f"NVBench failed: {error}") from error
        if codes:
            self.checked(codes[0])
        # The sample files are written when a benchmark ends, but the JSON only when all have ended.
        new_files = [file for file in _sample_files(result) if file not in earlier_files]
        samples = [float(sample) for file in new_files for sample in np.fromfile(file, "<f4")]
        if not samples:
            raise DeviceError(
                UNSUPPORTED, "NVBench took no samples: the GPU was throttled, or it had no time"
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
