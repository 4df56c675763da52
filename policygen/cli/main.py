"""The entry point: one error boundary around all commands."""

import gc
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

# Looking for plugins of Pydantic reads the metadata of every installed package.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from policygen import __version__
from policygen.cli.completing import PROGRAM, VARIABLE, answer
from policygen.cli.groups import COMMANDS
from policygen.cli.progress import clear
from policygen.errors import InputError, PolicygenError
from policygen.paths import cache_folder
from policygen.process import said
from policygen.report.sink import shown

BUG = 70
"""The exit status of a failure that policygen did not expect."""
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; 0 fine, 1 a check found something, 2 bad input, 3 a tool is missing."""
    with shown():
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    try:
        _check_folder()
        if asked := os.environ.get(VARIABLE):
            outcome = answer(COMMANDS, asked)
        else:
            outcome = COMMANDS.main(args=argv, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except PolicygenError as error:
        clear()
        sys.stderr.write(f"policygen: error: {error}\n")
        return error.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        clear()
        rows = said(error) or ("The same command begins again.",)
        sys.stderr.write("\n  ".join(["policygen: interrupted", *rows]) + "\n")
        return INTERRUPTED
    except click.ClickException as error:
        clear()
        error.show()
        return error.exit_code
    except (BrokenPipeError, SystemExit):
        # The reader of our output, `head` for one, has seen enough; only then does click exit.
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
        raise InputError("the current folder is gone", "Change to one that exists.") from error


def _report_bug() -> int:
    details = traceback.format_exc()
    stamp = datetime.now(UTC).isoformat(timespec="seconds")
    head = f"policygen {__version__}, Python {sys.version}, {stamp}\n{sys.argv}\n\n"
    try:
        log = cache_folder() / "error.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(head + details, encoding="utf-8")
        where = f"the details are in {log}; please report them"
    except (OSError, InputError):
        where = details
    summary = details.strip().splitlines()[-1]
    sys.stderr.write(f"policygen: internal error: {summary}\n  {where}\n")
    return BUG


def run() -> None:
    """The console script; asked to end, it ends as by Ctrl-C, with all that it has started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # A command keeps what it makes until it ends: to look for cycles in it takes time for nothing.
    gc.set_threshold(200_000, 20, 20)
    sys.exit(main())
