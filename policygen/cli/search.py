"""`policygen search` finds the best variants of workloads or replays a strategy; `campaign`."""

import time
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from policygen.app.databases import report_search
from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles, tell_warnings
from policygen.app.measured_workloads import spaces_of
from policygen.app.own_workloads import with_workload
from policygen.app.search import (
    BATCH,
    DEFAULT,
    SAMPLES,
    STRATEGIES,
    Campaign,
    Replaying,
    SearchEvent,
    SearchWanted,
    replay_search,
    search_variants,
)
from policygen.app.session import open_session
from policygen.cli.options import (
    EXISTING_FILE,
    bench_option,
    choice,
    cub_option,
    option,
    out_option,
    output_options,
    print_options,
    repeated,
    where_options,
    workload_option,
)
from policygen.cli.output import Out, Output
from policygen.cli.progress import compile_progress, warn
from policygen.cli.search_options import (
    COUNT,
    budget_option,
    database_option,
    gpu_options,
    run_options,
    searching,
)
from policygen.errors import InputError, PolicygenError
from policygen.opening import load_toml
from policygen.process import module, run, threads
from policygen.report import search_views
from policygen.report.pages import render_page
from policygen.report.progress import telling

PAUSE = 60.0
"""Seconds between two pages of a running campaign."""
NOTHING = "none"
"""Value of `--start` for no variant."""


@click.command()
@budget_option("20m")
@database_option()
@choice("--strategy", STRATEGIES, f"Search strategy.  [default: {DEFAULT}]", default=None)
@option("--variants", "K", "Maximum number of variants per workload.  [default: all]", type=COUNT)
@run_options()
@repeated(
    "--start-db",
    "DB",
    "Try the best variants of this database after the neighbors of base. Repeatable.",
    to="start_dbs",
    type=EXISTING_FILE,
)
@gpu_options("processes", "rounds")
@repeated(
    "--replay",
    "DB",
    "Test the strategy on recorded spaces; needs no GPU. Repeatable.",
    to="replays",
)
@option("--seeds", "N", "With --replay: number of seeds, starting at --seed.", type=COUNT)
@option("--batch", "N", f"With --replay: variants per batch.  [default: {BATCH}]", type=COUNT)
@option(
    "--samples",
    "N",
    f"With --replay: samples per score that the strategy sees; 0: all.  [default: {SAMPLES}]",
    type=click.IntRange(min=0),
)
@repeated(
    "--start",
    "LABEL",
    "Start with this variant; with --replay, only with it. Repeatable.  [default: CUB's own"
    " values here and for other types; for a replay, those that the database names]",
    to="starts",
)
@bench_option
@workload_option
@where_options
@cub_option
@output_options
def search(selection: Filter, output: Output, replays: tuple[str, ...], **given: Any) -> int:
    """Search for the best variants on a GPU.

    The neighbors of base come first, then those of the best. A first sample drops bad variants,
    more samples select, and finalists run next to base in fresh processes, on samples that no
    selection has used. The same command resumes.

    A replay tests a strategy on a recorded space: the strategy sees scores of a few samples, and
    the output shows scores of all samples.
    """
    if replays:
        return _replay(selection, output, replays, given)
    if given["database"] is None:
        raise InputError(
            "a search needs a database to write to",
            "Name one: --db run.db; --replay DB tries strategies without a GPU.",
        )
    teller = telling(as_json=output.as_json, quiet=output.quiet)
    session = open_session(given["cub"], progress=teller.progress, note=warn)
    session, selection = with_workload(session, given["workload"], selection)
    request = SearchWanted(
        budget=given["budget"],
        strategy=given["strategy"],
        count=given["variants"],
        spaces=spaces_of(given["benches"]),
        starts=tuple(label for label in given["starts"] if label != NOTHING),
        earlier=given["start_dbs"],
    )
    with searching(teller) as stop_requested:
        document = search_variants(
            session,
            selection,
            request,
            given["database"],
            effort=given["effort"],
            machines=given["machines"],
            observer=teller,
            stop_requested=stop_requested,
        )
    output.show(document, search_views.searched, is_last=True)
    return int(not document.is_fine)


class _GrowingPage:
    """Writes the report page of a database again while a search writes the database."""

    def __init__(self, executor: Executor, database: Path, page: Path) -> None:
        report = ("db", "report", str(database), "-o", str(page), "-q", "--force")
        self._command = (*module("policygen"), *report)
        self._executor, self._writing = executor, executor.submit(lambda: None)
        self._begun = time.monotonic()

    def __call__(self) -> None:
        """Begin another page, unless the last one is recent or not ready."""
        if self._writing.done() and time.monotonic() - self._begun > PAUSE:
            self._begun = time.monotonic()
            self._writing = self._executor.submit(self._write)

    def _write(self) -> None:
        with suppress(PolicygenError):  # the last page reports errors
            run(self._command, install="")


@click.command()
@click.argument("plan", type=EXISTING_FILE, metavar="PLAN")
@budget_option("1h")
@database_option("The database to write.  [default: PLAN with .db]")
@out_option("An .html page of the results, which grows while the campaign runs.")
@run_options()
@gpu_options("processes", "rounds")
@where_options
@cub_option
@print_options
def campaign(plan: Path, selection: Filter, out: Out, output: Output, **given: Any) -> int:
    """Search many workloads, and give time to those that gain.

    PLAN is a TOML file with a [[workload]] table for each group of workloads: `benchmark`, `axes`
    as for -a, and `weight`. Each workload gets a short look, the heaviest first; then the time goes
    where weight and gain promise most, and the finalists of all are confirmed in fresh processes.
    -R and -a select a part of the plan. The same command resumes.
    """
    teller = telling(as_json=output.as_json, quiet=output.quiet)
    session = open_session(given["cub"], progress=teller.progress, note=warn)
    request = SearchWanted(budget=given["budget"], campaign=load_toml(plan, Campaign))
    database = given["database"] or plan.with_suffix(".db")
    with threads(1) as executor, searching(teller) as stop_requested:
        page = None if out.path is None else _GrowingPage(executor, database, out.path)

        def observe(event: SearchEvent) -> None:
            teller(event)
            if page is not None:
                page()

        document = search_variants(
            session,
            selection,
            request,
            database,
            effort=given["effort"],
            machines=given["machines"],
            observer=observe,
            stop_requested=stop_requested,
        )
    if out.path is not None:
        out.write(render_page(report_search(ResultFiles([str(database)])), "html"))
    output.show(document, search_views.campaign, is_last=True)
    return int(not document.is_fine)


def _replay(
    selection: Filter, output: Output, replays: tuple[str, ...], given: dict[str, Any]
) -> int:
    names = ("strategy", "variants", "seeds", "batch", "samples")
    chosen = {name: given[name] for name in names if given[name] is not None}
    chosen["seed"] = given["effort"].seed
    if given["starts"]:
        chosen["starts"] = tuple(label for label in given["starts"] if label != NOTHING)
    replaying = Replaying(**chosen)
    document = replay_search(
        ResultFiles(replays, given["benches"], where=selection),
        replaying,
        progress=compile_progress(quiet=output.quiet),
    )
    output.show(document, search_views.replayed)
    tell_warnings(document.warnings, warn)
    return 0
