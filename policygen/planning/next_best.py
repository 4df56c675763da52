"""The best variant that an entry can say, where it cannot say the best one of all."""

from collections.abc import Callable, Mapping, Sequence

from policygen.errors import InputError
from policygen.model.plan import NextBest
from policygen.model.results import ScoredVariant
from policygen.planning.measured import numbers
from policygen.planning.places import PlacedResult
from policygen.results.choose import Can
from policygen.results.together import Together

ChooseNext = Callable[[Sequence[PlacedResult], Can], Together]
"""The best variant for workloads of one entry among those that can be said, by the same rules."""
Members = Mapping[str, str]


def none_other(cases: Sequence[PlacedResult], can: Can) -> Together:
    """Where no results are at hand to look through."""
    del cases, can
    return Together((), "no other variant is known")


def said(cases: Sequence[PlacedResult], labels: Sequence[str]) -> Members:
    """What variants mean for the one entry of some workloads; refused where it cannot say them."""
    found: list[Members] = []
    for case, label in zip(cases, labels, strict=True):
        try:
            found.append(case.members(label))
        except InputError as error:
            if case.spot.alone:
                raise
            where = f"{short(case, cases)}: " if len(cases) > 1 else ""
            raise InputError(f"{where}{label}: {error.message}", error.remedy) from error
    if any(other != found[0] for other in found):
        raise InputError("one variant means different values for each of them")
    return found[0]


def next_best(
    cases: Sequence[PlacedResult], best: Sequence[ScoredVariant], choose: ChooseNext
) -> Together | None:
    """What is best without all that the entry cannot say; none where the best has no meaning.

    A label that is none of its benchmark is no result, and says nothing for those beside it.
    """
    try:
        for case, one in zip(cases, best, strict=True):
            case.measurement.parameters(one.variant)
    except InputError:
        return None
    found = choose(cases, lambda label: can_say(cases, label))
    return found if found.variants else None


def can_say(cases: Sequence[PlacedResult], label: str) -> bool:
    """Whether the entry can say a variant, and says the same for all of the workloads."""
    try:
        said(cases, [label] * len(cases))
    except InputError:
        return False
    return True


def in_place_of(best: ScoredVariant, other: ScoredVariant) -> NextBest:
    """The one variant in place of the other."""
    return NextBest(
        variant=other.variant, scores=numbers(other), best=best.variant, best_score=best.score
    )


def written(one: NextBest, why: str, claim: str) -> str:
    """Why it is written; `claim` is what the rules say of it, where nothing better can be."""
    own = claim.removeprefix("best ")
    return then(why, f"next best that can be said, {_cost(one)}; {own}")


def proposed(one: NextBest) -> str:
    """That it can be written, and what it costs."""
    return f"next best that can be said: {one.variant}, {_cost(one)}; --next-best takes it"


def then(reason: str, more: str) -> str:
    """A reason, and more behind it."""
    return f"{reason.removesuffix('.')}; {more}"


def short(case: PlacedResult, among: Sequence[PlacedResult]) -> str:
    """A workload in words, without the benchmark where all are of one."""
    name = case.measurement.name
    alone = len({one.measurement.benchmark.name for one in among}) == 1
    return name.removeprefix(f"{case.measurement.benchmark.name} ") if alone else name


def _cost(one: NextBest) -> str:
    share = one.costs
    more = "more" if share < 0 else "less"
    return f"{one.scores[0]:.6f} instead of {one.best_score:.6f}, {abs(share):.1%} {more}"
