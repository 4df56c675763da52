"""`policygen apply`: writes tunings into the headers, and proves what they do."""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policygen.cli.options import STORE, output_options, store_option
from policygen.cli.plan_options import GIVEN, planning_options
from policygen.cli.planning import Work
from policygen.errors import InputError

if TYPE_CHECKING:
    from policygen.model.effect import Effect
    from policygen.model.plan import Plan


@click.command()
@planning_options
@click.option("--plan", "plan_file", metavar="FILE", help="A plan that `policygen plan -o` kept.")
@click.option("--diff", "as_diff", is_flag=True, help="Print the change; write nothing.")
@click.option(
    "--check", is_flag=True, help="Exit with 1 when something would change; write nothing."
)
@click.option("--patch", metavar="FILE", help="Write the change for `git apply`, not to the tree.")
@click.option("--no-prove", is_flag=True, help="Do not ask the compiler what the change does.")
@click.option("--finish", is_flag=True, help="Complete an apply that was interrupted.")
@store_option
@output_options
def apply(
    plan_file: str | None,
    as_diff: bool,
    check: bool,
    patch: str | None,
    no_prove: bool,
    finish: bool,
    store: str,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    **given: Any,
) -> int:
    """Writes tunings from databases, or from a plan, into the headers of a tree.

    The compiler shows first that each workload gets what is written for it, and that nothing else
    changes on any architecture; else nothing is written. `policygen undo` takes it back.
    """
    from policygen.cli.legacy import proven

    if finish:
        from policygen.cli.finishing import finish as complete

        _check_alone("--finish", "plan_file", "as_diff", "check", "patch", "no_prove")
        return complete(given["cub"], store, as_json=as_json, quiet=quiet)
    if as_json and as_diff:
        raise click.UsageError("give --diff or --json, not both")
    work = _work(plan_file, {**given, "store": store}, prove=not no_prove, quiet=quiet)
    changed = _changed(work)
    effect = None if no_prove or not changed else proven(work, changed, quiet=quiet)
    dry = as_diff or check or patch is not None
    diff = _diff(work, changed)
    if patch is not None:
        from policygen.cli.planning import write_file

        write_file(Path(patch), diff.encode("utf-8", "surrogateescape"))
    if changed and not dry:
        _write(work, changed, Path(store), proved=effect is not None)
    _report(
        work.plan, effect, diff, as_json=as_json, as_diff=as_diff, head=not quiet, verbose=verbose
    )
    if not (as_json or as_diff or quiet):
        written = None if dry or not changed else store
        _ending(changed, written=written, patch=patch, proved=not no_prove)
    return int(check and bool(changed))


def _work(plan_file: str | None, given: Mapping[str, Any], *, prove: bool, quiet: bool) -> Work:
    from policygen.cli.opening import open_cub
    from policygen.cli.planning import make_plan, work_again

    if plan_file is None:
        return make_plan(given, prove=prove, quiet=quiet)
    _check_alone("--plan")
    plan = _read_plan(Path(plan_file))
    cub = open_cub(given["cub"], given["store"], whole=True)
    if cub.version != plan.cub.version:
        raise InputError(
            f"the plan is for CUB {plan.cub.version}, and the tree is CUB {cub.version}",
            "Make the plan again, or name its tree with --cub.",
        )
    return work_again(plan, cub, quiet=quiet)


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


def _read_plan(path: Path) -> "Plan":
    from policygen.cli.saved import read_document
    from policygen.model.plan import Plan

    remedy = "Make it with: policygen plan --db DB --arch ARCH -o FILE"
    return read_document(path, Plan, "plan of this policygen", remedy)


def _changed(work: Work) -> dict[str, bytes]:
    from policygen.planning.files import changed_headers

    return changed_headers(work.plan, work.data)


def _diff(work: Work, changed: Mapping[str, bytes]) -> str:
    from policygen.report.diff import unified
    from policygen.tree.revision import paths_in_repository

    names = sorted(changed)
    shown = paths_in_repository([work.tree.paths[n] for n in names], Path(work.plan.cub.root))
    return "".join(
        unified(path, work.data[name], changed[name])
        for name, path in zip(names, shown, strict=True)
    )


def _write(work: Work, changed: Mapping[str, bytes], store: Path, *, proved: bool) -> None:
    from policygen.cli.outcomes import keep_choices, tell_outcome
    from policygen.edit.apply import apply as write
    from policygen.edit.change import Change
    from policygen.edit.worktree import uncommitted
    from policygen.model.plan import Applied
    from policygen.report.console import nearby

    paths = [work.tree.paths[name] for name in changed]
    for path in uncommitted(paths):
        sys.stderr.write(
            f"policygen: warning: {nearby(path)} has changes that are not committed; they stay\n"
        )
    plan = work.plan
    title = f"{plan.options.arch}: {', '.join(sorted(changed))}"
    changes = [
        Change(work.tree.paths[name], work.data[name], after) for name, after in changed.items()
    ]
    root, now = Path(plan.cub.root), datetime.now(UTC)
    choices = keep_choices(plan, store, now)
    document = Applied(plan=plan, choices=choices).model_dump_json()
    write(changes, store, root, title, document, now)
    _read_back(work, changed, store, root)
    tell_outcome(store, choices, ("applied", "verified") if proved else ("applied",), now)


def _read_back(work: Work, changed: Mapping[str, bytes], store: Path, root: Path) -> None:
    """What stands in the files now, as `scan` reads it; else everything is put back."""
    from policygen.edit.undo import undo
    from policygen.source.files import read_bytes

    try:
        found = {
            name: _same(work.tree.paths[name], read_bytes(work.tree.paths[name]), after)
            for name, after in changed.items()
        }
        work.compiler.mark(found)
    except BaseException:
        undo(store, root, 1, datetime.now(UTC))
        raise


def _same(path: Path, found: bytes, after: bytes) -> bytes:
    if found != after:
        raise InputError(f"{path} does not hold what was written", "Something else writes to it.")
    return found


def _report(
    plan: "Plan",
    effect: "Effect | None",
    diff: str,
    *,
    as_json: bool,
    as_diff: bool,
    head: bool,
    verbose: bool,
) -> None:
    from policygen.report.diff import print_diff
    from policygen.report.views.plan import print_apply, print_effect, print_plan

    if as_json:
        sys.stdout.write(plan.to_json() + "\n")
        return
    if as_diff:
        print_diff(diff)
        return
    if verbose:
        print_plan(plan, head=head, verbose=True)
    else:
        print_apply(plan, head=head)
    if diff:
        print_diff(diff)
    if effect is not None:
        print_effect(effect, head=head, verbose=verbose)


def _ending(
    changed: Mapping[str, bytes], *, written: str | None, patch: str | None, proved: bool
) -> None:
    if not changed:
        click.echo("nothing to write")
        return
    names = ", ".join(sorted(changed))
    if not proved:
        click.echo("not proved: --no-prove was given")
    if patch is not None:
        click.echo(f"written to {patch}; the tree is as it was")
    elif written is None:
        click.echo(f"would change: {names}")
    else:
        store = "" if written == STORE else f" --store {written}"
        click.echo(f"written: {names}; to take it back: policygen undo{store}")
