"""Which workloads are tuned for which architectures, and what results could fill."""

from collections.abc import Sequence
from dataclasses import replace

from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles, parse_gpus
from policygen.app.reading import read_tree
from policygen.app.resolve import Errors, ask_values, resolve_workloads
from policygen.app.session import Session
from policygen.app.trees import other_tree
from policygen.model.coverage import CellStatus, Compared, Coverage
from policygen.proof.coverage import cells, shares, turned


def audit_coverage(
    session: Session,
    asked: Filter,
    *,
    compare: str | None = None,
    files: Sequence[str] = (),
    gpus: Sequence[str] = (),
) -> tuple[Coverage, Errors]:
    """Asks which workloads are tuned; since another tree, and what databases could fill.

    `gpus` says of which architecture a GPU is that nobody knows: `B400=sm110`.
    """
    now, errors = resolve_workloads(session, asked)
    found = cells(now)
    document = Coverage(
        cub=now.cub,
        toolchain=now.toolchain,
        archs=now.archs,
        shares=shares(found),
        cells=found,
        remarks=now.remarks,
        unresolved=now.unresolved,
        problems=now.problems,
    )
    if compare is not None:
        other, same = other_tree(session, compare), replace(asked, archs=now.archs)
        then, more = ask_values(read_tree(other, asked.headers), same, progress=session.progress)
        errors += more
        compared = Compared(cub=other, turned=turned(cells(then), document.cells))
        document = document.model_copy(update={"compared": compared})
    if files:
        from policygen.app.filling import filled_by  # the planner, which most do not need

        where = replace(asked, headers=(), archs=())
        results = ResultFiles(files, where=where, gpus=parse_gpus(gpus))
        document = filled_by(session, document, results)
    return document, errors


def under(document: Coverage, least: float | None, *, inherited: bool) -> tuple[str, ...]:
    """On which architectures less than a share is tuned, in words."""
    counted: tuple[CellStatus, ...] = ("tuned", "inherited") if inherited else ("tuned",)
    shares = {arch: share.percent(counted) for arch, share in document.totals.items()}
    words = " or ".join(counted)
    return tuple(
        f"{arch}: {share:.1f} % {words}, less than the {least:g} % of --fail-under"
        for arch, share in shares.items()
        if least is not None and share < least
    )
