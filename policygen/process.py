"""The one way in which policygen starts another program."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

from policygen.errors import MissingToolError, ProcessError

_running: set[int] = set()
_guard = Lock()


def run(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    given: str | None = None,
    install: str,
    remedy: str | None = None,
) -> str:
    """Standard output of a program; its failure shows the command, the status and its words.

    `install` says what to install when the program itself cannot be started. Whatever it started
    ends with it when policygen is interrupted.
    """
    try:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
    except OSError as error:  # absent, not to be executed, or of another platform
        raise MissingToolError(command[0], install) from error
    with _guard:
        _running.add(process.pid)
    try:
        stdout, stderr = process.communicate(None if given is None else given.encode())
    except BaseException:
        _end(process.pid)
        process.communicate()
        raise
    finally:
        with _guard:
            _running.discard(process.pid)
    if process.returncode != 0:
        words = stderr.decode(errors="replace")
        raise ProcessError(list(command), process.returncode, words, remedy)
    return stdout.decode(errors="replace")


def end_all() -> None:
    """Ends what other threads have started, so that they need not be waited for."""
    with _guard:
        for pid in _running:
            _end(pid)


def _end(pid: int) -> None:
    """A program with all that it has started: each has a process group of its own."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGTERM)
