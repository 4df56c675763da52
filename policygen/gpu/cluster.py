"""A Dask cluster: sends tasks to its workers with the contents that they need, and its GPUs."""

import asyncio
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import Any, TypeVar

from policygen.cache import digest, keep, kept
from policygen.errors import InputError, MissingToolError, PolicygenError, ProcessError
from policygen.gpu.cluster_workers import (
    SAME,
    GpuAsk,
    Terms,
    WorkerAnswer,
    compile_unit,
    give_back,
    hold_gpu,
    keep_part,
    look_at_base,
    measure_point,
    packed,
    see_gpu,
)
from policygen.gpu.compiling import ObjectSource, as_made, as_refused, is_code_error, object_in
from policygen.gpu.control import PointResult
from policygen.gpu.device import GpuFacts, LostGpuError
from policygen.gpu.machine import BusyGpuError, ListedGpu
from policygen.gpu.pool import Asked, BaselineSamples, GpuSource, RungGpu, RungPoint, StopAskedError
from policygen.installation import add
from policygen.process import is_ending, threads
from policygen.proof.compile import MEMORY, RefusedError, attempt
from policygen.proof.toolchain import Toolchain
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
    """Files and folders of this machine by content digest."""

    names: dict[str, str] = field(default_factory=dict)
    """Path → digest."""
    sources: dict[str, Callable[[], bytes]] = field(default_factory=dict)
    """Digest → what returns the content."""
    guard: Lock = field(default_factory=Lock)

    def file(self, path: str) -> str:
        """Return the digest of a file."""
        return self._name(path, Path(path).read_bytes)

    def folder(self, path: str) -> str:
        """Return the digest of a folder, whose archive is kept."""
        return self._name(path, cache(lambda: packed(Path(path))))

    def data(self, name: str) -> bytes:
        """Return the content with a digest."""
        return self.sources[name]()

    def _name(self, path: str, read: Callable[[], bytes]) -> str:
        with self.guard:
            if path not in self.names:
                name = digest(read())
                self.names[path], self.sources[name] = name, read
            return self.names[path]


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
        while True:
            options = {"workers": list(near), "allow_other_workers": True} if near else {}
            try:
                answer = self._attempt(near, options, work, *arguments)
            except GoneWorkersError:  # Dask would wait until these are back
                near = ()
                continue
            if answer.kind != "lacks":
                return answer.given()
            near = (answer.worker,)
            lacked_by_worker[answer.worker] += 1
            if lacked_by_worker[answer.worker] == SHIPMENTS:
                raise _never_complete(answer.worker)

    def ask_gpu(self, worker: str, work: Work, *arguments: Any) -> Any:
        """Run a task on a worker that has a GPU, one task at a time."""
        options = {"workers": [worker], "resources": {GPU: 1}, "priority": MEASURING}
        try:
            for _ in range(SHIPMENTS):
                answer = self._attempt((worker,), options, work, *arguments)
                if answer.kind != "lacks":
                    return answer.given()
        except EndedWorkersError as error:
            raise LostGpuError(
                f"the worker {worker} has exited",
                "All measurements so far are kept. Start another worker.",
            ) from error
        raise _never_complete(worker)

    def tell_gpu(self, worker: str, work: Work, *arguments: Any, patience: float) -> None:
        """Run a task whose result is not needed; wait `patience` seconds at most.

        The task runs even if this client has gone.
        """
        dask = import_module("distributed")
        with suppress(Exception):  # a worker that has gone need not be notified
            future = self._submit(
                work, self.terms, *arguments, workers=[worker], resources={GPU: 1}
            )
            dask.fire_and_forget(future)
            dask.wait(future, timeout=patience)

    def _attempt(
        self, candidates: Sequence[str], options: Mapping[str, Any], work: Work, *arguments: Any
    ) -> WorkerAnswer:
        """Run a task once; send the worker what it lacks."""
        started = time.monotonic()
        future = self._submit(work, self.terms, *arguments, **options)
        answer = self._answer(future, candidates)
        if answer.kind == "lacks":
            self._send(answer, started)
        return answer

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
                f"{self.address} has no workers left",
                "All measurements so far are kept. Start a worker, or wait longer: --wait SECONDS.",
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
        """Send what a worker lacks, each content once."""
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
            future = self._submit(keep_part, name, *part, **options)
            if self._answer(future, (worker,)).kind != "done":
                raise EndedWorkersError

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Translate connection errors into one about the scheduler."""
        try:
            yield
        except (CancelledError, OSError) as error:  # a closed connection is an OSError in Dask, too
            raise _unreachable(self.address) from error


@contextmanager
def connected(text: str, terms: Terms, patience: float = 0.0) -> Iterator[ClusterClient]:
    """Connect to a scheduler, given by its address or file, for a block."""
    try:
        dask = import_module("distributed")
    except ImportError as error:
        raise MissingToolError(
            "distributed, for --scheduler,", f"Install it: {add('cluster')}"
        ) from error
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


def _client_options(text: str) -> dict[str, str]:
    if "://" in text:
        return {"address": text}
    if Path(text).is_file():
        return {"scheduler_file": text}
    host, _, port = text.rpartition(":")
    if host and port.isascii() and port.isdigit():
        return {"address": f"tcp://{text}"}
    raise InputError(
        f"--scheduler {visible(text)}: is neither an address nor a scheduler file",
        "Name one: --scheduler tcp://HOST:8786, or the file of dask scheduler --scheduler-file.",
    )


def _unreachable(address: str, reason: str = "") -> InputError:
    suffix = f": {visible(reason)}" if reason else ""
    return LostGpuError(
        f"the Dask scheduler {visible(address)} does not respond{suffix}",
        "All measurements so far are kept. Start it, or check whether this machine can reach it.",
    )


def _never_complete(worker: str) -> InputError:
    return InputError(
        f"{worker} keeps losing the data sent to it",
        "Check whether the disk of its --local-directory is full.",
    )


PAUSE = 0.5
"""Seconds between checks for a free GPU or a new worker."""
T = TypeVar("T")
_START = (
    'Start a worker: dask worker ADDRESS --resources "GPU=1" --nthreads 1; or wait for one:'
    " --wait SECONDS."
)
_OTHER = (
    "{} has a different GPU model, so its times are not comparable: it has {}, the others have {}"
)
LEAVING = 3.0
"""Seconds that a worker may take to give its GPU back while the user waits."""


# GPUs of workers; each measures one runtime workload at a time


@dataclass(frozen=True, slots=True, eq=False)
class ClusterGpu:
    """The GPU of one worker, for the lifetime of the worker."""

    cluster: ClusterClient
    worker: str
    owner: GpuAsk
    facts: GpuFacts

    def look(self, points: Sequence[RungPoint], seed: int) -> list[BaselineSamples]:
        """Run only the baseline on runtime workloads, in a fresh process."""
        looked: list[BaselineSamples] = self._call_gpu(look_at_base, self._sent(points), seed)
        return looked

    def point(self, point: RungPoint, seed: int, *, fresh: bool) -> PointResult:
        """Check and measure all variants on one runtime workload, optionally in a fresh process.

        Each runtime workload is a separate task, so a worker that ends loses only one.
        """
        result: PointResult = self._call_gpu(measure_point, *self._sent([point]), seed, fresh)
        return result

    def leave(self) -> None:
        """Give the GPU back."""
        self.cluster.tell_gpu(self.worker, give_back, self.owner.owner, patience=LEAVING)

    def _call_gpu(self, work: Work, *arguments: object) -> Any:
        """Call the GPU, waiting while another search holds it: it was given back when idle."""
        end = time.monotonic() + self.cluster.patience
        while True:
            try:
                return self.cluster.ask_gpu(self.worker, work, self.owner, *arguments)
            except BusyGpuError:
                if time.monotonic() >= end:
                    raise
            time.sleep(PAUSE)

    def _sent(self, points: Sequence[RungPoint]) -> list[RungPoint]:
        """Return points whose objects are named by digest."""
        return [point.relocated(self.cluster.contents.file) for point in points]


@dataclass(slots=True)
class ClusterGpus(GpuSource):
    """The GPUs of a cluster's workers, including workers that join during a search."""

    cluster: ClusterClient
    note: Callable[[str], None]
    owner: GpuAsk = field(default=GpuAsk("", ""))
    """The search that asks; known once there is a runner for timing calls."""
    model: str = ""
    used: dict[str, ClusterGpu] = field(default_factory=dict)
    """GPUs by worker."""
    useless: set[str] = field(default_factory=set)
    """Processes whose GPU was lost or is another model."""
    said: set[str] = field(default_factory=set)

    def seen(self, stop_requested: Asked) -> dict[str, ListedGpu]:
        """Return the GPU of each worker without holding it; wait for the first worker."""
        workers = _wait_for(self._workers, self.cluster.patience, stop_requested)
        if not workers:
            raise InputError(f"no worker of {self.cluster.address} announces a GPU", _START)
        gpus = {}
        for worker, answer in _call_each(workers, self._query_gpu):
            if isinstance(answer, PolicygenError):
                raise answer
            gpus[worker], _ = answer
        return gpus

    def first(self, owner: GpuAsk, stop_requested: Asked) -> list[RungGpu]:
        """Hold the available GPUs, leaving those that others use."""
        self.owner = owner
        errors: list[PolicygenError] = []

        def take() -> list[RungGpu]:
            gpus, errors[:] = self._take_all()
            for error in errors:
                if not isinstance(error, BusyGpuError):
                    raise error
            return gpus

        gpus = _wait_for(take, self.cluster.patience, stop_requested)
        if not gpus:
            raise errors[0] if errors else LostGpuError("all workers with GPUs have exited")
        self._report(errors)
        return gpus

    def more(self, stop_requested: Asked, *, waiting: bool) -> list[RungGpu]:
        """Return GPUs of new workers; if none is left, wait for a worker to restart."""

        def take() -> list[RungGpu]:
            gpus, errors = self._take_all()
            self._report(errors)
            return gpus

        patience = max(self.cluster.patience, RESTART) if waiting else 0.0
        return _wait_for(take, patience, stop_requested)

    def lost(self, gpu: RungGpu) -> None:
        """Stop using a GPU unless its worker restarts."""
        assert isinstance(gpu, ClusterGpu)
        del self.used[gpu.worker]
        self.useless.add(gpu.owner.process)

    def leave(self) -> None:
        """Give all GPUs back."""
        list(_call_each([*self.used], lambda worker: self.used[worker].leave()))

    def _workers(self) -> list[str]:
        """Return the workers with a GPU that is not in use here."""
        workers = self.cluster.workers().items()
        return [name for name, worker in workers if worker.has_gpu and name not in self.used]

    def _query_gpu(self, worker: str) -> tuple[ListedGpu, str]:
        """Return the GPU of a worker and the worker's process."""
        seen: tuple[ListedGpu, str] = self.cluster.ask_gpu(worker, see_gpu)
        return seen

    def _take(self, worker: str) -> ClusterGpu | None:
        _, process = self._query_gpu(worker)
        if process in self.useless:
            return None
        facts, process = self.cluster.ask_gpu(worker, hold_gpu, self.owner)
        return ClusterGpu(self.cluster, worker, replace(self.owner, process=process), facts)

    def _take_all(self) -> tuple[list[RungGpu], list[PolicygenError]]:
        """Take the GPUs that are available now; also return the errors of the others."""
        taken: list[RungGpu] = []
        errors: list[PolicygenError] = []
        for worker, gpu in _call_each(self._workers(), self._take):
            if isinstance(gpu, PolicygenError):
                errors.append(gpu)
            elif gpu is not None:
                self.model = self.model or gpu.facts.label
                if gpu.facts.label == self.model:
                    self.used[worker] = gpu
                    taken.append(gpu)
                    continue
                gpu.leave()
                self.useless.add(gpu.owner.process)
                errors.append(InputError(_OTHER.format(worker, gpu.facts.label, self.model)))
        return taken, errors

    def _report(self, errors: Sequence[PolicygenError]) -> None:
        """Report each error once."""
        for message in (error.in_line for error in errors):
            if message not in self.said:
                self.said.add(message)
                self.note(visible(message))


def _wait_for(take: Callable[[], list[T]], patience: float, stop_requested: Asked) -> list[T]:
    """Return what is there as soon as there is anything; nothing after `patience` seconds."""
    end = time.monotonic() + patience
    while not (items := take()):
        if stop_requested():
            raise StopAskedError
        if time.monotonic() >= end:
            break
        time.sleep(PAUSE)
    return items


def _call_each(
    workers: Sequence[str], ask: Callable[[str], T]
) -> Iterator[tuple[str, T | PolicygenError]]:
    """Call workers in parallel and yield their answers or errors."""
    with threads(len(workers) or 1) as executor:
        futures = [executor.submit(attempt, lambda name=worker: ask(name)) for worker in workers]
        for worker, future in zip(workers, futures, strict=True):
            yield worker, future.result()


# Compiling on workers; the objects are cached on this machine

KIND = "cluster-objects"
"""Separate from local objects, because the host compiler's headers may differ on the workers."""


@dataclass(frozen=True, slots=True)
class ClusterCompiler:
    """Compiles units on workers and stores the objects in a folder."""

    cluster: ClusterClient
    toolchain: Toolchain
    folder: Path

    def make(self, source: ObjectSource) -> Path:
        """Compile an object or take it from the cache; raise RefusedError if the compiler does."""
        trees = tuple(map(self.cluster.contents.folder, source.includes))
        key = digest(self.toolchain.version, *source.flags, source.text, "trees", *trees)
        data = kept(KIND, key)
        if data is None:
            data = self._compile(replace(source, includes=trees))
            keep(KIND, key, data)
        return object_in(self.folder, key, data)

    def _compile(self, unit: ObjectSource) -> bytes:
        workers = self.cluster.workers().items()
        # On these, no GPU call would wait; if there are none, any worker compiles.
        free = [name for name, worker in workers if not worker.has_gpu or worker.threads > 1]
        try:
            return as_made(self.cluster.ask(compile_unit, unit, near=free))
        except RefusedError as error:
            if not is_code_error(error):
                raise
            return as_refused(error)
        except EndedWorkersError as error:
            message = "all workers that compiled it have exited, one after another"
            raise ProcessError(["nvcc"], -signal.SIGKILL, message, MEMORY) from error
