"""Which families and entries of a scan a user asked for."""

import re
from collections.abc import Mapping, Set

from policygen.bindings.words import words
from policygen.model.arch import arch_and_gpu
from policygen.model.tuning import Entry, Family, PolicyChain, TuningHeader


def algorithm(header: str) -> str:
    """`tuning_radix_sort.cuh` tunes `radix_sort`."""
    return header.removeprefix("tuning_").partition(".")[0]


def select_families(
    headers: tuple[TuningHeader, ...],
    pattern: re.Pattern[str],
    archs: Set[str],
    args: Mapping[str, frozenset[str]],
    *,
    selectors: bool = False,
) -> tuple[Family, ...]:
    """The families that match, with those entries that have the asked arguments.

    Of a branch those are facts that it asks for: `key_size == 1`.
    """
    return tuple(
        family.model_copy(update={"entries": entries})
        for header in headers
        for family in (*header.families, *(header.selectors if selectors else ()))
        if (not archs or archs & {family.arch, arch_and_gpu(family.arch)[0]})
        and matches(pattern, family)
        and (entries := tuple(e for e in family.entries if _has(family, e, args)))
    )


def matches(pattern: re.Pattern[str], owner: Family | PolicyChain) -> bool:
    """Whether the algorithm, its benchmark or the qualified name begins with a match."""
    name = algorithm(owner.header)
    last = owner.name if isinstance(owner, Family) else owner.hub
    return any(
        pattern.match(text)
        for text in (
            name,
            f"{words().benchmarks.prefix}{name}",
            owner.header,
            f"{owner.namespace}::{last}",
        )
    )


def _has(family: Family, entry: Entry, args: Mapping[str, frozenset[str]]) -> bool:
    """Whether an entry's arguments are the asked ones; a primary template has none to ask."""
    if not args:
        return True
    if entry.kind == "branch":
        return all(
            any(f"{name} == {value}" in entry.args for value in values)
            for name, values in args.items()
        )
    names = [p.label for p in family.parameters]
    if len(names) != len(entry.args):
        # A disabled entry may have the argument list of an older family.
        return all(not values.isdisjoint(entry.args) for values in args.values())
    given = dict(zip(names, entry.args, strict=True))
    return all(given.get(name) in values for name, values in args.items())
