"""Runs the processes that read headers, and replaces those that crash or time out."""

import atexit
import faulthandler
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from socket import socket, socketpair
from tempfile import gettempdir

from policygen.errors import SourceError
from policygen.headers.text import SECONDS, too_long
from policygen.headers.worker import receive, send, serve
from policygen.model.tuning import TuningHeader
from policygen.process import GRACE, for_child, module

WALL = 15.0
"""Wall time per header on a busy machine; the actual limit is the worker's processor time."""
TASKS = Path("/proc/self/task")


@dataclass(frozen=True, slots=True)
class Request:
    """A header to read, with the neighbors that it includes."""

    name: str
    path: str
    data: bytes
    neighbours: Mapping[str, bytes]


class Worker:
    """A process and the socket to it."""

    def __init__(self) -> None:
        self._line, child_end = socketpair()
        with child_end:
            self._pid = _fork(child_end) if _is_single_threaded() else _spawn(child_end)
        self._line.settimeout(WALL)

    def ask(self, request: Request) -> TuningHeader | SourceError:
        """Reads a header or returns its error; raises EndedError if the worker is unusable."""
        path = request.path.encode("utf-8", "surrogateescape")
        neighbour_parts = [
            part for name, data in request.neighbours.items() for part in (name.encode(), data)
        ]
        try:
            send(self._line, request.name.encode(), path, request.data, *neighbour_parts, b"")
            answer = receive(self._line)
        except TimeoutError:
            raise EndedError(f"it takes more than {WALL:g} seconds to read") from None
        except OSError:
            answer = None
        if not answer:
            raise EndedError(self._last_words())
        return _parse_answer(request.path, answer)

    def close(self) -> int:
        """Kills the process and returns its exit status."""
        self._line.close()
        if not self._pid:
            return 0
        pid, self._pid = self._pid, 0
        return _kill(pid)

    def _last_words(self) -> str:
        """Explains how the process ended; kills it if it does not end."""
        pid, self._pid = self._pid, 0
        deadline = time.monotonic() + GRACE
        while (status := _wait_for(pid, os.WNOHANG)) is None:
            if time.monotonic() > deadline:
                status = _kill(pid)
                break
            time.sleep(0.01)
        if status == -signal.SIGPROF:
            return too_long(SECONDS)
        return f"libclang ends on it with status {status}"


class EndedError(Exception):
    """A worker that did not answer, with the reason."""


def _kill(pid: int) -> int:
    """Kills a process and returns its exit status."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return _wait_for(pid) or 0


def _wait_for(pid: int, options: int = 0) -> int | None:
    """Waits for a process and returns its exit status; None if it is running and not waited for."""
    try:
        ended_pid, status = os.waitpid(pid, options)
    except ChildProcessError:  # somebody else has waited for it
        return 0
    return os.waitstatus_to_exitcode(status) if ended_pid else None


def _parse_answer(path: str, answer: bytes) -> TuningHeader | SourceError:
    status, payload = answer[:1], answer[1:]
    if status == b"+":
        return TuningHeader.model_validate_json(payload)
    if status == b"-":
        return SourceError(path, *json.loads(payload))
    raise RuntimeError(f"{path}: {payload.decode()}")


def _is_single_threaded() -> bool:
    """Tells whether this process has one thread: only then is `fork` safe."""
    try:
        return len(list(TASKS.iterdir())) == 1
    except OSError:
        return False


def _fork(line: socket) -> int:
    """Forks this process, which has already loaded what the worker needs."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        faulthandler.disable()
        os.setpgid(0, 0)  # the parent handles keyboard interrupts
        number = os.dup2(line.fileno(), 0)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        serve(socket(fileno=number))
        status = 0
    finally:
        os._exit(status)


def _spawn(line: socket) -> int:
    """Starts the worker as a new program, where threads rule out `fork`."""
    actions = [(os.POSIX_SPAWN_DUP2, line.fileno(), 0)]
    environment = for_child(Path(gettempdir()))
    command = module("policygen.headers.worker")
    return os.posix_spawn(sys.executable, command, environment, file_actions=actions, setpgroup=0)


_idle: list[Worker] = []
_idle_lock = threading.Lock()


def read_all(requests: "list[Request]") -> "Iterator[TuningHeader | SourceError]":
    """Reads headers in order, in as many workers as there are processors."""
    count = min(len(requests), 4, os.cpu_count() or 1)
    _start_workers(count)  # before threads start
    if count == 1:
        yield from map(_read, requests)
        return
    with ThreadPoolExecutor(max_workers=max(1, count)) as pool:
        yield from pool.map(_read, requests)


def _start_workers(count: int) -> None:
    with _idle_lock:
        while len(_idle) < count:
            _idle.append(Worker())


def _read(request: Request) -> TuningHeader | SourceError:
    with _idle_lock:
        worker = _idle.pop() if _idle else None
    worker = worker or Worker()
    try:
        result = worker.ask(request)
    except EndedError as error:
        worker.close()
        return SourceError(request.path, 1, 1, str(error), remedy="No header of CUB is like this.")
    except BaseException:
        worker.close()
        raise
    with _idle_lock:
        _idle.append(worker)
    return result


@atexit.register
def close_all() -> None:
    """Ends the idle workers."""
    with _idle_lock:
        while _idle:
            _idle.pop().close()
