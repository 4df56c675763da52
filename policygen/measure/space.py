"""The variants of a benchmark: counted by arithmetic, told one by one, drawn by a seed.

A space has up to 10^21 of them: nothing here makes a list of all.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from policygen.bindings.variant import variant_parameters
from policygen.errors import InputError
from policygen.model.bench import ParameterRange
from policygen.model.bindings import BenchmarkBinding

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
