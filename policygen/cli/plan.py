"""`policygen plan`: what results would change in a tree, and why."""

from functools import partial
from typing import Any

import click

from policygen.cli.options import out_option, output_options
from policygen.cli.output import Out, Output
from policygen.cli.plan_options import make_plan, planning_options
from policygen.cli.start import start
from policygen.report.views.plan import print_plan


@click.command()
@planning_options
@partial(out_option, text="Keep the plan, for `apply --plan`.")
@click.option("--no-prove", is_flag=True, help="Do not ask the compiler what the change does.")
@partial(output_options, own=True)
def plan(out: Out, no_prove: bool, output: Output, **given: Any) -> int:
    """Shows what results would change in a tree, and why; writes nothing to it.

    Each workload of the databases is updated, added, kept, left to its fallback, or rejected with
    the reason. The compiler is asked whether each change has its effect and no other.
    """
    session = start(given["cub"], whole=True, quiet=output.quiet)
    made = make_plan(session, given, prove=not no_prove, ways=True).plan
    if out.path is not None:
        out.write(made.to_json() + "\n")
    output.show(made, print_plan)
    return 0
