"""Starts other programs.

Each program has its own process group, environment and folder: nothing from the current folder is
executed, and nothing that was started keeps running.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Lock
from typing import IO, Any, Required, TypedDict, Unpack

from policygen.errors import InputError, MissingToolError, ProcessError

PIPE = subprocess.PIPE
ENDLESS = "it did not finish"
GRACE = 3.0
"""Seconds that a program has to end after SIGTERM before it is killed."""
LIMIT = 600.0
"""Default time limit in seconds; even long programs take seconds."""
QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""A container's processor time and the period that it is for, in microseconds; or `max`."""
MEMORY = 1 << 30
"""Bytes per compile; the largest that was measured took three quarters of it."""
MEMINFO = Path("/proc/meminfo")
_BOOT = (
    "import json, runpy, sys; sys.path[:] = json.loads(sys.argv.pop(1));"
    " runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
_children: set["Child"] = set()
_children_lock = Lock()
_ending_count = 0


class Child:
    """A running program and its descendants."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        install: str,
        folder: Path | None = None,
        more: Mapping[str, str] | None = None,
        network: bool = False,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.DEVNULL,
        stderr: int | IO[bytes] = subprocess.DEVNULL,
    ) -> None:
        """Starts a program in a folder, or in an empty temporary one.

        `install` says what to install if it cannot be started; `more` adds environment variables.
        """
        self._own_folder = _empty_folder() if folder is None else None
        directory = Path(self._own_folder.name) if self._own_folder else folder
        assert directory is not None
        try:
            self._start(
                [_resolve(command[0], install), *command[1:]],
                cwd=directory,
                env={**for_child(directory, network=network), **(more or {})},
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                process_group=0,
            )
        except BaseException as error:
            self._remove_own_folder()
            if isinstance(error, OSError):  # not executable, or for another platform
                raise MissingToolError(command[0], install) from error
            raise

    def _start(self, command: Sequence[str], **options: Any) -> None:
        with _children_lock:
            if _ending_count:
                raise ProcessError(list(command), -signal.SIGTERM, "policygen is ending")
            self.process: subprocess.Popen[bytes] = subprocess.Popen(command, **options)
            _children.add(self)

    def wait(self, limit: float | None = None) -> int | None:
        """Returns the exit status; `None` if it is still running after so many seconds."""
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """Asks the program to end; kills it and its descendants if it does not."""
        try:
            self.signal(signal.SIGTERM)
            self.wait(GRACE)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kills the program and its descendants."""
        with _children_lock:
            if self not in _children:  # it has ended, and its pid may have been reused
                return
            _children.discard(self)
        self.signal(signal.SIGKILL)
        self.process.wait()
        self._remove_own_folder()

    def signal(self, number: int) -> None:
        """Sends a signal to the whole process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def _remove_own_folder(self) -> None:
        if self._own_folder:
            self._own_folder.cleanup()


class ChildOptions(TypedDict, total=False):
    """Options for a program that runs to completion."""

    install: Required[str]
    folder: Path | None
    more: Mapping[str, str] | None
    network: bool


class RunOptions(ChildOptions, total=False):
    """These, and how long it may run."""

    limit: float | None
    remedy: str | None


def run(command: Sequence[str], *, given: str = "", **options: Unpack[RunOptions]) -> str:
    """Returns a program's standard output; errors show command, status and standard error."""
    return output(command, given=given.encode(), **options).decode(errors="replace")


def output(
    command: Sequence[str],
    *,
    given: bytes = b"",
    limit: float | None = LIMIT,
    remedy: str | None = None,
    **options: Unpack[ChildOptions],
) -> bytes:
    """Like `run`, but returns bytes; a program that exceeds the limit is ended.

    Output goes to files rather than pipes, which its descendants could hold open.
    """
    with _file(given) as source, _file() as out, _file() as err:
        child = Child(command, stdin=source, stdout=out, stderr=err, **options)
        try:
            status = child.wait(limit)
        except BaseException:
            child.end()
            raise
        if status is None:
            child.end()
            message = f"{ENDLESS} within {limit:g} seconds"
            raise ProcessError(list(command), -signal.SIGTERM, message, remedy)
        child.kill()
        if status != 0:
            message = _content(err).decode(errors="replace")
            raise ProcessError(list(command), status, message, remedy)
        return _content(out)


def python(*arguments: str) -> tuple[str, ...]:
    """Returns a command for this Python that ignores the current folder and its variables."""
    unwritten = ["-B"] if sys.dont_write_bytecode else []
    return (sys.executable, "-E", "-P", *unwritten, *arguments)


def module(name: str) -> tuple[str, ...]:
    """Returns a command that runs one of our modules with this Python's import paths."""
    package_parent = Path(__file__).parent.parent
    cwd = Path.cwd()
    folders = [Path(entry) for entry in sys.path if os.path.isabs(entry)]  # noqa: PTH117
    # `python -m` puts the current folder first.
    folders_to_keep = [
        str(folder) for folder in folders if folder == package_parent or folder != cwd
    ]
    return python("-c", _BOOT, json.dumps(folders_to_keep), name)


def cores() -> int:
    """Returns how many cores this process may use: a job or a container may not have all."""
    count = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):
        quota, period = map(int, QUOTA.read_text().split())
        count = min(count, -(-quota // period))
    return max(1, count)


def workers_of(count: int | None, memory: int = MEMORY) -> int:
    """Returns the number of workers, if each may need this many bytes."""
    return count or max(1, min(cores(), _available_memory() // memory))


def _available_memory() -> int:
    """Returns the available memory in bytes."""
    try:
        rows = MEMINFO.read_text().splitlines()
        # MemAvailable:   23456789 kB
        return next(int(row.split()[1]) for row in rows if row.startswith("MemAvailable:")) << 10
    except (OSError, StopIteration):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def threads(count: int | None = None) -> Iterator[Executor]:
    """Provides threads that start programs, by default one per core.

    If the block fails, the running programs are ended.
    """
    executor = ThreadPoolExecutor(count or cores())
    try:
        yield executor
    except BaseException:
        with ending():
            executor.shutdown(cancel_futures=True)
        raise
    finally:
        executor.shutdown()


@contextmanager
def ending() -> Iterator[None]:
    """Ends what all threads have started, and prevents new programs during the block."""
    global _ending_count  # noqa: PLW0603  state of the process
    with _children_lock:
        _ending_count += 1
        children = set(_children)
    try:
        _end(children)
        yield
    finally:
        with _children_lock:
            _ending_count -= 1


def is_ending() -> bool:
    """Returns whether programs are being ended, so that other waits should give up, too."""
    return _ending_count > 0


def _end(children: set[Child]) -> None:
    """Ends programs; the threads that started them wait for them and clean up."""
    for child in children:
        child.signal(signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    try:
        while _alive(children) and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        for child in _alive(children):
            child.signal(signal.SIGKILL)


def _alive(children: set[Child]) -> list[Child]:
    return [child for child in children if child.process.poll() is None]


def _resolve(program: str, install: str) -> str:
    """Returns a program's absolute path."""
    if os.path.isabs(program):  # noqa: PTH117
        return program
    if path := which(program) if os.sep not in program else None:
        return path
    raise MissingToolError(program, install)


def _empty_folder() -> "TemporaryDirectory[str]":
    try:
        # Descendants that were killed may still write while the folder is deleted.
        return TemporaryDirectory(prefix="policygen-", ignore_cleanup_errors=True)
    except OSError as error:
        raise _no_temporary_folder(error) from error


@contextmanager
def _file(data: bytes = b"") -> Iterator[IO[bytes]]:
    try:
        file = TemporaryFile()  # noqa: SIM115  closed below
        file.write(data)
        file.seek(0)
    except OSError as error:
        raise _no_temporary_folder(error) from error
    with file:
        yield file


def _no_temporary_folder(error: OSError) -> InputError:
    return InputError(
        f"cannot create a folder for other programs: {error.strerror or error}",
        "Set TMPDIR to a folder that can be written.",
    )


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


_PASSED = (
    *("HOME", "USER", "LOGNAME", "TZ"),
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"),  # numpy fails where threads are few
)
_FOLDERS = ("PATH", "LD_LIBRARY_PATH")  # a gcc of a module system finds its libraries by the latter
_COMPILER = "NVCC_CCBIN"
"""The host compiler, which the user may have to choose. `NVCC_PREPEND_FLAGS`,
`NVCC_APPEND_FLAGS`, `CPATH` and the like are not passed: they would silently change what is
proved."""
# HTTPS_PROXY, no_proxy, PIP_INDEX_URL, SSL_CERT_FILE, XDG_CONFIG_HOME
_NETWORK = re.compile(
    r"(?:https?|all|no)_proxy|PIP_\w+|SSL_CERT_(?:FILE|DIR)|(?:REQUESTS|CURL)_CA_BUNDLE|NETRC"
    r"|XDG_(?:CONFIG|CACHE|DATA)_(?:HOME|DIRS)",
    re.IGNORECASE,
)


# Environment of other programs: an allowlist of variables
#
# Compilers need no access tokens, and some variables make a program execute what they name.


def for_child(temporary: Path, *, network: bool = False) -> dict[str, str]:
    """Returns a program's environment; with network settings only if it needs them."""
    environment = os.environ
    variables = {name: environment[name] for name in _PASSED if name in environment}
    variables |= {name: _absolute(environment[name]) for name in _FOLDERS if name in environment}
    compiler = environment.get(_COMPILER, "")
    # It must be named without its folder, or by an absolute path.
    if compiler and (os.sep not in compiler or Path(compiler).is_absolute()):
        variables[_COMPILER] = compiler
    if network:
        variables |= {
            name: value for name, value in environment.items() if _NETWORK.fullmatch(name)
        }
    # Fixed language, because some messages are parsed
    return variables | {"LC_ALL": "C.UTF-8", "TMPDIR": str(temporary)}


def which(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """Finds a program on PATH, never in the current folder."""
    path = (os.environ if environment is None else environment).get("PATH", os.defpath)
    return shutil.which(name, path=_absolute(path))


def named_folder(name: str, environment: Mapping[str, str] | None = None) -> Path | None:
    """Returns the absolute folder that a variable names."""
    value = (os.environ if environment is None else environment).get(name)
    if not value:
        return None
    path = Path(value)
    if not path.is_absolute():
        raise InputError(
            f"{name}={value!r} is not an absolute path", f"Unset {name} or correct it."
        )
    return path


def _absolute(folders: str) -> str:
    """Removes relative folders: `/usr/bin:.::bin` → `/usr/bin`; empty ones are relative."""
    return os.pathsep.join(folder for folder in folders.split(os.pathsep) if os.path.isabs(folder))  # noqa: PTH117  as it is written


class Stopped(KeyboardInterrupt):
    """An interrupt; its arguments are messages about the interrupted work, innermost first."""


# Interrupts (Ctrl-C): messages about what was kept and how to continue


@contextmanager
def stopping(words: Callable[[], str]) -> Iterator[None]:
    """Adds a message if the block is interrupted, unless it is empty."""
    try:
        yield
    except KeyboardInterrupt as error:
        message = words()
        raise Stopped(*interrupt_messages(error), *([message] if message else [])) from error


def interrupt_messages(error: BaseException) -> tuple[str, ...]:
    """Returns the messages of an interrupt, including one that caused another exception."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Stopped):
            return cause.args
        cause = cause.__cause__
    return ()
