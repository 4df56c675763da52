"""Remembers what was chosen from databases, so that a plan can be remade without them."""

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
from policygen.results.choice import IsWritable
from policygen.results.together import Together

Points = tuple[Point, ...]
AnyJoint = TypeVar("AnyJoint", bound=Joint)


class Memory:
    """Chooses variants for several workloads, and remembers the choices."""

    def __init__(self, choose: ChooseTogether, choose_next: ChooseNext) -> None:
        self._choose, self._choose_next = choose, choose_next
        self._choices: dict[Points, Together] = {}
        self._next_choices: dict[Points, Together] = {}

    def __call__(self, cases: Sequence[PlacedResult]) -> Together:
        """Returns the same choice whenever the same workloads are given."""
        points = _points(cases)
        if points not in self._choices:
            self._choices[points] = self._choose(cases)
        return self._choices[points]

    def next_best(self, cases: Sequence[PlacedResult], can: IsWritable) -> Together:
        """Returns the next best choice; chooses again if a remembered one cannot be expressed."""
        points = _points(cases)
        choice = self._next_choices.get(points)
        if choice is None or not all(can(variant.variant) for variant in choice.variants):
            choice = self._next_choices[points] = self._choose_next(cases, can)
        return choice

    @property
    def joint(self) -> tuple[Joint, ...]:
        """The choices, in the order in which they were made."""
        return tuple(_joint(Joint, *item) for item in self._choices.items())

    @property
    def instead(self) -> tuple[Instead, ...]:
        """The next best choices, where there are any."""
        return tuple(
            _joint(Instead, *item) for item in self._next_choices.items() if item[1].variants
        )


def remembered_next(instead: Iterable[Instead]) -> ChooseNext:
    """Repeats a plan's next best choices, unless an entry can no longer express them."""
    instead_by_points = {
        tuple(named.point for named in record.workloads): record for record in instead
    }

    def choose(cases: Sequence[PlacedResult], can: IsWritable) -> Together:
        record = instead_by_points.get(_points(cases))
        if record is None or len(record.variants) != len(cases):
            return Together((), "the plan knows no other variant")
        if not all(can(variant.variant) for variant in record.variants):
            return Together((), "the plan's other variant cannot be expressed")
        return Together(record.variants, record.reason)

    return choose


def remembered(joint: Iterable[Joint]) -> ChooseTogether:
    """Repeats a plan's choices."""
    joint_by_points = {tuple(named.point for named in record.workloads): record for record in joint}

    def choose(cases: Sequence[PlacedResult]) -> Together:
        record = joint_by_points.get(_points(cases))
        if record is None or len(record.variants) not in {0, len(cases)}:
            raise InputError("the plan does not name the variant that serves all of them")
        return Together(record.variants, record.reason)

    return choose


def chosen_alone(scored: ScoredWorkload) -> ScoredWorkload:
    """Returns a workload's results with only the chosen variant."""
    choice = scored.choice
    label = choice.variant if choice else None
    return scored.model_copy(
        update={
            "choice": choice.model_copy(update={"rejected": ()}) if choice else None,
            "reasoning": None,
            "variants": tuple(
                _scores(variant) for variant in scored.variants if variant.variant == label
            ),
        }
    )


def _joint(kind: type[AnyJoint], points: Points, choice: Together) -> AnyJoint:
    return kind(
        workloads=tuple(map(Named.of, points)),
        variants=tuple(map(_scores, choice.variants)),
        reason=choice.reason,
    )


def _scores(variant: ScoredVariant) -> ScoredVariant:
    names = ("variant", "score", "min", "mean", "max")
    return ScoredVariant(**{name: getattr(variant, name) for name in names})


def _points(cases: Sequence[PlacedResult]) -> Points:
    return tuple(case.measurement.point for case in cases)


# The headers that a plan changes, before and after.


def planned_file(path: str, edits: int, before: bytes, after: bytes) -> PlannedFile:
    """Describes a changed header by its digests before and after."""
    return PlannedFile(
        path=path,
        edits=edits,
        before=hashlib.sha256(before).hexdigest(),
        after=hashlib.sha256(after).hexdigest(),
    )


def check_tree(plan: Plan, data: Mapping[str, bytes]) -> None:
    """Raises if headers are not those that the plan was made for."""
    errors: list[PolicygenError] = []
    for file in plan.files:
        before = data.get(file.path)
        if before is None:
            words = f"the plan changes {file.path}, but has no results for it"
            errors.append(InputError(words, "The plan was changed; make it again."))
        elif hashlib.sha256(before).hexdigest() != file.before:
            words = f"{file.path} is not the file that the plan was made for"
            remedy = "Make the plan again, or name its tree with --cub."
            errors.append(InputError(words, remedy))
    if errors:
        raise together(errors)


def changed_headers(plan: Plan, data: Mapping[str, bytes]) -> dict[str, bytes]:
    """Applies a plan to the headers it was made for."""
    return {
        file.path: splice(
            file.path, data[file.path], [edit for edit in plan.edits if edit.path == file.path]
        )
        for file in plan.files
    }
