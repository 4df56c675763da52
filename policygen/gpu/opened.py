"""Workloads that are ready to be compiled: what variants mean for them, and how each is made."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.bindings.own_kernels import KernelMaker
from policygen.bindings.variants import value_name
from policygen.bindings.words import words
from policygen.errors import InputError, PolicygenError
from policygen.gpu.compiling import Candidate, WorkloadToCompile
from policygen.gpu.space import (
    Policy,
    PolicyPart,
    SearchSpace,
    Tile,
    Variant,
    check_fits,
    element_bytes,
    is_static,
    joined,
    labels_of,
    tiles,
)
from policygen.gpu.units import PublicPolicy, WorkloadRun, inputs_text, variants_text
from policygen.headers.protocol import EntryWrite, FamilySpot
from policygen.headers.selectors.functions import (
    Field,
    Struct,
    leaves,
    policy_structs,
    read_aggregate,
)
from policygen.headers.user.policies import (
    SINCE,
    PublicSelector,
    as_policy,
    field_rules,
    overlay,
    question,
    selector_for,
)
from policygen.headers.user.selectors import Arguments, arguments
from policygen.model.bindings import BenchmarkBinding, MemberRule
from policygen.model.expression import Expression
from policygen.model.own_workload import ELEMENTS, STRATEGY, KernelStrategy
from policygen.model.selection import Values
from policygen.model.trees import Cub, numbers
from policygen.model.tuning import Policies, Value, Whole, spell
from policygen.model.workload import Point, in_words
from policygen.planning.judge import differs
from policygen.planning.plan import NotWritableError, Planner
from policygen.process import threads
from policygen.proof.ask import ask_policies
from policygen.proof.probe import AskedTree
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import overlay as units_overlay
from policygen.rendering import fill
from policygen.steps import Progress, follow
from policygen.trees import tuning_headers


@dataclass(frozen=True, slots=True)
class Candidates:
    """Variants that can be compiled, those that cannot be made, and those that are base."""

    made: tuple[Candidate, ...]
    refused: Mapping[str, str]
    base: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntryWorkload:
    """One workload on an architecture, and the entry that decides it, or one to be added."""

    spot: FamilySpot
    benchmark: BenchmarkBinding
    point: Point
    arch: str
    version: str
    """Of the bindings that hold for the tree."""

    @property
    def base(self) -> Policy:
        """What CUB selects by itself."""
        return spelled(self.spot.told.values)

    def policy(self, variant: Variant) -> Policy:
        """All that its policy shows, with the values of a variant; refused where it cannot be."""
        found = {**self.base, **spelled(self.expected(variant))}
        site = self.spot.site.name
        least = element_bytes(site, dict(self.point[1]), self.version)
        for tile in tiles(site, found, self._elements(), least):
            check_fits(tile, found, self.arch)
        return found

    def members(self, variant: Variant) -> dict[str, str]:
        """The values of an entry for a variant."""
        return self.spot.members(self.benchmark, variant)

    def expected(self, variant: Variant) -> dict[str, Value]:
        """What the policy shows where it is what the benchmark measures."""
        unsaid = self.spot.unsaid(self.benchmark, variant)
        return {**unsaid, **self.spot.expected(self.members(variant))}

    def parts(self) -> Sequence[PolicyPart]:
        """The parts of the policy; a parameter that is in none of them decides nothing."""
        return joined(self._lots())

    def _lots(self) -> Iterator[tuple[Collection[str], Collection[str], MemberRule | None]]:
        rules = self._rules()
        for name, rule in rules.items():
            yield labels_of(rule), (name,), rule
        # Threads are scaled by their items, and both by what is kept in shared memory.
        counts = {*words().members.threads, *words().members.items, self.spot.site.marked}
        if is_static(self.spot.site.name):
            counts |= {*words().tiles.algorithms}
        known = [rule for name, rule in rules.items() if name in counts]
        yield frozenset(label for rule in known for label in labels_of(rule)), (), None

    def _rules(self) -> dict[str, MemberRule]:
        """What fills each value of the policy."""
        found = {}
        for member, rule in {**self.spot.unsaid_members, **self.spot.binding.members}.items():
            if name := value_name(self.spot.site, member, rule):
                found[name] = rule
        return found

    def _elements(self) -> Mapping[str, int]:
        """The bytes of an element, by the items that are scaled by it."""
        sizes, units = self.spot.told.sizes, self.benchmark.units
        pairs = ((name, units.get(rule.parameter or "")) for name, rule in self._rules().items())
        return {name: sizes[unit.of] for name, unit in pairs if unit and unit.of in sizes}


# Variants as changed headers before the tree: what is measured is what would be merged.


@dataclass(frozen=True, slots=True)
class ChangedHeaders:
    """The headers of one variant."""

    folders: tuple[str, ...]
    """Before the tree's own; none where nothing changes: the variant is what CUB has."""
    values: Values
    """What the compiler says that the workload gets."""


Select = Callable[[Mapping[str, bytes], Point, str], Values]
"""What the compiler selects for a workload on an architecture, with changed headers."""


@dataclass(frozen=True, slots=True)
class HeaderVariants:
    """Writes the variants of a workload, each proved to be what the workload gets."""

    planner: Planner
    meant: EntryWorkload
    select: Select
    progress: Progress | None = None

    def all(
        self, space: SearchSpace, labels: Sequence[str]
    ) -> dict[str, ChangedHeaders | PolicygenError]:
        """The headers of each variant, or why there are none."""
        with threads() as pool:
            futures = {pool.submit(self._attempt, space, label): label for label in labels}
            follow(futures, PHASE, self.progress)
            return {label: future.result() for future, label in futures.items()}

    def _attempt(self, space: SearchSpace, label: str) -> ChangedHeaders | PolicygenError:
        try:
            return self.one(space.variant(label), label)
        except PolicygenError as error:
            return error

    def one(self, variant: Mapping[str, int], label: str) -> ChangedHeaders:
        """The headers of a variant; refused where the header cannot say it, or does not heed it."""
        meant, wanted = self.meant, self.meant.expected(variant)
        if not differs(meant.spot.told.values, wanted):
            return ChangedHeaders((), wanted)
        changed = self._written(meant, variant, label)
        got = self.select(changed, meant.point, meant.arch)
        unsaid = meant.spot.unsaid(meant.benchmark, variant)
        left = {name: got[name] for name in unsaid if name in got and got[name] != unsaid[name]}
        if left and (spot := meant.spot.saying(meant.benchmark, left)):
            assert isinstance(spot, FamilySpot), "what says more of an entry is one"
            meant = replace(meant, spot=spot)
            changed = self._written(meant, variant, label)
            got = self.select(changed, meant.point, meant.arch)
        if other := differs(got, wanted):
            raise InputError(f"{meant.spot.header} cannot say {label}: the workload gets {other}")
        folders = tuple(units_overlay(name, data) for name, data in sorted(changed.items()))
        return ChangedHeaders(folders, got)

    def _written(
        self, meant: EntryWorkload, variant: Mapping[str, int], label: str
    ) -> Mapping[str, bytes]:
        """The changed headers, by name, as an apply writes them."""
        content = meant.spot.content(meant.members(variant), label)
        write = EntryWrite((meant.spot,), content, label, frozenset({meant.point}))
        try:
            return self.planner.drafted([write]).after
        except NotWritableError as error:
            raise InputError(error.reasons[meant.point]) from error


@dataclass(frozen=True, slots=True)
class KernelWorkload:
    """A class of sizes of a kernel on an architecture; a policy is what its parameters are."""

    maker: KernelMaker
    benchmark: BenchmarkBinding
    point: Point
    arch: str

    @property
    def base(self) -> Policy:
        """What the kernel has today."""
        return self.maker.values(self.maker.start)

    def policy(self, variant: Variant) -> Policy:
        """What parameters are in C++; refused where they cannot be so."""
        return self.maker.values(variant)

    def parts(self) -> Sequence[PolicyPart]:
        """Each parameter alone, but those that a constraint joins."""
        labels = self.maker.given.every_parameter
        ruled = (Expression(text).names for text in self.maker.given.constraints)
        return joined(
            [
                *(({label}, {label}, None) for label in labels),
                *((names, (), None) for names in ruled),
            ]
        )

    @property
    def is_alone(self) -> bool:
        """Whether a unit holds one variant: a macro has one value in it."""
        return any(one.macro for one in self.maker.given.every_parameter.values())

    def text(self, run: WorkloadRun, policies: Sequence[Policy | None]) -> str:
        """Writes a unit of variants; none is what the kernel has today."""
        given = self.maker.given
        variants = [self._variant(n, one) for n, one in enumerate(policies)]
        values = {
            "source": given.kernel,
            "header": given.header,
            "macros": self._macros(policies[0] or self.base) if self.is_alone else {},
            "sizes": list(run.binding.sizes),
            "buffers": [
                {"name": n, "type": one.type, "count": one.count, "modified": one.modified}
                for n, one in run.binding.buffers.items()
            ],
            "scalars": {n: one.model_dump() for n, one in given.scalar.items()},
            "arguments": ", ".join(given.arguments),
            "reference": given.reference,
            "traffic": given.traffic and Expression(given.traffic).cpp,
            "elements": ELEMENTS,
            "kinds": sorted({str(one["memory"]) for one in variants} - {"device"}),
            "variants": variants,
        }
        return fill(KERNEL, values)

    def _macros(self, policy: Policy) -> dict[str, str]:
        every = self.maker.given.every_parameter
        return {one.macro: policy[label] for label, one in every.items() if one.macro}

    def _variant(self, number: int, policy: Policy | None) -> dict[str, object]:
        """How a variant is launched."""
        values = self.base if policy is None else policy
        way = self._way(values)
        return {
            "number": number,
            "is_base": policy is None,
            "constants": {k: v for k, v in values.items() if k != STRATEGY},
            "function": way.function,
            "memory": way.memory,
            "block": _cpp(way.block),
            "shared": _cpp(way.shared),
            "grid": _cpp(way.grid),
        }

    def _way(self, values: Mapping[str, str]) -> KernelStrategy:
        ways = self.maker.given.ways
        named = {one.name: one for one in ways}
        return named[values[STRATEGY]] if STRATEGY in values else ways[0]


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


@dataclass(frozen=True, slots=True)
class OpenedWorkload:
    """A workload on an architecture, with its search space and how it runs."""

    meaning: PublicWorkload | EntryWorkload | KernelWorkload
    space: SearchSpace
    runs: tuple[WorkloadRun, ...]
    """One for each sub-benchmark."""
    headers: HeaderVariants | None = None
    """What writes variants where they are changed headers."""

    @property
    def name(self) -> str:
        """In words: `cub.bench.reduce.sum T=I32 OffsetT=I32`."""
        benchmark, workload = self.meaning.point
        return in_words(benchmark, dict(workload))

    def candidates(self, labels: Sequence[str]) -> Candidates:
        """The variants of some labels; headers are written, and asked of the compiler, for them."""
        if self.headers is not None:
            return self._with_headers(self.headers, labels)
        made, refused, base = [], {}, []
        for label in labels:
            try:
                policy = self.meaning.policy(self.space.variant(label))
            except InputError as error:
                refused[label] = error.in_line
                continue
            if policy == self.meaning.base:
                base.append(label)
            else:
                made.append(Candidate(label, policy))
        return Candidates(tuple(made), refused, tuple(base))

    def _with_headers(self, headers: HeaderVariants, labels: Sequence[str]) -> Candidates:
        made, refused, base = [], {}, []
        for label, found in headers.all(self.space, labels).items():
            if isinstance(found, PolicygenError):
                refused[label] = found.in_line
            elif found.folders:
                made.append(Candidate(label, None, found.folders))
            else:
                base.append(label)
        return Candidates(tuple(made), refused, tuple(base))

    def to_compile(self, run: WorkloadRun, candidates: Sequence[Candidate]) -> WorkloadToCompile:
        """A sub-benchmark of it with variants."""
        meaning = self.meaning
        policy = None
        if isinstance(meaning, PublicWorkload):
            policy = PublicPolicy(meaning.selector.selector.policy, meaning.fields)

        def render(lot: Sequence[Candidate]) -> str:
            policies = [one.policy for one in lot]
            if isinstance(meaning, KernelWorkload):
                return meaning.text(run, policies)
            return variants_text(run, policies, policy)

        return WorkloadToCompile(
            self.name,
            meaning.arch,
            run.cub.include_folders,
            inputs_text(run),
            render,
            tuple(candidates),
            alone=isinstance(meaning, KernelWorkload) and meaning.is_alone,
        )


# Workloads whose variants are policies given to the algorithm itself: CUB 3.5 and later.


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


KERNEL = "measure/kernel.cu.j2"


# Kernels of one's own: what their variants mean, and the C++ that launches them.


def _cpp(text: str | None) -> str:
    assert text is not None, "a strategy says what the kernel does not"
    return Expression(text).cpp


PHASE = "writing headers"


# Workloads whose variants are changes of CUB's own header, as a plan would write them.


def spelled(values: Values) -> dict[str, str]:
    """Values as they stand in C++."""
    return {name: spell(value) for name, value in values.items()}
