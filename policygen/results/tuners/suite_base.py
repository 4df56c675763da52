"""Which configuration of a workload is base: what ran by default, what a tree has, or `--base`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from policygen.errors import InputError
from policygen.model.labels import BASE, as_label
from policygen.results.tuners.numbered import (
    NumberedParameter,
    NumberedSpace,
    parse_base,
    spelled_alike,
)
from policygen.results.tuners.points import BaseFrom, TunedPoint

Current = Callable[[str, Mapping[str, str], str], Mapping[str, str] | None]
"""The values by parameter of the entry that a benchmark's workload has now on an architecture."""
NEAR = 0.05
"""As far as items that went through two configurations on the same input are apart, at most."""
UNSAID = "nothing says which configuration is in use now"


def knows_nothing(benchmark: str, workload: Mapping[str, str], arch: str) -> None:
    """No tree is at hand."""


@dataclass(frozen=True, slots=True)
class FoundBase:
    """Base of a workload."""

    label: str
    """Of its values; `base` where they are not known."""
    origin: BaseFrom

    def renamed(self, label: str) -> str:
        """How a database calls what has a label."""
        return BASE if self.origin != "default" and label == self.label else label


@dataclass(frozen=True, slots=True)
class AskedBase:
    """What is known of base besides what files say."""

    entry: Mapping[str, str] | None
    """What the tree has."""
    option: str


def find_base(points: Sequence[TunedPoint], space: NumberedSpace, asked: AskedBase) -> FoundBase:
    """Base of a workload, or an InputError that says why there is none."""
    reasons: list[str] = []
    entry = _label_of(asked.entry, space) if asked.entry is not None else None
    measured = {one.label for one in points if one.failure is None}
    defaults = [one for one in points if one.label == BASE]
    if BASE in measured:
        return FoundBase(entry or BASE, "default")
    if defaults and (failure := defaults[0].failure):
        reasons.append(f"default_config has no time: {failure.reason}")
    if entry in measured and entry is not None:
        return FoundBase(entry, "tree")
    if asked.entry is not None:
        told = ", ".join(f"{name}={value}" for name, value in asked.entry.items())
        reasons.append(f"what is in use now was not measured: {told}")
    if asked.option:
        try:
            label = parse_base(asked.option, space)
        except InputError as error:
            reasons.append(error.message)
        else:
            if label in measured:
                return FoundBase(label, "option")
            reasons.append(f"--base {asked.option} was not measured")
    raise InputError("; ".join(reasons) or UNSAID)


def _label_of(entry: Mapping[str, str], space: NumberedSpace) -> str | None:
    """The configuration that an entry is; none where it is none of those that were tuned."""
    numbers: dict[str, int] = {}
    for one in space.parameters:
        if one.name in entry:
            number = _number(one, entry[one.name])
        else:
            number = next(iter(one.texts)) if len(one.texts) == 1 else None
        if number is None:
            return None
        numbers[one.name] = number
    return as_label(numbers) if numbers else None


def _number(one: NumberedParameter, text: str) -> int | None:
    """A word may stand there with fewer or more namespaces before it."""
    near = [number for known, number in one.numbers.items() if spelled_alike(known, text)]
    return near[0] if len(near) == 1 else None


def check_work(points: Sequence[TunedPoint]) -> None:
    """Refuses base that went through other input than its variants did, on one size."""
    base = next((one.work for one in points if one.label == BASE), None)
    works = [one.work for one in points if one.label != BASE and one.work is not None]
    if base is None or not works:
        return
    usual = median(works)
    if abs(base / usual - 1) > NEAR:
        raise InputError(
            f"base went through {base:,.0f} items in a time, and configurations through"
            f" {usual:,.0f}: not the same input"
        )
