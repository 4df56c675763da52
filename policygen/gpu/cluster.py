"""Client of a Dask scheduler: sends tasks to its workers, and the contents that they need."""

import asyncio
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import Any

from policygen.cache import digest
from policygen.errors import InputError, MissingToolError, PolicygenError, ProcessError
from policygen.gpu.cluster_workers import SAME, Terms, WorkerAnswer, keep_part, packed
from policygen.gpu.device import LostGpuError
from policygen.installation import add
from policygen.process import is_ending
from policygen.untrusted import visible

GPU = "GPU"
"""Resource of workers that may measure."""
CONNECT = 15.0
"""Timeout of the scheduler's first answer, in seconds."""
CLOSE = 3.0
"""Timeout of closing the client, in seconds."""
LOOKS = 0.3
"""Seconds between checks whether this process is ending."""
ALIVE = 1.0
"""Seconds between checks whether a worker is still present."""
SHIPMENTS = 3
"""Number of times that a worker may lack something that was sent to it."""
RESTART = 30.0
"""Minimum number of seconds allowed for a worker's restart by its nanny."""
PART = 4 << 20
"""Bytes sent at once."""
MEASURING, SENDING = 10, 20
"""Task priorities above those of compiles."""
Work = Callable[..., WorkerAnswer]


@dataclass(frozen=True, slots=True)
class SeenWorker:
    """A worker as reported by its scheduler."""

    threads: int
    has_gpu: bool


class EndedWorkersError(Exception):
    """All workers that tried a task have ended."""


class GoneWorkersError(EndedWorkersError):
    """The workers to which a task was restricted no longer exist."""


# Contents sent to workers


@dataclass(slots=True)
class SentContents:
    """Files and folders of this machine by content digest, each read once."""

    names: dict[str, str] = field(default_factory=dict)
    """Path → digest."""
    files: dict[str, Path] = field(default_factory=dict)
    """Digest → path."""
    archives: dict[str, bytes] = field(default_factory=dict)
    guard: Lock = field(default_factory=Lock)

    def file(self, path: str) -> str:
        """Return the digest of a file."""
        with self.guard:
            if path not in self.names:
                name = digest(Path(path).read_bytes())
                self.names[path], self.files[name] = name, Path(path)
            return self.names[path]

    def folder(self, path: str) -> str:
        """Return the digest of a folder."""
        with self.guard:
            if path not in self.names:
                data = packed(Path(path))
                name = digest(data)
                self.names[path], self.archives[name] = name, data
            return self.names[path]

    def data(self, name: str) -> bytes:
        """Return the content with a digest."""
        if name in self.archives:
            return self.archives[name]
        return self.files[name].read_bytes()


@dataclass(slots=True)
class ClusterClient:
    """Sends tasks to the workers of one scheduler."""

    client: Any
    address: str
    terms: Terms
    patience: float = 0.0
    """Seconds to wait for a worker if there is none."""
    sender: str = field(default_factory=lambda: token_hex(8))
    contents: SentContents = field(default_factory=SentContents, repr=False)
    _sending: dict[str, threading.Lock] = field(default_factory=dict, repr=False)
    _sent: dict[tuple[str, str], float] = field(default_factory=dict, repr=False)
    """Worker and digest → time at which it was sent."""

    def workers(self) -> Mapping[str, SeenWorker]:
        """Return the current workers by address."""
        with self._translating_errors():
            workers = self.client.scheduler_info(n_workers=-1)["workers"]
        if self.client.status != "running":  # Dask reports stale information
            raise _unreachable(self.address)
        return {
            address: SeenWorker(worker["nthreads"], worker["resources"].get(GPU, 0) >= 1)
            for address, worker in sorted(workers.items())
        }

    def ask(self, work: Work, *arguments: Any, near: Sequence[str] = ()) -> Any:
        """Run a task on any worker, preferably in `near`; return its result or raise its error."""
        lacked_by_worker: Counter[str] = Counter()
        while not lacked_by_worker or max(lacked_by_worker.values()) < SHIPMENTS:
            started = time.monotonic()
            options = {"workers": list(near), "allow_other_workers": True} if near else {}
            future = self._submit(work, self.terms, *arguments, **options)
            try:
                answer = self._answer(future, near)
            except GoneWorkersError:  # Dask would wait until these are back
                near = ()
                continue
            if answer.kind != "lacks":
                return answer.given()
            self._send(answer, started)
            near = (answer.worker,)
            lacked_by_worker[answer.worker] += 1
        raise _never_complete(lacked_by_worker.most_common(1)[0][0])

    def ask_gpu(self, worker: str, work: Work, *arguments: Any) -> Any:
        """Run a task on a worker that has a GPU, one task at a time."""
        options = {"workers": [worker], "resources": {GPU: 1}, "priority": MEASURING}
        try:
            for _ in range(SHIPMENTS):
                started = time.monotonic()
                future = self._submit(work, self.terms, *arguments, **options)
                answer = self._answer(future, (worker,))
                if answer.kind != "lacks":
                    return answer.given()
                self._send(answer, started)
        except EndedWorkersError as error:
            raise LostGpuError(
                f"the worker {worker} has ended", "What was measured is kept. Start another one."
            ) from error
        raise _never_complete(worker)

    def tell_gpu(self, worker: str, work: Work, *arguments: Any, patience: float) -> None:
        """Run a task whose result is not needed; wait `patience` seconds at most.

        The task runs even if this client has gone.
        """
        dask = import_module("distributed")
        with suppress(Exception):  # a worker that has gone need not be told
            future = self._submit(
                work, self.terms, *arguments, workers=[worker], resources={GPU: 1}
            )
            dask.fire_and_forget(future)
            dask.wait(future, timeout=patience)

    def _submit(self, work: Work, *arguments: Any, **options: Any) -> Any:
        with self._translating_errors():
            # Tasks are impure: Dask must not reuse an earlier result.
            return self.client.submit(work, *arguments, pure=False, **options)

    def _answer(self, future: Any, candidates: Sequence[str]) -> WorkerAnswer:
        """Wait for a task; if restricted to workers, only as long as one of them is present."""
        loop = self.client.loop.asyncio_loop
        # A worker may end between its answer and the reading of it, so wait for the reading, too.
        reading = asyncio.run_coroutine_threadsafe(
            self.client.gather(future, asynchronous=True), loop
        )
        try:
            last_present = last_check = time.monotonic()
            while not wait([reading], LOOKS).done:
                if is_ending():
                    raise ProcessError(["dask"], -signal.SIGTERM, "policygen is ending")
                if (now := time.monotonic()) - last_check >= ALIVE:
                    last_check, present = now, self.workers().keys()
                    last_present = now if present else last_present
                    self._check_present(present, candidates, now - last_present)
            return self._result(reading)
        finally:
            future.release()  # also ends the reading

    def _check_present(
        self, present: Collection[str], candidates: Sequence[str], seconds_without_workers: float
    ) -> None:
        if candidates and not any(worker in present for worker in candidates):
            raise GoneWorkersError
        if seconds_without_workers > max(self.patience, RESTART):
            raise LostGpuError(
                f"{self.address} has no worker any more",
                "What was measured is kept. Start one, or wait for longer: --wait SECONDS.",
            )

    def _result(self, reading: "Future[WorkerAnswer]") -> WorkerAnswer:
        killed = import_module("distributed").KilledWorker
        try:
            with self._translating_errors():
                return reading.result()
        except PolicygenError:
            raise
        except killed as error:
            raise EndedWorkersError from error
        except Exception as error:
            message = visible(f"{type(error).__name__}: {error}")
            raise InputError(f"a worker of {self.address} failed: {message}", SAME) from error

    def _send(self, answer: WorkerAnswer, started: float) -> None:
        """Send what a worker lacked when it was asked, each content once."""
        worker = answer.worker
        with self._sending.setdefault(worker, threading.Lock()):
            for name in answer.value:
                if self._sent.get((worker, name), -1.0) >= started:
                    continue  # another thread has sent it since
                with suppress(EndedWorkersError):  # the caller asks another worker
                    self._send_content(worker, name)
                    self._sent[worker, name] = time.monotonic()

    def _send_content(self, worker: str, name: str) -> None:
        """Send in parts, each a separate task: scattered data waits for workers that have ended."""
        data = self.contents.data(name)
        for start in range(0, max(1, len(data)), PART):
            part = (self.sender, start, data[start : start + PART], len(data))
            options = {"workers": [worker], "priority": SENDING}
            if (
                self._answer(self._submit(keep_part, name, *part, **options), (worker,)).kind
                != "done"
            ):
                raise EndedWorkersError

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Translate connection errors into one about the scheduler."""
        dask = import_module("distributed")
        comm_closed = import_module("distributed.comm.core").CommClosedError
        try:
            yield
        except (
            comm_closed,
            CancelledError,
            dask.CancelledError,
            dask.TimeoutError,
            OSError,
        ) as error:
            raise _unreachable(self.address) from error


@contextmanager
def connected(text: str, terms: Terms, patience: float = 0.0) -> Iterator[ClusterClient]:
    """Connect to a scheduler, given by its address or file, for a block."""
    dask = _dask()
    options = _client_options(text)
    try:
        client = dask.Client(**options, timeout=CONNECT, set_as_default=False)
    except Exception as error:
        raise _unreachable(text, f"{type(error).__name__}: {error}") from error
    try:
        yield ClusterClient(client, visible(text), terms, patience)
    finally:
        with suppress(Exception):
            client.close(timeout=CLOSE)


def _dask() -> Any:
    try:
        return import_module("distributed")
    except ImportError as error:
        raise MissingToolError(
            "distributed, for --scheduler,", f"Install it: {add('cluster')}"
        ) from error


def _client_options(text: str) -> dict[str, str]:
    if "://" in text:
        return {"address": text}
    if Path(text).is_file():
        return {"scheduler_file": text}
    host, _, port = text.rpartition(":")
    if host and port.isascii() and port.isdigit():
        return {"address": f"tcp://{text}"}
    raise InputError(
        f"--scheduler {visible(text)}: is no address, and no file that a scheduler wrote",
        "Name one: --scheduler tcp://HOST:8786, or the file of dask scheduler --scheduler-file.",
    )


def _unreachable(address: str, reason: str = "") -> InputError:
    suffix = f": {visible(reason)}" if reason else ""
    return LostGpuError(
        f"the Dask scheduler {visible(address)} does not answer{suffix}",
        "What was measured is kept. Start it, or look whether this machine reaches it.",
    )


def _never_complete(worker: str) -> InputError:
    return InputError(
        f"{worker} lacks what was sent to it, again and again",
        "Has its folder room, which --local-directory names?",
    )
