"""Runs variants in a separate process, so that whatever they do to a process or GPU ends there.

Requests and answers are lines of JSON. The `do` of a request is

- `facts`: answered with `facts`;
- `open`, with the `case`: answered with `open`;
- `reference` and `check`, with `functions`: answered for each with `at`, and then `right`, `wrong`,
  or `failed`; a user kernel that is right also has its `launch`;
- `bandwidth`: answered with `bandwidth`, the copy bandwidth in bytes per second, if known;
- `sample`, with `functions` and the `order` in which they run: answered for each place of the order
  with the function `at`, and then `took` or `failed`; at the end `clocks`;
- `nvbench`, with `functions` and the `order`: the same measured by NVBench, with `samples` instead
  of `took`. A process can do this only once;
- `close`.

The last answer to each request is `done`. `at` is flushed before a function runs, so that the
parent knows which function crashed or hung the process. After an error that persists in a process,
the worker exits with the status `STICKY`.
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
"""Exit status after a persistent CUDA error."""
PATIENCE = 60.0
"""Seconds to wait for the worker of a killed measurement, which is still ending."""
DEVICE = "policygen.gpu.cuda_device"
NVBENCH = "policygen.gpu.nvbench_device"
Request = Mapping[str, Any]


class _Ended(Exception):  # noqa: N818  it is no failure of ours
    """The process is no longer usable."""


class _Server:
    """Answers requests about one device."""

    def __init__(self, device: Device, sink: IO[bytes], hold: Callable[[], None]) -> None:
        self._device = device
        self._sink = sink
        self._hold = hold
        self._ran: set[VariantFunction] = set()
        """Functions that have run in this process on the open runtime workload and are loaded."""

    def answer(self, request: Request) -> None:
        """Execute a request and send the answers."""
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
        with self._reporting_errors(None):
            steps[request["do"]](request)
        self._send(done=True)

    @contextmanager
    def _reporting_errors(self, index: int | None) -> Iterator[None]:
        """Report a failed call; raise _Ended if it makes the process unusable."""
        try:
            yield
        except DeviceError as error:
            self._send(failed=index, code=error.code, words=error.words, sticky=error.sticky)
            if error.sticky:
                raise _Ended from error

    def _send(self, *, flush: bool = True, **fields: object) -> None:
        self._sink.write(json.dumps(fields).encode() + b"\n")
        if flush:
            self._sink.flush()

    def _facts(self, _: Request) -> None:
        self._send(facts=asdict(self._device.facts()))

    def _open(self, request: Request) -> None:
        self._hold()
        self._ran.clear()
        case = request["case"]
        opened = self._device.open(RuntimeCase(**{**case, "axes": tuple(case["axes"])}))
        self._send(open=opened)

    def _reference(self, request: Request) -> None:
        for index, base in enumerate(_functions(request)):
            self._send(at=index)
            with self._reporting_errors(index):
                self._device.reference(base)
                self._send(right=index)

    def _check(self, request: Request) -> None:
        for index, function in enumerate(_functions(request)):
            self._send(at=index)
            with self._reporting_errors(index):
                difference = self._device.check(function)
                if difference is None:
                    self._send(right=index, **self._launch(function))
                else:
                    self._send(wrong=index, words=difference)

    def _launch(self, function: VariantFunction) -> dict[str, Any]:
        device = self._device
        launch = device.launch(function) if isinstance(device, TellsLaunches) else None
        return {} if launch is None else {"launch": asdict(launch)}

    def _bandwidth(self, _: Request) -> None:
        if isinstance(self._device, TellsLaunches):
            self._send(bandwidth=self._device.bandwidth())

    def _sample(self, request: Request) -> None:
        functions = _functions(request)
        refused: set[int] = set()
        for index in request["order"]:
            if index in refused:
                continue
            self._send(at=index)
            refused.add(index)
            with self._reporting_errors(index):
                seconds = self._timed_run(functions[index])
                # It is sent with the next line: nothing in between can fail.
                self._send(flush=False, took=seconds)
                refused.remove(index)
        clocks = self._device.clocks()
        self._send(flush=False, clocks=asdict(clocks))

    def _timed_run(self, function: VariantFunction) -> float:
        """Time a run in seconds, with one untimed run of a new function before it."""
        if function not in self._ran:
            self._device.sample(function)
            self._ran.add(function)
        return self._device.sample(function)

    def _nvbench(self, request: Request) -> None:
        if not isinstance(self._device, MeasuresItself):
            raise DeviceError(UNSUPPORTED, "this worker was not started for NVBench")
        functions, order = _functions(request), request["order"]
        refused: set[int] = set()

        def measure(position: int, take: Callable[[], Sequence[float]]) -> None:
            if (index := order[position]) in refused:
                return
            self._send(at=index)
            refused.add(index)
            with self._reporting_errors(index):
                self._send(samples=list(take()))
                refused.remove(index)

        self._device.nvbench([functions[index] for index in order], measure)
        self._send(flush=False, clocks=asdict(self._device.clocks()))

    def _close(self, _: Request) -> None:
        self._ran.clear()
        self._device.close()


def serve(
    device: Device, source: IO[bytes], sink: IO[bytes], hold: Callable[[], None] = lambda: None
) -> int:
    """Answer requests until the input ends; return the exit status.

    `hold` is called before anything is created on the GPU.
    """
    server = _Server(device, sink, hold)
    try:
        while line := source.readline():
            server.answer(json.loads(line))
    except _Ended:
        return STICKY
    except BrokenPipeError:  # the parent has ended
        return 0
    with suppress(DeviceError):
        device.close()
    return 0


def run_worker(make: Callable[[], Device], locks: Path | None = None) -> int:
    """Serve a device on standard input and output; exit with the parent, even during a run."""
    # Redirect the output of variants, which is not part of the protocol.
    answers = os.dup(1)
    os.dup2(2, 1)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
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


def _exit_with_parent() -> None:
    poll = select.poll()
    poll.register(0, 0)  # hang-up is always reported
    poll.poll()
    os._exit(0)


def _functions(request: Request) -> list[VariantFunction]:
    return [VariantFunction(*fields) for fields in request["functions"]]


def main(arguments: Sequence[str]) -> int:
    """Serve the GPU with the given index, runner, and CUDA runtime.

    Further arguments are `nvbench` and its options, if NVBench is to measure.
    """
    gpu_index, runner, runtime, *options = arguments
    device_arguments = (int(gpu_index), Path(runner), Path(runtime) if runtime else None)
    # These modules load the driver, which nothing else does.
    if options[:1] == ["nvbench"]:
        nvbench_device = import_module(NVBENCH).NvbenchDevice
        return run_worker(lambda: nvbench_device(*device_arguments, options[1:]))
    device = import_module(DEVICE).CudaDevice
    return run_worker(lambda: device(*device_arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
