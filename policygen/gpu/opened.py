"""Workloads that are ready to compile: the meaning of their variants, and how each one is built."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from policygen.bindings.own_kernels import KernelMaker
from policygen.bindings.variants import value_name
from policygen.bindings.words import words
from policygen.errors import InputError, PolicygenError
from policygen.gpu.compiling import Candidate, WorkloadToCompile
from policygen.gpu.space import (
    Policy,
    PolicyGroup,
    SearchSpace,
    Tile,
    Variant,
    check_fits,
    check_vectors,
    element_bytes,
    is_static,
    labels_of,
    tiles,
)
from policygen.gpu.units import WorkloadRun, inputs_text, variants_text
from policygen.headers.dialects import Drafter, NotWritableError
from policygen.headers.protocol import EntryWrite, FamilySpot
from policygen.headers.selectors.functions import Field, leaves, policy_structs, read_aggregate
from policygen.headers.user.policies import (
    SINCE,
    PublicSelector,
    as_policy,
    field_rules,
    overlay,
    question,
    selector_for,
    with_arguments,
)
from policygen.model.bindings import BenchmarkBinding, MemberRule
from policygen.model.expression import Expression, check_constraints
from policygen.model.own_workload import ELEMENTS, STRATEGY
from policygen.model.selection import Values, Whole
from policygen.model.trees import BoundVersion, Cub, numbers
from policygen.model.tuning import Value, spell
from policygen.model.workload import Point, point_name
from policygen.planning.judge import differs
from policygen.process import threads
from policygen.proof.ask import ask_policies
from policygen.proof.compile import attempt
from policygen.proof.probe import QueriedTree
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import overlay as units_overlay
from policygen.rendering import fill
from policygen.steps import Progress, follow
from policygen.trees import tuning_headers


@dataclass(frozen=True, slots=True)
class Candidates:
    """Variants that compile, variants that cannot be built, and variants equal to the baseline."""

    made: tuple[Candidate, ...]
    refused: Mapping[str, str]
    base: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangedHeaders:
    """The headers of one variant; the headers that are measured are those that would be merged."""

    folders: tuple[str, ...]
    """Include folders before the tree's own; empty if the variant equals CUB's default."""
    values: Values
    """Values that the compiler selects for the workload."""


Select = Callable[[Mapping[str, bytes], Point, str], Values]
"""Returns the values that the compiler selects for a workload on an architecture, given headers."""


@dataclass(frozen=True, slots=True)
class EntryWorkload:
    """A workload on an architecture with the tuning entry, existing or new, that decides it.

    Its variants are changed headers; the workload is verified to get their values.
    """

    spot: FamilySpot
    benchmark: BenchmarkBinding
    point: Point
    arch: str
    version: BoundVersion
    """Version of the bindings for the tree."""
    drafter: Drafter
    select: Select
    progress: Progress | None = None

    @property
    def base(self) -> Policy:
        """The policy that CUB selects by default."""
        return spelled(self.spot.selected.values)

    def policy(self, variant: Variant) -> Policy:
        """Return the full policy for a variant; raise InputError if it is invalid."""
        values = {**self.base, **spelled(self.expected(variant))}
        site, rules = self.spot.site.name, self._rules()
        sizes = element_sizes(self.benchmark, rules, self.spot.selected.sizes)
        for tile in _varied_tiles(site, values, rules, sizes, self.point, self.version):
            check_fits(tile, values, self.arch)
        check_vectors(site, values)
        return values

    def expected(self, variant: Variant) -> dict[str, Value]:
        """Return the policy values that correspond to what the benchmark measures."""
        unsaid = self.spot.unsaid(self.benchmark, variant)
        return {**unsaid, **self.spot.expected(self.spot.members(self.benchmark, variant))}

    def all_headers(
        self, space: SearchSpace, labels: Sequence[str]
    ) -> dict[str, ChangedHeaders | PolicygenError]:
        """Return the headers of each variant, or the error."""
        with threads() as pool:
            make = partial(self.headers, space)
            futures = {pool.submit(attempt, partial(make, label)): label for label in labels}
            follow(futures, PHASE, self.progress)
            return {label: future.result() for future, label in futures.items()}

    def headers(self, space: SearchSpace, label: str) -> ChangedHeaders:
        """Return the headers of a variant; raise InputError if they cannot express it."""
        variant = space.variant(label)
        spot, expected = self.spot, self.expected(variant)
        if not differs(spot.selected.values, expected):
            return ChangedHeaders((), expected)
        changed = self._changed_headers(spot, variant, label)
        selected = self.select(changed, self.point, self.arch)
        unsaid = spot.unsaid(self.benchmark, variant)
        shown = (name for name in unsaid if name in selected)
        unset = {name: selected[name] for name in shown if selected[name] != unsaid[name]}
        if unset and (fuller := spot.saying(self.benchmark, unset)):
            assert isinstance(fuller, FamilySpot), "what says more of an entry is one"
            changed = self._changed_headers(fuller, variant, label)
            selected = self.select(changed, self.point, self.arch)
        if difference := differs(selected, expected):
            raise InputError(
                f"{spot.header} cannot express {label}: the workload gets {difference}"
            )
        folders = tuple(units_overlay(name, data) for name, data in sorted(changed.items()))
        return ChangedHeaders(folders, selected)

    def _changed_headers(
        self, spot: FamilySpot, variant: Mapping[str, int], label: str
    ) -> Mapping[str, bytes]:
        """Return the changed headers by name, exactly as `apply` writes them."""
        content = spot.content(spot.members(self.benchmark, variant), label)
        write = EntryWrite((spot,), content, label, frozenset({self.point}))
        try:
            return self.drafter.drafted([write]).after
        except NotWritableError as error:
            raise InputError(error.reasons[self.point]) from error

    def text(self, run: WorkloadRun, policies: Sequence[Policy | None]) -> str:
        """Render a unit; its variant is what the headers select."""
        return variants_text(run, policies)

    def groups(self) -> Iterator[PolicyGroup]:
        """Yield what is decided together; a parameter in no group has no effect."""
        rules = self._rules()
        for name, rule in rules.items():
            yield labels_of(rule), (name,), rule
        # Thread counts are scaled by their items, and both by shared memory use.
        counts = {*words().members.threads, *words().members.items, self.spot.site.marked}
        if is_static(self.spot.site.name):
            counts |= {*words().tiles.algorithms}
        if self.spot.site.name in words().tiles.shortened:
            counts |= {*words().members.vectors}
        counting_rules = [rule for name, rule in rules.items() if name in counts]
        yield frozenset(label for rule in counting_rules for label in labels_of(rule)), (), None

    def _rules(self) -> dict[str, MemberRule]:
        """Return the rule that fills each value of the policy."""
        rules = {}
        for member, rule in {**self.spot.unsaid_members, **self.spot.binding.members}.items():
            if name := value_name(self.spot.site, member, rule):
                rules[name] = rule
        return rules


def _varied_tiles(
    site: str,
    fields: Iterable[str],
    rules: Mapping[str, MemberRule],
    sizes: Mapping[str, int],
    point: Point,
    version: BoundVersion,
) -> tuple[Tile, ...]:
    """Return the tiles of a policy that variants change."""
    min_bytes = element_bytes(site, dict(point[1]), version)
    policy_tiles = tiles(site, fields, sizes, min_bytes)
    return tuple(tile for tile in policy_tiles if not rules.keys().isdisjoint(tile.fields))


def element_sizes(
    benchmark: BenchmarkBinding, rules: Mapping[str, MemberRule], sizes: Mapping[str, int]
) -> dict[str, int]:
    """Return the element sizes in bytes, by the item counts scaled by them."""
    units = ((path, benchmark.units.get(rule.parameter or "")) for path, rule in rules.items())
    return {path: sizes[unit.of] for path, unit in units if unit and unit.of in sizes}


@dataclass(frozen=True, slots=True)
class KernelWorkload:
    """A size class of a user kernel on an architecture; a policy is its parameter values."""

    maker: KernelMaker
    benchmark: BenchmarkBinding
    point: Point
    arch: str

    @property
    def base(self) -> Policy:
        """The current values of the kernel."""
        return self.maker.values(self.maker.start)

    def policy(self, variant: Variant) -> Policy:
        """Return the C++ values of the parameters; raise InputError if they are invalid."""
        return self.maker.values(variant)

    def groups(self) -> Iterator[PolicyGroup]:
        """Yield one group per parameter; constraints join parameters."""
        yield from (({label}, {label}, None) for label in self.maker.given.every_parameter)
        yield from ((Expression(text).names, (), None) for text in self.maker.given.constraints)

    @property
    def is_alone(self) -> bool:
        """Whether a unit holds only one variant because a macro has one value per unit."""
        return any(parameter.macro for parameter in self.maker.given.every_parameter.values())

    def text(self, run: WorkloadRun, policies: Sequence[Policy | None]) -> str:
        """Render a unit of variants; a policy of None is the current kernel."""
        given = self.maker.given
        variants = [self._variant(index, policy) for index, policy in enumerate(policies)]
        values = {
            "source": given.kernel,
            "header": given.header,
            "macros": {
                parameter.macro: (policies[0] or self.base)[label]
                for label, parameter in given.every_parameter.items()
                if parameter.macro
            },
            "sizes": list(run.binding.sizes),
            "buffers": [
                {"name": name, **buffer.model_dump()}
                for name, buffer in run.binding.buffers.items()
            ],
            "scalars": {name: scalar.model_dump() for name, scalar in given.scalar.items()},
            "arguments": ", ".join(given.arguments),
            "reference": given.reference,
            "traffic": given.traffic and Expression(given.traffic).cpp,
            "elements": ELEMENTS,
            "kinds": sorted({str(variant["memory"]) for variant in variants} - {"device"}),
            "variants": variants,
        }
        return fill(KERNEL, values)

    def _variant(self, number: int, policy: Policy | None) -> dict[str, object]:
        """Return the launch of a variant for the template."""
        values = self.base if policy is None else policy
        ways = self.maker.given.ways
        by_name = {way.name: way for way in ways}
        strategy = by_name[values[STRATEGY]] if STRATEGY in values else ways[0]
        return {
            "number": number,
            "is_base": policy is None,
            "constants": {name: value for name, value in values.items() if name != STRATEGY},
            "function": strategy.function,
            "memory": strategy.memory,
            "block": _cpp(strategy.block),
            "shared": _cpp(strategy.shared),
            "grid": _cpp(strategy.grid),
        }


@dataclass(frozen=True, slots=True)
class PublicWorkload:
    """A workload on an architecture whose variants need no changed headers."""

    selector: PublicSelector
    fields: tuple[Field, ...]
    """Fields of the policy that a variant's selector returns."""
    whole: Whole
    """Policy that CUB's own selector returns, and the compiler's values of the roles."""
    point: Point
    arch: str
    rules: Mapping[str, MemberRule]
    tiles: tuple[Tile, ...]

    @property
    def benchmark(self) -> BenchmarkBinding:
        """The benchmark binding, as the tree has it."""
        return self.selector.benchmark

    @property
    def base(self) -> Policy:
        """The policy that CUB selects by default."""
        return as_policy(self.fields, self.whole.fields)

    def policy(self, variant: Variant) -> Policy:
        """Return all fields with those of a variant; raise InputError if the policy is invalid."""
        check_constraints(self.benchmark.constraints, {**self.whole.sizes, **variant})
        policy = overlay(self.selector, self.fields, self.whole, self.benchmark, variant)
        for tile in self.tiles:
            check_fits(tile, policy, self.arch)
        check_vectors(self.selector.site.name, policy)
        return policy

    def text(self, run: WorkloadRun, policies: Sequence[Policy | None]) -> str:
        """Render a unit of variants; a policy of None is CUB's default."""
        return variants_text(run, policies, self.selector.selector.policy, self.fields)

    def groups(self) -> Iterator[PolicyGroup]:
        """Yield what is decided together; a parameter in no group has no effect."""
        for path, rule in self.rules.items():
            yield labels_of(rule), self._leaves(path), rule
            if words().members.counts_threads(path) and rule.parameter in self.benchmark.units:
                scope, dot, _ = path.rpartition(".")
                items = [f"{scope}{dot}{name}" for name in words().members.items]
                yield self._labels([path, *items]), (), None  # threads are scaled by their items
        for tile in self.tiles:
            yield self._labels(tile.fields), (), None
        for text in self.benchmark.constraints:
            yield Expression(text).names & self.benchmark.parameters.keys(), (), None
        if self.selector.site.name in words().tiles.shortened:
            names = {*words().members.items, *words().members.vectors}
            paths = [path for path in self.rules if path.rpartition(".")[2] in names]
            yield self._labels(paths), (), None

    def _labels(self, paths: Collection[str]) -> frozenset[str]:
        rules = (self.rules[path] for path in paths if path in self.rules)
        return frozenset(label for rule in rules for label in labels_of(rule))

    def _leaves(self, path: str) -> frozenset[str]:
        """Return the fields that a rule fills, and those copied from them."""
        paths = [leaf for leaf, _ in leaves(self.fields)]
        filled = {leaf for leaf in paths if f"{leaf}.".startswith(f"{path}.")}
        for target, source in self.selector.selector.copies.items():
            filled |= {
                leaf
                for leaf in paths
                if f"{leaf}.".startswith(f"{target}.")
                and f"{source}{leaf.removeprefix(target)}" in filled
            }
        return frozenset(filled)


WorkloadMeaning = PublicWorkload | EntryWorkload | KernelWorkload


@dataclass(frozen=True, slots=True)
class OpenedWorkload:
    """A workload on an architecture with its search space and how it runs."""

    meaning: WorkloadMeaning
    space: SearchSpace
    runs: tuple[WorkloadRun, ...]
    """One run per sub-benchmark."""

    @property
    def name(self) -> str:
        """Name in words: `cub.bench.reduce.sum T=I32 OffsetT=I32`."""
        return point_name(self.meaning.point)

    def candidates(self, labels: Sequence[str]) -> Candidates:
        """Return the variants of the labels, writing and verifying headers where needed."""
        made, refused, base = [], {}, []
        for label, outcome in self._outcomes(labels).items():
            if isinstance(outcome, PolicygenError):
                refused[label] = outcome.in_line
            elif outcome is None:
                base.append(label)
            else:
                made.append(outcome)
        return Candidates(tuple(made), refused, tuple(base))

    def _outcomes(self, labels: Sequence[str]) -> dict[str, Candidate | PolicygenError | None]:
        """Return the candidate of each variant, or the error; None for the baseline."""
        if isinstance(self.meaning, EntryWorkload):
            return {
                label: headers
                if isinstance(headers, PolicygenError)
                else (Candidate(label, None, headers.folders) if headers.folders else None)
                for label, headers in self.meaning.all_headers(self.space, labels).items()
            }
        outcomes: dict[str, Candidate | PolicygenError | None] = {}
        for label in labels:
            try:
                policy = self.meaning.policy(self.space.variant(label))
            except InputError as error:
                outcomes[label] = error
            else:
                outcomes[label] = None if policy == self.meaning.base else Candidate(label, policy)
        return outcomes


def to_compile(
    meaning: WorkloadMeaning, run: WorkloadRun, candidates: Sequence[Candidate]
) -> WorkloadToCompile:
    """Return a sub-benchmark with variants to compile."""
    return WorkloadToCompile(
        point_name(meaning.point),
        meaning.arch,
        run.cub.include_folders,
        inputs_text(run),
        lambda batch: meaning.text(run, [candidate.policy for candidate in batch]),
        tuple(candidates),
        alone=isinstance(meaning, KernelWorkload) and meaning.is_alone,
        own=run.cub.own.path if run.cub.own else None,
    )


# Policies for the public API: CUB 3.5 and later


def ask_public(
    cub: Cub,
    benchmarks: Sequence[BenchmarkBinding],
    arch: str,
    toolchain: Toolchain,
    *,
    points: Collection[Point] | None = None,
    progress: Progress | None = None,
) -> dict[Point, PublicWorkload]:
    """Return workloads of benchmarks on an architecture, asking the compiler once for all.

    All workloads are returned, or only those of some points.
    Raises InputError if CUB takes no policy for a benchmark.
    """
    version = cub.bindings
    folder = tuning_headers(cub)[0].parent
    selectors = [
        with_arguments(selector_for(benchmark, version), folder) for benchmark in benchmarks
    ]
    structs = policy_structs(folder)
    tree = QueriedTree(version, cub.include_folders, {})
    questions = [question(selector, structs) for selector in selectors]
    policies = ask_policies(
        questions, tree, toolchain, archs=(arch,), points=points, progress=progress
    )
    workloads: dict[Point, PublicWorkload] = {}
    for selector in selectors:
        fields, rules = read_aggregate(structs, selector.selector.policy), field_rules(selector)
        site = selector.site.name
        for (point, _), whole in policies.items():
            if point[0] == selector.benchmark.name:
                sizes = element_sizes(selector.benchmark, rules, whole.sizes)
                varied = _varied_tiles(site, whole.fields, rules, sizes, point, version)
                meaning = (selector, fields, whole, point, arch, rules, varied)
                workloads[point] = PublicWorkload(*meaning)
    return workloads


def takes_policies(cub: Cub, benchmark: BenchmarkBinding) -> bool:
    """Whether variants are policies for the public API; otherwise they are header changes."""
    if numbers(cub.version)[:2] < SINCE:
        return False
    try:
        selector_for(benchmark, cub.bindings)
    except InputError:
        return False
    return True


KERNEL = "measure/kernel.cu.j2"


# User kernels


def _cpp(text: str | None) -> str:
    assert text is not None, "a strategy has a value that the kernel lacks"
    return Expression(text).cpp


PHASE = "writing headers"


# Header values


def spelled(values: Values) -> dict[str, str]:
    """Spell values in C++."""
    return {name: spell(value) for name, value in values.items()}
