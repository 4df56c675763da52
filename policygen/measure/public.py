"""Workloads whose variants are policies given to the algorithm itself: CUB 3.5 and later."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.words import words
from policygen.dialects.selectors.aggregates import (
    Field,
    leaves,
    policy_structs,
    read_aggregate,
)
from policygen.dialects.selectors.functions import Struct
from policygen.dialects.user.arguments import Arguments, arguments
from policygen.dialects.user.overlay import as_policy, overlay
from policygen.dialects.user.public import SINCE, PublicSelector, field_rules, selector_for
from policygen.dialects.user.question import question
from policygen.errors import InputError
from policygen.measure.meaning import Policy, PolicyPart, joined, labels_of
from policygen.measure.memory import Tile, check_fits, element_bytes, tiles
from policygen.measure.space import Variant
from policygen.model.bindings import BenchmarkBinding, MemberRule
from policygen.model.cub import Cub
from policygen.model.policies import Policies, Whole
from policygen.model.versions import numbers
from policygen.model.workload import Point
from policygen.proof.policies import ask_policies
from policygen.proof.probe import AskedTree
from policygen.proof.toolchain import Toolchain
from policygen.steps import Progress
from policygen.tree import tuning_headers


@dataclass(frozen=True, slots=True)
class PublicWorkload:
    """One workload on an architecture; its variants need no other header than the tree's."""

    selector: PublicSelector
    fields: tuple[Field, ...]
    """Of the policy that a variant's selector returns."""
    whole: Whole
    """What CUB's own selector returns, and what the compiler makes of the roles."""
    point: Point
    arch: str
    arguments: Arguments
    rules: Mapping[str, MemberRule]
    tiles: tuple[Tile, ...]

    @property
    def benchmark(self) -> BenchmarkBinding:
        """What was read of it, as the tree has it."""
        return self.selector.benchmark

    @property
    def base(self) -> Policy:
        """What CUB selects by itself."""
        return as_policy(self.fields, self.whole.fields)

    def policy(self, variant: Variant) -> Policy:
        """All fields, with those of a variant; refused where there can be no such policy."""
        found = overlay(self.selector, self.fields, self.whole, self.benchmark, variant)
        for tile in self.tiles:
            check_fits(tile, found, self.arch)
        return found

    def parts(self) -> Sequence[PolicyPart]:
        """The parts of the policy; a parameter that is in none of them decides nothing."""
        return joined(self._lots())

    def _lots(self) -> Iterator[tuple[Collection[str], Collection[str], MemberRule | None]]:
        for path, rule in self.rules.items():
            yield labels_of(rule), self._leaves(path), rule
            if words().members.counts_threads(path) and rule.parameter in self.benchmark.units:
                scope, dot, _ = path.rpartition(".")
                items = [f"{scope}{dot}{name}" for name in words().members.items]
                yield self._labels([path, *items]), (), None  # threads are scaled by their items
        for tile in self.tiles:
            yield self._labels(tile.fields), (), None

    def _labels(self, paths: Collection[str]) -> frozenset[str]:
        rules = (self.rules[path] for path in paths if path in self.rules)
        return frozenset(label for rule in rules for label in labels_of(rule))

    def _leaves(self, path: str) -> frozenset[str]:
        """The fields that a rule fills, and those that take their values from them."""
        known = [leaf for leaf, _ in leaves(self.fields)]
        found = {leaf for leaf in known if f"{leaf}.".startswith(f"{path}.")}
        for to, source in self.selector.selector.copies.items():
            found |= {
                leaf
                for leaf in known
                if f"{leaf}.".startswith(f"{to}.") and f"{source}{leaf.removeprefix(to)}" in found
            }
        return frozenset(found)


def public_workloads(
    one: PublicSelector, structs: Mapping[str, Struct], told: Policies, arch: str, version: str
) -> dict[Point, PublicWorkload]:
    """All workloads of a benchmark, by what the compiler told of CUB's own selector."""
    fields, rules = read_aggregate(structs, one.selector.policy), field_rules(one)
    found = {}
    for (point, on), whole in told.items():
        if on == arch and point[0] == one.benchmark.name:
            known = arguments(one, dict(point[1]), whole, version)
            least = element_bytes(one.site.name, dict(point[1]), version)
            elements = _elements(one, rules, whole)
            kept = tuple(tiles(one.site.name, whole.fields, elements, least))
            found[point] = PublicWorkload(one, fields, whole, point, arch, known, rules, kept)
    return found


def _elements(one: PublicSelector, rules: Mapping[str, MemberRule], whole: Whole) -> dict[str, int]:
    """The bytes of an element, by the field of the items that are scaled by it."""
    units = {path: one.benchmark.units.get(rule.parameter or "") for path, rule in rules.items()}
    return {
        path: whole.sizes[unit.of]
        for path, unit in units.items()
        if unit is not None and unit.of in whole.sizes
    }


def ask_public(
    cub: Cub,
    benchmarks: Sequence[BenchmarkBinding],
    arch: str,
    toolchain: Toolchain,
    *,
    progress: Progress | None = None,
) -> dict[Point, PublicWorkload]:
    """All workloads of benchmarks on an architecture; the compiler is asked once for each of them.

    Refused where CUB keeps a policy to itself.
    """
    version = cub.bindings
    chosen = [selector_for(benchmark, version) for benchmark in benchmarks]
    structs = policy_structs(tuning_headers(cub)[0].parent)
    tree = AskedTree(version, cub.include_folders, {})
    asked = [question(one, structs) for one in chosen]
    told = ask_policies(asked, tree, toolchain, archs=(arch,), progress=progress)
    found: dict[Point, PublicWorkload] = {}
    for one in chosen:
        found |= public_workloads(one, structs, told, arch, version)
    return found


def takes_policies(cub: Cub, benchmark: BenchmarkBinding) -> bool:
    """Whether variants can be given to the algorithm; else they are changes of its header."""
    if numbers(cub.version)[:2] < SINCE:
        return False
    try:
        selector_for(benchmark, cub.bindings)
    except InputError:
        return False
    return True
