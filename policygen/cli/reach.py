"""`policygen audit reach`: entries that no workload can select."""

import sys

import click

from policygen.cli.options import cub_option, output_options
from policygen.errors import Problems


@click.command()
@click.argument("headers", nargs=-1, metavar="[HEADER]...")
@cub_option
@output_options
def reach(
    headers: tuple[str, ...], cub: str | None, as_json: bool, quiet: bool, verbose: bool
) -> int:
    """Finds entries that no workload can ever select, by asking the compiler.

    In a copy of each header every entry gets a value that is its own; then all workloads are
    tried, those of benchmarks and many that no benchmark has, on every arch whose policy reads
    the family, and at which a policy selector may decide otherwise. HEADER is an algorithm (scan)
    or a header's name. Exit status 1 says that an entry was never seen.
    """
    from policygen.cli.asking import compile_progress, read_tree
    from policygen.cli.opening import open_cub
    from policygen.model.base import Problem
    from policygen.model.reach import Reach
    from policygen.proof.reach import reach_both
    from policygen.proof.sites import remarks
    from policygen.proof.toolchain import find_toolchain

    found = read_tree(open_cub(cub), headers)
    toolchain = find_toolchain()
    told = reach_both(
        found.cub,
        found.headers,
        found.marked("specializations"),
        found.marked("selectors"),
        toolchain,
        progress=compile_progress(quiet=quiet),
    )
    document = Reach(
        cub=found.cub,
        toolchain=f"nvcc {toolchain.version}",
        archs=told.archs,
        workloads=told.workloads,
        entries=told.entries,
        reached=told.entries - len(told.unreachable) - sum(told.unknown.values()),
        unreachable=told.unreachable,
        call_only=told.call_only,
        unasked=told.unasked,
        unknown=dict(told.unknown),
        remarks=remarks(found.cub),
        problems=tuple(Problem.of(error) for error in found.errors),
    )
    if as_json:
        sys.stdout.write(document.to_json() + "\n")
    else:
        from policygen.report.views.reach import print_reach

        print_reach(document, head=not quiet, verbose=verbose)
    if errors := (*found.errors, *told.errors):
        raise Problems(errors)
    return int(bool(document.unreachable))
