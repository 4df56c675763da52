"""The near side of the processes that read headers; one that dies or is too slow is replaced."""

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
"""Seconds for one header on a busy machine; the limit is the processor time of the other side."""
TASKS = Path("/proc/self/task")


@dataclass(frozen=True, slots=True)
class Request:
    """A header to be read, and those beside it that it includes."""

    name: str
    path: str
    data: bytes
    neighbours: Mapping[str, bytes]


class Worker:
    """One process and the line to it."""

    def __init__(self) -> None:
        self._line, theirs = socketpair()
        with theirs:
            self._pid = _fork(theirs) if _alone() else _spawn(theirs)
        self._line.settimeout(WALL)

    def ask(self, request: Request) -> TuningHeader | SourceError:
        """The header, or why it is not read; a worker that could not say is of no more use."""
        path = request.path.encode("utf-8", "surrogateescape")
        beside = [
            part for name, data in request.neighbours.items() for part in (name.encode(), data)
        ]
        try:
            send(self._line, request.name.encode(), path, request.data, *beside, b"")
            answer = receive(self._line)
        except TimeoutError:
            raise EndedError(f"it takes more than {WALL:g} seconds to read") from None
        except OSError:
            answer = None
        if not answer:
            raise EndedError(self._last_words())
        return _told(request.path, answer)

    def close(self) -> int:
        """Ends the process; how it ended."""
        self._line.close()
        if not self._pid:
            return 0
        pid, self._pid = self._pid, 0
        return _killed(pid)

    def _last_words(self) -> str:
        """Of a process that has ended, or is about to; one that is not is killed."""
        pid, self._pid = self._pid, 0
        last = time.monotonic() + GRACE
        while (status := _awaited(pid, os.WNOHANG)) is None:
            if time.monotonic() > last:
                status = _killed(pid)
                break
            time.sleep(0.01)
        if status == -signal.SIGPROF:
            return too_long(SECONDS)
        return f"libclang ends on it with status {status}"


class EndedError(Exception):
    """A worker that did not answer, and what is known of it."""


def _killed(pid: int) -> int:
    """How a process ended that need not end by itself."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return _awaited(pid) or 0


def _awaited(pid: int, how: int = 0) -> int | None:
    """How a process ended; none where it runs still, and is not waited for."""
    try:
        found, status = os.waitpid(pid, how)
    except ChildProcessError:  # somebody else has waited for it
        return 0
    return os.waitstatus_to_exitcode(status) if found else None


def _told(path: str, answer: bytes) -> TuningHeader | SourceError:
    kind, body = answer[:1], answer[1:]
    if kind == b"+":
        return TuningHeader.model_validate_json(body)
    if kind == b"-":
        return SourceError(path, *json.loads(body))
    raise RuntimeError(f"{path}: {body.decode()}")


def _alone() -> bool:
    """Whether this process has one thread, as only such a one is copied whole."""
    try:
        return len(list(TASKS.iterdir())) == 1
    except OSError:
        return False


def _fork(line: socket) -> int:
    """A copy of this process, which has loaded already what the work needs."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        faulthandler.disable()
        os.setpgid(0, 0)  # an interrupt of the keyboard is for the other side
        number = os.dup2(line.fileno(), 0)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        serve(socket(fileno=number))
        status = 0
    finally:
        os._exit(status)


def _spawn(line: socket) -> int:
    """The same as a program of its own, where threads forbid a copy."""
    actions = [(os.POSIX_SPAWN_DUP2, line.fileno(), 0)]
    told = for_child(Path(gettempdir()))
    command = module("policygen.headers.worker")
    return os.posix_spawn(sys.executable, command, told, file_actions=actions, setpgroup=0)


_idle: list[Worker] = []
_guard = threading.Lock()


def read_all(requests: "list[Request]") -> "Iterator[TuningHeader | SourceError]":
    """What the headers hold, in their order; as many at once as there are processors."""
    count = min(len(requests), 4, os.cpu_count() or 1)
    _ready(count)  # before there are threads
    if count == 1:
        yield from map(_read, requests)
        return
    with ThreadPoolExecutor(max_workers=max(1, count)) as pool:
        yield from pool.map(_read, requests)


def _ready(count: int) -> None:
    with _guard:
        while len(_idle) < count:
            _idle.append(Worker())


def _read(request: Request) -> TuningHeader | SourceError:
    with _guard:
        one = _idle.pop() if _idle else None
    one = one or Worker()
    try:
        found = one.ask(request)
    except EndedError as error:
        one.close()
        return SourceError(request.path, 1, 1, str(error), remedy="No header of CUB is like this.")
    except BaseException:
        one.close()
        raise
    with _guard:
        _idle.append(one)
    return found


@atexit.register
def close_all() -> None:
    """Ends the processes that wait for work."""
    with _guard:
        while _idle:
            _idle.pop().close()
