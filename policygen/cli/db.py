"""`policygen db`: what tuning databases hold, how good the variants are, which ones to take."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from policygen.cli.options import (
    config_option,
    filter_options,
    output_options,
    parse_axes,
    parse_regex,
)
from policygen.errors import InputError
from policygen.untrusted import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policygen.model.results import DataWarning, DbTop, Rules

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group()
def db() -> None:
    """Reads tuning databases, scores variants, chooses among them.

    DB is a cccl_meta_bench.db of any CCCL, or a glob of them; top, choose, coverage and plot take
    NVBench's JSON results too. What a file is, is told by its content. Databases are opened for
    reading only.
    """


def inputs(command: Command) -> Command:
    """DB…, `--bench` and `--base`."""
    return sources(click.argument("files", metavar="DB...", nargs=-1, required=True)(command))


def sources(command: Command) -> Command:
    """`--bench` and `--base`: what else is known of databases."""
    for decorate in (
        click.option(
            "--base",
            metavar="JSON",
            help="NVBench's result of the base, when DB are NVBench results of variants.",
        ),
        click.option(
            "--bench",
            "benches",
            multiple=True,
            metavar="PATH",
            help="Benchmark sources, a CCCL checkout or a cccl_meta_bench.csv: declared axis values"
            " and search spaces. Repeatable.",
        ),
    ):
        command = decorate(command)
    return command


confirm_option: Callable[[Command], Command] = click.option(
    "--confirm",
    multiple=True,
    metavar="DB",
    help="A later run of the finalists, which decides; or a glob of such. Repeatable.",
)


def ranking(command: Command) -> Command:
    """What changes the ranking and the choice."""
    for decorate in (
        click.option(
            "--current", metavar="LABEL", help="The values in the header now, as a label."
        ),
        click.option(
            "--prefer-simple",
            is_flag=True,
            help="Among those too close to call, the one closest to --current.",
        ),
        click.option(
            "--without-samples",
            is_flag=True,
            help="Choose also where no samples tell how sure a score is.",
        ),
        click.option("--confidence", type=float, help="Of intervals.  [default: 0.95]"),
        click.option("--worst", type=float, help="Least ratio of any runtime workload.  [0.95]"),
        click.option("--least-score", type=float, help="Least score of a choice.  [1.015]"),
        click.option(
            "--alpha",
            type=click.FloatRange(0, 1),
            default=1.0,
            show_default=True,
            help="CCCL's: only runtime workloads whose samples differ from base's (p < alpha).",
        ),
        confirm_option,
        config_option,
    ):
        command = decorate(command)
    return command


@db.command()
@inputs
@ranking
@filter_options
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="How many.")
@output_options
def top(
    files: tuple[str, ...], top: int, quiet: bool, verbose: bool, as_json: bool, **more: Any
) -> int:
    """Ranks the variants of each workload, with intervals, verdicts and the worst workload."""
    document = _rank(files, top=top, **more)
    if as_json:
        click.echo(document.to_json())
    else:
        from policygen.report.db import print_top

        print_top(document, verbose=verbose, quiet=quiet)
    return tell(document.warnings)


@db.command()
@inputs
@ranking
@filter_options
@click.option(
    "--record", metavar="FILE", help="Keep the decisions in this store, such as policygen.db."
)
@click.option(
    "--why",
    metavar="WORKLOAD",
    help="The whole reasoning for one workload: cub.bench.reduce.sum T=I32.",
)
@output_options
def choose(
    files: tuple[str, ...],
    record: str | None,
    why: str | None,
    quiet: bool,
    verbose: bool,
    as_json: bool,
    **more: Any,
) -> int:
    """Chooses one variant per workload, or base, and says why not the others."""
    if why is not None:
        files, more = _asked_why(why, files, more)
    document = _rank(files, top=None, explain=why is not None, **more)
    if record is not None:
        _record(Path(record), document)
    if as_json:
        click.echo(document.to_json())
    else:
        from policygen.report.db import print_choices, print_why

        if why is not None:
            print_why(document)
        else:
            print_choices(document, verbose=verbose, quiet=quiet)
    return tell(document.warnings)


@db.command()
@inputs
@filter_options
@output_options
def coverage(
    files: tuple[str, ...],
    benches: tuple[str, ...],
    base: str | None,
    regex: str,
    axes: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Shows how much of the search space was measured, workload by workload."""
    from policygen.cli.inputs import open_inputs
    from policygen.results.coverage import cover

    with open_inputs(files, benches, base) as given:
        document = cover(given.databases, given.spaces, parse_regex(regex), parse_axes(axes))
    if not document.workloads and not document.warnings:
        raise _nothing_matches()
    if as_json:
        click.echo(document.to_json())
    else:
        from policygen.report.db import print_coverage

        print_coverage(document, verbose=verbose, quiet=quiet)
    return tell(document.warnings)


@db.command()
@click.argument("files", metavar="DB...", nargs=-1, required=True)
@filter_options
@output_options
def info(
    files: tuple[str, ...],
    regex: str,
    axes: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Shows algorithms, workloads, GPUs, versions, rows, failures and the time spent."""
    from policygen.results.info import describe
    from policygen.results.load import expand

    if axes:
        raise InputError("db info takes no -a", "It shows all axes with their values.")
    document = describe(expand(files), parse_regex(regex))
    if regex and not any(database.tables for database in document.databases):
        raise _nothing_matches()
    if as_json:
        click.echo(document.to_json())
    else:
        from policygen.report.db import print_info

        print_info(document, verbose=verbose, quiet=quiet)
    return tell(document.warnings)


def tell(warnings: "Sequence[DataWarning]") -> int:
    """Warnings go to standard error; what is usable was shown, so all is fine."""
    for warning in warnings:
        sys.stderr.write(f"policygen: warning: {visible(str(warning))}\n")
    return 0


def _rank(
    files: tuple[str, ...],
    *,
    top: int | None,
    benches: tuple[str, ...],
    base: str | None,
    regex: str,
    axes: tuple[str, ...],
    alpha: float,
    current: str | None,
    prefer_simple: bool,
    without_samples: bool,
    least_score: float | None,
    worst: float | None,
    confidence: float | None,
    confirm: tuple[str, ...],
    explain: bool = False,
) -> "DbTop":
    from policygen.cli.inputs import open_inputs
    from policygen.results.top import rank

    rules = chosen_rules(
        current,
        least_score=least_score,
        worst_allowed=worst,
        confidence=confidence,
        prefer_simple=prefer_simple or None,
        without_samples=without_samples or None,
    )
    with open_inputs(files, benches, base, confirm) as given:
        document = rank(
            given.databases,
            pattern=parse_regex(regex),
            axes=parse_axes(axes),
            top=top or rules.candidates + 1,
            alpha=alpha,
            rules=rules,
            current=current,
            declared=given.declared,
            confirm_with=given.confirm,
            explain=explain,
        )
        named = tuple(given.named(workload) for workload in document.workloads)
        document = document.model_copy(update={"workloads": named})
    if not document.workloads and not document.warnings:
        raise _nothing_matches()
    return document


def _asked_why(
    why: str, files: tuple[str, ...], more: dict[str, Any]
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """`--why cub.bench.reduce.sum T=I32 DB` is `-R` and `-a` in other words."""
    import re

    words = why.split()
    stray = [name for name in files if "=" in name and not Path(name).exists()]
    named, axes = " ".join(words[:1]), [*words[1:], *stray]
    if not named or any("=" not in axis for axis in axes):
        raise InputError(f"--why {why!r} is no workload", "Such as: cub.bench.reduce.sum T=I32")
    pairs = [axis.partition("=") for axis in axes]
    asked = [f"{n if '{' in n else n + '{ct}'}={value}" for n, _, value in pairs]
    more = {**more, "regex": f"{re.escape(named)}$", "axes": (*more["axes"], *asked)}
    return tuple(name for name in files if name not in stray), more


def _nothing_matches() -> InputError:
    return InputError("nothing matches", "See what there is: policygen db info DB...")


def _record(path: Path, document: "DbTop") -> None:
    """Keeps what was decided, from which files."""
    from datetime import UTC, datetime

    from policygen.results.info import file_sha256
    from policygen.results.store import ChosenFrom, ChosenRow, Store

    now = datetime.now(UTC)
    rows = []
    for found in document.workloads:
        if found.choice is None:
            continue
        rows.append(
            ChosenRow(
                chosen_at=now,
                sources=tuple(
                    ChosenFrom(path=name, sha256=file_sha256(Path(name)))
                    for name in found.databases
                ),
                algorithm=found.algorithm,
                workload=found.workload,
                gpu=found.gpu,
                ctk=found.ctk,
                cccl=found.cccl,
                decision=found.choice.decision,
                variant=found.choice.variant,
                score=found.choice.score,
                reason=found.choice.reason,
            )
        )
    with Store.open(path) as store:
        store.record(rows)


def chosen_rules(current: str | None, **wanted: float | bool | None) -> "Rules":
    """`[choose]` of `policygen.toml`, changed by the command line."""
    from pydantic import ValidationError

    from policygen.config import configured
    from policygen.model.labels import parse_label
    from policygen.model.results import Rules

    found = configured()
    rules = found.settings.choose if found else Rules()
    given = {name: value for name, value in wanted.items() if value is not None}
    try:
        rules = Rules.model_validate({**rules.model_dump(), **given})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).replace("_", "-")
        raise InputError(f"--{name}: {first['msg']}") from error
    if rules.prefer_simple and current is None:
        raise InputError("--prefer-simple needs --current", "Give the label of the present values.")
    if current is not None and parse_label(current) is None:
        raise InputError(f"--current {current!r} is no variant label", "Such as: ipt_19.tpb_512")
    return rules
