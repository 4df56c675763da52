"""The client of a Dask scheduler: asks its workers, and sends what they lack."""

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
"""The resource that a worker announces which may measure."""
CONNECT = 15.0
"""Seconds in which a scheduler answers."""
CLOSE = 3.0
"""Seconds for saying good-bye."""
LOOKS = 0.3
"""Seconds between two looks whether somebody ends this process."""
ALIVE = 1.0
"""Seconds between two looks whether a worker is there still."""
SHIPMENTS = 3
"""Times that a worker may lack something, though it was sent to it."""
RESTART = 30.0
"""Seconds that a worker may take to be started anew, at least: its nanny does it."""
PART = 4 << 20
"""Bytes that are sent at once."""
MEASURING, SENDING = 10, 20
"""What goes before compiles."""
Work = Callable[..., WorkerAnswer]


@dataclass(frozen=True, slots=True)
class SeenWorker:
    """A worker, as its scheduler tells of it."""

    threads: int
    has_gpu: bool


class EndedWorkersError(Exception):
    """Those who did a task have ended, one after the other."""


class GoneWorkersError(EndedWorkersError):
    """Those who alone were asked are there no more."""


# What a client sends to workers: objects and include folders, by what is in them.


@dataclass(slots=True)
class SentContents:
    """Files and folders of this machine, each looked at once."""

    names: dict[str, str] = field(default_factory=dict)
    """Path → its content's name."""
    files: dict[str, Path] = field(default_factory=dict)
    """Content's name → where it lies."""
    archives: dict[str, bytes] = field(default_factory=dict)
    guard: Lock = field(default_factory=Lock)

    def file(self, path: str) -> str:
        """The name of what is in a file."""
        with self.guard:
            if path not in self.names:
                name = digest(Path(path).read_bytes())
                self.names[path], self.files[name] = name, Path(path)
            return self.names[path]

    def folder(self, path: str) -> str:
        """The name of what is in a folder."""
        with self.guard:
            if path not in self.names:
                data = packed(Path(path))
                name = digest(data)
                self.names[path], self.archives[name] = name, data
            return self.names[path]

    def data(self, name: str) -> bytes:
        """What has a name."""
        if name in self.archives:
            return self.archives[name]
        return self.files[name].read_bytes()


@dataclass(slots=True)
class ClusterClient:
    """Asks the workers of one scheduler."""

    client: Any
    address: str
    terms: Terms
    patience: float = 0.0
    """Seconds to wait for a worker, where none is there."""
    sender: str = field(default_factory=lambda: token_hex(8))
    contents: SentContents = field(default_factory=SentContents, repr=False)
    _sending: dict[str, threading.Lock] = field(default_factory=dict, repr=False)
    _sent: dict[tuple[str, str], float] = field(default_factory=dict, repr=False)
    """Worker and content → when it was there."""

    def workers(self) -> Mapping[str, SeenWorker]:
        """Those that are there now, by their addresses."""
        with self._answering():
            told = self.client.scheduler_info(n_workers=-1)["workers"]
        if self.client.status != "running":  # Dask tells what it knew at last
            raise _silent(self.address)
        return {
            address: SeenWorker(one["nthreads"], one["resources"].get(GPU, 0) >= 1)
            for address, one in sorted(told.items())
        }

    def ask(self, work: Work, *arguments: Any, near: Sequence[str] = ()) -> Any:
        """Has it done by any worker, and rather by some: what it gives, or why it gives nothing."""
        lacked: Counter[str] = Counter()
        while not lacked or max(lacked.values()) < SHIPMENTS:
            begun = time.monotonic()
            how = {"workers": list(near), "allow_other_workers": True} if near else {}
            future = self._submit(work, self.terms, *arguments, **how)
            try:
                answer = self._answer(future, near)
            except GoneWorkersError:  # Dask would wait until these are there again
                near = ()
                continue
            if answer.kind != "lacks":
                return answer.given()
            self._send(answer, begun)
            near = (answer.worker,)
            lacked[answer.worker] += 1
        raise _never_complete(lacked.most_common(1)[0][0])

    def ask_gpu(self, worker: str, work: Work, *arguments: Any) -> Any:
        """Has it done by a worker that has a GPU, one task at a time."""
        how = {"workers": [worker], "resources": {GPU: 1}, "priority": MEASURING}
        try:
            for _ in range(SHIPMENTS):
                begun = time.monotonic()
                future = self._submit(work, self.terms, *arguments, **how)
                answer = self._answer(future, (worker,))
                if answer.kind != "lacks":
                    return answer.given()
                self._send(answer, begun)
        except EndedWorkersError as error:
            raise LostGpuError(
                f"the worker {worker} has ended", "What was measured is kept. Start another one."
            ) from error
        raise _never_complete(worker)

    def tell_gpu(self, worker: str, work: Work, *arguments: Any, patience: float) -> None:
        """Has it done, if need be when this client has gone; waits so many seconds at most."""
        dask = import_module("distributed")
        with suppress(Exception):  # whoever has gone needs not be told
            future = self._submit(
                work, self.terms, *arguments, workers=[worker], resources={GPU: 1}
            )
            dask.fire_and_forget(future)
            dask.wait(future, timeout=patience)

    def _submit(self, work: Work, *arguments: Any, **how: Any) -> Any:
        with self._answering():
            # No two tasks are the same: what was done once is not taken for what is asked now.
            return self.client.submit(work, *arguments, pure=False, **how)

    def _answer(self, future: Any, those: Sequence[str]) -> WorkerAnswer:
        """Waits for a task; for one of some workers, as long as one of them is there."""
        loop = self.client.loop.asyncio_loop
        # A worker may end between its answer and the reading of it: that is waited for, too.
        reading = asyncio.run_coroutine_threadsafe(
            self.client.gather(future, asynchronous=True), loop
        )
        try:
            seen = looked = time.monotonic()
            while not wait([reading], LOOKS).done:
                if is_ending():
                    raise ProcessError(["dask"], -signal.SIGTERM, "policygen is ending")
                if (now := time.monotonic()) - looked >= ALIVE:
                    looked, there = now, self.workers().keys()
                    seen = now if there else seen
                    self._check_there(there, those, now - seen)
            return self._result(reading)
        finally:
            future.release()  # by that the reading ends, too

    def _check_there(self, there: Collection[str], those: Sequence[str], alone: float) -> None:
        if those and not any(one in there for one in those):
            raise GoneWorkersError
        if alone > max(self.patience, RESTART):
            raise LostGpuError(
                f"{self.address} has no worker any more",
                "What was measured is kept. Start one, or wait for longer: --wait SECONDS.",
            )

    def _result(self, reading: "Future[WorkerAnswer]") -> WorkerAnswer:
        killed = import_module("distributed").KilledWorker
        try:
            with self._answering():
                return reading.result()
        except PolicygenError:
            raise
        except killed as error:
            raise EndedWorkersError from error
        except Exception as error:
            words = visible(f"{type(error).__name__}: {error}")
            raise InputError(f"a worker of {self.address} failed: {words}", SAME) from error

    def _send(self, answer: WorkerAnswer, begun: float) -> None:
        """Sends what a worker lacked when it was asked, each content once."""
        worker = answer.worker
        with self._sending.setdefault(worker, threading.Lock()):
            for name in answer.value:
                if self._sent.get((worker, name), -1.0) >= begun:
                    continue  # another thread has sent it since
                with suppress(EndedWorkersError):  # who asks for it asks another one
                    self._send_one(worker, name)
                    self._sent[worker, name] = time.monotonic()

    def _send_one(self, worker: str, name: str) -> None:
        """In parts, each a task of its own: what is scattered waits for workers that have ended."""
        data = self.contents.data(name)
        for start in range(0, max(1, len(data)), PART):
            part = (self.sender, start, data[start : start + PART], len(data))
            how = {"workers": [worker], "priority": SENDING}
            if self._answer(self._submit(keep_part, name, *part, **how), (worker,)).kind != "done":
                raise EndedWorkersError

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Words the silence of a scheduler."""
        dask = import_module("distributed")
        from_comm = import_module("distributed.comm.core").CommClosedError
        try:
            yield
        except (
            from_comm,
            CancelledError,
            dask.CancelledError,
            dask.TimeoutError,
            OSError,
        ) as error:
            raise _silent(self.address) from error


@contextmanager
def connected(text: str, terms: Terms, patience: float = 0.0) -> Iterator[ClusterClient]:
    """The workers of a scheduler for a block: its address, or the file that it wrote."""
    dask = _dask()
    where = _where(text)
    try:
        client = dask.Client(**where, timeout=CONNECT, set_as_default=False)
    except Exception as error:
        raise _silent(text, f"{type(error).__name__}: {error}") from error
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


def _where(text: str) -> dict[str, str]:
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


def _silent(address: str, why: str = "") -> InputError:
    said = f": {visible(why)}" if why else ""
    return LostGpuError(
        f"the Dask scheduler {visible(address)} does not answer{said}",
        "What was measured is kept. Start it, or look whether this machine reaches it.",
    )


def _never_complete(worker: str) -> InputError:
    return InputError(
        f"{worker} lacks what was sent to it, again and again",
        "Has its folder room, which --local-directory names?",
    )
