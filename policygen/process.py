"""The one way in which policygen starts another program.

Each has a process group, an environment and a folder of its own: nothing of the current folder is
run, whatever it is called, and nothing that was started stays.
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
from typing import IO, Any, TypedDict, Unpack

from policygen.errors import InputError, MissingToolError, ProcessError

PIPE = subprocess.PIPE
ENDLESS = "it did not end"
GRACE = 3.0
"""Seconds that a program has to end when it is asked to; then it is killed."""
LIMIT = 600.0
"""Seconds for a program of which nobody says how long it may take; whole ones take seconds."""
_BOOT = (
    "import json, runpy, sys; sys.path[:] = json.loads(sys.argv.pop(1));"
    " runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
_running: set["Child"] = set()
_guard = Lock()
_endings = 0


class Child:
    """A program that runs, with all that it starts."""

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
        """Starts it in a folder, else in an empty one that goes when it ends.

        `install` says what to install when it cannot be started; `more` is added to what it is
        told of the environment.
        """
        self._own = _empty_folder() if folder is None else None
        place = Path(self._own.name) if self._own else folder
        assert place is not None
        try:
            self._start(
                [_found(command[0], install), *command[1:]],
                cwd=place,
                env={**for_child(place, network=network), **(more or {})},
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                process_group=0,
            )
        except BaseException as error:
            self._clean()
            if isinstance(error, OSError):  # not to be executed, or of another platform
                raise MissingToolError(command[0], install) from error
            raise

    def _start(self, command: Sequence[str], **options: Any) -> None:
        with _guard:
            if _endings:
                raise ProcessError(list(command), -signal.SIGTERM, "policygen is ending")
            self.process: subprocess.Popen[bytes] = subprocess.Popen(command, **options)
            _running.add(self)

    def wait(self, limit: float | None = None) -> int | None:
        """Its status; none when it runs still after so many seconds."""
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """Asks it to end, and kills it, and what it has left behind, when it does not."""
        try:
            self.signal(signal.SIGTERM)
            self.wait(GRACE)
        finally:
            self.kill()

    def kill(self) -> None:
        """Ends it, and what it has left behind, at once."""
        with _guard:
            if self not in _running:  # it has ended: its number may be another's
                return
            _running.discard(self)
        self.signal(signal.SIGKILL)
        self.process.wait()
        self._clean()

    def signal(self, number: int) -> None:
        """Sends a signal to all that belongs to it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def _clean(self) -> None:
        if self._own:
            self._own.cleanup()


class RunOptions(TypedDict, total=False):
    """Of a program that is run to its end."""

    folder: Path | None
    more: Mapping[str, str] | None
    network: bool


def run(
    command: Sequence[str],
    *,
    given: str = "",
    limit: float | None = LIMIT,
    install: str,
    remedy: str | None = None,
    **options: Unpack[RunOptions],
) -> str:
    """Standard output of a program; its failure shows the command, the status and its words."""
    out = output(
        command, given=given.encode(), limit=limit, install=install, remedy=remedy, **options
    )
    return out.decode(errors="replace")


def output(
    command: Sequence[str],
    *,
    given: bytes = b"",
    limit: float | None = LIMIT,
    install: str,
    remedy: str | None = None,
    **options: Unpack[RunOptions],
) -> bytes:
    """The same as bytes; a program that runs for longer than the limit is ended.

    It writes to files, not to pipes: what it leaves behind cannot hold them open.
    """
    with _file(given) as source, _file() as out, _file() as err:
        child = Child(command, install=install, stdin=source, stdout=out, stderr=err, **options)
        try:
            status = child.wait(limit)
        except BaseException:
            child.end()
            raise
        if status is None:
            child.end()
            words = f"{ENDLESS} within {limit:g} seconds"
            raise ProcessError(list(command), -signal.SIGTERM, words, remedy)
        child.kill()
        if status != 0:
            words = _content(err).decode(errors="replace")
            raise ProcessError(list(command), status, words, remedy)
        return _content(out)


def python(*arguments: str) -> tuple[str, ...]:
    """This Python, which imports nothing of the current folder and obeys no variables."""
    unwritten = ["-B"] if sys.dont_write_bytecode else []
    return (sys.executable, "-E", "-P", *unwritten, *arguments)


def module(name: str) -> tuple[str, ...]:
    """A module of ours in another Python, which imports from where this one does."""
    own = Path(__file__).parent.parent
    here = Path.cwd()
    folders = [Path(entry) for entry in sys.path if os.path.isabs(entry)]  # noqa: PTH117
    # `python -m` puts the current folder in front.
    kept = [str(folder) for folder in folders if folder == own or folder != here]
    return python("-c", _BOOT, json.dumps(kept), name)


@contextmanager
def threads(count: int | None = None) -> Iterator[Executor]:
    """Threads that start programs; one for each core, where no count is given.

    When the block fails, what they have started is ended.
    """
    executor = ThreadPoolExecutor(count or os.cpu_count())
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
    """Ends what all threads have started, and lets them start nothing more in the block."""
    global _endings  # noqa: PLW0603  it is the process's
    with _guard:
        _endings += 1
        lot = set(_running)
    try:
        _end(lot)
        yield
    finally:
        with _guard:
            _endings -= 1


def is_ending() -> bool:
    """Whether what runs is being ended: who waits for something else than a program gives up."""
    return _endings > 0


def _end(lot: set[Child]) -> None:
    """Who started one waits for it, and cleans up after it."""
    for child in lot:
        child.signal(signal.SIGTERM)
    last = time.monotonic() + GRACE
    try:
        while _alive(lot) and time.monotonic() < last:
            time.sleep(0.01)
    finally:
        for child in _alive(lot):
            child.signal(signal.SIGKILL)


def _alive(lot: set[Child]) -> list[Child]:
    return [child for child in lot if child.process.poll() is None]


def _found(program: str, install: str) -> str:
    """A program by its path, which does not depend on the folder that we are in."""
    if os.path.isabs(program):  # noqa: PTH117
        return program
    if found := which(program) if os.sep not in program else None:
        return found
    raise MissingToolError(program, install)


def _empty_folder() -> "TemporaryDirectory[str]":
    try:
        # What was killed may write still while the folder is deleted.
        return TemporaryDirectory(prefix="policygen-", ignore_cleanup_errors=True)
    except OSError as error:
        raise _no_place(error) from error


@contextmanager
def _file(data: bytes = b"") -> Iterator[IO[bytes]]:
    try:
        file = TemporaryFile()  # noqa: SIM115  closed below
        file.write(data)
        file.seek(0)
    except OSError as error:
        raise _no_place(error) from error
    with file:
        yield file


def _no_place(error: OSError) -> InputError:
    return InputError(
        f"cannot make a folder for other programs: {error.strerror or error}",
        "Set TMPDIR to a folder that can be written.",
    )


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


_PLAIN = (
    *("HOME", "USER", "LOGNAME", "TZ"),
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"),  # numpy fails where threads are few
)
_FOLDERS = ("PATH", "LD_LIBRARY_PATH")  # a gcc of a module system finds its libraries by the latter
_COMPILER = "NVCC_CCBIN"
"""The host compiler, which a person may have to choose. `NVCC_PREPEND_FLAGS`,
`NVCC_APPEND_FLAGS`, `CPATH` and their like are not given: they change what is proved, unsaid."""
# HTTPS_PROXY, no_proxy, PIP_INDEX_URL, SSL_CERT_FILE, XDG_CONFIG_HOME
_NETWORK = re.compile(
    r"(?:https?|all|no)_proxy|PIP_\w+|SSL_CERT_(?:FILE|DIR)|(?:REQUESTS|CURL)_CA_BUNDLE|NETRC"
    r"|XDG_(?:CONFIG|CACHE|DATA)_(?:HOME|DIRS)",
    re.IGNORECASE,
)


# What another program is told of the world: a list of names; all others stay here.
#
# Tokens are none of a compiler's business, and a variable can make a program run what it names.


def for_child(temporary: Path, *, network: bool = False) -> dict[str, str]:
    """The variables of a program that we start; those about the network only where it needs it."""
    here = os.environ
    told = {name: here[name] for name in _PLAIN if name in here}
    told |= {name: _absolute(here[name]) for name in _FOLDERS if name in here}
    if _is_program(compiler := here.get(_COMPILER, "")):
        told[_COMPILER] = compiler
    if network:
        told |= {name: value for name, value in here.items() if _NETWORK.fullmatch(name)}
    # One language, whatever the user's is: some messages are read.
    return told | {"LC_ALL": "C.UTF-8", "TMPDIR": str(temporary)}


def which(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """A program on PATH; the current folder is no part of it, however PATH is written."""
    path = (os.environ if environment is None else environment).get("PATH", os.defpath)
    return shutil.which(name, path=_absolute(path))


def named_folder(name: str, environment: Mapping[str, str] | None = None) -> Path | None:
    """The folder that a variable names; a relative one would be another one in each folder."""
    value = (os.environ if environment is None else environment).get(name)
    if not value:
        return None
    path = Path(value)
    if not path.is_absolute():
        raise InputError(f"{name}={value!r} is no absolute path", f"Unset {name} or correct it.")
    return path


def _absolute(folders: str) -> str:
    """`/usr/bin:.::bin` → `/usr/bin`; an empty one stands for the current folder."""
    return os.pathsep.join(one for one in folders.split(os.pathsep) if os.path.isabs(one))  # noqa: PTH117  as it is written


def _is_program(name: str) -> bool:
    """A bare name is looked for on PATH, a path must not depend on the folder."""
    return bool(name) and (os.sep not in name or Path(name).is_absolute())


class Stopped(KeyboardInterrupt):
    """An interrupt, and what those who were at work say of it, the innermost first."""

    def __init__(self, *words: str) -> None:
        super().__init__(*words)
        self.words = words


# Ctrl-C: who is interrupted is told what is kept, and how to go on.


@contextmanager
def stopping(words: Callable[[], str]) -> Iterator[None]:
    """When the block is interrupted, adds what is so then; nothing where there are no words."""
    try:
        yield
    except KeyboardInterrupt as error:
        told = words()
        raise Stopped(*said(error), *([told] if told else [])) from error


def said(error: BaseException) -> tuple[str, ...]:
    """What was told of an interrupt, also of one that another exception stands for."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, Stopped):
            return found.words
        found = found.__cause__
    return ()
