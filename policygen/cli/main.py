"""Entry point: a single error boundary around all commands."""

import gc
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

# Searching for Pydantic plugins reads the metadata of every installed package.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from policygen import __version__
from policygen.cli.completing import PROGRAM, VARIABLE, answer
from policygen.cli.groups import COMMANDS
from policygen.cli.progress import clear
from policygen.errors import InputError, PolicygenError
from policygen.paths import cache_folder
from policygen.process import interrupt_messages
from policygen.report.console import shown

BUG = 70
"""Exit status of an internal error."""
INTERRUPTED = 130


@shown()
def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0: success, 1: a check failed, 2: invalid input, 3: a tool is missing."""
    try:
        _check_folder()
        if completion_request := os.environ.get(VARIABLE):
            outcome = answer(COMMANDS, completion_request)
        else:
            outcome = COMMANDS.main(args=argv, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except PolicygenError as error:
        clear()
        sys.stderr.write(f"policygen: error: {error}\n")
        return error.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        clear()
        rows = interrupt_messages(error) or ("Run the same command again to start over.",)
        sys.stderr.write("\n  ".join(["policygen: interrupted", *rows]) + "\n")
        return INTERRUPTED
    except click.ClickException as error:
        clear()
        error.show()
        return error.exit_code
    except (BrokenPipeError, SystemExit):
        # The reader of the output, such as `head`, closed the pipe; only then does click exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception:  # noqa: BLE001  the boundary: no traceback reaches a user
        clear()
        return _report_bug()
    return outcome if isinstance(outcome, int) else 0


def _check_folder() -> None:
    try:
        Path.cwd()
    except OSError as error:
        raise InputError(
            "the current folder does not exist any more", "Change to a folder that exists."
        ) from error


def _report_bug() -> int:
    details = traceback.format_exc()
    stamp = datetime.now(UTC).isoformat(timespec="seconds")
    head = f"policygen {__version__}, Python {sys.version}, {stamp}\n{sys.argv}\n\n"
    try:
        log = cache_folder() / "error.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(head + details, encoding="utf-8")
        location = f"the details are in {log}; please report them"
    except (OSError, InputError):
        location = details
    summary = details.strip().splitlines()[-1]
    sys.stderr.write(f"policygen: internal error: {summary}\n  {location}\n")
    return BUG


def run() -> None:
    """Run the console script; SIGTERM ends it like Ctrl-C, including its child processes."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Commands keep their objects until they exit, so frequent cycle collection only wastes time.
    gc.set_threshold(200_000, 20, 20)
    sys.exit(main())
