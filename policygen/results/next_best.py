"""What the rules choose of the variants that can be said, where the best one cannot."""

from collections.abc import Sequence
from pathlib import Path

from policygen.errors import InputError
from policygen.model.results import Measured, Rules, ScoredWorkload
from policygen.results.choose import Can, held_back
from policygen.results.declared import DeclaredAxes
from policygen.results.together import Together, choose_together, only
from policygen.results.top import rank


def choose_next(
    paths: Sequence[Path],
    wanted: Sequence[Measured],
    can: Can,
    rules: Rules,
    declared: DeclaredAxes | None = None,
    confirm_with: Sequence[Path] = (),
) -> Together:
    """The choice for one workload, or for those that share an entry, without what cannot be said.

    It is asked for where the rules chose something already: luck does not find more by that.
    """
    if len(wanted) > 1:
        return choose_together(paths, wanted, rules, declared, confirm_with, can)
    (one,) = wanted
    found = rank(
        paths,
        pattern=only(wanted),
        axes={axis: frozenset({value}) for axis, value in one.workload.items()},
        top=rules.candidates + 1,
        rules=rules,
        declared=declared,
        confirm_with=confirm_with,
        can=can,
    )
    return _chosen(held_back(_same(found.workloads, one), rules))


def _chosen(one: ScoredWorkload) -> Together:
    choice = one.choice
    assert choice is not None, "samples were looked at"
    chosen = next((v for v in one.variants if v.variant == choice.variant), None)
    if chosen is None:
        return Together((), choice.reason)
    return Together((chosen.model_copy(update={"score": choice.score}),), choice.reason)


def _same(workloads: Sequence[ScoredWorkload], wanted: Measured) -> ScoredWorkload:
    """The one that was ranked."""
    for one in workloads:
        if _identity(one) == _identity(wanted):
            return one
    raise InputError(
        f"{wanted.database}: {wanted.algorithm} does not have what was ranked a moment ago",
        "Plan when nothing writes to the database.",
    )


def _identity(one: Measured) -> tuple[object, ...]:
    return one.algorithm, one.workload, one.gpu, one.ctk, one.cccl, one.databases
