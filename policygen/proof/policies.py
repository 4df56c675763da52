"""Asks the compiler for whole policies: of CUB's own selectors, and of a user's."""

from collections.abc import Sequence

from policygen.bindings.archs import ladder
from policygen.errors import Problems
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding, Site
from policygen.model.policies import Policies, Question, Whole
from policygen.proof.answers import spelled
from policygen.proof.probe import Asked, AskedTree, probe, workloads
from policygen.proof.toolchain import Toolchain
from policygen.steps import Progress


def ask_policies(
    questions: Sequence[Question],
    tree: AskedTree,
    toolchain: Toolchain,
    *,
    archs: Sequence[str] | None = None,
    std: int = 17,
    progress: Progress | None = None,
) -> Policies:
    """Asks what selectors return for all workloads of their benchmarks."""
    ordered = tuple(sorted(archs or ladder(), key=arch_number))
    asked = [
        Asked(_site(question), workloads(question.benchmark, tree.version), ordered)
        for question in questions
    ]
    answered = probe(asked, tree, toolchain, progress=progress, std=std)
    if answered.errors:
        raise Problems(answered.errors)
    found = {}
    for question, each in zip(questions, asked, strict=True):
        for workload, arch in each.spots:
            row = answered.of(workload, arch)
            assert row is not None
            found[workload.point, arch] = _whole(question, row)
    return found


def _site(question: Question) -> Site:
    """Puts the selector in the place of CUB's, and all that is asked in that of its values."""
    site, benchmark = question.site, question.benchmark
    values = {field: f"selected.{field}" for field in question.fields}
    values |= {role: role for role in question.roles if role in benchmark.constants}
    values |= {f"sizeof {role}": f"int{{sizeof({role})}}" for role in question.sized}
    return site.model_copy(
        update={
            "hub": question.selector,
            "includes": (*site.includes, *question.includes),
            "policy": "",
            "setup": (),
            "values": values,
            "types": {role: role for role in _types(question.roles, benchmark)},
            "delay": None,
            "untuned": None,
        }
    )


def _types(roles: Sequence[str], benchmark: BenchmarkBinding) -> list[str]:
    return [role for role in roles if role not in benchmark.constants]


def _whole(question: Question, row: Sequence[str]) -> Whole:
    constants = [role for role in question.roles if role in question.benchmark.constants]
    names = [*question.fields, *constants, *question.sized]
    texts = [spelled(answer) for answer in row[1:]]  # behind the policy as a whole
    fields = dict(zip(question.fields, texts, strict=False))
    values = dict(zip(constants, texts[len(question.fields) :], strict=False))
    start = len(question.fields) + len(constants)
    sizes = dict(zip(question.sized, map(int, texts[start : len(names)]), strict=True))
    types = _types(question.roles, question.benchmark)
    values |= dict(zip(types, texts[len(names) :], strict=False))
    return Whole(fields, {role: values[role] for role in question.roles}, sizes)
