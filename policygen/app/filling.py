"""What results could fill where nothing is tuned."""

from collections.abc import Sequence

from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles
from policygen.app.plan import Options, plan_ranked
from policygen.app.ranking import ranked
from policygen.app.rules import choose_rules
from policygen.app.session import Session
from policygen.bindings.archs import gpu_arch
from policygen.errors import InputError
from policygen.model.coverage import Coverage, Fillable
from policygen.proof.coverage import fillable


def fillable_by(
    session: Session, document: Coverage, files: Sequence[str], where: Filter
) -> tuple[Fillable, ...]:
    """What plans for the GPUs of databases would write where nothing is tuned."""
    rules = choose_rules(prefer_simple=False)
    with ranked(ResultFiles(files, where=where), rules, session.note) as results:
        gpus = {one.gpu: gpu_arch(one.gpu) for one in results.top.workloads}
        archs = [arch for arch in document.archs if arch in gpus.values()]
        if not archs:
            told = ", ".join(f"{gpu} ({of or 'not known'})" for gpu, of in sorted(gpus.items()))
            raise InputError(
                f"the results are from {told}, and asked is for {', '.join(document.archs)}",
                "Name the architecture that was measured: --arch sm90",
            )
        wanted = [Options(arch=arch, rules=rules) for arch in archs]
        plans = [plan_ranked(session, results, one, prove=False).plan for one in wanted]
    return fillable(document.cells, plans)
