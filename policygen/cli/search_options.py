"""Search options shared by several commands, and handling of Ctrl-C."""

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import click

from policygen.app.measured_workloads import PROCESSES, ROUNDS, SEED, Effort
from policygen.app.search import SearchMachines
from policygen.cli.options import FILE, Option, combined, flag, joined, number, option, repeated
from policygen.errors import InputError
from policygen.report.progress import SearchProgress

COUNT = click.IntRange(min=1)
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")


def seconds_of(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """Parse `90`, `90s`, `20m` or `1.5h` into seconds."""
    match = _BUDGET.fullmatch(text)
    if match is None or not float(match[1]):
        raise click.BadParameter(f"{text!r} is not a time; write 90s, 20m or 1.5h")
    return float(match[1]) * UNITS[match[2]]


WHOLE_BUDGET = "Time limit for all workloads and all runs of the command: 90s, 20m, 1.5h."


def budget_option(default: str, text: str = WHOLE_BUDGET) -> Option:
    """`--budget`, in seconds."""
    return option("--budget", "TIME", text, default=default, show_default=True, callback=seconds_of)


def gpus_of(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> tuple[int, ...] | None:
    """Parse `0`, `0,2` or `all` into GPU indices."""
    parts = [part for text in texts for part in text.split(",")]
    if parts == ["all"]:
        return None
    for part in parts:
        if not (part.isascii() and part.isdigit()):
            raise click.BadParameter(f"{part!r} is neither a GPU number nor `all`")
    return tuple(map(int, parts))


def database_option(
    text: str = "The database to write, in CCCL's layout. Existing rows are not measured again.",
) -> Option:
    """`--db`, for commands that measure."""
    return option("--db", "FILE", text, to="database", type=FILE)


wait_option = option(
    "--wait",
    "SECONDS",
    "Seconds to wait for a busy GPU.",
    to="patience",
    type=click.FloatRange(min=0),
    default=0.0,
)


def jobs_option(*short_names: str) -> Option:
    """`--jobs`, for commands that compile before they measure."""
    text = "Number of parallel compiles.  [default: as many as cores and memory allow]"
    return click.option(*short_names, "--jobs", "slots", type=COUNT, metavar="N", help=text)


gpu_option = number("--gpu", click.IntRange(min=0), "The GPU's number.", default=0)


def run_options(
    processes: int = PROCESSES,
    least: int = 1,
    text: str = "Number of fresh processes, from which intervals are computed.",
) -> Option:
    """`--processes` and `--rounds`, for commands that measure in fresh processes."""
    return joined(
        number("--rounds", COUNT, "Maximum runs per process.", default=ROUNDS),
        number("--processes", click.IntRange(min=least), text, default=processes),
    )


def gpu_options(*effort_names: str) -> Option:
    """`--gpu` and `--scheduler`, as `machines`; `--wait`, `--jobs`, `--seed` and `--sanitize`.

    The latter and other options of the command, `effort_names`, are its `effort`.
    """
    return joined(
        combined("effort", Effort, "seed", "slots", "patience", "sanitize", *effort_names),
        combined("machines", _machines, "gpus", "scheduler"),
        flag("--sanitize", "Run compute-sanitizer on finalists."),
        jobs_option(),
        wait_option,
        option(
            "--scheduler",
            "ADDRESS",
            "Use the workers of a Dask scheduler: tcp://HOST:8786, or its file.",
        ),
        repeated(
            "--gpu",
            "N",
            "GPU number; '0,1' or 'all' for several of one model. Repeatable.  [default: 0]",
            to="gpus",
            default=["0"],
            callback=gpus_of,
        ),
        number("--seed", int, "Random seed.", default=SEED),
    )


def _machines(gpus: tuple[int, ...] | None, scheduler: str | None) -> SearchMachines:
    if scheduler is not None and gpus != (0,):
        raise InputError(
            "--gpu chooses GPUs of this machine, but --scheduler uses those of its workers",
            "Give only one; CUDA_VISIBLE_DEVICES chooses the GPU of a worker.",
        )
    return SearchMachines(gpus, scheduler)


@contextmanager
def searching(teller: SearchProgress) -> Iterator[Callable[[], bool]]:
    """Show the progress of the block, which gets whether it is to stop.

    The first Ctrl-C asks it to stop, so that running work is saved; the second one interrupts.
    """
    signals: list[int] = []

    def note(number: int, _frame: object) -> None:
        if signals:
            signal.default_int_handler(number, None)
        signals.append(number)

    previous_handler = signal.signal(signal.SIGINT, note)
    try:
        with teller.live or nullcontext():
            yield lambda: bool(signals)
    finally:
        signal.signal(signal.SIGINT, previous_handler)
