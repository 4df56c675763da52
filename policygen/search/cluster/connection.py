"""The client of a Dask scheduler: asks its workers, and sends what they lack."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from policygen.errors import InputError, MissingToolError, PolicygenError, ProcessError
from policygen.installation import add
from policygen.measure.outcomes import LostGpuError
from policygen.process import is_ending
from policygen.search.cluster.answers import Terms, WorkerAnswer
from policygen.search.cluster.contents import SentContents
from policygen.search.cluster.working import SAME, keep_content
from policygen.untrusted import visible

GPU = "GPU"
"""The resource that a worker announces which may measure."""
CONNECT = 15.0
"""Seconds in which a scheduler answers."""
LOOKS = 0.3
"""Seconds between two looks whether somebody ends this process."""
ALIVE = 1.0
"""Seconds between two looks whether a worker is there still."""
SHIPMENTS = 20
"""Times that a task may be sent to workers that lack something: as many workers may be new."""
MEASURING, SENDING = 10, 20
"""What goes before compiles."""
Work = Callable[..., WorkerAnswer]


@dataclass(frozen=True, slots=True)
class SeenWorker:
    """A worker, as its scheduler tells of it."""

    threads: int
    has_gpu: bool


class EndedWorkersError(Exception):
    """Those who were asked have ended, or do not answer any more."""


@dataclass(slots=True)
class ClusterClient:
    """Asks the workers of one scheduler."""

    client: Any
    address: str
    terms: Terms
    contents: SentContents = field(default_factory=SentContents)
    _sending: dict[str, threading.Lock] = field(default_factory=dict)
    _sent: dict[tuple[str, str], float] = field(default_factory=dict)
    """Worker and content → when it was there."""

    def workers(self) -> Mapping[str, SeenWorker]:
        """Those that are there now, by their addresses."""
        with self._answering():
            told = self.client.scheduler_info(n_workers=-1)["workers"]
        return {
            address: SeenWorker(one["nthreads"], one["resources"].get(GPU, 0) >= 1)
            for address, one in sorted(told.items())
        }

    def ask(self, work: Work, *arguments: Any, near: Sequence[str] = ()) -> Any:
        """Has it done by any worker, and rather by some: what it gives, or why it gives nothing."""
        how = {"workers": list(near), "allow_other_workers": True} if near else {}
        for _ in range(SHIPMENTS):
            begun = time.monotonic()
            answer = self._answer(self._submit(work, self.terms, *arguments, **how))
            if answer.kind != "lacks":
                return answer.given()
            self._send(answer, begun)
            how = {"workers": [answer.worker], "allow_other_workers": True}
        raise _never_complete(self.address)

    def ask_gpu(self, worker: str, work: Work, *arguments: Any) -> Any:
        """Has it done by a worker that has a GPU, one task at a time."""
        how = {"workers": [worker], "resources": {GPU: 1}, "priority": MEASURING}
        try:
            for _ in range(SHIPMENTS):
                begun = time.monotonic()
                future = self._submit(work, self.terms, *arguments, **how)
                answer = self._answer(future, worker)
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

    def _answer(self, future: Any, worker: str | None = None) -> WorkerAnswer:
        """Waits for a task; for one of a worker, as long as that is there."""
        done = threading.Event()
        try:
            future.add_done_callback(lambda _: done.set())
            looked = time.monotonic()
            while not done.wait(LOOKS):
                if is_ending():
                    raise ProcessError(["dask"], -signal.SIGTERM, "policygen is ending")
                if time.monotonic() - looked >= ALIVE:
                    looked = time.monotonic()
                    if worker is not None and worker not in self.workers():
                        raise EndedWorkersError
            return self._result(future)
        finally:
            future.release()

    def _result(self, future: Any) -> WorkerAnswer:
        killed = import_module("distributed").KilledWorker
        try:
            with self._answering():
                found: WorkerAnswer = future.result()
        except PolicygenError:
            raise
        except killed as error:
            raise EndedWorkersError from error
        except Exception as error:
            words = visible(f"{type(error).__name__}: {error}")
            raise InputError(f"a worker of {self.address} failed: {words}", SAME) from error
        return found

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
        data = self.contents.data(name)
        try:
            (there,) = self.client.scatter([data], workers=[worker], hash=False)
        except Exception as error:
            if worker in self.workers():
                raise
            raise EndedWorkersError from error
        future = self._submit(keep_content, name, there, workers=[worker], priority=SENDING)
        self._answer(future, worker).given()

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Words the silence of a scheduler."""
        dask = import_module("distributed")
        from_comm = import_module("distributed.comm.core").CommClosedError
        cancelled = import_module("concurrent.futures").CancelledError
        try:
            yield
        except (from_comm, cancelled, dask.TimeoutError, OSError) as error:
            raise _silent(self.address) from error


@contextmanager
def connected(text: str, terms: Terms) -> Iterator[ClusterClient]:
    """The workers of a scheduler for a block: its address, or the file that it wrote."""
    dask = _dask()
    where = _where(text)
    try:
        client = dask.Client(**where, timeout=CONNECT, set_as_default=False)
    except Exception as error:
        raise _silent(text, f"{type(error).__name__}: {error}") from error
    try:
        yield ClusterClient(client, visible(text), terms)
    finally:
        with suppress(Exception):
            client.close(timeout=CONNECT)


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


def _never_complete(where: str) -> InputError:
    return InputError(
        f"{where}: workers lack what was sent to them, again and again",
        "Do their folders (--local-directory) have room?",
    )
