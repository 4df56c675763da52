"""`policygen verify-effect`: what was applied is selected, and nothing else changed."""

import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policygen.cli.options import cub_option, output_options, parse_archs, store_option
from policygen.errors import InputError

if TYPE_CHECKING:
    from policygen.edit.journal import AppliedRecord
    from policygen.model.plan import Plan


@click.command("verify-effect")
@click.option("--arch", metavar="ARCH", help="Only the last apply for this architecture.")
@cub_option
@store_option
@output_options
def verify_effect(
    arch: str | None, cub: str | None, store: str, as_json: bool, quiet: bool, verbose: bool
) -> int:
    """Shows that the last apply has its effect: what was written is selected, nothing else changed.

    The headers are compared with what they were before it, on every architecture, for all
    workloads of the benchmarks. The exit status is 1 when something is not as planned.
    """
    from policygen import tree
    from policygen.cli.planning import compiler_for, open_tree
    from policygen.planning.judge import judge
    from policygen.report.plan import print_effect
    from policygen.source.scan import read_changed

    wanted = parse_archs([] if arch is None else [arch])
    there = tree.find(cub, Path.cwd())
    plan, before = _last(Path(store), Path(there.root), wanted)
    names = tuple(file.path for file in plan.files)
    found, data, _ = open_tree(there, names, quiet=quiet)
    headers = {name: read_changed(found.paths[name], before[name]) for name in names}
    compiler = replace(compiler_for(found, headers, before, quiet=quiet), replaced=before)
    now = {name: data[name] for name in names}
    effect = judge(
        plan.model_copy(update={"cub": found.cub}),
        compiler.compare(now),
        lambda point, on: compiler.why_not(now, point, on),
    )
    if as_json:
        sys.stdout.write(effect.to_json() + "\n")
    else:
        print_effect(effect, head=not quiet, verbose=verbose)
    return int(bool(effect.wrong))


def _last(store: Path, root: Path, archs: Collection[str]) -> "tuple[Plan, dict[str, bytes]]":
    """The plan of the last apply that is not undone, and the headers that it found."""
    from policygen.edit.journal import Journal

    if store.is_file():
        with Journal.open(store) as journal:
            for applied in reversed(journal.applies()):
                if applied.state != "applied" or applied.root.resolve() != root.resolve():
                    continue
                plan = _plan_of(applied, store)
                if not archs or plan.options.arch in archs:
                    files = journal.files_of(applied.id)
                    return plan, {Path(file.path).name: file.before for file in files}
    what = f" for {' or '.join(archs)}" if archs else ""
    raise InputError(
        f"{store}: nothing was applied to {root}{what}", "Name the store: --store FILE"
    )


def _plan_of(applied: "AppliedRecord", store: Path) -> "Plan":
    """What an apply was asked for; one of another policygen may say it in other words."""
    from pydantic import ValidationError

    from policygen.model.plan import Applied

    try:
        return Applied.model_validate_json(applied.document).plan
    except ValidationError as error:
        raise InputError(
            f"{store}: apply {applied.id} is of another policygen, and cannot be verified",
            "Undo it, and apply it again.",
        ) from error
