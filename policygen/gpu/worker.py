"""Runs variants in a process of its own: what one does to a process or to a GPU ends there.

Requests and answers are lines of JSON. `do` of a request is

- `facts`: answered with `facts`;
- `open`, with the `case`: answered with `open`;
- `reference` and `check`, with `functions`: for each `at`, and then `right`, `wrong` or `failed`;
  of a kernel of one's own that is right, how it is launched;
- `bandwidth`: answered with `bandwidth`, the bytes that a copy moves in a second, where known;
- `sample`, with `functions` and the `order` in which they run: for each place of the order that of
  the function `at`, and then `took` or `failed`; at the end `clocks`;
- `nvbench`, with `functions` and the `order`: the same, where NVBench measures; then `samples`
  instead of `took`. A process does this once;
- `close`.

The last answer of each is `done`. Before a function runs, `at` is told and has left the process: of
one that ends or hangs it is known what did it. After an error that stays with a process the worker
ends itself, with the status `STICKY`.
"""

import json
import os
import select
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from functools import cache as once
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from policygen.errors import InputError
from policygen.gpu.device import (
    UNSUPPORTED,
    Device,
    DeviceError,
    MeasuresItself,
    RuntimeCase,
    TellsLaunches,
    VariantFunction,
)
from policygen.gpu.machine import WORKER, gpu_lock

STICKY = 70
"""The status of a worker that an error of CUDA ended."""
PATIENCE = 60.0
"""Seconds that a worker waits for that of a measurement that was killed, which ends still."""
DEVICE = "policygen.gpu.cuda_device"
NVBENCH = "policygen.gpu.nvbench_device"
Request = Mapping[str, Any]


class _Ended(Exception):  # noqa: N818  it is no failure of ours
    """The process is of no more use."""


class _Server:
    """Answers requests about one device."""

    def __init__(self, device: Device, sink: IO[bytes], hold: Callable[[], None]) -> None:
        self._device = device
        self._sink = sink
        self._hold = hold
        self._ran: set[VariantFunction] = set()
        """What has run in this process on the open runtime workload: its code is on the GPU."""

    def answer(self, request: Request) -> None:
        """Does what a request asks for, and tells what comes of it."""
        steps: Mapping[str, Callable[[Request], None]] = {
            "facts": self._facts,
            "open": self._open,
            "reference": self._reference,
            "check": self._check,
            "sample": self._sample,
            "nvbench": self._nvbench,
            "bandwidth": self._bandwidth,
            "close": self._close,
        }
        with self._failing(None):
            steps[request["do"]](request)
        self._tell(done=True)

    @contextmanager
    def _failing(self, at: int | None) -> Iterator[None]:
        """Tells of a call that failed; one that spoils the process is its last."""
        try:
            yield
        except DeviceError as error:
            self._tell(failed=at, code=error.code, words=error.words, sticky=error.sticky)
            if error.sticky:
                raise _Ended from error

    def _tell(self, *, now: bool = True, **what: object) -> None:
        self._sink.write(json.dumps(what).encode() + b"\n")
        if now:
            self._sink.flush()

    def _facts(self, _: Request) -> None:
        self._tell(facts=asdict(self._device.facts()))

    def _open(self, request: Request) -> None:
        self._hold()
        self._ran.clear()
        case = request["case"]
        opened = self._device.open(RuntimeCase(**{**case, "axes": tuple(case["axes"])}))
        self._tell(open=opened)

    def _reference(self, request: Request) -> None:
        for at, base in enumerate(_functions(request)):
            self._tell(at=at)
            with self._failing(at):
                self._device.reference(base)
                self._tell(right=at)

    def _check(self, request: Request) -> None:
        for at, one in enumerate(_functions(request)):
            self._tell(at=at)
            with self._failing(at):
                wrong = self._device.check(one)
                if wrong is None:
                    self._tell(right=at, **self._launch(one))
                else:
                    self._tell(wrong=at, words=wrong)

    def _launch(self, one: VariantFunction) -> dict[str, Any]:
        device = self._device
        found = device.launch(one) if isinstance(device, TellsLaunches) else None
        return {} if found is None else {"launch": asdict(found)}

    def _bandwidth(self, _: Request) -> None:
        if isinstance(self._device, TellsLaunches):
            self._tell(bandwidth=self._device.bandwidth())

    def _sample(self, request: Request) -> None:
        functions = _functions(request)
        refused: set[int] = set()
        for at in request["order"]:
            if at in refused:
                continue
            self._tell(at=at)
            refused.add(at)
            with self._failing(at):
                took = self._taken(functions[at])
                # It leaves the process with the next line: nothing that can fail is between them.
                self._tell(now=False, took=took)
                refused.remove(at)
        clocks = self._device.clocks()
        self._tell(now=False, clocks=asdict(clocks))

    def _taken(self, one: VariantFunction) -> float:
        """Seconds of a run; before its first one a function runs once for nothing."""
        if one not in self._ran:
            self._device.sample(one)
            self._ran.add(one)
        return self._device.sample(one)

    def _nvbench(self, request: Request) -> None:
        if not isinstance(self._device, MeasuresItself):
            raise DeviceError(UNSUPPORTED, "this worker was not started for NVBench")
        functions, order = _functions(request), request["order"]
        refused: set[int] = set()

        def around(place: int, take: Callable[[], Sequence[float]]) -> None:
            if (at := order[place]) in refused:
                return
            self._tell(at=at)
            refused.add(at)
            with self._failing(at):
                self._tell(samples=list(take()))
                refused.remove(at)

        self._device.nvbench([functions[at] for at in order], around)
        self._tell(now=False, clocks=asdict(self._device.clocks()))

    def _close(self, _: Request) -> None:
        self._ran.clear()
        self._device.close()


def serve(
    device: Device, source: IO[bytes], sink: IO[bytes], hold: Callable[[], None] = lambda: None
) -> int:
    """Answers until there are no more requests; the status to end with.

    `hold` is called before something is made on the GPU.
    """
    server = _Server(device, sink, hold)
    try:
        while line := source.readline():
            server.answer(json.loads(line))
    except _Ended:
        return STICKY
    except BrokenPipeError:  # who asked has ended
        return 0
    with suppress(DeviceError):
        device.close()
    return 0


def run_worker(make: Callable[[], Device], locks: Path | None = None) -> int:
    """Serves a device on standard input and output, and ends when who asked ends, also in a run."""
    # What a variant prints is no answer.
    answers = os.dup(1)
    os.dup2(2, 1)
    threading.Thread(target=_end_with_the_other_side, daemon=True).start()
    with os.fdopen(answers, "wb") as sink, ExitStack() as held:
        try:
            device = make()
            uuid = device.facts().uuid
        except DeviceError as error:
            sink.write(json.dumps({"refused": error.words}).encode() + b"\n")
            return STICKY

        @once
        def hold() -> None:
            try:
                held.enter_context(gpu_lock(uuid, WORKER, PATIENCE, locks))
            except InputError as error:
                raise DeviceError(0, error.in_line) from error

        return serve(device, sys.stdin.buffer, sink, hold)


def _end_with_the_other_side() -> None:
    poll = select.poll()
    poll.register(0, 0)  # that the other end is closed is told in any case
    poll.poll()
    os._exit(0)


def _functions(request: Request) -> list[VariantFunction]:
    return [VariantFunction(*one) for one in request["functions"]]


def main(arguments: Sequence[str]) -> int:
    """Serves a GPU, by its number, with the runner and the CUDA runtime at paths.

    What follows is `nvbench` and its options, where NVBench is to measure.
    """
    index, runner, runtime, *others = arguments
    where = (int(index), Path(runner), Path(runtime) if runtime else None)
    # They load the driver, which nothing else does.
    if others[:1] == ["nvbench"]:
        other = import_module(NVBENCH).NvbenchDevice
        return run_worker(lambda: other(*where, others[1:]))
    device = import_module(DEVICE).CudaDevice
    return run_worker(lambda: device(*where))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
