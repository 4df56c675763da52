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
from policygen.cli import (
    apply,
    audit,
    bench,
    coverage,
    db,
    db_write,
    demo,
    effect,
    emit,
    headers,
    plan,
    reach,
    resolve,
    review,
    sass,
    scan,
    undo,
)
from policygen.errors import InputError, PolicygenError
from policygen.paths import cache_folder
from policygen.report.sink import shown

BUG = 70
"""The exit status of a failure that policygen did not expect."""
INTERRUPTED = 130


@click.group(
    name="policygen",
    help="Turns GPU tuning results into CUB's tuning policies, and proves the change.",
    # click would drop escape sequences without a word; here they are shown.
    context_settings={"help_option_names": ["-h", "--help"], "color": True},
)
@click.version_option(__version__, prog_name="policygen")
def commands() -> None:
    """The group that all commands belong to."""


commands.add_command(headers.headers)
commands.add_command(scan.scan)
commands.add_command(audit.audit)
audit.audit.add_command(reach.reach)
audit.audit.add_command(coverage.coverage)
commands.add_command(bench.bench)
commands.add_command(resolve.resolve)
commands.add_command(db.db)
commands.add_command(plan.plan)
commands.add_command(apply.apply)
commands.add_command(undo.undo)
commands.add_command(emit.emit)
commands.add_command(effect.verify_effect)
commands.add_command(sass.verify_sass)
commands.add_command(review.review)
commands.add_command(demo.demo)
for command in (db_write.merge, db_write.export, db_write.plot):
    db.db.add_command(command)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; 0 fine, 1 a check found something, 2 bad input, 3 a tool is missing."""
    with shown():
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    try:
        _check_folder()
        outcome = commands.main(args=argv, prog_name="policygen", standalone_mode=False)
        sys.stdout.flush()
    except PolicygenError as error:
        sys.stderr.write(f"policygen: error: {error}\n")
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (BrokenPipeError, SystemExit):
        # The reader of our output, `head` for one, has seen enough; only then does click exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception:  # noqa: BLE001  the boundary: no traceback reaches a user
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
