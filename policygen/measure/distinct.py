"""Which variants can be, and which of them come to the same policy."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, product
from math import prod

from policygen.bindings.load import types
from policygen.bindings.variant import within_limits
from policygen.errors import InputError
from policygen.measure.meaning import Meaning, Policy, PolicyPart
from policygen.measure.space import SearchSpace, Variant
from policygen.model.labels import as_label

RULES = 3
"""As many rules are told that forbid all variants."""
FIRST, DRAWN, SEED = 256, 4096, 1
"""How many variants are tried until one can be: the first ones, and some from everywhere."""


@dataclass(frozen=True, slots=True)
class DistinctVariant:
    """A policy, and the variants that come to it."""

    label: str
    """The first of them."""
    policy: Policy
    others: tuple[str, ...] = ()
    is_base: bool = False
    """Whether it is what CUB selects by itself."""


@dataclass(frozen=True, slots=True)
class ClassifiedVariants:
    """What became of some variants."""

    variants: int
    distinct: tuple[DistinctVariant, ...]
    """In the order of the variants."""
    refused: Mapping[str, str]
    """Label → why there can be no such policy."""
    dropped: Mapping[str, int]
    """Rule → how many it forbids."""

    @property
    def valid(self) -> int:
        """How many can be, as far as that is known without the compiler."""
        return self.variants - len(self.refused)

    def first(self, count: int) -> "ClassifiedVariants":
        """The same of the first policies alone."""
        return replace(self, distinct=self.distinct[:count])

    @property
    def stands_for(self) -> dict[str, str]:
        """Label → that of the variant which is measured in its place; its own for most."""
        return {label: one.label for one in self.distinct for label in (one.label, *one.others)}


@dataclass(frozen=True, slots=True)
class SpaceCounts:
    """How many variants a space has, and how many of them can be, and differ."""

    variants: int
    valid: int
    distinct: int


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a part comes to: a number that is the same for the same fields, or why nothing."""

    number: int = -1
    fields: Policy = field(default_factory=dict)
    refusal: InputError | None = None


@dataclass(slots=True)
class Classifier:
    """Tells of the variants of a space what they mean; each part of a policy is asked once."""

    space: SearchSpace
    meaning: Meaning
    parts: tuple[PolicyPart, ...] = field(init=False)
    known: list[dict[tuple[int, ...], _Outcome]] = field(init=False)
    numbers: list[dict[tuple[tuple[str, str], ...], int]] = field(init=False)
    first: tuple[dict[str, int], Policy] | None = field(init=False, default=None)
    """A variant that can be, with its policy."""

    def __post_init__(self) -> None:
        self.parts = tuple(self.meaning.parts())
        self.known = [{} for _ in self.parts]
        self.numbers = [{} for _ in self.parts]

    @property
    def possible(self) -> Mapping[str, int]:
        """A variant that can be; refused where none of many can."""
        return self._possible()[0]

    def key(self, variant: Variant) -> tuple[int, ...]:
        """What is the same for variants of the same policy; refused where there can be none."""
        return tuple(outcome.number for outcome in self._outcomes(variant))

    def policy(self, variant: Variant) -> Policy:
        """The whole policy of a variant; refused where there can be none."""
        found = dict(self._possible()[1])
        for outcome in self._outcomes(variant):
            found |= outcome.fields
        return found

    def classify(self, variants: Iterable[Variant] | None = None) -> ClassifiedVariants:
        """Classifies variants, or all of the space; the first of a policy stands for the others."""
        by_label = {as_label(one): one for one in (self.space if variants is None else variants)}
        found: dict[tuple[int, ...], list[str]] = {}
        refused: dict[str, str] = {}
        dropped: Counter[str] = Counter()
        for label, variant in by_label.items():
            try:
                found.setdefault(self.key(variant), []).append(label)
            except InputError as error:
                refused[label] = error.in_line
                dropped[error.remedy or error.message] += 1
        base = self.meaning.base
        distinct = []
        for first, *others in found.values():
            policy = self.policy(by_label[first])
            distinct.append(DistinctVariant(first, policy, tuple(others), policy == base))
        return ClassifiedVariants(len(by_label), tuple(distinct), refused, dict(dropped))

    def draw(self, count: int, seed: int) -> ClassifiedVariants:
        """Draws as many different policies, the same for the same seed; all where there are fewer.

        More variants are drawn until there are enough, or all have been.
        """
        drawn = count
        while True:
            found = self.classify(self.space.sample(drawn, seed))
            if len(found.distinct) >= count or drawn >= self.space.count:
                return found.first(count)
            drawn *= 2

    def counts(self) -> SpaceCounts:
        """Counts the whole space, part by part: it need not be gone through."""
        self._possible()
        free = set(self.space.labels).difference(*(part.labels for part in self.parts))
        valid = prod(len(self.space.ranges[label]) for label in free)
        distinct = 1
        for number in range(len(self.parts)):
            can, differ = self._part_counts(number)
            valid, distinct = valid * can, distinct * differ
        return SpaceCounts(self.space.count, valid, distinct)

    def _part_counts(self, number: int) -> tuple[int, int]:
        part, ranges = self.parts[number], self.space.ranges
        if part.delay and {*part.delay} <= ranges.keys():
            return _delay_counts(*(ranges[label] for label in part.delay))
        can, differ = 0, set()
        for values in product(*(ranges[label] for label in part.labels)):
            outcome = self._outcome(number, values)
            if outcome.refusal is None:
                can += 1
                differ.add(outcome.number)
        return can, len(differ)

    def _possible(self) -> tuple[dict[str, int], Policy]:
        """A variant that can be; refused where none of many can, with what most break."""
        if self.first is None:
            refusals: Counter[str] = Counter()
            for variant in chain(islice(self.space, FIRST), self.space.sample(DRAWN, SEED)):
                try:
                    self.first = variant, self.meaning.policy(variant)
                except InputError as error:
                    refusals[error.in_line] += 1
                    continue
                return self.first
            told = "; ".join(f"{count:,}: {why}" for why, count in refusals.most_common(RULES))
            raise InputError(
                f"no variant of {self.meaning.benchmark.name} can be: of"
                f" {refusals.total():,} that were looked at, {told}"
            )
        return self.first

    def _outcomes(self, variant: Variant) -> Iterator[_Outcome]:
        for number, part in enumerate(self.parts):
            try:
                values = tuple(variant[label] for label in part.labels)
            except KeyError as error:
                raise InputError(f"the variant has no parameter {error}") from error
            outcome = self._outcome(number, values)
            if outcome.refusal is not None:
                raise outcome.refusal
            yield outcome

    def _outcome(self, number: int, values: tuple[int, ...]) -> _Outcome:
        known = self.known[number]
        if values not in known:
            known[values] = self._asked(number, values)
        return known[values]

    def _asked(self, number: int, values: tuple[int, ...]) -> _Outcome:
        """What a part comes to, beside the others of a variant that can be."""
        part, numbers = self.parts[number], self.numbers[number]
        try:
            policy = self.meaning.policy(
                self._possible()[0] | dict(zip(part.labels, values, strict=True))
            )
        except InputError as error:
            return _Outcome(refusal=error)
        fields = {name: policy[name] for name in policy if name in part.fields}
        return _Outcome(numbers.setdefault(tuple(fields.items()), len(numbers)), fields)


def _delay_counts(
    ids: Sequence[int], delays: Sequence[int], latencies: Sequence[int]
) -> tuple[int, int]:
    """How many ways to wait can be, and how many differ: some ignore what others use."""
    known = {one.id: one for one in types().delays}
    possible = {"ns": _possible(delays), "l2w": _possible(latencies)}
    can = sum(number in known for number in ids) * prod(possible.values())
    differ = sum(
        prod(
            count if arg in known[number].args else min(count, 1) for arg, count in possible.items()
        )
        for number in ids
        if number in known
    )
    return can, differ


def _possible(values: Sequence[int]) -> int:
    return sum(_is_possible(value) for value in values)


def _is_possible(value: int) -> bool:
    try:
        return bool(within_limits("delay", str(value)))
    except InputError:
        return False
