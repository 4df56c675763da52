"""`policygen overlay` and `policygen calls`: tunings for programs that pass no environment."""

from pathlib import Path
from typing import Any

import click

from policygen.app.calls import list_calls
from policygen.app.filters import parse_target
from policygen.app.overlay import check_overlay, make_overlay, previous_overlay, prove_overlay
from policygen.app.plan import read_plan
from policygen.app.session import check_serves
from policygen.cli.options import (
    FILE,
    FOLDER,
    arch_option,
    cub_option,
    force_option,
    option,
    output_options,
    print_options,
    start,
)
from policygen.cli.output import Output
from policygen.cli.plan_options import make_plan, planning_options
from policygen.cli.progress import compile_progress
from policygen.report import plan_views


@click.command()
@click.argument("words", nargs=-1, metavar="[FOLDER] [-- FLAGS]...")
@planning_options
@click.option("--plan", "plan_file", type=FILE, help="A plan that `policygen plan -o` saved.")
@click.option("-o", "--out", "folder", type=FOLDER, metavar="FOLDER", help="The folder to write.")
@option(
    "--check",
    "FOLDER",
    "Say whether an overlay fits the tree; exit with 1 if it does not.",
    to="checked",
    type=FOLDER,
)
@option(
    "--prove",
    "FILE",
    "Compile a program with and without the overlay in FOLDER, and compare its kernels: a"
    " source with FLAGS, or a compile_commands.json.",
    to="program",
    type=FILE,
)
@force_option
@print_options
def overlay(
    words: tuple[str, ...],
    plan_file: Path | None,
    folder: Path | None,
    checked: Path | None,
    program: Path | None,
    force: bool,
    output: Output,
    **given: Any,
) -> int:
    """Write tuned headers to put before CUB, for programs as they are.

    Plans and proves like `apply`, and writes the changed headers to a folder of their own. Put it
    first on a program's include path: calls of CUB and Thrust get the tunings, and the program
    needs no change. If nothing would change, no folder is written and the exit status is 1.

    --prove exits with 1 if the program has no kernel that the overlay changes.
    """
    if program is not None:
        if not words:
            raise click.UsageError("Missing argument 'FOLDER': policygen overlay FOLDER --prove.")
        arch = parse_target(given["archs"]) if given["archs"] else None
        proof = prove_overlay(Path(words[0]), program, words[1:], arch=arch)
        output.show(proof, plan_views.proved)
        return int(not proof.holds)
    if words:
        raise click.UsageError(f"Got unexpected extra argument ({words[0]}): it is for --prove.")
    if checked is not None:
        document = check_overlay(checked, given["cub"])
        output.show(document, plan_views.checked)
        return int(bool(document.problems))
    if folder is None:
        raise click.UsageError("Missing option '-o': the folder to write.")
    previous_overlay(folder, force=force)  # before anybody waits for a plan
    session = start(given["cub"], whole=True, quiet=output.quiet)
    check_serves("overlay", session.cub)
    if plan_file is None:
        planned = make_plan(session, given, prove=True)
    else:
        planned = read_plan(session, plan_file)
    made = make_overlay(session, planned, folder, force=force)
    output.show(made, plan_views.made)
    return int(made.overlay is None)


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="FILE... [-- FLAGS]...")
@arch_option("The architecture to compile for, or to read of an object.")
@cub_option
@output_options
def calls(words: tuple[str, ...], archs: tuple[str, ...], cub: str | None, output: Output) -> int:
    """List the CUB kernels of a program, and whether they are tuned.

    FILE is a source with the FLAGS that it is compiled with, a compile_commands.json, an object,
    or a static or shared library. Shows the algorithm, types and policy of each call, whether CUB
    has a tuning for it, and the command that looks for one. Exit status 1: there is no such kernel.
    """
    count = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
    document = list_calls(
        tuple(map(Path, words[:count])),
        words[count:],
        arch=parse_target(archs) if archs else None,
        cub=cub,
        progress=compile_progress(quiet=output.quiet),
    )
    output.show(document, plan_views.listed)
    return int(not document.calls)
