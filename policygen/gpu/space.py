"""The variants of a benchmark: counted by arithmetic, told one by one, drawn by a seed.

A space has up to 10^21 of them: nothing here makes a list of all.
"""

import random
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, product
from math import prod
from typing import Protocol

from policygen.bindings.load import axis_type, is_constant, types
from policygen.bindings.variants import variant_parameters, within_limits
from policygen.bindings.words import archs, words
from policygen.errors import InputError
from policygen.model.benchmarks import ParameterRange
from policygen.model.bindings import BenchmarkBinding, MemberRule
from policygen.model.workload import Point, as_label

Variant = Mapping[str, int]
"""Parameter → value, in the order of labels."""


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """What the parameters of a benchmark are searched over."""

    benchmark: BenchmarkBinding
    given: tuple[ParameterRange, ...]
    only: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Parameter → its values, rising, where they are not all of its range."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What the parameters are called, in the order of variant labels."""
        return tuple(one.label for one in self.given)

    @property
    def ranges(self) -> dict[str, Sequence[int]]:
        """The values of each parameter."""
        return {one.label: self.only.get(one.label, one.values) for one in self.given}

    @property
    def macros(self) -> dict[str, str]:
        """Parameter → what benchmark sources call it, where one was read."""
        return {one.label: one.macro for one in self.given if one.macro}

    @property
    def count(self) -> int:
        """How many variants there are, base not counted."""
        return prod(len(values) for values in self.ranges.values())

    def at(self, index: int) -> dict[str, int]:
        """The variant at a place in the order of the space: the last parameter varies first."""
        if not 0 <= index < self.count:
            raise IndexError(index)
        found = {}
        for label, values in reversed(self.ranges.items()):
            index, place = divmod(index, len(values))
            found[label] = values[place]
        return {label: found[label] for label in self.labels}

    def __iter__(self) -> Iterator[dict[str, int]]:
        """All variants, one after the other."""
        labels = self.labels
        for values in product(*self.ranges.values()):
            yield dict(zip(labels, values, strict=True))

    def sample(self, count: int, seed: int) -> list[dict[str, int]]:
        """Draws different variants, the same ones for the same seed; all where there are fewer."""
        total, draw = self.count, random.Random(seed)  # noqa: S311  it keeps no secret
        if count >= total:
            return list(self)
        if count * 2 > total:
            return [self.at(index) for index in draw.sample(range(total), count)]
        chosen: dict[int, None] = {}
        while len(chosen) < count:  # what is drawn twice is rare
            chosen[draw.randrange(total)] = None
        return [self.at(index) for index in chosen]

    def variant(self, label: str) -> dict[str, int]:
        """The values that a label says, in the order of labels; refused where there is no such."""
        found = variant_parameters(self.benchmark, label, self.given)
        if lacking := [name for name in self.labels if name not in found]:
            raise InputError(
                f"{label} says nothing of {', '.join(lacking)}",
                f"{self.benchmark.name} has the parameters {', '.join(self.labels)}",
            )
        return {name: found[name] for name in self.labels}


def space_of(benchmark: BenchmarkBinding, given: Sequence[ParameterRange] = ()) -> SearchSpace:
    """The space that is given, of a source or a search space's file, else that of the bindings."""
    if not benchmark.parameters:
        raise InputError(f"{benchmark.name} has no search space: there are no variants of it")
    if given:
        if unknown := [one.label for one in given if one.label not in benchmark.parameters]:
            raise InputError(
                f"{benchmark.name} has no parameter {', '.join(unknown)}",
                f"It has: {', '.join(benchmark.parameters)}",
            )
        return SearchSpace(benchmark, tuple(given))
    ranges = ((label, benchmark.values(label)) for label in benchmark.parameters)
    return SearchSpace(
        benchmark,
        tuple(
            ParameterRange(macro="", label=label, start=r.start, end=r.stop - 1, step=r.step)
            for label, r in ranges
        ),
    )


RULES = 3
"""As many rules are told that forbid all variants."""
FIRST, DRAWN, SEED = 256, 4096, 1
"""How many variants are tried until one can be: the first ones, and some from everywhere."""
Policy = Mapping[str, str]
"""Field → value, spelled as in C++."""


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


@dataclass(frozen=True, slots=True)
class PolicyPart:
    """Parameters that decide some fields of a policy, and nothing else does."""

    labels: tuple[str, ...]
    fields: frozenset[str]
    delay: tuple[str, str, str] | None = None
    """Where it is the way to wait for a tile before, and no more: its id, delay and latency."""


class Meaning(Protocol):
    """A workload on an architecture, and what variants make of its policy."""

    @property
    def point(self) -> Point:
        """The workload."""

    @property
    def arch(self) -> str:
        """The architecture."""

    @property
    def benchmark(self) -> BenchmarkBinding:
        """What was read of it, as the tree has it."""

    @property
    def base(self) -> Policy:
        """What CUB selects by itself."""

    def policy(self, variant: Variant) -> Policy:
        """All fields, with those of a variant; refused where there can be no such policy."""

    def parts(self) -> Sequence[PolicyPart]:
        """The parts of the policy; a parameter that is in none of them decides nothing."""


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


# Which variants can be, and which of them come to the same policy.


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


# What a variant of a benchmark means for a workload: the policy that CUB gets, and its parts.
#
# A policy falls into parts that have no parameter in common. What a part comes to is asked once
# for
# each combination of its own parameters, so that a space of 10^9 variants needs thousands of
# answers.


def labels_of(rule: MemberRule) -> frozenset[str]:
    """The parameters that a rule looks at."""
    return rule.parameters | ({rule.times} if isinstance(rule.times, str) else set())


def joined(
    lots: Iterable[tuple[Collection[str], Collection[str], MemberRule | None]],
) -> list[PolicyPart]:
    """Parts of what belongs together: parameters, the fields that they decide, and by which rule.

    Lots that share a parameter are one part; their order is that of the first parameter.
    """
    groups: list[tuple[dict[str, None], set[str], list[MemberRule | None]]] = []
    for labels, fields, rule in lots:
        mine = [group for group in groups if not group[0].keys().isdisjoint(labels)]
        rest = [group for group in groups if group not in mine]
        names = dict.fromkeys(name for group in mine for name in group[0])
        names |= dict.fromkeys(sorted(labels))
        told = {name for group in mine for name in group[1]} | {*fields}
        rules = [one for group in mine for one in group[2]] + [rule]
        groups = [*rest, (names, told, rules)] if names else rest
    return [
        PolicyPart(tuple(names), frozenset(told), _delay(rules)) for names, told, rules in groups
    ]


def _delay(rules: Sequence[MemberRule | None]) -> tuple[str, str, str] | None:
    return rules[0].delay if len(rules) == 1 and rules[0] is not None else None


@dataclass(frozen=True, slots=True)
class Tile:
    """The fields of a policy that say how much of its input a block has in shared memory."""

    exchange: str
    """How it is loaded or stored: some ways keep the whole tile there."""
    threads: str
    items: str
    element: int
    """Bytes."""

    @property
    def fields(self) -> tuple[str, str, str]:
        """All of them."""
        return self.exchange, self.threads, self.items


# Whether a policy's tile fits into shared memory, where that is certain without the compiler.


def is_static(site: str) -> bool:
    """Whether the kernels of a site have no other place for a tile."""
    return site in words().tiles.static


def tiles(
    site: str, fields: Iterable[str], elements: Mapping[str, int], least: int
) -> Iterator[Tile]:
    """The tiles of a policy; none of a site whose kernels have another place for large ones.

    `elements` has by the field of items the bytes of an element, as far as they are known; others
    have so many at least.
    """
    if not is_static(site):
        return
    fields = frozenset(fields)
    for path in sorted(fields):
        scope, dot, name = path.rpartition(".")
        if name in words().tiles.algorithms:
            threads = _beside(f"{scope}{dot}", words().members.threads, fields)
            items = _beside(f"{scope}{dot}", words().members.items, fields)
            if threads and items and (element := elements.get(items, least)):
                yield Tile(path, threads, items, element)


def element_bytes(site: str, values: Mapping[str, str], version: str) -> int:
    """The bytes of an element by the types of a workload; 0 where that is not known."""
    names = (values[axis] for axis in words().tiles.static.get(site, ()) if axis in values)
    known = (axis_type(name, version).size for name in names if not is_constant(name))
    return max((size for size in known if size is not None), default=0)


def _beside(scope: str, names: tuple[str, ...], fields: Container[str]) -> str | None:
    return next((f"{scope}{name}" for name in names if f"{scope}{name}" in fields), None)


def check_fits(tile: Tile, policy: Mapping[str, str], arch: str) -> None:
    """Refuses a policy whose tile is larger than what a block of the architecture can declare."""
    facts = archs().get(arch)
    how = policy[tile.exchange].rpartition("::")[2]
    if facts is None or how not in words().tiles.exchanges:
        return
    threads, items = int(policy[tile.threads]), int(policy[tile.items])
    if (size := threads * items * tile.element) > facts.static:
        raise InputError(
            f"{threads} threads x {items} items x {tile.element} bytes = {size:,} bytes, which"
            f" {how} keeps in shared memory",
            f"A block of {arch} has {facts.static:,} bytes of shared memory.",
        )
