"""Runs variants in a separate process, so that whatever they do to a process or GPU ends there.

Requests and answers are lines of JSON. The `do` of a request is

- `facts`: answered with `facts`;
- `open`, with the `case`: answered with `open`, and whether its inputs and the results of the
  baseline were `kept` from before;
- `reference` and `check`, with `functions`: answered for each with `at`, and then `right`, `wrong`,
  or `failed`; a user kernel that is right also has its `launch`;
- `bandwidth`: answered with `bandwidth`, the copy bandwidth in bytes per second, if known;
- `sample`, with `functions` and the `order` in which they run: answered for each place of the order
  with the function `at`, and then `took` or `failed`; at the end `clocks`;
- `nvbench`, with `functions` and the `order`: the same measured by NVBench, with `samples` instead
  of `took`. A process can do this only once.

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
from pathlib import Path
from typing import IO, Any

from policygen.errors import InputError
from policygen.gpu.cuda_device import CudaDevice, NvbenchDevice
from policygen.gpu.device import DeviceError, RuntimeCase, VariantFunction
from policygen.gpu.machine import WORKER, gpu_lock

STICKY = 70
"""Exit status after a persistent CUDA error."""
PATIENCE = 60.0
"""Seconds to wait for the worker of a killed measurement, which is still ending."""
Request = Mapping[str, Any]


class _Ended(Exception):  # noqa: N818  it is not an error of ours
    """The process is no longer usable."""


class _Server:
    """Answers requests about one device."""

    def __init__(self, device: CudaDevice, sink: IO[bytes], hold: Callable[[], None]) -> None:
        self._device = device
        self._sink = sink
        self._hold = hold

    def answer(self, request: Request) -> None:
        """Execute a request and send the answers."""
        step: Callable[[Request], None] = getattr(self, f"_{request['do']}")
        with self._reporting_errors(None):
            step(request)
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

    @contextmanager
    def _running(self, index: int) -> Iterator[None]:
        """Say which function runs in the block, and report its failure."""
        self._send(at=index)
        with self._reporting_errors(index):
            yield

    def _send(self, *, flush: bool = True, **fields: object) -> None:
        self._sink.write(json.dumps(fields).encode() + b"\n")
        if flush:
            self._sink.flush()

    def _facts(self, _: Request) -> None:
        self._send(facts=asdict(self._device.facts()))

    def _open(self, request: Request) -> None:
        self._hold()
        case = RuntimeCase(**{**request["case"], "axes": tuple(request["case"]["axes"])})
        kept = self._device.holds(case)
        self._send(open=self._device.open(case), kept=kept)

    def _reference(self, request: Request) -> None:
        for index, base in enumerate(_functions(request)):
            with self._running(index):
                self._device.reference(base)
                self._send_right(index, base)

    def _check(self, request: Request) -> None:
        for index, function in enumerate(_functions(request)):
            with self._running(index):
                difference = self._device.check(function)
                if difference is None:
                    self._send_right(index, function)
                else:
                    self._send(wrong=index, words=difference)

    def _send_right(self, index: int, function: VariantFunction) -> None:
        launch = self._device.launch(function)
        known: dict[str, Any] = {} if launch is None else {"launch": asdict(launch)}
        self._send(right=index, **known)

    def _bandwidth(self, _: Request) -> None:
        if (bandwidth := self._device.bandwidth()) is not None:
            self._send(bandwidth=bandwidth)

    def _sample(self, request: Request) -> None:
        functions = _functions(request)
        refused: set[int] = set()
        for index in request["order"]:
            if index in refused:
                continue
            refused.add(index)
            with self._running(index):
                # It is sent with the next line: nothing in between can fail.
                self._send(flush=False, took=self._device.sample(functions[index]))
                refused.remove(index)
        self._send(flush=False, clocks=asdict(self._device.clocks()))

    def _nvbench(self, request: Request) -> None:
        functions, order = _functions(request), request["order"]
        refused: set[int] = set()

        def measure(position: int, take: Callable[[], Sequence[float]]) -> None:
            if (index := order[position]) in refused:
                return
            refused.add(index)
            with self._running(index):
                self._send(samples=list(take()))
                refused.remove(index)

        self._device.nvbench([functions[index] for index in order], measure)
        self._send(flush=False, clocks=asdict(self._device.clocks()))


def serve(
    device: CudaDevice, source: IO[bytes], sink: IO[bytes], hold: Callable[[], None] = lambda: None
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


def run_worker(make: Callable[[], CudaDevice], locks: Path | None = None) -> int:
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
    where = (int(gpu_index), Path(runner), Path(runtime) if runtime else None)
    if options[:1] == ["nvbench"]:
        return run_worker(lambda: NvbenchDevice(*where, options[1:]))
    return run_worker(lambda: CudaDevice(*where))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
