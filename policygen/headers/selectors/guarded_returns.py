"""The guarded return that decides a workload, or where one goes that is not there yet."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from policygen.bindings.variants import optional_rules, rules_of, says_algorithm
from policygen.bindings.words import next_arch, words
from policygen.errors import InputError
from policygen.headers.protocol import FamilySpot, Spot, TuningTree, TypeName, site_of
from policygen.headers.provenance import EXPLICIT, known_label
from policygen.headers.selectors.arch_blocks import ArchBlock, in_front
from policygen.headers.selectors.arch_functions import ArchFunction, arch_function
from policygen.headers.selectors.branches import Truth, simplest
from policygen.headers.selectors.functions import Field, Function, read_aggregate
from policygen.headers.selectors.nearest import (
    BeforeReturn,
    BesideReturn,
    EmptyCase,
    HeaderReturns,
    KnownReturn,
    empty_case,
    gone_before,
    nearest,
    read_returns,
)
from policygen.headers.text import Text
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, MemberRule, Site
from policygen.model.edits import AddedMember, Content, Slot
from policygen.model.selection import Selected, Values
from policygen.model.tuning import Entry, Family, Value, spell


@dataclass(frozen=True, slots=True)
class FirstReturn(FamilySpot):
    """A whole policy for one workload, before anything that its function returns now."""

    function: Function
    fields: tuple[Field, ...]
    """Of the aggregate that it returns."""
    part: str
    """Where that is in what is selected: `lookahead.`; empty for all of it."""
    conditions: tuple[str, ...]
    since: str
    below: str | None

    @property
    def entry(self) -> Entry | None:
        """None: it is added."""
        return None

    @property
    def slots(self) -> tuple[str, ...]:
        """What it asks for."""
        return (*([f"before {self.below}"] if self.below else []), *self.conditions)

    @property
    def ahead(self) -> bool:
        """It comes before what decides now."""
        return True

    def content(self, members: dict[str, str], label: str | None) -> Content:
        """The values that are tuned; the rest is as the workload has it."""
        return Content("values", members, label=label)


# A guarded return in which a result is written, or one that is not there yet.


@dataclass(frozen=True, slots=True)
class NewReturn:
    """A guarded return that is to be written."""

    at: BesideReturn | EmptyCase | ArchBlock | ArchFunction | BeforeReturn
    facts: tuple[str, ...]
    """What holds where it stands: the same for all workloads that get it."""
    truth: Truth
    """Of the workload that it is for."""

    def naming(self, condition: str) -> "NewReturn":
        """The same for one type alone."""
        if isinstance(self.at, EmptyCase):
            raise InputError("there is no place for a return for one type alone")
        if isinstance(self.at, BeforeReturn):
            raise InputError("it is for one type already")
        at = replace(self.at, conditions=tuple(simplest((*self.at.conditions, condition))))
        return replace(self, at=at, facts=(*self.facts, condition))

    @property
    def bounded(self) -> bool:
        """Whether later architectures do not get to it."""
        return isinstance(self.at, ArchBlock | ArchFunction) and self.at.below is not None

    def takes(self, told: Selected) -> bool:
        """Whether another workload may get it, too."""
        truth = replace(self.truth, traits=told.traits)
        return all(truth.holds(fact) is not False for fact in self.facts)


@dataclass(frozen=True, slots=True)
class GuardedReturn(FamilySpot):
    """The return that decides a workload, or one that is to decide it."""

    fields: Mapping[str, str]
    """Value → what the return calls it."""
    new: NewReturn | None = None
    """One that is not there yet."""
    now: KnownReturn | None = None
    """The one that decides, where it changes."""
    truth: Truth | None = None
    """What is known of the workload."""
    enumerations: Mapping[str, str] = field(default_factory=dict)
    """What names a type, and the enumeration of its names."""

    @property
    def entry(self) -> Entry | None:
        """The one that decides; none where one is added."""
        lead = None if self.new else self.told.keys[self.family.name].entry
        return lead and lead[1]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The conditions of a return that is added."""
        return self.new.facts if self.new else ()

    @property
    def types(self) -> Mapping[TypeName, str]:
        """What it knows of the types of a workload."""
        return {name: str(self.told.traits[name]) for name in self.enumerations}

    def naming(self, name: TypeName) -> Spot:
        """Beside the one for all."""
        assert self.truth is not None, "its header was read"
        condition = f"{name} == {self.enumerations[str(name)]}::{self.truth.traits[str(name)]}"
        if self.new:
            return replace(self, new=self.new.naming(condition))
        assert self.now is not None, "a return that changes is there"
        facts = (*self.now.entry.args, condition)
        return replace(self, new=NewReturn(BeforeReturn(self.now, condition), facts, self.truth))

    @property
    def named(self) -> str:
        """The condition for one of the types."""
        return self.new.facts[-1] if self.new else ""

    @property
    def ahead(self) -> bool:
        """Whether it comes before what decides now."""
        return self.new is not None

    def saying(self, measured: BenchmarkBinding, shown: Values) -> Spot | None:
        """With values that returns of its function do not have: the policy has to take them."""
        like = self.new.at.beside.entry if self.new else self.entry
        if like is None:
            return None
        own = {member.name.rpartition(".")[2]: member.name for member in like.members}
        rules, fields, added = {}, {}, {}
        for name, value in shown.items():
            _, rule = self.rule_for(measured, name)
            path = self.site.values.get(name, "").rpartition(".")[2]
            if rule is None or not path or name in self.binding.members:
                return None
            if path not in own and name == words().values.algorithm:
                return None  # only a return that says it already is for another algorithm
            rules[name] = rule
            fields[name] = own.get(path, path)
            if path not in own:
                added[path] = AddedMember("", spell(value))
        binding = self.binding.model_copy(update={"members": {**self.binding.members, **rules}})
        return replace(
            self,
            binding=binding,
            fields={**self.fields, **fields},
            added={**self.added, **added},
        )

    def content(self, members: dict[str, str], label: str | None) -> Content:
        """The values, and which of them its function does not tell yet."""
        return Content("values", members, label=label, added=self.added)

    def kept(self, name: str) -> Content:
        """The values of the return that is for all types, before it gets others."""
        if self.now is None:
            raise InputError(f"no return can keep what {name} has")
        return Content("values", {}, label=known_label(self.now.entry.labels) or EXPLICIT)

    def takes(self, other: Spot) -> bool:
        """Whether it decides another workload, or may."""
        if self.new and other.header == self.header:
            return self.new.takes(other.told)
        return Spot.takes(self, other)


@dataclass(frozen=True, slots=True)
class Returns:
    """Finds returns, and places for new ones, in the headers of a tree."""

    sources: TuningTree
    arch: str
    below: str | None = None
    """The architecture before which a new block ends; none where later ones inherit."""
    headers_read: dict[str, HeaderReturns] = field(default_factory=dict)

    def place(self, benchmark: BenchmarkBinding, told: Selected) -> Spot:
        """The return that decides, or a new one where that is not the architecture's own."""
        try:
            spot = self.decides(benchmark, told)
        except InputError as error:
            try:
                return self.beside(benchmark, told)
            except InputError as none:
                if benchmark.first is not None:
                    return self.first(benchmark, told)
                raise InputError(_neither(error, none)) from none
        with contextlib.suppress(InputError):
            return self._known_types(spot)
        return spot

    def bounded(self, benchmark: BenchmarkBinding, spot: Spot) -> Spot | None:
        """In a block of its own, which later architectures do not get to."""
        if isinstance(spot, FirstReturn):
            return None  # it is bounded
        assert isinstance(spot, GuardedReturn), "it was found here"
        if self.below is None or (spot.new and spot.new.bounded):
            return None
        told = spot.told
        try:
            read, truth, known = self._known(benchmark, told)
            shown = told.entry[1] if told.entry else None
            entry = spot.new.at.beside.entry if spot.new else shown
            like = [each for each in known if entry and each.entry.body_span == entry.body_span]
            return self._in_front(benchmark, told, read, like or known, truth)
        except InputError:
            return None

    def decides(self, benchmark: BenchmarkBinding, told: Selected) -> GuardedReturn:
        """The return that decides a workload; refused where it is not the architecture's own."""
        algorithm, site = site_of(benchmark, self.sources.cub.bindings, "selectors")
        if told.entry is None:
            raise InputError(
                f"no return with constants decides it in {site.header}: its values are computed"
            )
        family, entry = told.entry
        if family.arch != self.arch:
            raise InputError(
                f"{self.arch} has no return of its own for it: {family.header}:{entry.line}"
                f" ({family.name} for {family.arch}) decides it"
            )
        rules, fields = rules_of(algorithm, site, benchmark, family, entry)
        binding = FamilyBinding(site=site.name, name=family.name, args=(), members=rules)
        more = optional_rules(algorithm, site, rules)
        return GuardedReturn(told, site, binding, family, family.name, fields, unsaid_members=more)

    def beside(self, benchmark: BenchmarkBinding, told: Selected) -> GuardedReturn:
        """Among the returns of the architecture, or in a block of its own in front."""
        read, truth, known = self._known(benchmark, told)
        own = [each for each in known if each.family.arch == self.arch]
        near = nearest(own, truth)
        gone = gone_before(near, truth) if near else None
        if near and not gone:
            facts = (*near.around, *near.conditions)
            return self._to(benchmark, told, near.beside, NewReturn(near, facts, truth))
        if end := empty_case(own, truth, self.arch):
            return self._to(benchmark, told, end.beside, NewReturn(end, end.around, truth))
        try:
            return self._in_front(benchmark, told, read, known, truth)
        except InputError as error:
            if gone is None:
                raise
            raise InputError(
                f"{read.text.path}:{read.text.line(gone.span.start)} returns for it before the"
                f" returns of {self.arch}"
            ) from error

    def first(self, benchmark: BenchmarkBinding, told: Selected) -> FirstReturn:
        """Before what is computed, in the function that the binding names."""
        _, site = site_of(benchmark, self.sources.cub.bindings, "selectors")
        return first_return(benchmark, site, told, self.arch, self._read(site.header))

    def _known(
        self, benchmark: BenchmarkBinding, told: Selected
    ) -> tuple[HeaderReturns, Truth, list[KnownReturn]]:
        """A header, what is known of a workload, and the returns that have what it tunes."""
        algorithm, site = site_of(benchmark, self.sources.cub.bindings, "selectors")
        read = self._read(site.header)
        truth = Truth(told.traits, self.arch, read.constants)
        known, unused = [], False
        for each in read.returns:
            if each.family.namespace != site.scope or not read.asks(each, truth, told):
                continue
            with contextlib.suppress(InputError):
                rules, _ = rules_of(algorithm, site, benchmark, each.family, each.entry)
                if rules.keys() <= told.values.keys() or says_algorithm(each.entry):
                    known.append(each)
                else:
                    unused = True
        if unused and not known:
            raise InputError("CUB selects another algorithm for it than the one that was measured")
        return read, truth, known

    def _read(self, name: str) -> HeaderReturns:
        if name not in self.headers_read:
            text = Text(name, self.sources.data[name])
            self.headers_read[name] = read_returns(text, self.sources.headers[name])
        return self.headers_read[name]

    def _in_front(
        self,
        benchmark: BenchmarkBinding,
        told: Selected,
        read: HeaderReturns,
        known: Sequence[KnownReturn],
        truth: Truth,
    ) -> GuardedReturn:
        now = told.entry[1].body_span if told.entry else None
        decides = next((each for each in known if each.entry.body_span == now), None)
        number = arch_number(self.arch)
        earlier = [each for each in known if arch_number(each.family.arch) <= number]
        found = in_front(read.text, earlier, read.bodies, truth, self.below, decides) or in_front(
            read.text, known, read.bodies, truth, self.below, decides
        )
        front = found or arch_function(read.text, known, read.bodies, truth, self.below)
        if front is None:
            raise InputError(
                f"no return of {read.text.path} asks for what it has, but for a size or a type",
                "Add a guarded return for it by hand; policygen updates it from then on.",
            )
        facts = (*([f"before {self.below}"] if self.below else []), *front.conditions)
        return self._to(benchmark, told, front.beside, NewReturn(front, facts, truth))

    def _to(
        self, benchmark: BenchmarkBinding, told: Selected, like: KnownReturn, new: NewReturn
    ) -> GuardedReturn:
        algorithm, site = site_of(benchmark, self.sources.cub.bindings, "selectors")
        rules, fields = rules_of(algorithm, site, benchmark, like.family, like.entry)
        binding = FamilyBinding(site=site.name, name=like.family.name, args=(), members=rules)
        name = new.at.name if isinstance(new.at, ArchFunction) else like.family.name
        return GuardedReturn(
            told,
            site,
            binding,
            like.family,
            name,
            fields,
            new,
            truth=new.truth,
            enumerations=self._read(site.header).enumerations,
            unsaid_members=optional_rules(algorithm, site, rules),
        )

    def _known_types(self, spot: GuardedReturn) -> GuardedReturn:
        """With what tells the types apart that a return is for."""
        told = spot.told
        read = self._read(spot.site.header)
        span = told.entry[1].body_span if told.entry else None
        now = next((each for each in read.returns if each.entry.body_span == span), None)
        truth = Truth(told.traits, self.arch, read.constants)
        return replace(spot, now=now, truth=truth, enumerations=read.enumerations)


def _neither(decides: InputError, added: InputError) -> str:
    """Why the return that decides is not changed, and why none is added; one reason once."""
    if added.message in decides.message:
        return decides.in_line
    return f"{decides.in_line}; and none can be added: {added.in_line}"


# A return that comes first in a function: what CUB returns there is computed.


def first_return(
    benchmark: BenchmarkBinding, site: Site, told: Selected, arch: str, read: HeaderReturns
) -> FirstReturn:
    """Where it goes, and what it asks for; refused where the binding does not say that."""
    first = benchmark.first
    if first is None or not benchmark.returns:
        raise InputError(f"{site.header} computes it in a way that has no place for a return")
    selector = words().selectors.name
    known = [f for f, _ in read.bodies if (f.scope, f.name) == (selector, first.function)]
    if len(known) != 1 or not {*first.asks} <= told.traits.keys():
        asks = ", ".join(first.asks)
        raise InputError(f"{site.header} has no {selector}::{first.function} that knows {asks}")
    (function,) = known
    fixed = {name: MemberRule(constant=spell(v)) for name, v in benchmark.always.items()}
    own = read.structs[selector]
    types = dict(zip(own.fields, own.types, strict=True))
    return FirstReturn(
        told,
        site,
        FamilyBinding(
            site=site.name, name=function.label, args=(), members={**fixed, **benchmark.returns}
        ),
        Family(
            name=function.label,
            arch=arch,
            header=site.header,
            namespace=site.scope,
            parameters=(),
            entries=(),
        ),
        function.label,
        function,
        read_aggregate(read.structs, function.returns),
        f"{first.part}." if first.part else "",
        tuple(_condition(name, types[name], told.traits[name]) for name in first.asks),
        arch,
        next_arch(arch),
    )


def _condition(name: str, kind: str, value: Value) -> str:
    if isinstance(value, bool):
        return name if value else f"!{name}"
    return f"{name} == {kind}::{value}" if isinstance(value, str) else f"{name} == {spell(value)}"
