"""`policygen emit`: generates a header of policy selectors for CUB's public API."""

from functools import partial
from typing import Any

import click

from policygen.app.emit import DEFAULT_NAMESPACE, emit_selectors
from policygen.app.tune import emitted_kernel
from policygen.cli.options import out_option, output_options, start, with_own, workload_option
from policygen.cli.output import Out, Output
from policygen.cli.plan_options import choice_options, choice_rules, chosen_files
from policygen.report.plan_views import print_emitted, print_kernel


@click.command()
@choice_options
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    metavar="NAME",
    help="Only these: reduce,scan. Repeatable.  [default: all that the databases hold]",
)
@partial(out_option, text="Where to write it.  [default: standard output]")
@click.option(
    "--std",
    type=click.Choice(["17", "20"]),
    default="20",
    show_default=True,
    help="The language: with designated initialisers, or without.",
)
@click.option(
    "--namespace",
    metavar="NAME",
    help=f"Of the selectors.  [default: the file's name, or {DEFAULT_NAMESPACE}]",
)
@workload_option
@click.option("--no-prove", is_flag=True, help="Do not ask the compiler what the header does.")
@partial(output_options, own=True)
def emit(
    algorithms: tuple[str, ...],
    out: Out,
    std: str,
    namespace: str | None,
    no_prove: bool,
    output: Output,
    **given: Any,
) -> int:
    """Writes policy selectors for CUB's public API into a header of your own; CUB stays as it is.

    The selectors go into the environment of a call. The compiler shows first that each workload
    that was tuned gets its policy, and every other one what CUB selects; else nothing is written.
    """
    name = None if out.path is None else str(out.path)
    files = chosen_files(given)
    session, _ = with_own(start(given["cub"], quiet=output.quiet), given["workload"], files.where)
    kernel = emitted_kernel(session, files, given["archs"], out.path, choice_rules(given))
    if kernel is not None:
        if kernel.changed:
            out.write(kernel.text)
        if output.as_json:
            click.echo(kernel.model_dump_json(indent=1))
        elif not output.quiet:
            print_kernel(kernel)
        return int(not kernel.changed)
    document = emit_selectors(
        session,
        files,
        ",".join(given["archs"]) or None,
        choice_rules(given),
        algorithms=algorithms,
        std=17 if std == "17" else 20,
        namespace=namespace,
        out=name,
        force=given["any_gpu"],
        prove=not no_prove,
    )
    if name is not None or not output.as_json:
        out.write(document.text)
    if output.as_json:
        click.echo(document.to_json())
        return 0
    if not output.quiet:
        print_emitted(document, name, verbose=output.verbose)
    return 0
