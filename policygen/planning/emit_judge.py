"""Whether a header does what it says: what was tuned gets its policy, all else what CUB has."""

from collections.abc import Mapping, Sequence

from policygen.dialects.selectors.aggregates import leaves
from policygen.dialects.user.overlay import as_policy
from policygen.dialects.user.public import PublicSelector
from policygen.dialects.user.tuned import TunedSelector
from policygen.model.arch import arch_number
from policygen.model.emit import EmitProof
from policygen.model.policies import Policies, Question
from policygen.model.workload import in_words

Wrong = list[str]


def questions(tuned: Sequence[TunedSelector], namespace: str, include: str) -> list[Question]:
    """The same workloads again, of the header's selectors."""
    return [
        Question(
            one.site,
            one.benchmark,
            f"::{namespace}::{each.name}{_arguments(one)}",
            tuple(path for path, _ in leaves(each.fields)),
            includes=(include,),
        )
        for each in tuned
        for one in each.serves
    ]


def _arguments(one: PublicSelector) -> str:
    return f"<{', '.join(one.roles)}>" if one.roles else ""


def judge(tuned: Sequence[TunedSelector], told: Policies, arch: str) -> tuple[EmitProof, Wrong]:
    """What the compiler says of the header's selectors, and what of that should be otherwise."""
    wrong: Wrong = []
    changed, compared = 0, 0
    archs: set[str] = set()
    for each in tuned:
        wanted = each.wanted
        for (point, on), whole in each.policies.items():
            own = as_policy(each.fields, whole.fields)
            key = each.arguments[point].key
            expected = wanted.get(key, own) if on == arch else own
            got = told[point, on].fields
            compared += 1
            archs.add(on)
            changed += got != own
            if got != expected:
                wrong.append(
                    f"{in_words(point[0], dict(point[1]))} on {on}: {_differs(got, expected)}"
                )
    ordered = tuple(sorted(archs, key=arch_number))
    return EmitProof(archs=ordered, compared=compared, changed=changed), wrong


def _differs(got: Mapping[str, str], expected: Mapping[str, str]) -> str:
    return ", ".join(
        f"{path} is {got.get(path)} and not {value}"
        for path, value in expected.items()
        if got.get(path) != value
    )
