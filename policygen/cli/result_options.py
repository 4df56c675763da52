"""Which results are meant, and when a variant of them is worth writing."""

from collections.abc import Callable, Sequence

import click

from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles, parse_gpus
from policygen.cli.options import Command, as_one, decorated, filter_options


def result_options(command: Command) -> Command:
    """`--bench` and `--base`: what else is known of databases."""
    command = click.option(
        "--base",
        metavar="JSON",
        help="NVBench's result of the base, when DB are NVBench results of variants.",
    )(command)
    return bench_option(command)


bench_option: Callable[[Command], Command] = click.option(
    "--bench",
    "benches",
    multiple=True,
    metavar="PATH",
    help="Benchmark sources, a CCCL checkout or a cccl_meta_bench.csv: declared axis values"
    " and search spaces. Repeatable.",
)
gpu_option: Callable[[Command], Command] = click.option(
    "--gpu-arch",
    "gpus",
    multiple=True,
    metavar="NAME=ARCH",
    help="The architecture of a GPU that policygen does not know: 'B400=sm110'. Repeatable.",
)
confirm_option: Callable[[Command], Command] = click.option(
    "--confirm",
    multiple=True,
    metavar="DB",
    help="A later run of the finalists, which decides; or a glob of such. Repeatable.",
)


def database_options(command: Command) -> Command:
    """DB…, `--bench`, `--base`, `-R` and `-a`, as one `given`."""
    names = ("files", "benches", "base", "regex", "axes")
    command = filter_options(as_one(command, "given", given_results, *names))
    return result_options(files_argument(command))


FORMS = {".html": "html", ".htm": "html", ".md": "md"}
"""How a report is written, by what its file ends with."""


def files_argument(command: Command) -> Command:
    """DB…."""
    return click.argument("files", metavar="DB...", nargs=-1, required=True)(command)


def given_results(
    files: Sequence[str],
    benches: Sequence[str] = (),
    base: str | None = None,
    confirm: Sequence[str] = (),
    gpus: Sequence[str] = (),
    *,
    regex: str,
    axes: tuple[str, ...],
) -> ResultFiles:
    """Databases, and what of them is asked for."""
    where = Filter(regex=regex, axes=axes)
    return ResultFiles(files, benches, base, confirm, where, parse_gpus(gpus))


def rule_options(command: Command) -> Command:
    """When a variant is worth writing, as `rules`: what is not said is as it is configured."""
    names = ("least_score", "worst_allowed", "confidence", "without_samples")
    return decorated(
        as_one(command, "rules", dict, *names),
        click.option(
            "--without-samples",
            is_flag=True,
            default=None,
            help="Choose also where no samples tell how sure a score is.",
        ),
        click.option("--confidence", type=float, help="Of intervals.  [default: 0.95]"),
        click.option(
            "--worst",
            "worst_allowed",
            type=float,
            help="Least ratio of any runtime workload.  [0.95]",
        ),
        click.option("--least-score", type=float, help="Least score of a choice.  [1.015]"),
    )
