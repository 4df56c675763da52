"""The one way in which policygen starts another program."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from policygen.errors import MissingToolError, ProcessError


def run(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    install: str,
    remedy: str | None = None,
) -> str:
    """Standard output of a program; its failure shows the command, the status and its words.

    `install` says what to install when the program itself cannot be started.
    """
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env, capture_output=True, check=False, stdin=subprocess.DEVNULL
        )
    except OSError as error:  # absent, not to be executed, or of another platform
        raise MissingToolError(command[0], install) from error
    if done.returncode != 0:
        stderr = done.stderr.decode(errors="replace")
        raise ProcessError(list(command), done.returncode, stderr, remedy)
    return done.stdout.decode(errors="replace")
