"""Variants of a benchmark: counted by arithmetic, iterated lazily, or drawn by a seed.

A space has up to 10^21 variants, so no function here lists all of them.
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
from policygen.gpu.strategies import Domain, Values
from policygen.model.benchmarks import ParameterRange
from policygen.model.bindings import BenchmarkBinding, MemberRule
from policygen.model.trees import BoundVersion
from policygen.model.workload import as_label

Variant = Mapping[str, int]
"""Parameter → value, in label order."""


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The parameter space of a benchmark."""

    benchmark: BenchmarkBinding
    given: tuple[ParameterRange, ...]
    only: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Parameter → its ascending values, where they are not its whole range."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Parameter names in the order of variant labels."""
        return tuple(parameter.label for parameter in self.given)

    @property
    def ranges(self) -> dict[str, Sequence[int]]:
        """Values of each parameter."""
        return {
            parameter.label: self.only.get(parameter.label, parameter.values)
            for parameter in self.given
        }

    @property
    def count(self) -> int:
        """Number of variants, without the baseline."""
        return Domain(self.ranges).count

    def at(self, index: int) -> dict[str, int]:
        """Return the variant at an index of the space; the last parameter varies fastest."""
        if not 0 <= index < self.count:
            raise IndexError(index)
        domain = Domain(self.ranges)
        return domain.named(domain.at(index))

    def __iter__(self) -> Iterator[dict[str, int]]:
        """Iterate over all variants."""
        labels = self.labels
        for values in product(*self.ranges.values()):
            yield dict(zip(labels, values, strict=True))

    def sample(self, count: int, seed: int) -> list[dict[str, int]]:
        """Draw distinct variants, reproducible by seed; all variants if there are fewer."""
        total, draw = self.count, random.Random(seed)  # noqa: S311  it keeps no secret
        if count >= total:
            return list(self)
        if count * 2 > total:
            return [self.at(index) for index in draw.sample(range(total), count)]
        chosen: dict[int, None] = {}
        while len(chosen) < count:  # duplicates are rare
            chosen[draw.randrange(total)] = None
        return [self.at(index) for index in chosen]

    def variant(self, label: str) -> dict[str, int]:
        """Parse a label into values in label order; raise InputError if it is not in the space."""
        values = variant_parameters(self.benchmark, label, self.given)
        if missing := [name for name in self.labels if name not in values]:
            raise InputError(
                f"{label} does not name {', '.join(missing)}",
                f"{self.benchmark.name} has the parameters {', '.join(self.labels)}",
            )
        return {name: values[name] for name in self.labels}

    def values(self, label: str) -> Values | None:
        """Parse a label; None if it is not in the space."""
        try:
            return tuple(self.variant(label).values())
        except InputError:
            return None

    def label(self, values: Values) -> str:
        """Return the variant label that databases use."""
        return as_label(dict(zip(self.labels, values, strict=True)))


def space_of(benchmark: BenchmarkBinding, given: Sequence[ParameterRange] = ()) -> SearchSpace:
    """Return the space of the given ranges, or of the bindings if there are none."""
    if not benchmark.parameters:
        raise InputError(f"{benchmark.name} has no search space and therefore no variants")
    if given:
        labels = [parameter.label for parameter in given]
        if unknown := [label for label in labels if label not in benchmark.parameters]:
            raise InputError(
                f"{benchmark.name} has no parameter {', '.join(unknown)}",
                f"It has: {', '.join(benchmark.parameters)}",
            )
        return SearchSpace(benchmark, tuple(given))
    ranges = []
    for label in benchmark.parameters:
        values = benchmark.values(label)
        span = {"start": values.start, "end": values.stop - 1, "step": values.step}
        ranges.append(ParameterRange(macro="", label=label, **span))
    return SearchSpace(benchmark, tuple(ranges))


RULES = 3
"""Maximum number of reported rules that forbid all variants."""
FIRST, DRAWN, SEED = 256, 4096, 1
"""How many variants to try until a valid one appears: the first ones and random ones."""
Policy = Mapping[str, str]
"""Field → value, spelled as in C++."""
Key = tuple[int, ...]
"""What variants with the same policy share."""


@dataclass(frozen=True, slots=True)
class DistinctVariant:
    """A policy and the variants that map to it."""

    label: str
    """The first of these variants."""
    policy: Policy
    others: tuple[str, ...] = ()
    is_base: bool = False
    """Whether it is what CUB selects by default."""


@dataclass(frozen=True, slots=True)
class ClassifiedVariants:
    """Variants grouped by policy."""

    variants: int
    distinct: tuple[DistinctVariant, ...]
    """In variant order."""
    refused: Mapping[str, str]
    """Label → reason why the policy is invalid."""
    dropped: Mapping[str, int]
    """Rule → number of variants it forbids."""

    @property
    def valid(self) -> int:
        """Number of valid variants, as far as can be determined without the compiler."""
        return self.variants - len(self.refused)

    @property
    def stands_for(self) -> dict[str, str]:
        """Label → label of the variant that is measured in its place."""
        return {
            label: variant.label
            for variant in self.distinct
            for label in (variant.label, *variant.others)
        }


@dataclass(frozen=True, slots=True)
class SpaceCounts:
    """Number of variants, of valid ones, and of distinct ones."""

    variants: int
    valid: int
    distinct: int


_Outcome = tuple[int, Policy] | InputError
"""Result of a policy part: a number that identifies its fields, and these; or the refusal."""


@dataclass(frozen=True, slots=True)
class PolicyPart:
    """Parameters that alone decide some fields of a policy."""

    labels: tuple[str, ...]
    fields: frozenset[str]
    delay: tuple[str, str, str] | None = None
    """Parameters of a delay constructor (id, delay, latency), if the part is nothing else."""


PolicyGroup = tuple[Collection[str], Collection[str], MemberRule | None]
"""Parameters, the fields that they decide, and the rule of these."""


class Meaning(Protocol):
    """A workload on an architecture that maps variants to policies."""

    @property
    def benchmark(self) -> BenchmarkBinding:
        """The benchmark binding, as the tree has it."""

    @property
    def base(self) -> Policy:
        """The policy that CUB selects by default."""

    def policy(self, variant: Variant) -> Policy:
        """Return all fields with those of a variant; raise InputError if the policy is invalid."""

    def groups(self) -> Iterable[PolicyGroup]:
        """Return what is decided together; a parameter in no group has no effect."""


@dataclass(slots=True)
class Classifier:
    """Maps variants to policies; the outcome of each policy part is computed once."""

    space: SearchSpace
    meaning: Meaning
    parts: tuple[PolicyPart, ...] = field(init=False)
    known: list[dict[Values, _Outcome]] = field(init=False)
    numbers: list[dict[tuple[tuple[str, str], ...], int]] = field(init=False)
    first: tuple[dict[str, int], Policy] | None = field(init=False, default=None)
    """A valid variant with its policy."""
    searched: dict[Values, Key | None] = field(init=False, default_factory=dict)
    are_base: dict[Key, bool] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.parts = tuple(joined(self.meaning.groups()))
        self.known = [{} for _ in self.parts]
        self.numbers = [{} for _ in self.parts]

    def possible(self) -> tuple[dict[str, int], Policy]:
        """Return a valid variant with its policy; raise InputError if none of many is valid."""
        if self.first is not None:
            return self.first
        refusals: Counter[str] = Counter()
        for variant in chain(islice(self.space, FIRST), self.space.sample(DRAWN, SEED)):
            try:
                self.first = variant, self.meaning.policy(variant)
            except InputError as error:
                refusals[error.in_line] += 1
                continue
            return self.first
        summary = "; ".join(f"{count:,}: {reason}" for reason, count in refusals.most_common(RULES))
        raise InputError(
            f"{self.meaning.benchmark.name} has no valid variant: of {refusals.total():,} checked,"
            f" {summary}"
        )

    def key(self, variant: Variant) -> Key:
        """Return a key shared by variants with the same policy; raise InputError if invalid."""
        return tuple(number for number, _ in self._outcomes(variant))

    def policy(self, variant: Variant) -> Policy:
        """Return the whole policy of a variant; raise InputError if it is invalid."""
        fields = dict(self.possible()[1])
        for _, part_fields in self._outcomes(variant):
            fields |= part_fields
        return fields

    @property
    def domain(self) -> Domain:
        """The space as strategies see it: without variants that are invalid or the baseline."""
        return Domain(self.space.ranges, self._search_key)

    def _search_key(self, values: Values) -> Key | None:
        """Return a key shared by variants with the same policy; None if invalid or the baseline."""
        if values not in self.searched:
            variant = dict(zip(self.space.labels, values, strict=True))
            try:
                key = self.key(variant)
            except InputError:
                self.searched[values] = None
                return None
            if key not in self.are_base:
                self.are_base[key] = self.policy(variant) == self.meaning.base
            self.searched[values] = None if self.are_base[key] else key
        return self.searched[values]

    def classify(self, variants: Iterable[Variant] | None = None) -> ClassifiedVariants:
        """Group variants, or the whole space, by policy; the first variant represents a group."""
        by_label = {
            as_label(variant): variant for variant in (self.space if variants is None else variants)
        }
        labels_by_key: dict[Key, list[str]] = {}
        refused: dict[str, str] = {}
        dropped: Counter[str] = Counter()
        for label, variant in by_label.items():
            try:
                labels_by_key.setdefault(self.key(variant), []).append(label)
            except InputError as error:
                refused[label] = error.in_line
                dropped[error.remedy or error.message] += 1
        base = self.meaning.base
        distinct = []
        for first, *duplicates in labels_by_key.values():
            policy = self.policy(by_label[first])
            distinct.append(DistinctVariant(first, policy, tuple(duplicates), policy == base))
        return ClassifiedVariants(len(by_label), tuple(distinct), refused, dict(dropped))

    def draw(self, count: int, seed: int) -> ClassifiedVariants:
        """Draw `count` distinct policies, reproducible by seed; all if there are fewer.

        The sample of variants is doubled until it has enough policies or covers the space.
        """
        sample_size = count
        while True:
            classified = self.classify(self.space.sample(sample_size, seed))
            if len(classified.distinct) >= count or sample_size >= self.space.count:
                return replace(classified, distinct=classified.distinct[:count])
            sample_size *= 2

    def counts(self) -> SpaceCounts:
        """Count the whole space part by part, without iterating over it."""
        self.possible()
        free = set(self.space.labels).difference(*(part.labels for part in self.parts))
        valid = prod(len(self.space.ranges[label]) for label in free)
        distinct = 1
        for index in range(len(self.parts)):
            part_valid, part_distinct = self._part_counts(index)
            valid, distinct = valid * part_valid, distinct * part_distinct
        return SpaceCounts(self.space.count, valid, distinct)

    def _part_counts(self, index: int) -> tuple[int, int]:
        part, ranges = self.parts[index], self.space.ranges
        if part.delay and {*part.delay} <= ranges.keys():
            return _delay_counts(*(ranges[label] for label in part.delay))
        valid, distinct = 0, set()
        for values in product(*(ranges[label] for label in part.labels)):
            outcome = self._outcome(index, values)
            if not isinstance(outcome, InputError):
                valid += 1
                distinct.add(outcome[0])
        return valid, len(distinct)

    def _outcomes(self, variant: Variant) -> Iterator[tuple[int, Policy]]:
        """Yield the outcome of each part; raise InputError if one refuses the variant."""
        for index, part in enumerate(self.parts):
            try:
                values = tuple(variant[label] for label in part.labels)
            except KeyError as error:
                raise InputError(f"the variant has no parameter {error}") from error
            outcome = self._outcome(index, values)
            if isinstance(outcome, InputError):
                raise outcome
            yield outcome

    def _outcome(self, index: int, values: Values) -> _Outcome:
        """Evaluate a part once, with the other parameters taken from a valid variant."""
        part, numbers, outcomes = self.parts[index], self.numbers[index], self.known[index]
        if values not in outcomes:
            variant = self.possible()[0] | dict(zip(part.labels, values, strict=True))
            try:
                policy = self.meaning.policy(variant)
            except InputError as error:
                outcomes[values] = error
            else:
                fields = {name: policy[name] for name in policy if name in part.fields}
                number = numbers.setdefault(tuple(fields.items()), len(numbers))
                outcomes[values] = number, fields
        return outcomes[values]


# The variant that is nearest to a policy


def nearest_values(classifier: Classifier, policy: Policy) -> tuple[Values, bool]:
    """Return the variant nearest to a policy, and whether it matches exactly.

    Parameters are changed one at a time until none brings the variant nearer.
    """
    space = classifier.space
    best = dict(classifier.possible()[0])
    distance = _distance(classifier, best, policy)
    assert distance is not None
    better = True
    while better and distance > 0:
        better = False
        for label, values in space.ranges.items():
            for value in values:
                candidate = {**best, label: value}
                candidate_distance = _distance(classifier, candidate, policy)
                if candidate_distance is not None and candidate_distance < distance:
                    best, distance, better = candidate, candidate_distance, True
    return tuple(best[label] for label in space.labels), distance == 0


def _distance(classifier: Classifier, variant: Mapping[str, int], target: Policy) -> float | None:
    """Distance between policies: each differing field counts at most one, numbers by nearness."""
    try:
        policy = classifier.policy(variant)
    except InputError:
        return None
    differing = (name for name, value in target.items() if policy.get(name) != value)
    return sum(_value_distance(policy.get(name), target[name]) for name in differing)


def _value_distance(first: str | None, second: str) -> float:
    if first is None or not (first.lstrip("-").isdigit() and second.lstrip("-").isdigit()):
        return 1.0
    first_value, second_value = int(first), int(second)
    return abs(first_value - second_value) / (abs(first_value) + abs(second_value))


# Counts of delays


def _delay_counts(
    ids: Sequence[int], delays: Sequence[int], latencies: Sequence[int]
) -> tuple[int, int]:
    """Count the valid and the distinct delays; some constructors ignore arguments."""
    delays_by_id = {delay.id: delay for delay in types().delays}
    possible = {
        arg: sum(map(_is_possible, values)) for arg, values in (("ns", delays), ("l2w", latencies))
    }
    constructors = [delays_by_id[number] for number in ids if number in delays_by_id]
    distinct = sum(
        prod(count if arg in delay.args else min(count, 1) for arg, count in possible.items())
        for delay in constructors
    )
    return len(constructors) * prod(possible.values()), distinct


def _is_possible(value: int) -> bool:
    try:
        return bool(within_limits("delay", str(value)))
    except InputError:
        return False


def check_vectors(site: str, policy: Mapping[str, str]) -> None:
    """Raise InputError if a thread has too few items for its vectors, and still loads vectors.

    Some kernels shorten the length of a vector to the items of a thread, but not its type.
    """
    if site not in words().tiles.shortened:
        return
    for path in policy:
        scope, dot, name = path.rpartition(".")
        if name not in words().members.vectors:
            continue
        beside = _beside(f"{scope}{dot}", words().members.items, policy)
        if beside and 1 < (items := int(policy[beside])) < (vector := int(policy[path])):
            raise InputError(
                f"{items} items of a thread are loaded as vectors of {vector}, which is misaligned"
            )


# Parts of a policy
#
# Parts share no parameters. Each part is evaluated once per combination of its own parameters, so
# a space of 10^9 variants needs only thousands of evaluations.


def labels_of(rule: MemberRule) -> frozenset[str]:
    """Return the parameters that a rule uses."""
    return rule.parameters | ({rule.times} if isinstance(rule.times, str) else set())


def joined(groups_in: Iterable[PolicyGroup]) -> list[PolicyPart]:
    """Join groups of parameters, their fields, and their rule into policy parts.

    Groups that share a parameter form one part; parts are ordered by their first parameter.
    """
    groups: list[tuple[dict[str, None], set[str], list[MemberRule | None]]] = []
    for labels, fields, rule in groups_in:
        shared = [group for group in groups if not group[0].keys().isdisjoint(labels)]
        unrelated = [group for group in groups if group not in shared]
        names = dict.fromkeys(name for group in shared for name in group[0])
        names |= dict.fromkeys(sorted(labels))
        all_fields = {name for group in shared for name in group[1]} | {*fields}
        rules = [group_rule for group in shared for group_rule in group[2]] + [rule]
        groups = [*unrelated, (names, all_fields, rules)] if names else unrelated
    parts = []
    for names, all_fields, rules in groups:
        delay = rules[0].delay if len(rules) == 1 and rules[0] is not None else None
        parts.append(PolicyPart(tuple(names), frozenset(all_fields), delay))
    return parts


@dataclass(frozen=True, slots=True)
class Tile:
    """The policy fields that determine how much input a block keeps in shared memory."""

    exchange: str
    """Load or store algorithm; some algorithms keep the whole tile in shared memory."""
    threads: str
    items: str
    element: int
    """Element size in bytes."""
    is_paired: bool = False
    """Whether the elements are pairs, kept whatever the algorithm, and one more than the items."""

    @property
    def fields(self) -> tuple[str, str, str]:
        """All three fields."""
        return self.exchange, self.threads, self.items


# Shared memory limits that are certain without the compiler


def is_static(site: str) -> bool:
    """Whether the kernels of a site can keep a tile only in shared memory."""
    return site in words().tiles.static or site in words().tiles.paired


def tiles(
    site: str, fields: Iterable[str], elements: Mapping[str, int], min_bytes: int
) -> Iterator[Tile]:
    """Yield the tiles of a policy; none if the kernels have another place for large tiles.

    `elements` maps item fields to known element sizes in bytes; other elements have at least
    `min_bytes`.
    """
    if not is_static(site):
        return
    fields = frozenset(fields)
    for path in sorted(fields):
        scope, dot, name = path.rpartition(".")
        if name in words().tiles.algorithms:
            threads = _beside(f"{scope}{dot}", words().members.threads, fields)
            items = _beside(f"{scope}{dot}", words().members.items, fields)
            if threads and items and (element := elements.get(items, min_bytes)):
                yield Tile(path, threads, items, element, site in words().tiles.paired)


def element_bytes(site: str, values: Mapping[str, str], version: BoundVersion) -> int:
    """Return the element size in bytes from the types of a workload; 0 if unknown."""
    kinds = words().tiles
    axes = (*kinds.static.get(site, ()), *kinds.paired.get(site, ()))
    names = [values[axis] for axis in axes if axis in values]
    sizes = [axis_type(name, version).size for name in names if not is_constant(name)]
    bytes_of_types = [size for size in sizes if size is not None]
    if site not in kinds.paired:
        return max(bytes_of_types, default=0)
    # The larger element aligns both: by the largest power of two that divides its size.
    alignment = max((size & -size for size in bytes_of_types), default=1)
    return -(-sum(bytes_of_types) // alignment) * alignment


def _beside(scope: str, names: tuple[str, ...], fields: Container[str]) -> str | None:
    return next((f"{scope}{name}" for name in names if f"{scope}{name}" in fields), None)


def check_fits(tile: Tile, policy: Mapping[str, str], arch: str) -> None:
    """Raise InputError if a tile exceeds the static shared memory of a block."""
    facts = archs().get(arch)
    threads, items = int(policy[tile.threads]), int(policy[tile.items])
    exchange = policy[tile.exchange].rpartition("::")[2]
    in_shared = tile.is_paired or exchange in words().tiles.exchanges | words().tiles.scatters
    size = (threads * items + tile.is_paired) * tile.element
    if facts is None or not in_shared or size <= facts.static:
        return
    if tile.is_paired:
        raise InputError(
            f"{threads} threads x {items} items and 1 more x {tile.element} bytes = {size:,} bytes",
            f"Above {facts.static:,} bytes CUB launches another tile than it compiles.",
        )
    raise InputError(
        f"{threads} threads x {items} items x {tile.element} bytes = {size:,} bytes, which"
        f" {exchange} keeps in shared memory",
        f"A block of {arch} has {facts.static:,} bytes of shared memory.",
    )
