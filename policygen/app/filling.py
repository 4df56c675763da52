"""What results could fill where nothing is tuned."""

from policygen.app.inputs import ResultFiles
from policygen.app.plan import Options, plan_ranked
from policygen.app.ranking import ranked
from policygen.app.rules import choose_rules
from policygen.app.session import Session
from policygen.errors import InputError
from policygen.model.coverage import Coverage
from policygen.planning.measured import arch_of, gpu_name, say_arch, told_gpus
from policygen.proof.coverage import fillable, unfilled


def filled_by(session: Session, document: Coverage, results: ResultFiles) -> Coverage:
    """The same with what plans for the GPUs of databases would write where nothing is tuned.

    They are proved as those of `plan` and `apply` are: what these reject is no promise.
    """
    rules = choose_rules(prefer_simple=False)
    with ranked(results, rules, session.note) as found:
        gpus = {one.gpu: arch_of(one) for one in found.top.workloads}
        archs = [arch for arch in document.archs if arch in gpus.values()]
        if not archs:
            unknown = [gpu_name(gpu) for gpu, of in sorted(gpus.items()) if of is None]
            remedy = "Name the architecture that was measured: --arch sm90"
            raise InputError(
                f"the results are from {told_gpus(gpus)}, and asked is for"
                f" {', '.join(document.archs)}",
                say_arch(unknown[0], document.archs[0]) if unknown else remedy,
            )
        wanted = [Options(arch=arch, rules=rules) for arch in archs]
        plans = [plan_ranked(session, found, one).plan for one in wanted]
    told = {
        "fillable": fillable(document.cells, plans),
        "unfilled": unfilled(document.cells, plans),
    }
    return document.model_copy(update=told)
