"""A real GPU: units and the runner as shared objects in this process, called one at a time."""

import ctypes
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from policygen.gpu import machine
from policygen.gpu.device import (
    UNSUPPORTED,
    Clocks,
    DeviceError,
    GpuFacts,
    Launch,
    RuntimeCase,
    VariantFunction,
)

FILLED, COMPARED, MODIFIED, EXACT = 1, 2, 4, 8
"""What is done with a buffer, as units say it."""
TEXT = 4096


class CudaDevice:
    """One GPU, by its index among those that CUDA shows."""

    def __init__(self, index: int, runner: Path, runtime: Path | None = None) -> None:
        """Loads the CUDA runtime, whose names stay open in all units; the GPU stays as it is."""
        if runtime is not None:
            ctypes.CDLL(str(runtime), mode=ctypes.RTLD_GLOBAL)
        self._runner = ctypes.CDLL(str(runner))
        self._index = index
        self._libraries: dict[str, ctypes.CDLL] = {}
        self._case: _OpenCase | None = None
        self._is_open = False
        self._facts: GpuFacts | None = None

    def facts(self) -> GpuFacts:
        """Asks the runtime, and the driver's library where there is one; once, as they stay."""
        if self._facts is None:
            self._facts = self._asked_facts()
        return self._facts

    def _asked_facts(self) -> GpuFacts:
        text = ctypes.create_string_buffer(TEXT)
        self._call("policygen_describe", self._index, text, ctypes.c_size_t(TEXT))
        told = dict(line.split("=", 1) for line in text.value.decode().splitlines())
        more = machine.facts(told["uuid"])
        return GpuFacts(
            name=told["name"],
            uuid=told["uuid"],
            arch=f"sm{told['major']}{told['minor']}",
            sms=int(told["sms"]),
            bus_width=int(told["bus"]),
            ecc=told["ecc"] == "1",
            driver=more.driver or told["driver"],
            l2=int(told["l2"]),
            memory=int(told["memory"]),
            sm_clock=more.sm_clock or int(told["sm_clock"]) // 1000,
            memory_clock=more.memory_clock or int(told["memory_clock"]) // 1000,
            power_limit=more.power_limit,
        )

    def open(self, case: RuntimeCase) -> bool:
        """Makes buffers with the contents that are timed."""
        self.close()
        if not self._is_open:
            # Only now: who asks what a GPU is may find that it is in use.
            self._call("policygen_open", self._index)
            self._is_open = True
        opened = _OpenCase(self, self._library(case.inputs), case)
        if opened.skipped:
            return False
        self._case = opened
        opened.make()
        return True

    def reference(self, base: VariantFunction) -> None:
        """Keeps what base makes of contents whose results are exact."""
        reference = self._beside(base, "reference")
        if reference is None:
            self._computed(base)
            self._opened.keep()
            return
        self._opened.fresh()
        self.run(reference, self._opened)
        self._opened.keep()
        if problem := self.check(base):
            raise DeviceError(UNSUPPORTED, f"base is not what its reference computes: {problem}")

    def check(self, one: VariantFunction) -> str | None:
        """Compares what a variant makes of the same contents."""
        self._computed(one)
        return self._opened.difference()

    def _computed(self, one: VariantFunction) -> None:
        """Runs a function on exact contents."""
        self._opened.fresh()
        self._call_beside(one, "before")
        self.run(self._function(one), self._opened)
        self._call_beside(one, "after")

    def sample(self, one: VariantFunction) -> float:
        """Times one run, whose code is warm and whose data is cold."""
        case = self._opened
        function = self._function(one)
        case.ready_to_time()
        if one not in case.ran or case.is_modified:
            # Its storage is made, and its kernels are loaded.
            self._call_beside(one, "before")
            self.run(function, case)
            case.ran.add(one)
            case.ready_to_time()
            self._call_beside(one, "before")
        milliseconds = ctypes.c_float()
        self._call(
            "policygen_time",
            function,
            case.buffers,
            case.sizes,
            int(case.is_modified),
            ctypes.byref(milliseconds),
        )
        if milliseconds.value < 0:
            raise DeviceError(UNSUPPORTED, "it waits for the GPU itself and cannot be timed")
        return milliseconds.value / 1000

    def launch(self, one: VariantFunction) -> Launch | None:
        """Asks the unit, where it has a kernel of one's own."""
        facts = self._beside(one, "facts")
        if facts is None:
            return None
        case, told = self._opened, (ctypes.c_longlong * len(fields(Launch)))()
        self.checked(facts(case.buffers, case.sizes, told))
        return Launch(*told)

    def bandwidth(self) -> float:
        """Copies, and takes the time."""
        found = ctypes.c_double()
        self._call("policygen_bandwidth", ctypes.byref(found))
        return found.value

    def clocks(self) -> Clocks:
        """Asks the driver's library; without it a kernel counts cycles."""
        told = machine.clocks(self.facts().uuid)
        if told is not None:
            return told
        megahertz = ctypes.c_double()
        self._call("policygen_clock", ctypes.byref(megahertz))
        return Clocks(round(megahertz.value))

    def close(self) -> None:
        """Frees the buffers."""
        if self._case is not None:
            self._case.free()
            self._case = None

    @property
    def _opened(self) -> "_OpenCase":
        if self._case is None:
            raise DeviceError(UNSUPPORTED, "no runtime workload is open")
        return self._case

    def _library(self, path: str) -> ctypes.CDLL:
        if path not in self._libraries:
            try:
                self._libraries[path] = ctypes.CDLL(path)
            except OSError as error:
                raise DeviceError(UNSUPPORTED, f"the unit cannot be loaded: {error}") from error
        return self._libraries[path]

    def _function(self, one: VariantFunction) -> Any:
        return getattr(self._library(one.library), one.function)

    def _beside(self, one: VariantFunction, what: str) -> Any | None:
        """What a unit has for a function besides: what is done before it, and afterwards."""
        return getattr(self._library(one.library), f"{one.function}_{what}", None)

    def _call_beside(self, one: VariantFunction, what: str) -> None:
        if (function := self._beside(one, what)) is not None:
            self.checked(function(self._opened.buffers, self._opened.sizes))

    def _call(self, name: str, *arguments: object) -> None:
        self.checked(getattr(self._runner, name)(*arguments))

    def checked(self, code: int) -> None:
        """Raises CUDA's words for an error."""
        if code:
            text = ctypes.create_string_buffer(TEXT)
            self._runner.policygen_error(code, text, ctypes.c_size_t(TEXT))
            raise DeviceError(code, text.value.decode(errors="replace"))

    def run(self, function: object, case: "_OpenCase") -> None:
        """Runs a function once, to its end."""
        self._call("policygen_run", function, case.buffers, case.sizes)

    def allocate(self, size: int) -> int:
        """Takes memory of the GPU."""
        place = ctypes.c_void_p()
        self._call("policygen_allocate", ctypes.byref(place), ctypes.c_size_t(size))
        assert place.value is not None
        return place.value

    def release(self, places: Sequence[int]) -> None:
        """Gives memory back."""
        for place in places:
            self._call("policygen_release", ctypes.c_void_p(place))

    def clear(self, place: int, size: int) -> None:
        """Writes the same everywhere."""
        self._call("policygen_clear", ctypes.c_void_p(place), ctypes.c_size_t(size))

    def copy(self, to: int, place: int, size: int) -> None:
        """Copies on the GPU."""
        self._call(
            "policygen_copy", ctypes.c_void_p(to), ctypes.c_void_p(place), ctypes.c_size_t(size)
        )


class _OpenCase:
    """The buffers of a runtime workload, what was in them, and what base made of them."""

    def __init__(self, device: CudaDevice, unit: ctypes.CDLL, case: RuntimeCase) -> None:
        self._device = device
        self._unit = unit
        self._axes = (ctypes.c_longlong * max(1, len(case.axes)))(*case.axes)
        self.sizes = (ctypes.c_longlong * max(1, case.sizes))()
        told = (ctypes.c_longlong * case.buffers)()
        roles = (ctypes.c_int * case.buffers)()
        self.skipped = bool(unit.policygen_shape(self._axes, self.sizes, told))
        unit.policygen_roles(roles)
        self._bytes, self._roles = list(told), list(roles)
        self.buffers = (ctypes.c_void_p * case.buffers)()
        self._fresh: dict[int, int] = {}
        """By buffer what a run modifies, as it was."""
        self._expected: dict[int, int] = {}
        self._exact: bool | None = None
        self._expected_of: bool | None = None
        self.ran: set[VariantFunction] = set()

    @property
    def is_modified(self) -> bool:
        """Whether a run changes what it reads."""
        return bool(self._fresh)

    def make(self) -> None:
        """Takes memory for the buffers and fills them."""
        for at, size in enumerate(self._bytes):
            self.buffers[at] = self._device.allocate(size)
            if self._roles[at] & MODIFIED:
                self._fresh[at] = self._device.allocate(size)
            if self._roles[at] & COMPARED:
                self._expected[at] = self._device.allocate(size)
            self._device.clear(self._place(at), size)
        self._fill(exact=False)

    def free(self) -> None:
        """Gives all memory back; when CUDA is gone, so is the memory."""
        places = [place for place in self.buffers if place]
        self._device.release([*places, *self._fresh.values(), *self._expected.values()])

    def ready_to_time(self) -> None:
        """Has the contents that are timed in place."""
        if self._exact and self._has_exact:
            self._fill(exact=False)
        self._restore()

    def fresh(self) -> None:
        """Has exact contents in place, and nothing where results go."""
        if not self._exact and self._has_exact:
            self._fill(exact=True)
        self._restore()
        for at, role in enumerate(self._roles):
            if role & COMPARED and not role & FILLED:
                self._device.clear(self._place(at), self._bytes[at])

    def keep(self) -> None:
        """What was computed is what is right."""
        for at, place in self._expected.items():
            self._device.copy(place, self._place(at), self._bytes[at])

    @property
    def _has_exact(self) -> bool:
        return any(role & EXACT for role in self._roles)

    def _place(self, at: int) -> int:
        place = self.buffers[at]
        assert place is not None
        return int(place)

    def _fill(self, *, exact: bool) -> None:
        code = self._unit.policygen_fill(self.buffers, self._axes, self.sizes, int(exact))
        self._device.checked(code)
        self._exact = exact
        for at, place in self._fresh.items():
            self._device.copy(place, self._place(at), self._bytes[at])

    def _restore(self) -> None:
        for at, place in self._fresh.items():
            self._device.copy(self._place(at), place, self._bytes[at])

    def difference(self) -> str | None:
        """Says what differs from what is right."""
        expected = (ctypes.c_void_p * len(self._roles))()
        for at, place in self._expected.items():
            expected[at] = place
        first, buffer = ctypes.c_longlong(-1), ctypes.c_int()
        compare = self._unit.policygen_compare
        compare.restype = ctypes.c_longlong
        differ = compare(
            self.buffers,
            expected,
            self._axes,
            self.sizes,
            int(bool(self._exact)),
            ctypes.byref(first),
            ctypes.byref(buffer),
        )
        if differ < 0:
            raise DeviceError(1, "results could not be compared")
        if not differ:
            return None
        where = f", the first at {first.value:,}" if first.value >= 0 else ""
        elements, verb = ("element", "differs") if differ == 1 else ("elements", "differ")
        result = f"{differ:,} {elements} of result {buffer.value}"
        return f"{result} {verb} from base's{where}"
