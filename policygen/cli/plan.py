"""`policygen plan`: what results would change in a tree, and why."""

from pathlib import Path
from typing import Any

import click

from policygen.cli.options import output_options
from policygen.cli.output import Output, write_file
from policygen.cli.plan_options import make_plan, planning_options
from policygen.cli.start import start
from policygen.report.views.plan import print_plan


@click.command()
@planning_options
@click.option("-o", "--out", metavar="FILE", help="Keep the plan, for `apply --plan`.")
@click.option("--no-prove", is_flag=True, help="Do not ask the compiler what the change does.")
@output_options
def plan(out: str | None, no_prove: bool, output: Output, **given: Any) -> int:
    """Shows what results would change in a tree, and why; writes nothing to it.

    Each workload of the databases is updated, added, kept, left to its fallback, or rejected with
    the reason. The compiler is asked whether each change has its effect and no other.
    """
    session = start(given["cub"], whole=True, quiet=output.quiet)
    made = make_plan(session, given, prove=not no_prove).plan
    if out is not None:
        write_file(Path(out), (made.to_json() + "\n").encode())
    output.show(made, print_plan)
    return 0
