"""`policygen apply`: writes tunings into the headers, and proves what they do."""

import sys
from pathlib import Path
from typing import Any

import click

from policygen.app.apply import UNTOUCHED, AppliedChange, apply_plan, finish_applies, undo_applies
from policygen.app.effect import verify_effect as verify
from policygen.app.plan import read_plan
from policygen.app.session import check_named, store_option_of
from policygen.cli.options import (
    arch_option,
    combined,
    cub_option,
    flag,
    joined,
    option,
    out_option,
    output_options,
    print_options,
    start,
    store_option,
)
from policygen.cli.output import Out, Output
from policygen.cli.plan_options import GIVEN, make_plan, planning_options
from policygen.cli.progress import warn
from policygen.errors import InputError
from policygen.process import stopping
from policygen.report import console, plan_views
from policygen.report.console import LINES, raw, show
from policygen.untrusted import visible

patch_option = joined(
    combined(
        "patch",
        lambda patch_file, force: Out.chosen(patch_file, force=force),
        "patch_file",
        shared="force",
    ),
    option(
        "--patch", "FILE", "Write the change for `git apply`, not to the tree.", to="patch_file"
    ),
)
"""`--patch`, for which `--force` counts as for `-o`."""


@click.command()
@planning_options
@option("--plan", "FILE", "A plan that `policygen plan -o` saved.", to="plan_file")
@flag("--diff", "Print the change; write nothing.", to="as_diff")
@flag("--check", "Exit with 1 if something would change; write nothing.")
@patch_option
@flag("--no-prove", "Skip the compiler's proof of the change.")
@flag("--finish", "Complete an interrupted apply.")
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
    """Write tuning results into CUB's headers, with proof.

    Before anything is written, the compiler proves that each workload gets its new values and that
    nothing else changes on any architecture. `policygen undo` takes the change back.
    """
    if finish:
        _check_alone("--finish", "plan_file", "as_diff", "check", "patch_file", "no_prove")
        return _finish(given["cub"], store, output)
    if output.as_json and as_diff:
        raise click.UsageError("--diff and --json exclude each other")
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
    change = apply_plan(session, planned, prove=not no_prove, write=not dry)
    if patch.path is not None:
        patch.write(change.diff)
    if output.as_json:
        click.echo(change.plan.to_json())
    elif as_diff:
        print_diff(change.diff)
    else:
        _print(change, head=not output.quiet, verbose=output.verbose)
        if not output.quiet:
            _print_ending(change, store, patch, dry=dry, proved=not no_prove)
    return int(check and bool(change.changed))


def _check_alone(option: str, *extra_names: str) -> None:
    """Reject an option that implies the whole plan together with options that change a plan."""
    context = click.get_current_context()
    source = click.core.ParameterSource.DEFAULT
    names = (*GIVEN, *extra_names)
    if any(name != "cub" and context.get_parameter_source(name) != source for name in names):
        raise InputError(
            f"{option} cannot be combined with --db, --arch or other planning options",
            f"Omit them, or omit {option}.",
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


def _print(change: AppliedChange, *, head: bool, verbose: bool) -> None:
    if verbose:
        show(plan_views.planned(change.plan, head=head, verbose=True))
    else:
        show(plan_views.applied(change.plan, head=head))
    if change.diff:
        print_diff(change.diff)
    if change.effect is not None:
        show(plan_views.effected(change.effect, head=head, verbose=verbose))


def _print_ending(
    change: AppliedChange, store: Path, patch: Out, *, dry: bool, proved: bool
) -> None:
    if not change.changed:
        click.echo("nothing to write")
        return
    names = ", ".join(sorted(change.changed))
    if not proved:
        click.echo("not proven, because of --no-prove")
    if patch.path is not None:
        click.echo(f"written to {patch.path}; the tree is unchanged")
    elif dry:
        click.echo(f"would change: {names}")
    else:
        click.echo(f"written: {names}; to undo it: policygen undo{store_option_of(store)}")


@click.command()
@option("--steps", "N", "Number of applies to take back.", default=1, show_default=True, type=int)
@cub_option
@store_option
@flag("--diff", "Print what would change; write nothing.", to="as_diff")
@flag("--check", "Exit with 1 if there is something to undo; write nothing.")
@output_options
def undo(
    steps: int, cub: str | None, store: Path, as_diff: bool, check: bool, output: Output
) -> int:
    """Take back the last apply.

    Every byte is restored. If a file was edited after the apply, the edit is shown and nothing is
    written. Without --cub, the last apply to any tree is taken back.
    """
    if as_diff and output.as_json:
        raise click.UsageError("--diff and --json exclude each other")
    write = not (as_diff or check)
    undone = undo_applies(store, cub, steps=steps, write=write, required=not check, note=warn)
    if as_diff:
        for diff in undone.diffs:
            print_diff(diff)
    else:
        output.show(undone.document, plan_views.undo)
    return int(check and bool(undone.undone))


@click.command()
@planning_options
@out_option("Save the plan, for `apply --plan`.")
@flag("--no-prove", "Skip the compiler's proof of the change.")
@print_options
def plan(out: Out, no_prove: bool, output: Output, **given: Any) -> int:
    """Show what results would change, and why.

    Each workload of the databases is updated, added, left to the fallback, or rejected with a
    reason, or has these values already. The compiler checks that each change has its effect and no
    other. Nothing is written.
    """
    session = start(given["cub"], whole=True, quiet=output.quiet)
    document = make_plan(session, given, prove=not no_prove, ways=True).plan
    if out.path is not None:
        out.write(document.to_json() + "\n")
    output.show(document, plan_views.planned)
    return 0


@click.command("verify-effect")
@arch_option("Check the last apply for this architecture.")
@cub_option
@store_option
@output_options
def verify_effect(archs: tuple[str, ...], cub: str | None, store: Path, output: Output) -> int:
    """Check that the last apply selects what it wrote.

    Compares all workloads on every architecture with the headers from before the apply. Exit
    status 1 means that something differs from the plan.
    """
    effect = verify(start(cub, store, whole=True, quiet=output.quiet), ",".join(archs) or None)
    output.show(effect, plan_views.effected)
    return int(bool(effect.failures))


_RESET = "\x1b[0m"
_BOLD = "\x1b[1m"
# Colors of git.
_COLOURS = {"@": "\x1b[36m", "+": "\x1b[32m", "-": "\x1b[31m"}


# Diffs on standard output, byte for byte, with colors on a terminal


def coloured(diff: str) -> str:
    """Color a diff as git does, for a terminal."""
    rows: list[str] = []
    head = True
    for line in diff.split("\n"):
        # A removed line `-- x` looks like a file name; only its position distinguishes them.
        head = line.startswith("diff ") or (head and not line.startswith("@"))
        colour = _BOLD if head else _COLOURS.get(line[:1])
        rows.append(f"{colour}{line}{_RESET}" if line and colour else line)
    return "\n".join(rows)


def print_diff(diff: str) -> None:
    """Write a diff; if redirected to a file, `git apply` accepts it."""
    out = console.results()
    if out.is_terminal:
        diff = visible(diff, LINES)
    if out.color_system is not None and not out.no_color:
        diff = coloured(diff)
    stream = raw(sys.stdout)
    stream.flush()
    stream.buffer.write(diff.encode("utf-8", "surrogateescape"))
    stream.buffer.flush()
