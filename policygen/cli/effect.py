"""`policygen verify-effect`: what was applied is selected, and nothing else changed."""

import sys
from pathlib import Path

import click

from policygen.cli.options import cub_option, output_options, parse_archs, store_option


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
    from policygen.cli.applied import last_apply
    from policygen.cli.opening import open_cub
    from policygen.cli.planning import applied_effect, open_tree
    from policygen.dialects.scan import read_changed
    from policygen.report.views.plan import print_effect

    wanted = parse_archs([] if arch is None else [arch])
    there = open_cub(cub, store, whole=True)
    plan, before = last_apply(Path(store), Path(there.root), wanted)
    names = tuple(file.path for file in plan.files)
    found, data, _ = open_tree(there, names, quiet=quiet)
    headers = {name: read_changed(found.paths[name], before[name]) for name in names}
    now = {name: data[name] for name in names}
    effect = applied_effect(plan, found, headers, before, now, quiet=quiet)
    if as_json:
        sys.stdout.write(effect.to_json() + "\n")
    else:
        print_effect(effect, head=not quiet, verbose=verbose)
    return int(bool(effect.wrong))
