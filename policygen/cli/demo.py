"""`policygen demo`: the commands a newcomer types first, run for real on an embedded example."""

from collections.abc import Iterator
from pathlib import Path

import click

from policygen.cli.options import cub_option
from policygen.report.console import nearby

BENCHMARK = "mini/cub/benchmarks/bench/mini/blur.cu"
"""Wheels hold no benchmarks; this one is policygen's own."""


@click.command()
@cub_option
@click.pass_context
def demo(context: click.Context, cub: str | None) -> int:
    """Shows on a real CUB what policygen does: obtains one, reads its tunings and a benchmark."""
    commands = context.find_root().command
    for step, (title, arguments) in enumerate(_steps(cub), start=1):
        line = " ".join(_quoted(argument) for argument in arguments)
        click.echo(f"{'' if step == 1 else chr(10)}{step}. {title}\n$ policygen {line}")
        commands.main(args=arguments, prog_name="policygen", standalone_mode=False)
    return 0


def _steps(cub: str | None) -> Iterator[tuple[str, list[str]]]:
    from policygen import resources, tree
    from policygen.tree.manifest import shipped
    from policygen.tree.store import current

    tree_option = [] if cub is None else ["--cub", cub]
    if cub is None:
        version = current(tree.headers_folder(Path.cwd()))
        if version is None:
            version = shipped().default
            yield "Obtain a CUB", ["headers", "fetch", version]
        # A checkout around the current folder would be found first.
        used = tree.find_any(None, Path.cwd())
        if used is None or used.found != "cub_headers":
            tree_option = ["--cub", version]
    yield "What is tuned, and for which architectures?", ["scan", "-q", *tree_option]
    yield (
        "One family: values, where they come from, what is switched off and why",
        ["scan", "-q", "scan", "--arch", "sm100", "-a", "OffsetSize=offset_size::_8", *tree_option],
    )
    yield (
        "What could be tuned: a benchmark's search space",
        ["bench", nearby(resources.folder("cub_headers") / BENCHMARK)],
    )


def _quoted(argument: str) -> str:
    return f"'{argument}'" if any(char in argument for char in " '<>[]|&;(){}*") else argument
