"""One measurement at a time on a GPU: a lock for the whole machine, on the GPU's UUID."""

import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from policygen.cache import digest
from policygen.errors import InputError
from policygen.untrusted import visible

SESSION = "session"
"""Who measures: held from the first question to the last answer."""
WORKER = "worker"
"""The process that has the GPU: it may end a moment after the one that started it."""
PLACES = (Path("/run/lock"), Path("/tmp"))  # noqa: S108  all users must look at the same place
_PAUSE = 0.05
_SHOWN = 200
# GPU-5f3b…, MIG-1c2d…
_UUID = re.compile(r"[\w-]{1,80}")


class BusyGpuError(InputError):
    """Somebody else measures on the GPU."""


@contextmanager
def gpu_lock(
    uuid: str, role: str = SESSION, patience: float = 0.0, folder: Path | None = None
) -> Iterator[None]:
    """Keeps other measurements off a GPU; waits so many seconds for one that runs."""
    name = uuid if _UUID.fullmatch(uuid) else digest(uuid)
    path = (folder or _place()) / f"policygen-{name}.{role}"
    descriptor = _opened(path)
    try:
        _wait(descriptor, path, uuid, patience)
        _sign(descriptor)
        yield
    finally:
        os.close(descriptor)


def _place() -> Path:
    """A folder in which each user may make a file, and none take away another's."""
    for place in PLACES:
        with suppress(OSError):
            mode = place.stat().st_mode
            if stat.S_ISDIR(mode) and mode & stat.S_ISVTX and mode & stat.S_IWOTH:
                return place
    raise InputError(
        f"there is no folder for the lock of a GPU: neither {' nor '.join(map(str, PLACES))}"
        " is one that all users may write",
        f"Make one: chmod 1777 {PLACES[-1]}",
    )


def _opened(path: Path) -> int:
    """The file, made where there is none; what another user made can be locked, too."""
    safe = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # no link is followed, no pipe waited for
    try:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | safe, 0o666)
        except PermissionError:  # Linux refuses to make what another user has made here
            descriptor = os.open(path, os.O_RDONLY | safe)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    found = os.fstat(descriptor)
    # Of a file with two names the other one may be something that is not to be written.
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(descriptor)
        raise _unusable(path, "it is no file of its own")
    if found.st_uid == os.getuid():
        os.fchmod(descriptor, 0o666)  # what the user's mask took away
    return descriptor


def _unusable(path: Path, why: str) -> InputError:
    return InputError(f"{path}: the lock of a GPU cannot be used: {why}", f"Remove {path}.")


def _wait(descriptor: int, path: Path, uuid: str, patience: float) -> None:
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= end:
                who = _signed(descriptor)
                raise BusyGpuError(
                    f"another measurement runs on {visible(uuid)}: {who or 'of somebody else'}",
                    "Wait until it has ended, or choose another GPU.",
                ) from error
            time.sleep(_PAUSE)
        except OSError as error:
            raise _unusable(path, error.strerror or str(error)) from error
        else:
            return


def _sign(descriptor: int) -> None:
    """Who has it, for others to read; where the file is another user's it stays as it is."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} of user {os.getuid()}".encode(), 0)


def _signed(descriptor: int) -> str:
    text = os.pread(descriptor, _SHOWN, 0).decode(errors="replace").partition("\n")[0]
    return visible(text)
