"""`policygen apply`: writes tunings into the headers, and proves what they do."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from policygen.app.apply import UNTOUCHED, AppliedChange, apply_plan, finish_applies, undo_applies
from policygen.app.effect import verify_effect as verify
from policygen.app.plan import read_plan
from policygen.app.session import check_named, store_option_of
from policygen.cli.options import (
    Command,
    arch_option,
    as_one,
    cub_option,
    out_option,
    output_options,
    start,
    store_option,
)
from policygen.cli.output import Out, Output
from policygen.cli.plan_options import GIVEN, make_plan, planning_options
from policygen.cli.progress import warn
from policygen.errors import InputError
from policygen.process import stopping
from policygen.report import console
from policygen.report.plan_views import print_apply, print_effect, print_plan, print_undo
from policygen.report.sink import LINES, raw
from policygen.textdiff import unified
from policygen.untrusted import visible


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


# `policygen undo`: takes the last apply back, byte for byte.


@click.command()
@click.option(
    "--steps", default=1, show_default=True, metavar="N", type=int, help="How many applies."
)
@cub_option
@store_option
@click.option("--diff", "as_diff", is_flag=True, help="Print what would change; write nothing.")
@click.option(
    "--check", is_flag=True, help="Exit with 1 when there is something to undo; write nothing."
)
@output_options
def undo(
    steps: int, cub: str | None, store: Path, as_diff: bool, check: bool, output: Output
) -> int:
    """Takes the last apply back, or the last N in one go; every byte is as it was before.

    Nothing is written where a file was edited since; the edit is shown. With --cub only applies
    to that tree count, else the last one to any tree.
    """
    if as_diff and output.as_json:
        raise click.UsageError("give --diff or --json, not both")
    write = not (as_diff or check)
    undone = undo_applies(store, cub, steps=steps, write=write, required=not check, note=warn)
    if as_diff:
        for diff in undone.diffs:
            print_diff(diff)
    else:
        output.show(undone.document, print_undo)
    return int(check and bool(undone.undone))


# `policygen plan`: what results would change in a tree, and why.


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


# `policygen verify-effect`: what was applied is selected, and nothing else changed.


@click.command("verify-effect")
@partial(arch_option, text="Only the last apply for one of these architectures.")
@cub_option
@store_option
@output_options
def verify_effect(archs: tuple[str, ...], cub: str | None, store: Path, output: Output) -> int:
    """Shows that the last apply has its effect: what was written is selected, nothing else changed.

    The headers are compared with what they were before it, on every architecture, for all
    workloads of the benchmarks. The exit status is 1 when something is not as planned.
    """
    effect = verify(start(cub, store, whole=True, quiet=output.quiet), ",".join(archs) or None)
    output.show(effect, print_effect)
    return int(bool(effect.wrong))


__all__ = ["coloured", "print_diff", "unified"]
_RESET = "\x1b[0m"
_BOLD = "\x1b[1m"
# As git colours them.
_COLOURS = {"@": "\x1b[36m", "+": "\x1b[32m", "-": "\x1b[31m"}


# A diff on standard output, byte for byte; coloured on a terminal.


def coloured(diff: str) -> str:
    """The diff with git's colours, for a terminal."""
    rows: list[str] = []
    head = True
    for line in diff.split("\n"):
        # A removed line `-- x` looks like the name of a file; the place tells them apart.
        head = line.startswith("diff ") or (head and not line.startswith("@"))
        colour = _BOLD if head else _COLOURS.get(line[:1])
        rows.append(f"{colour}{line}{_RESET}" if line and colour else line)
    return "\n".join(rows)


def print_diff(diff: str) -> None:
    """Writes a diff; a file that it is sent to can be given to `git apply`."""
    out = console.results()
    if out.is_terminal:
        diff = visible(diff, LINES)
    if out.color_system is not None and not out.no_color:
        diff = coloured(diff)
    stream = raw(sys.stdout)
    stream.flush()
    stream.buffer.write(diff.encode("utf-8", "surrogateescape"))
    stream.buffer.flush()
