"""`policygen plan`: what results would change in a tree, and why."""

import sys
from pathlib import Path
from typing import Any

import click

from policygen.cli.options import output_options
from policygen.cli.plan_options import planning_options


@click.command()
@planning_options
@click.option("-o", "--out", metavar="FILE", help="Keep the plan, for `apply --plan`.")
@click.option("--no-prove", is_flag=True, help="Do not ask the compiler what the change does.")
@output_options
def plan(
    out: str | None, no_prove: bool, as_json: bool, quiet: bool, verbose: bool, **given: Any
) -> int:
    """Shows what results would change in a tree, and why; writes nothing to it.

    Each workload of the databases is updated, added, kept, left to its fallback, or rejected with
    the reason. The compiler is asked whether each change has its effect and no other.
    """
    from policygen.cli.planning import make_plan
    from policygen.report.views.plan import print_plan

    work = make_plan(given, prove=not no_prove, quiet=quiet)
    if out is not None:
        from policygen.cli.planning import write_file

        write_file(Path(out), (work.plan.to_json() + "\n").encode())
    if as_json:
        sys.stdout.write(work.plan.to_json() + "\n")
    else:
        print_plan(work.plan, head=not quiet, verbose=verbose)
    return 0
