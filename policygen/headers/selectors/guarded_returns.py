"""Finds the guarded return that serves a workload, or the place for a new one."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from policygen.bindings.load import site_of
from policygen.bindings.variants import optional_rules, rules_of, says_algorithm
from policygen.bindings.words import next_arch, words
from policygen.errors import InputError
from policygen.headers.comments import EXPLICIT, known_label
from policygen.headers.protocol import Dialect, FamilySpot, Spot, TypeName
from policygen.headers.selectors.arch_places import ArchBlock, ArchFunction, arch_function, in_front
from policygen.headers.selectors.conditions import Truth, simplest
from policygen.headers.selectors.functions import Field, Function, read_aggregate
from policygen.headers.selectors.nearest import (
    BeforeReturn,
    BesideReturn,
    EmptyCase,
    HeaderReturn,
    HeaderReturns,
    check_utf8,
    empty_case,
    gone_before,
    nearest,
)
from policygen.headers.text import Text
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, MemberRule
from policygen.model.selection import Selected, Values
from policygen.model.trees import GainedMember, numbers
from policygen.model.tuning import AddedMember, Content, Entry, Family, Slot, Value, spell
from policygen.model.workload import Point


@dataclass(frozen=True, slots=True)
class FirstReturn(FamilySpot):
    """A whole policy for one workload, placed before all other returns of its function."""

    function: Function
    fields: tuple[Field, ...]
    """The fields of the aggregate that the function returns."""
    part: str
    """The path of the aggregate in the selected policy: `lookahead.`; empty for all of it."""
    conditions: tuple[str, ...]
    below: str | None
    tests: Mapping[str, str]
    """The other members of the policy selector → their types."""
    gained: Mapping[str, GainedMember]
    """Members that the selector gets for the conditions."""

    @property
    def entry(self) -> Entry | None:
        """None: the return is new."""
        return None

    @property
    def types(self) -> Mapping[TypeName, str]:
        """What else the selector knows of the workload."""
        return {name: spell(self.selected.traits[name]) for name in self.tests}

    def naming(self, name: TypeName) -> Spot:
        """Restricts the return to one value of a member."""
        member = str(name)
        condition = _condition(member, self.tests[member], self.selected.traits[member])
        return replace(self, conditions=(*self.conditions, condition))

    @property
    def named(self) -> str:
        """The condition that was added last."""
        return self.conditions[-1]

    @property
    def slots(self) -> tuple[str, ...]:
        """The conditions of the return."""
        return (*([f"before {self.below}"] if self.below else []), *self.conditions)

    @property
    def ahead(self) -> bool:
        """True: it precedes the return that decides now."""
        return True


# Guarded returns that a result is written to


Place = BesideReturn | EmptyCase | ArchBlock | ArchFunction | BeforeReturn
"""Where a return is added."""


@dataclass(frozen=True, slots=True)
class NewReturn:
    """A guarded return to be added."""

    at: Place
    facts: tuple[str, ...]
    """Its full conditions, the same for all workloads that it serves."""

    def naming(self, condition: str, passed: tuple[tuple[str, str], ...] = ()) -> "NewReturn":
        """Restricts the return to one type; members that it tests are passed to its function."""
        if isinstance(self.at, EmptyCase):
            raise InputError("a case without returns cannot get one for a single type")
        position = replace(self.at, conditions=tuple(simplest((*self.at.conditions, condition))))
        if isinstance(position, BeforeReturn):
            position = replace(position, passed=(*position.passed, *passed))
        return replace(self, at=position, facts=(*self.facts, condition))

    @property
    def bounded(self) -> bool:
        """Whether an upper bound hides the return from later architectures."""
        return isinstance(self.at, ArchBlock | ArchFunction) and self.at.below is not None


@dataclass(frozen=True, slots=True)
class GuardedReturn(FamilySpot):
    """The return that serves a workload, or a new one that will."""

    fields: Mapping[str, str]
    """Value → the return's name for it."""
    new: NewReturn | None = None
    """The return to add, if any."""
    now: HeaderReturn | None = None
    """The return that currently serves the workload, if it changes."""
    truth: Truth | None = None
    """The known facts of the workload."""
    tests: Mapping[str, str] = field(default_factory=dict)
    """Members of the selector that a condition can test where the return is → their types."""
    passable: Mapping[str, str] = field(default_factory=dict)
    """Members that the function of the return would have to be given."""

    @property
    def entry(self) -> Entry | None:
        """The entry that serves the workload, or None if one is added."""
        family_entry = None if self.new else self.selected.keys[self.family.name].entry
        return family_entry and family_entry[1]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The conditions of an added return."""
        return self.new.facts if self.new else ()

    @property
    def types(self) -> Mapping[TypeName, str]:
        """What the selector knows of the workload: types first, then kinds, sizes and flags."""
        kinds = words().selectors.types
        names = [
            name
            for members in (self.tests, self.passable)
            for name in sorted(members, key=lambda member: members[member] != kinds)
        ]
        return {name: spell(self.selected.traits[name]) for name in names}

    def naming(self, name: TypeName) -> Spot:
        """Adds a return for one type, or another member's value, before the general one."""
        assert self.truth is not None, "its header was read"
        member = str(name)
        passed = ((member, self.passable[member]),) if member in self.passable else ()
        kind = {**self.tests, **self.passable}[member]
        condition = _condition(member, kind, self.truth.traits[member])
        if self.new:
            return replace(self, new=self.new.naming(condition, passed))
        assert self.now is not None, "a return that changes is there"
        before = BeforeReturn(self.now, (condition,), passed)
        return replace(self, new=NewReturn(before, (*self.now.entry.args, condition)))

    @property
    def named(self) -> str:
        """The condition that names the type."""
        return self.new.facts[-1] if self.new else ""

    @property
    def ahead(self) -> bool:
        """Whether the return precedes the one that decides now."""
        return self.new is not None

    def saying(self, measured: BenchmarkBinding, reported: Values) -> Spot | None:
        """Adds members for values that the returns lack and that the policy must read."""
        model = self.new.at.beside.entry if self.new else self.entry
        if model is None:
            return None
        members_by_field = {member.name.rpartition(".")[2]: member.name for member in model.members}
        rules, fields, added = {}, {}, {}
        for name, value in reported.items():
            _, rule = self.rule_for(measured, name)
            path = self.site.values.get(name, "").rpartition(".")[2]
            if rule is None or not path or name in self.binding.members:
                return None
            if path not in members_by_field and name == words().values.algorithm:
                return None  # only a return that names an algorithm can select another
            rules[name] = rule
            fields[name] = members_by_field.get(path, path)
            if path not in members_by_field:
                added[path] = AddedMember("", spell(value))
        binding = self.binding.model_copy(update={"members": {**self.binding.members, **rules}})
        return replace(
            self,
            binding=binding,
            fields={**self.fields, **fields},
            added={**self.added, **added},
        )

    def content(self, members: dict[str, str], label: str | None) -> Content:
        """Returns the values, and the members that the function's returns need added."""
        return Content("values", members, label=label, added=self.added)

    def kept(self, name: str) -> Content:
        """Keeps the values of the general return, before a return for one type is added."""
        if self.now is None:
            raise InputError(f"no return can keep the values of {name}")
        return Content("values", {}, label=known_label(self.now.entry.labels) or EXPLICIT)

    def takes(self, other: Spot) -> bool:
        """Tells whether the return serves, or may serve, another workload."""
        if self.new and self.truth and other.header == self.header:
            truth = replace(self.truth, traits=other.selected.traits)
            return all(truth.holds(fact) is not False for fact in self.new.facts)
        return Spot.takes(self, other)


@dataclass(frozen=True, slots=True)
class Returns(Dialect):
    """Finds returns, and places for new ones, in the headers of a tree.

    A new block ends at `below`; without it, later architectures may use the block.
    """

    headers_read: dict[str, HeaderReturns] = field(default_factory=dict)

    def place(self, benchmark: BenchmarkBinding, selected: Selected, point: Point) -> Spot:
        """Finds the deciding return, or a place for a new one if it is another architecture's."""
        try:
            spot = self.decides(benchmark, selected)
        except InputError as error:
            try:
                return self.beside(benchmark, selected)
            except InputError as not_added:
                if benchmark.first is not None:
                    return self.first(benchmark, selected, point)
                reason = error.in_line
                if not_added.message not in error.message:
                    reason += f", and none can be added: {not_added.in_line}"
                raise InputError(reason) from not_added
        with contextlib.suppress(InputError):
            return self._known_types(spot)
        return spot

    def bounded(self, benchmark: BenchmarkBinding, spot: Spot) -> Spot | None:
        """Moves the return to a block with an upper bound; None if not applicable."""
        if isinstance(spot, FirstReturn):
            return None  # it has a bound already
        assert isinstance(spot, GuardedReturn), "it was found here"
        if self.below is None or (spot.new and spot.new.bounded):
            return None
        selected = spot.selected
        try:
            header_returns, truth, returns = self._usable_returns(benchmark, selected)
            deciding = selected.entry[1] if selected.entry else None
            entry = spot.new.at.beside.entry if spot.new else deciding
            models = [
                model for model in returns if entry and model.entry.body_span == entry.body_span
            ]
            return self._in_own_block(benchmark, selected, header_returns, models or returns, truth)
        except InputError:
            return None

    def decides(self, benchmark: BenchmarkBinding, selected: Selected) -> GuardedReturn:
        """Finds the return that serves a workload; refuses one of another architecture."""
        if selected.entry is None:
            _, site = site_of(benchmark, self.sources.cub.bindings, "selectors")
            raise InputError(
                f"no return with constants decides it in {site.header}; its values are computed"
            )
        family, entry = selected.entry
        if family.arch != self.arch:
            raise InputError(
                f"{self.arch} has no return of its own for it; {family.header}:{entry.line}"
                f" ({family.name} for {family.arch}) decides it"
            )
        return self._like(benchmark, selected, family, entry)

    def beside(self, benchmark: BenchmarkBinding, selected: Selected) -> GuardedReturn:
        """Places a new return among those of its architecture, or in a block in front."""
        header_returns, truth, returns = self._usable_returns(benchmark, selected)
        arch_returns = [model for model in returns if model.family.arch == self.arch]
        nearest_place = nearest(arch_returns, truth)
        earlier = gone_before(nearest_place, truth) if nearest_place else None
        if nearest_place and not earlier:
            facts = (*nearest_place.around, *nearest_place.conditions)
            return self._spot(benchmark, selected, nearest_place, facts, truth)
        if empty := empty_case(arch_returns, truth, self.arch):
            return self._spot(benchmark, selected, empty, empty.around, truth)
        try:
            return self._in_own_block(benchmark, selected, header_returns, returns, truth)
        except InputError as error:
            if earlier is None:
                raise
            raise InputError(
                f"{header_returns.text.path}:{header_returns.text.line(earlier.span.start)} returns"
                f" a policy for it before the returns of {self.arch} are reached"
            ) from error

    def first(self, benchmark: BenchmarkBinding, selected: Selected, point: Point) -> FirstReturn:
        """Places a return in front of computed values, in the function that the binding names."""
        first_binding = benchmark.first
        assert first_binding is not None, "the binding names a function"
        _, site = site_of(benchmark, self.sources.cub.bindings, "selectors")
        header_returns, asks = self._read(site.header), first_binding.asks
        scoped_name = words().selectors.name, first_binding.function
        functions = [own for own in header_returns.deciding if (own.scope, own.name) == scoped_name]
        axes, version = dict(point[1]), numbers(self.sources.cub.bindings.text)
        bound = {n: own for n, own in site.gains.items() if n in asks and own.covers(version)}
        gained = {
            name: member
            for name, member in bound.items()
            if name not in selected.traits and axes.get(member.axis) in member.values
        }
        values = {name: member.values[axes[member.axis]] for name, member in gained.items()}
        facts = {**selected.traits, **values}
        if len(functions) != 1 or not {*asks} <= facts.keys():
            raise InputError(
                f"{site.header} has no {'::'.join(scoped_name)} that can test {', '.join(asks)}"
            )
        (function,) = functions
        data = header_returns.text.data  # upstream's own member needs no others beside it
        for name, member in bound.items():
            asks += member.beside if name in gained or member.argument.encode() in data else ()
        constants = {
            name: MemberRule(constant=spell(value)) for name, value in benchmark.always.items()
        }
        types = header_returns.members | {name: member.type for name, member in gained.items()}
        label = function.label
        members = {**constants, **benchmark.returns}
        place = {"arch": self.arch, "header": site.header, "namespace": site.scope}
        family = Family(name=label, parameters=(), entries=(), **place)
        return FirstReturn(
            selected,
            site,
            FamilyBinding(site=site.name, name=label, args=(), members=members),
            family,
            label,
            function,
            read_aggregate(header_returns.structs, function.returns),
            f"{first_binding.part}." if first_binding.part else "",
            tuple(_condition(name, types[name], facts[name]) for name in asks),
            next_arch(self.arch),
            {name: kind for name, kind in types.items() if name not in asks},
            gained,
        )

    def _usable_returns(
        self, benchmark: BenchmarkBinding, selected: Selected
    ) -> tuple[HeaderReturns, Truth, list[HeaderReturn]]:
        """Returns the header, the workload's facts, and the returns with all tuned values."""
        algorithm, site = site_of(benchmark, self.sources.cub.bindings, "selectors")
        header_returns = self._read(site.header)
        truth = Truth(selected.traits, self.arch, header_returns.constants)
        returns, other_algorithm = [], False
        for model in header_returns.returns:
            family, entry = model.family, model.entry
            if family.namespace != site.scope or not header_returns.asks(model, truth, selected):
                continue
            with contextlib.suppress(InputError):
                rules, _ = rules_of(algorithm, site, benchmark, family, entry)
                if rules.keys() <= selected.values.keys() or says_algorithm(entry):
                    returns.append(model)
                else:
                    other_algorithm = True
        if other_algorithm and not returns:
            raise InputError("CUB selects a different algorithm for it than the measured one")
        return header_returns, truth, returns

    def _read(self, name: str) -> HeaderReturns:
        if name not in self.headers_read:
            text = Text(name, self.sources.data[name])
            check_utf8(text)
            self.headers_read[name] = HeaderReturns(text, self.sources.headers[name].selectors)
        return self.headers_read[name]

    def _in_own_block(
        self,
        benchmark: BenchmarkBinding,
        selected: Selected,
        header_returns: HeaderReturns,
        returns: Sequence[HeaderReturn],
        truth: Truth,
    ) -> GuardedReturn:
        decides = header_returns.return_of(selected)
        number = arch_number(self.arch)
        earlier = [model for model in returns if arch_number(model.family.arch) <= number]
        place = (
            in_front(header_returns, earlier, truth, self.below, decides)
            or in_front(header_returns, returns, truth, self.below, decides)
            or arch_function(header_returns, returns, truth, self.below)
        )
        if place is None:
            raise InputError(
                f"no return of {header_returns.text.path} has its conditions except for a size or"
                " a type",
                "Add a guarded return for it by hand; policygen can then update it.",
            )
        facts = (*([f"before {self.below}"] if self.below else []), *place.conditions)
        return self._spot(benchmark, selected, place, facts, truth)

    def _spot(
        self,
        benchmark: BenchmarkBinding,
        selected: Selected,
        place: Place,
        facts: tuple[str, ...],
        truth: Truth,
    ) -> GuardedReturn:
        model = place.beside
        spot = self._like(benchmark, selected, model.family, model.entry)
        name = place.name if isinstance(place, ArchFunction) else model.family.name
        offset = place.block.start if isinstance(place, ArchBlock) else model.start
        tests = self._read(spot.site.header).tests_at(offset)
        return replace(spot, name=name, new=NewReturn(place, facts), truth=truth, tests=tests)

    def _like(
        self, benchmark: BenchmarkBinding, selected: Selected, family: Family, entry: Entry
    ) -> GuardedReturn:
        """Returns the spot of a return, or of one with the same values."""
        algorithm, site = site_of(benchmark, self.sources.cub.bindings, "selectors")
        rules, fields = rules_of(algorithm, site, benchmark, family, entry)
        binding = FamilyBinding(site=site.name, name=family.name, args=(), members=rules)
        unsaid = optional_rules(algorithm, site, rules)
        return GuardedReturn(
            selected, site, binding, family, family.name, fields, unsaid_members=unsaid
        )

    def _known_types(self, spot: GuardedReturn) -> GuardedReturn:
        """Adds the facts that distinguish the types a return serves."""
        selected = spot.selected
        header_returns = self._read(spot.site.header)
        deciding = header_returns.return_of(selected)
        truth = Truth(selected.traits, self.arch, header_returns.constants)
        if deciding is None:
            return replace(spot, truth=truth)
        tests = header_returns.tests_at(deciding.start)
        passable = header_returns.passable_at(deciding.start)
        return replace(spot, now=deciding, truth=truth, tests=tests, passable=passable)


def _condition(name: str, type_name: str, value: Value) -> str:
    if isinstance(value, bool):
        return name if value else f"!{name}"
    return f"{name} == {f'{type_name}::' if isinstance(value, str) else ''}{spell(value)}"
