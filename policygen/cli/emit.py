"""`policygen emit`: generates a header of policy selectors for CUB's public API."""

from typing import Any

import click

from policygen.app.emit import DEFAULT_NAMESPACE, emit_selectors
from policygen.app.own_workloads import with_workload
from policygen.app.tune import emitted_kernel
from policygen.cli.options import (
    choice,
    flag,
    option,
    out_option,
    print_options,
    repeated,
    start,
    workload_option,
)
from policygen.cli.output import Out, Output
from policygen.cli.plan_options import choice_options, choice_rules, chosen_files, with_shipped
from policygen.report import plan_views
from policygen.report.console import messages, results, show


@click.command()
@choice_options
@repeated(
    "--algorithm",
    "NAME",
    "Only these algorithms: reduce,scan. Repeatable.  [default: all in the databases]",
    to="algorithms",
)
@out_option("The header to write.  [default: standard output]")
@choice(
    "--std",
    ["17", "20"],
    "C++ standard: 20 uses designated initializers, 17 does not.",
    default="20",
)
@option(
    "--namespace",
    "NAME",
    f"Namespace of the selectors.  [default: the file's name, or {DEFAULT_NAMESPACE}]",
)
@workload_option
@flag("--no-prove", "Skip the compiler's proof of the header.")
@print_options
def emit(
    algorithms: tuple[str, ...],
    out: Out,
    std: str,
    namespace: str | None,
    no_prove: bool,
    output: Output,
    **given: Any,
) -> int:
    """Write a policy header for programs that use CUB.

    Policy selectors go into the environment of a call; CUB is not edited. Before the header is
    written, the compiler proves that tuned workloads get their policy and all others CUB's
    own.
    """
    name = None if out.path is None else str(out.path)
    session = start(given["cub"], quiet=output.quiet)
    given = {**given, **with_shipped(session, given)}
    files = chosen_files(given)
    session, _ = with_workload(session, given["workload"], files.where)
    kernel = emitted_kernel(session, files, given["archs"], out.path, choice_rules(given))
    if kernel is not None:
        if kernel.changed:
            out.write(kernel.text)
        if output.as_json:
            click.echo(kernel.model_dump_json(indent=1))
        elif not output.quiet:
            show(plan_views.kernel_outcome(kernel))
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
        # The header itself may go to standard output.
        terminal = messages() if name is None else results()
        terminal.write(plan_views.emitted(document, name, verbose=output.verbose))
    return 0
