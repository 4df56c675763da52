"""Search options shared by several commands, and handling of Ctrl-C."""

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from policygen.app.measure import PROCESSES, ROUNDS, Effort
from policygen.app.measured_workloads import SEED
from policygen.app.search_places import SearchMachines
from policygen.errors import InputError

Command = TypeVar("Command", bound=Callable[..., Any])
COUNT = click.IntRange(min=1)
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")


def seconds_of(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """Parse `90`, `90s`, `20m` or `1.5h` into seconds."""
    match = _BUDGET.fullmatch(text)
    if match is None or not float(match[1]):
        raise click.BadParameter(f"{text!r} is no time such as 90s, 20m or 1.5h")
    return float(match[1]) * UNITS[match[2]]


WHOLE_BUDGET = "Time for all workloads together, over all runs of the command: 90s, 20m, 1.5h."


def budget_option(command: Command, *, default: str, text: str = WHOLE_BUDGET) -> Command:
    """`--budget`, in seconds."""
    return click.option(
        "--budget",
        default=default,
        show_default=True,
        metavar="TIME",
        callback=seconds_of,
        help=text,
    )(command)


def gpus_of(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> tuple[int, ...] | None:
    """Parse `0`, `0,2` or `all` into GPU indices."""
    parts = [part for text in texts for part in text.split(",")]
    if parts == ["all"]:
        return None
    for part in parts:
        if not (part.isascii() and part.isdigit()):
            raise click.BadParameter(f"{part!r} is no number of a GPU, nor `all` alone")
    return tuple(map(int, parts))


wait_option = click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="As long for a GPU on which somebody measures.",
)


def gpu_options(command: Command) -> Command:
    """`--gpu`, `--scheduler`, `--wait`, `--jobs`, `--seed` and `--sanitize`."""
    options = (
        click.option(
            "--seed", type=int, default=SEED, show_default=True, help="Of all that is drawn."
        ),
        click.option(
            "--gpu",
            "gpus",
            multiple=True,
            default=["0"],
            callback=gpus_of,
            metavar="N",
            help="Its number; 0,1 or all: several of one model. Repeatable.  [default: 0]",
        ),
        click.option(
            "--scheduler",
            metavar="ADDRESS",
            help="Compile and measure on the workers of a Dask scheduler: tcp://HOST:8786, or its"
            " file.",
        ),
        wait_option,
        click.option(
            "--jobs", type=COUNT, metavar="N", help="Compiles at once.  [default: as fit]"
        ),
        click.option("--sanitize", is_flag=True, help="Let compute-sanitizer look at finalists."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def effort_of(given: dict[str, Any]) -> Effort:
    """Return the effort chosen by these options."""
    return Effort(
        processes=given.get("processes", PROCESSES),
        rounds=given.get("rounds", ROUNDS),
        seed=given["seed"],
        slots=given["jobs"],
        patience=given["wait"],
        sanitize=given["sanitize"],
    )


def machines_of(given: dict[str, Any]) -> SearchMachines:
    """Return the machines chosen by these options."""
    if given["scheduler"] is not None and given["gpus"] != (0,):
        raise InputError(
            "--gpu chooses GPUs of this machine, and --scheduler uses those of its workers",
            "Give one of both; CUDA_VISIBLE_DEVICES tells a worker which GPU is its own.",
        )
    return SearchMachines(given["gpus"], given["scheduler"])


@contextmanager
def stop_on_interrupt() -> Iterator[list[int]]:
    """Record the first Ctrl-C, so that running work is saved; interrupt on the second."""
    signals: list[int] = []

    def note(number: int, _frame: object) -> None:
        if signals:
            signal.default_int_handler(number, None)
        signals.append(number)

    previous_handler = signal.signal(signal.SIGINT, note)
    try:
        yield signals
    finally:
        signal.signal(signal.SIGINT, previous_handler)
