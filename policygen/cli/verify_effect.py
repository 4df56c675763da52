"""`policygen verify-effect`: what was applied is selected, and nothing else changed."""

from functools import partial
from pathlib import Path

import click

from policygen.app.effect import verify_effect as verify
from policygen.cli.options import arch_option, cub_option, output_options, store_option
from policygen.cli.output import Output
from policygen.cli.start import start
from policygen.report.views.plan import print_effect


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
