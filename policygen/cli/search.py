"""`policygen search`: finds the best variants of workloads, or shows how a strategy finds them."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles
from policygen.app.measure import PROCESSES, ROUNDS, Effort
from policygen.app.measure_variants import SEED, spaces_of
from policygen.app.notes import tell_warnings
from policygen.app.search import SearchWanted, search_variants
from policygen.app.search_places import SearchMachines
from policygen.app.search_replay import (
    BATCH,
    DEFAULT,
    NAMES,
    SAMPLES,
    Replaying,
    replay_search,
)
from policygen.app.session import open_session
from policygen.cli.options import cub_option, filter_options, output_options
from policygen.cli.output import Output
from policygen.cli.progress import compile_progress, warn
from policygen.cli.result_options import bench_option
from policygen.errors import InputError
from policygen.report.searching import print_line, shown, telling
from policygen.report.views.replay import print_replay
from policygen.report.views.search import print_searched

COUNT = click.IntRange(min=1)
BUDGET = "20m"
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")


def seconds_of(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """`90`, `90s`, `20m`, `1.5h`."""
    match = _BUDGET.fullmatch(text)
    if match is None or not float(match[1]):
        raise click.BadParameter(f"{text!r} is no time such as 90s, 20m or 1.5h")
    return float(match[1]) * UNITS[match[2]]


def gpus_of(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> tuple[int, ...] | None:
    """`0`, `0,2`, or all of them."""
    parts = [part for text in texts for part in text.split(",")]
    if parts == ["all"]:
        return None
    for part in parts:
        if not (part.isascii() and part.isdigit()):
            raise click.BadParameter(f"{part!r} is no number of a GPU, nor `all` alone")
    return tuple(map(int, parts))


@click.command()
@click.option(
    "--budget",
    default=BUDGET,
    show_default=True,
    metavar="TIME",
    callback=seconds_of,
    help="Time for all workloads together, over all runs of the command: 90s, 20m, 1.5h.",
)
@click.option(
    "--db",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where rows are written, as CCCL's search has them; what is there is not measured again.",
)
@click.option(
    "--strategy",
    type=click.Choice(NAMES),
    help="What chooses variants.  [default: exhaustive where that fits into half of the budget,"
    f" else {DEFAULT}]",
)
@click.option(
    "--variants", type=COUNT, metavar="K", help="As many of each workload at most.  [default: all]"
)
@click.option("--seed", type=int, default=SEED, show_default=True, help="Of all that is drawn.")
@click.option(
    "--processes",
    type=COUNT,
    default=PROCESSES,
    show_default=True,
    help="Fresh processes of the last rung: intervals are made over these.",
)
@click.option(
    "--rounds", type=COUNT, default=ROUNDS, show_default=True, help="Runs in each of those at most."
)
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    default=["0"],
    callback=gpus_of,
    metavar="N",
    help="Its number; 0,1 or all: several of one model. Repeatable.  [default: 0]",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Compile and measure on the workers of this Dask scheduler: tcp://HOST:8786, or its file.",
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="As long for a GPU on which somebody measures.",
)
@click.option("--jobs", type=COUNT, metavar="N", help="Compiles at once.  [default: as fit]")
@click.option(
    "--replay",
    "replays",
    multiple=True,
    metavar="DB",
    help="Try the strategy on the spaces of this database; needs no GPU. Repeatable.",
)
@click.option(
    "--seeds", type=COUNT, metavar="N", help="With --replay: so many seeds, from --seed on."
)
@click.option(
    "--batch",
    type=COUNT,
    metavar="N",
    help=f"With --replay: variants that are asked for at once.  [default: {BATCH}]",
)
@click.option(
    "--samples",
    type=click.IntRange(min=0),
    metavar="N",
    help="With --replay: samples by which the strategy is told scores; 0: what was recorded."
    f"  [default: {SAMPLES}]",
)
@bench_option
@filter_options
@cub_option
@output_options
def search(output: Output, replays: tuple[str, ...], **given: Any) -> int:
    """Finds the best variants of workloads on a GPU of this machine.

    All are tried where they are few; of spaces of billions what is near to good ones. Few samples
    tell who may win, more who stays, and fresh processes beside base, on samples that nothing was
    chosen by, what the finalists are worth. The same command goes on where it was.

    A replay asks a strategy for variants and tells it what a database has of them: a few samples,
    drawn by the seed. What is shown is the score by all samples.
    """
    if replays:
        return _replay(output, replays, given)
    if given["scheduler"] is not None and given["gpus"] != (0,):
        raise InputError(
            "--gpu chooses GPUs of this machine, and --scheduler uses those of its workers",
            "Give one of both; CUDA_VISIBLE_DEVICES tells a worker which GPU is its own.",
        )
    if given["db"] is None:
        raise InputError("a search needs a database to write to", "Name one: --db run.db")
    teller = telling(as_json=output.as_json, quiet=output.quiet)
    session = open_session(given["cub"], progress=teller.progress, note=warn)
    where = Filter((), given["regex"], given["axes"], ())
    wanted = SearchWanted(
        budget=given["budget"],
        strategy=given["strategy"],
        count=given["variants"],
        spaces=spaces_of(given["benches"]),
    )
    effort = Effort(
        processes=given["processes"],
        rounds=given["rounds"],
        seed=given["seed"],
        slots=given["jobs"],
        patience=given["wait"],
    )
    with stop_asked() as asked:
        document = shown(
            teller,
            lambda: search_variants(
                session,
                where,
                wanted,
                given["db"],
                effort=effort,
                machines=SearchMachines(given["gpus"], given["scheduler"]),
                observer=teller,
                asked=lambda: bool(asked),
            ),
        )
    if output.as_json:
        print_line(document)
    else:
        print_searched(document, head=not output.quiet, verbose=output.verbose)
    return int(not document.is_fine)


def _replay(output: Output, replays: tuple[str, ...], given: dict[str, Any]) -> int:
    """`search --replay`."""
    where = Filter(regex=given["regex"], axes=given["axes"])
    names = ("strategy", "variants", "seed", "seeds", "batch", "samples")
    how = Replaying(**{name: given[name] for name in names if given[name] is not None})
    document = replay_search(
        ResultFiles(replays, given["benches"], where=where),
        how,
        progress=compile_progress(quiet=output.quiet),
    )
    output.show(document, print_replay)
    tell_warnings(document.warnings, warn)
    return 0


@contextmanager
def stop_asked() -> Iterator[list[int]]:
    """Notes the first Ctrl-C, so that what runs is ended and written; the second ends at once."""
    asked: list[int] = []

    def note(number: int, _frame: object) -> None:
        if asked:
            signal.default_int_handler(number, None)
        asked.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
