"""`policygen scan`: every tuning family and entry of a tree."""

from functools import partial

import click

from policygen.app.filters import Filter
from policygen.app.libraries import Library
from policygen.app.scan import scan_tunings
from policygen.cli.options import asked_options, library_option, output_options
from policygen.cli.output import Output, end
from policygen.cli.progress import warn
from policygen.report.views.scan import print_scan


@click.command()
@partial(asked_options, arch="Only this arch.")
@library_option
@click.option("--no-cache", is_flag=True, help="Read anew what is known from before.")
@output_options
def scan(
    asked: Filter, cub: str | None, library: Library | None, no_cache: bool, output: Output
) -> int:
    """Shows every tuning family and entry of a tree.

    HEADER is an algorithm (scan), a header's name (tuning_scan.cuh) or a file; with one, or with
    -v, the entries are listed too. -R matches algorithms and qualified family names; -a takes
    template parameters as axes, and what guarded returns ask for: -a 'KeySize=[1,2]',
    -a 'key_size=1'.
    """
    document, errors = scan_tunings(
        cub, asked, cached=not no_cache, selectors=True, library=library, note=warn
    )
    if output.as_json:
        click.echo(document.to_json())
    else:
        entries = output.verbose or bool(asked.headers)
        print_scan(document, entries=entries, head=not output.quiet)
    return end(errors)
