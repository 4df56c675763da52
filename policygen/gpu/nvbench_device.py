"""A GPU whose samples are NVBench's own: its Python package runs functions of units."""

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
"""The axis of NVBench's benchmark: which function of the order runs."""
GROWTHS = 8
"""Times that temporary storage is made larger; an algorithm asks for a few pieces at most."""


class Arena(ctypes.Structure):
    """Temporary storage, as units take it."""

    _fields_ = (
        ("base", ctypes.c_void_p),
        ("capacity", ctypes.c_size_t),
        ("used", ctypes.c_size_t),
        ("needed", ctypes.c_size_t),
    )


class NvbenchDevice(CudaDevice):
    """One GPU, with the options that NVBench measures with."""

    def __init__(
        self, index: int, runner: Path, runtime: Path | None = None, options: Sequence[str] = ()
    ) -> None:
        """Loads NVBench, and opens the GPU."""
        try:
            self._bench = import_module(MODULE)
            self._bench.run_all_benchmarks  # noqa: B018  it is loaded when it is looked for
        except ImportError as error:
            words = f"cuda.bench cannot be loaded: {error}. Install it: {add('measure')}"
            raise DeviceError(UNSUPPORTED, words) from error
        super().__init__(index, runner, runtime)
        self._options = options
        self._storage = Arena()
        self._spent = False

    def nvbench(self, order: Sequence[VariantFunction], around: AroundPlace) -> None:
        """Measures functions in their order; NVBench runs once in a process."""
        case = self._opened
        if self._spent:
            raise DeviceError(UNSUPPORTED, "NVBench has run in this process already")
        if case.is_modified:
            raise DeviceError(
                UNSUPPORTED, "a run changes its inputs, which NVBench does not make anew"
            )
        self._spent = True
        # NVBench takes what is raised in a benchmark for its own affair.
        raised: list[BaseException] = []
        with TemporaryDirectory(prefix="policygen-") as temporary:
            result = Path(temporary) / RESULT

            def policygen(state: Any) -> None:
                place = state.get_int64(PLACE)
                if raised:
                    state.skip("what was measured before it failed")
                    return
                try:
                    around(place, lambda: self._measured(state, order[place], result))
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
        """Frees the buffers, and temporary storage."""
        super().close()
        if self._storage.base:
            self.release([self._storage.base])
            self._storage = Arena()

    def _arguments(self, result: Path) -> list[str]:
        where = ["--quiet", "--jsonbin", str(result), "-d", str(self._index)]
        return ["policygen", *where, *self._options]

    def _measured(self, state: Any, one: VariantFunction, result: Path) -> list[float]:
        """Seconds of runs, in the order in which they were taken."""
        # Its kernels are loaded; and what waits for the GPU itself is refused: NVBench lets the
        # GPU wait until all is launched, too.
        self.sample(one)
        function, case = self._function(one), self._opened
        self._make_storage(function)
        codes: list[int] = []

        def launched(launch: Any) -> None:
            stream = ctypes.c_void_p(launch.get_stream().addressof())
            if code := function(case.buffers, case.sizes, ctypes.byref(self._storage), stream):
                codes.append(code)

        before = _sample_files(result)
        try:
            state.exec(launched, batched=False)
        except RuntimeError as error:
            raise DeviceError(codes[0] if codes else 0, f"NVBench failed: {error}") from error
        if codes:
            self.checked(codes[0])
        # They are written when a benchmark ends; the JSON would be when all have ended.
        found = [file for file in _sample_files(result) if file not in before]
        samples = [float(one) for file in found for one in np.fromfile(file, "<f4")]
        if not samples:
            raise DeviceError(
                UNSUPPORTED, "NVBench took no samples: the GPU was throttled, or it had no time"
            )
        return samples

    def _make_storage(self, function: Any) -> None:
        """Makes temporary storage as large as the function says that it needs."""
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
    """What NVBench has written beside its JSON, a file for each benchmark that has ended."""
    return sorted(result.with_name(f"{result.name}-bin").glob("*.bin"))
