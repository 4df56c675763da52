"""Which workloads are tuned for which architectures, and what results could fill."""

from collections.abc import Sequence
from dataclasses import replace

from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles
from policygen.app.options import choose_options, choose_rules
from policygen.app.plan import plan_ranked
from policygen.app.ranking import ranked
from policygen.app.reading import read_tree
from policygen.app.resolve import Errors, ask_values, resolve_workloads
from policygen.app.session import Session
from policygen.app.trees import other_tree
from policygen.bindings.archs import gpu_arch
from policygen.errors import InputError
from policygen.model.coverage import CellStatus, Compared, Coverage, Fillable
from policygen.proof.coverage import cells, fillable, shares, turned


def audit_coverage(
    session: Session, asked: Filter, *, compare: str | None = None, files: Sequence[str] = ()
) -> tuple[Coverage, Errors]:
    """Asks which workloads are tuned; since another tree, and what databases could fill."""
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
        given = ResultFiles(files, where=Filter(regex=asked.regex, axes=asked.axes))
        could = _fillable(session, document, given)
        document = document.model_copy(update={"fillable": could})
    return document, errors


def _fillable(session: Session, document: Coverage, given: ResultFiles) -> tuple[Fillable, ...]:
    """What plans for the GPUs of databases would write where nothing is tuned."""
    rules = choose_rules(prefer_simple=False)
    with ranked(given, rules, session.note) as results:
        gpus = {one.gpu: gpu_arch(one.gpu) for one in results.top.workloads}
        archs = [arch for arch in document.archs if arch in gpus.values()]
        if not archs:
            told = ", ".join(f"{gpu} ({of or 'not known'})" for gpu, of in sorted(gpus.items()))
            raise InputError(
                f"the results are from {told}, and asked is for {', '.join(document.archs)}",
                "Name the architecture that was measured: --arch sm90",
            )
        wanted = [choose_options(arch, rules) for arch in archs]
        plans = [plan_ranked(session, results, one, prove=False).plan for one in wanted]
    return fillable(document.cells, plans)


def is_under(document: Coverage, least: float | None, *, inherited: bool) -> bool:
    """Whether less than a share is tuned on any architecture."""
    counted: tuple[CellStatus, ...] = ("tuned", "inherited") if inherited else ("tuned",)
    return least is not None and any(
        share.percent(counted) < least for share in document.totals.values()
    )
