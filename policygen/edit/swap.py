"""Puts a file that waits into its place and takes out what stood there, so that neither is lost."""

import errno
import os
from pathlib import Path

from policygen.edit import files
from policygen.edit.target import LEFT, content, place

# NFS, FAT and most of FUSE.
_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
# FAT, and some of FUSE.
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP)


def swap(waiting: Path, target: Path) -> None:
    """They change places; whoever looks sees the one or the other.

    Where the disk cannot do that in one step, the target is not there for a moment; `mend` ends
    what a kill left then.
    """
    with place(target):
        try:
            files.exchange(waiting, target)
        except OSError as error:
            if error.errno not in _NO_EXCHANGE:
                raise
            _in_steps(waiting, target)


def mend(waiting: Path, target: Path) -> None:
    """Ends a swap in steps that was killed, if there was one."""
    taken = _taken(waiting)
    if content(taken) is None:
        return
    with place(target):
        if content(target) is None:
            _put(taken, target)
        elif taken.samefile(target):
            files.unlink(taken)
        elif content(waiting) is None or waiting.samefile(target):
            files.rename(taken, waiting)
        else:
            # Somebody made the target anew meanwhile.
            keep(taken, target)


def keep(path: Path, target: Path) -> Path:
    """Gives what nobody knows a name that is seen: somebody wrote it."""
    number = 1
    while True:
        kept = target.with_name(f"{target.name}.kept-{number}")
        try:
            _put(path, kept)
        except FileExistsError:
            number += 1
        else:
            return kept


def _in_steps(waiting: Path, target: Path) -> None:
    """What is made at the target meanwhile stays, and so does what was there."""
    taken = _taken(waiting)
    files.rename(target, taken)
    try:
        _put(waiting, target)
    except FileExistsError as error:
        kept = keep(taken, target)
        words = f"somebody made it while it was being replaced; what stood there is {kept}"
        raise FileExistsError(error.errno, words) from error
    files.rename(taken, waiting)


def _put(source: Path, target: Path) -> None:
    """Gives a file a name that nothing else has; an error where something has it."""
    try:
        files.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS or os.path.lexists(target):
            raise
        files.rename(source, target)
    else:
        files.unlink(source)


def _taken(waiting: Path) -> Path:
    """Where the old contents are on their way out."""
    return waiting.with_name(f"{waiting.name.removesuffix(LEFT)}.out{LEFT}")
