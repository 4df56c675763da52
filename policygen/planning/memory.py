"""What was chosen from databases, kept so that a plan can be made again without them."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from policygen.errors import InputError, PolicygenError, together
from policygen.headers.spelling import splice
from policygen.model.plans import Instead, Joint, Named, Plan, PlannedFile
from policygen.model.results import ScoredVariant, ScoredWorkload
from policygen.model.workload import Point
from policygen.planning.decide import ChooseNext, ChooseTogether
from policygen.planning.places import PlacedResult
from policygen.results.choice import Can
from policygen.results.together import Together

Points = tuple[Point, ...]
AnyJoint = TypeVar("AnyJoint", bound=Joint)


class Memory:
    """Chooses variants for several workloads, and remembers which."""

    def __init__(self, choose: ChooseTogether, choose_next: ChooseNext) -> None:
        self._choose, self._choose_next = choose, choose_next
        self._told: dict[Points, Together] = {}
        self._next: dict[Points, Together] = {}

    def __call__(self, cases: Sequence[PlacedResult]) -> Together:
        """The same answer to the same question."""
        points = _points(cases)
        if points not in self._told:
            self._told[points] = self._choose(cases)
        return self._told[points]

    def next_best(self, cases: Sequence[PlacedResult], can: Can) -> Together:
        """The same of those that can be said, as long as they can."""
        points = _points(cases)
        known = self._next.get(points)
        if known is None or not all(can(one.variant) for one in known.variants):
            known = self._next[points] = self._choose_next(cases, can)
        return known

    @property
    def joint(self) -> tuple[Joint, ...]:
        """What was asked and answered, in that order."""
        return tuple(_joint(Joint, *each) for each in self._told.items())

    @property
    def instead(self) -> tuple[Instead, ...]:
        """What is next best, where there is such."""
        return tuple(_joint(Instead, *each) for each in self._next.items() if each[1].variants)


def remembered_next(instead: Iterable[Instead]) -> ChooseNext:
    """Answers as was answered before; what cannot be said any more is no answer."""
    known = {tuple(named.point for named in one.workloads): one for one in instead}

    def choose(cases: Sequence[PlacedResult], can: Can) -> Together:
        one = known.get(_points(cases))
        if one is None or len(one.variants) != len(cases):
            return Together((), "the plan knows no other variant")
        if not all(can(variant.variant) for variant in one.variants):
            return Together((), "the plan's other variant cannot be said")
        return Together(one.variants, one.reason)

    return choose


def remembered(joint: Iterable[Joint]) -> ChooseTogether:
    """Answers as was answered before."""
    known = {tuple(named.point for named in one.workloads): one for one in joint}

    def choose(cases: Sequence[PlacedResult]) -> Together:
        one = known.get(_points(cases))
        if one is None or len(one.variants) not in {0, len(cases)}:
            raise InputError("the plan does not say which variant serves all of them")
        return Together(one.variants, one.reason)

    return choose


def chosen_alone(scored: ScoredWorkload) -> ScoredWorkload:
    """A workload's results with the variant that was chosen, without all others."""
    choice = scored.choice
    label = choice.variant if choice else None
    return scored.model_copy(
        update={
            "choice": choice.model_copy(update={"rejected": ()}) if choice else None,
            "reasoning": None,
            "variants": tuple(_scores(v) for v in scored.variants if v.variant == label),
        }
    )


def _joint(kind: type[AnyJoint], points: Points, told: Together) -> AnyJoint:
    return kind(
        workloads=tuple(Named(benchmark=b, workload=dict(w)) for b, w in points),
        variants=tuple(map(_scores, told.variants)),
        reason=told.reason,
    )


def _scores(variant: ScoredVariant) -> ScoredVariant:
    names = ("variant", "score", "min", "mean", "max")
    return ScoredVariant(**{name: getattr(variant, name) for name in names})


def _points(cases: Sequence[PlacedResult]) -> Points:
    return tuple(case.measurement.point for case in cases)


# The headers that a plan changes: what they hold, and what they are to hold.


def planned_file(path: str, edits: int, before: bytes, after: bytes) -> PlannedFile:
    """A header with the digests of what it holds and is to hold."""
    return PlannedFile(
        path=path,
        edits=edits,
        before=hashlib.sha256(before).hexdigest(),
        after=hashlib.sha256(after).hexdigest(),
    )


def check_tree(plan: Plan, data: Mapping[str, bytes]) -> None:
    """An error where headers are not those that the plan was made for."""
    errors: list[PolicygenError] = []
    for file in plan.files:
        before = data.get(file.path)
        if before is None:
            words = f"the plan changes {file.path}, which none of its results is for"
            errors.append(InputError(words, "The plan was changed; make it again."))
        elif hashlib.sha256(before).hexdigest() != file.before:
            words = f"{file.path} is not what the plan was made for"
            remedy = "Make the plan again, or name its tree with --cub."
            errors.append(InputError(words, remedy))
    if errors:
        raise together(errors)


def changed_headers(plan: Plan, data: Mapping[str, bytes]) -> dict[str, bytes]:
    """The headers after a plan that was made for them."""
    return {
        file.path: splice(
            file.path, data[file.path], [edit for edit in plan.edits if edit.path == file.path]
        )
        for file in plan.files
    }
