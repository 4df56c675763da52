"""`policygen bench`: what benchmarks offer to tune."""

from pathlib import Path

import click

from policygen.cli.options import (
    cub_option,
    filter_options,
    output_options,
    parse_axes,
    parse_regex,
)
from policygen.errors import Problems


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@cub_option
@filter_options
@output_options
def bench(
    paths: tuple[Path, ...],
    cub: str | None,
    axes: tuple[str, ...],
    regex: str,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """The parameters, variants and workloads of benchmarks.

    PATH is a benchmark's .cu file, a folder of them, a CCCL checkout, or a cccl_meta_bench.csv.
    Without one: the benchmarks of --cub, else of the checkout around the current folder.
    """
    from policygen.source.benchmarks.files import around, checkout
    from policygen.source.benchmarks.read import read_benchmarks
    from policygen.source.benchmarks.select import select

    names, chosen = parse_regex(regex), parse_axes(axes)
    if not paths:
        paths = (checkout(Path(cub)) if cub else around(Path.cwd()),)
        if not quiet:
            click.echo(f"benchmarks of {paths[0].as_posix()}", err=True)
    document, errors = read_benchmarks(paths)
    if document.benchmarks or not errors:
        document = select(document, names, chosen)
    if as_json:
        click.echo(document.to_json())
    elif document.benchmarks:
        from policygen.report.bench import show
        from policygen.report.console import results

        show(document, results(), verbose=verbose)
    if errors:
        raise Problems(errors)
    return 0
