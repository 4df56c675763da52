"""`--workload`: a workload of one's own in place of CUB's benchmarks."""

from pathlib import Path

import click

from policygen.app.filters import Filter
from policygen.app.own_workloads import with_workload
from policygen.app.session import Session

workload_option = click.option(
    "--workload",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A workload of one's own, as `tune` takes it, in place of -R.",
)


def with_own(session: Session, path: Path | None, where: Filter) -> tuple[Session, Filter]:
    """What a command works on until it ends: a workload of one's own, where a file is named."""
    return click.get_current_context().with_resource(with_workload(session, path, where))
