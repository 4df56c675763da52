"""`policygen apply`: writes tunings into the headers, and proves what they do."""

from pathlib import Path
from typing import Any

import click

from policygen.app.apply import UNTOUCHED, AppliedChange, apply_plan, finish_applies
from policygen.app.plan import read_plan
from policygen.app.session import check_named
from policygen.app.stores import store_option_of
from policygen.cli.options import Command, as_one, output_options, store_option
from policygen.cli.output import Out, Output
from policygen.cli.plan_options import GIVEN, make_plan, planning_options
from policygen.cli.progress import warn
from policygen.cli.start import start
from policygen.errors import InputError
from policygen.report.diff import print_diff
from policygen.report.views.plan import print_apply, print_effect, print_plan
from policygen.stopping import stopping


def patch_option(command: Command) -> Command:
    """`--patch`, for which `--force` counts as for `-o`."""
    words = "Write the change for `git apply`, not to the tree."
    named = click.option("--patch", "patch_file", metavar="FILE", help=words)
    return named(as_one(command, "patch", _patch, "patch_file", shared="force"))


def _patch(patch_file: str | None, *, force: bool) -> Out:
    return Out.chosen(patch_file, force=force)


@click.command()
@planning_options
@click.option("--plan", "plan_file", metavar="FILE", help="A plan that `policygen plan -o` kept.")
@click.option("--diff", "as_diff", is_flag=True, help="Print the change; write nothing.")
@click.option(
    "--check", is_flag=True, help="Exit with 1 when something would change; write nothing."
)
@patch_option
@click.option("--no-prove", is_flag=True, help="Do not ask the compiler what the change does.")
@click.option("--finish", is_flag=True, help="Complete an apply that was interrupted.")
@store_option
@output_options
def apply(
    plan_file: str | None,
    as_diff: bool,
    check: bool,
    patch: Out,
    no_prove: bool,
    finish: bool,
    store: Path,
    output: Output,
    **given: Any,
) -> int:
    """Writes tunings from databases, or from a plan, into the headers of a tree.

    The compiler shows first that each workload gets what is written for it, and that nothing else
    changes on any architecture; else nothing is written. `policygen undo` takes it back.
    """
    if finish:
        _check_alone("--finish", "plan_file", "as_diff", "check", "patch_file", "no_prove")
        return _finish(given["cub"], store, output)
    if output.as_json and as_diff:
        raise click.UsageError("give --diff or --json, not both")
    dry = as_diff or check or patch.path is not None
    session = start(given["cub"], store, whole=True, quiet=output.quiet)
    if not dry:
        check_named(session.cub)  # before anybody waits for a plan
    with stopping(lambda: UNTOUCHED):
        if plan_file is None:
            planned = make_plan(session, given, prove=not no_prove)
        else:
            _check_alone("--plan")
            planned = read_plan(session, Path(plan_file))
    done = apply_plan(session, planned, prove=not no_prove, write=not dry)
    if patch.path is not None:
        patch.write(done.diff)
    if output.as_json:
        click.echo(done.plan.to_json())
    elif as_diff:
        print_diff(done.diff)
    else:
        _print(done, head=not output.quiet, verbose=output.verbose)
        if not output.quiet:
            _print_ending(done, store, patch, dry=dry, proved=not no_prove)
    return int(check and bool(done.changed))


def _check_alone(option: str, *more: str) -> None:
    """An option that says everything stands beside none that changes a plan."""
    context = click.get_current_context()
    source = click.core.ParameterSource.DEFAULT
    names = (*GIVEN, *more)
    if any(n != "cub" and context.get_parameter_source(n) != source for n in names):
        raise InputError(
            f"{option} says everything: give no --db, --arch and what changes a plan",
            f"Or no {option}.",
        )


def _finish(cub: str | None, store: Path, output: Output) -> int:
    finished = finish_applies(store, cub, note=warn)
    if output.as_json:
        for _, document in finished:
            click.echo(document.plan.to_json() if document else "{}")
    elif not output.quiet:
        for record, _ in finished:
            click.echo(f"finished apply {record.id}: {record.title}")
            for file in record.files:
                click.echo(f"  written {record.root / file}")
        click.echo(f"to prove it: policygen verify-effect{store_option_of(store)}")
    return 0


def _print(done: AppliedChange, *, head: bool, verbose: bool) -> None:
    if verbose:
        print_plan(done.plan, head=head, verbose=True)
    else:
        print_apply(done.plan, head=head)
    if done.diff:
        print_diff(done.diff)
    if done.effect is not None:
        print_effect(done.effect, head=head, verbose=verbose)


def _print_ending(done: AppliedChange, store: Path, patch: Out, *, dry: bool, proved: bool) -> None:
    if not done.changed:
        click.echo("nothing to write")
        return
    names = ", ".join(sorted(done.changed))
    if not proved:
        click.echo("not proved: --no-prove was given")
    if patch.path is not None:
        click.echo(f"written to {patch.path}; the tree is as it was")
    elif dry:
        click.echo(f"would change: {names}")
    else:
        click.echo(f"written: {names}; to take it back: policygen undo{store_option_of(store)}")
