"""Finds the guarded return that serves a workload, or the place for a new one."""

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
    HeaderReturn,
    HeaderReturns,
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
    """A whole policy for one workload, placed before all other returns of its function."""

    function: Function
    fields: tuple[Field, ...]
    """The fields of the aggregate that the function returns."""
    part: str
    """The path of the aggregate in the selected policy: `lookahead.`; empty for all of it."""
    conditions: tuple[str, ...]
    since: str
    below: str | None

    @property
    def entry(self) -> Entry | None:
        """None: the return is new."""
        return None

    @property
    def slots(self) -> tuple[str, ...]:
        """The conditions of the return."""
        return (*([f"before {self.below}"] if self.below else []), *self.conditions)

    @property
    def ahead(self) -> bool:
        """True: it precedes the return that decides now."""
        return True

    def content(self, members: dict[str, str], label: str | None) -> Content:
        """Returns the tuned values; the workload's current values fill the rest."""
        return Content("values", members, label=label)


# Guarded returns that a result is written to


@dataclass(frozen=True, slots=True)
class NewReturn:
    """A guarded return to be added."""

    at: BesideReturn | EmptyCase | ArchBlock | ArchFunction | BeforeReturn
    facts: tuple[str, ...]
    """Its full conditions, the same for all workloads that it serves."""
    truth: Truth
    """The facts of the workload that it is for."""

    def naming(self, condition: str) -> "NewReturn":
        """Restricts the return to one type."""
        if isinstance(self.at, EmptyCase):
            raise InputError("there is no place for a return for one type alone")
        if isinstance(self.at, BeforeReturn):
            raise InputError("it is for one type already")
        position = replace(self.at, conditions=tuple(simplest((*self.at.conditions, condition))))
        return replace(self, at=position, facts=(*self.facts, condition))

    @property
    def bounded(self) -> bool:
        """Whether an upper bound hides the return from later architectures."""
        return isinstance(self.at, ArchBlock | ArchFunction) and self.at.below is not None

    def takes(self, selected: Selected) -> bool:
        """Tells whether the return may serve another workload."""
        truth = replace(self.truth, traits=selected.traits)
        return all(truth.holds(fact) is not False for fact in self.facts)


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
    enumerations: Mapping[str, str] = field(default_factory=dict)
    """Members that name a type → the enumeration of the names."""

    @property
    def entry(self) -> Entry | None:
        """The entry that serves the workload, or None if one is added."""
        family_entry = None if self.new else self.told.keys[self.family.name].entry
        return family_entry and family_entry[1]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The conditions of an added return."""
        return self.new.facts if self.new else ()

    @property
    def types(self) -> Mapping[TypeName, str]:
        """The workload's types that the header can test."""
        return {name: str(self.told.traits[name]) for name in self.enumerations}

    def naming(self, name: TypeName) -> Spot:
        """Adds a return for one type before the general one."""
        assert self.truth is not None, "its header was read"
        condition = f"{name} == {self.enumerations[str(name)]}::{self.truth.traits[str(name)]}"
        if self.new:
            return replace(self, new=self.new.naming(condition))
        assert self.now is not None, "a return that changes is there"
        facts = (*self.now.entry.args, condition)
        return replace(self, new=NewReturn(BeforeReturn(self.now, condition), facts, self.truth))

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
            raise InputError(f"no return can keep what {name} has")
        return Content("values", {}, label=known_label(self.now.entry.labels) or EXPLICIT)

    def takes(self, other: Spot) -> bool:
        """Tells whether the return serves, or may serve, another workload."""
        if self.new and other.header == self.header:
            return self.new.takes(other.told)
        return Spot.takes(self, other)


@dataclass(frozen=True, slots=True)
class Returns:
    """Finds returns, and places for new ones, in the headers of a tree."""

    sources: TuningTree
    arch: str
    below: str | None = None
    """The upper bound of a new block; None if later architectures may use it."""
    headers_read: dict[str, HeaderReturns] = field(default_factory=dict)

    def place(self, benchmark: BenchmarkBinding, selected: Selected) -> Spot:
        """Finds the deciding return, or a place for a new one if it is another architecture's."""
        try:
            spot = self.decides(benchmark, selected)
        except InputError as error:
            try:
                return self.beside(benchmark, selected)
            except InputError as not_added:
                if benchmark.first is not None:
                    return self.first(benchmark, selected)
                raise InputError(_combined_reason(error, not_added)) from not_added
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
        selected = spot.told
        try:
            header_returns, truth, returns = self._usable_returns(benchmark, selected)
            deciding = selected.entry[1] if selected.entry else None
            entry = spot.new.at.beside.entry if spot.new else deciding
            candidates = [
                known_return
                for known_return in returns
                if entry and known_return.entry.body_span == entry.body_span
            ]
            return self._in_own_block(
                benchmark, selected, header_returns, candidates or returns, truth
            )
        except InputError:
            return None

    def decides(self, benchmark: BenchmarkBinding, selected: Selected) -> GuardedReturn:
        """Finds the return that serves a workload; refuses one of another architecture."""
        algorithm, site = site_of(benchmark, self.sources.cub.bindings, "selectors")
        if selected.entry is None:
            raise InputError(
                f"no return with constants decides it in {site.header}: its values are computed"
            )
        family, entry = selected.entry
        if family.arch != self.arch:
            raise InputError(
                f"{self.arch} has no return of its own for it: {family.header}:{entry.line}"
                f" ({family.name} for {family.arch}) decides it"
            )
        rules, fields = rules_of(algorithm, site, benchmark, family, entry)
        binding = FamilyBinding(site=site.name, name=family.name, args=(), members=rules)
        unsaid = optional_rules(algorithm, site, rules)
        return GuardedReturn(
            selected, site, binding, family, family.name, fields, unsaid_members=unsaid
        )

    def beside(self, benchmark: BenchmarkBinding, selected: Selected) -> GuardedReturn:
        """Places a new return among those of its architecture, or in a block in front."""
        header_returns, truth, returns = self._usable_returns(benchmark, selected)
        arch_returns = [
            known_return for known_return in returns if known_return.family.arch == self.arch
        ]
        nearest_place = nearest(arch_returns, truth)
        earlier = gone_before(nearest_place, truth) if nearest_place else None
        if nearest_place and not earlier:
            facts = (*nearest_place.around, *nearest_place.conditions)
            return self._spot(
                benchmark, selected, nearest_place.beside, NewReturn(nearest_place, facts, truth)
            )
        if empty := empty_case(arch_returns, truth, self.arch):
            return self._spot(
                benchmark, selected, empty.beside, NewReturn(empty, empty.around, truth)
            )
        try:
            return self._in_own_block(benchmark, selected, header_returns, returns, truth)
        except InputError as error:
            if earlier is None:
                raise
            raise InputError(
                f"{header_returns.text.path}:{header_returns.text.line(earlier.span.start)} returns"
                f" for it before the returns of {self.arch}"
            ) from error

    def first(self, benchmark: BenchmarkBinding, selected: Selected) -> FirstReturn:
        """Places a return in front of computed values, in the function that the binding names."""
        _, site = site_of(benchmark, self.sources.cub.bindings, "selectors")
        return first_return(benchmark, site, selected, self.arch, self._read(site.header))

    def _usable_returns(
        self, benchmark: BenchmarkBinding, selected: Selected
    ) -> tuple[HeaderReturns, Truth, list[HeaderReturn]]:
        """Returns the header, the workload's facts, and the returns with all tuned values."""
        algorithm, site = site_of(benchmark, self.sources.cub.bindings, "selectors")
        header_returns = self._read(site.header)
        truth = Truth(selected.traits, self.arch, header_returns.constants)
        returns, other_algorithm = [], False
        for known_return in header_returns.returns:
            if known_return.family.namespace != site.scope or not header_returns.asks(
                known_return, truth, selected
            ):
                continue
            with contextlib.suppress(InputError):
                rules, _ = rules_of(
                    algorithm, site, benchmark, known_return.family, known_return.entry
                )
                if rules.keys() <= selected.values.keys() or says_algorithm(known_return.entry):
                    returns.append(known_return)
                else:
                    other_algorithm = True
        if other_algorithm and not returns:
            raise InputError("CUB selects another algorithm for it than the one that was measured")
        return header_returns, truth, returns

    def _read(self, name: str) -> HeaderReturns:
        if name not in self.headers_read:
            text = Text(name, self.sources.data[name])
            self.headers_read[name] = read_returns(text, self.sources.headers[name])
        return self.headers_read[name]

    def _in_own_block(
        self,
        benchmark: BenchmarkBinding,
        selected: Selected,
        header_returns: HeaderReturns,
        returns: Sequence[HeaderReturn],
        truth: Truth,
    ) -> GuardedReturn:
        deciding_span = selected.entry[1].body_span if selected.entry else None
        decides = next(
            (
                known_return
                for known_return in returns
                if known_return.entry.body_span == deciding_span
            ),
            None,
        )
        number = arch_number(self.arch)
        earlier = [
            known_return
            for known_return in returns
            if arch_number(known_return.family.arch) <= number
        ]
        arch_block = in_front(
            header_returns.text, earlier, header_returns.bodies, truth, self.below, decides
        ) or in_front(
            header_returns.text, returns, header_returns.bodies, truth, self.below, decides
        )
        place = arch_block or arch_function(
            header_returns.text, returns, header_returns.bodies, truth, self.below
        )
        if place is None:
            raise InputError(
                f"no return of {header_returns.text.path} asks for what it has, but for a size or"
                " a type",
                "Add a guarded return for it by hand; policygen updates it from then on.",
            )
        facts = (*([f"before {self.below}"] if self.below else []), *place.conditions)
        return self._spot(benchmark, selected, place.beside, NewReturn(place, facts, truth))

    def _spot(
        self,
        benchmark: BenchmarkBinding,
        selected: Selected,
        model: HeaderReturn,
        new_return: NewReturn,
    ) -> GuardedReturn:
        algorithm, site = site_of(benchmark, self.sources.cub.bindings, "selectors")
        rules, fields = rules_of(algorithm, site, benchmark, model.family, model.entry)
        binding = FamilyBinding(site=site.name, name=model.family.name, args=(), members=rules)
        name = new_return.at.name if isinstance(new_return.at, ArchFunction) else model.family.name
        return GuardedReturn(
            selected,
            site,
            binding,
            model.family,
            name,
            fields,
            new_return,
            truth=new_return.truth,
            enumerations=self._read(site.header).enumerations,
            unsaid_members=optional_rules(algorithm, site, rules),
        )

    def _known_types(self, spot: GuardedReturn) -> GuardedReturn:
        """Adds the facts that distinguish the types a return serves."""
        selected = spot.told
        header_returns = self._read(spot.site.header)
        span = selected.entry[1].body_span if selected.entry else None
        deciding = next(
            (
                known_return
                for known_return in header_returns.returns
                if known_return.entry.body_span == span
            ),
            None,
        )
        truth = Truth(selected.traits, self.arch, header_returns.constants)
        return replace(spot, now=deciding, truth=truth, enumerations=header_returns.enumerations)


def _combined_reason(not_changed: InputError, not_added: InputError) -> str:
    """Explains why no return can be changed and none added, without repeating a reason."""
    if not_added.message in not_changed.message:
        return not_changed.in_line
    return f"{not_changed.in_line}; and none can be added: {not_added.in_line}"


# First returns, where CUB computes the value


def first_return(
    benchmark: BenchmarkBinding,
    site: Site,
    selected: Selected,
    arch: str,
    header_returns: HeaderReturns,
) -> FirstReturn:
    """Determines place and conditions of a first return; raises an error without a binding."""
    first_binding = benchmark.first
    if first_binding is None or not benchmark.returns:
        raise InputError(f"{site.header} computes it in a way that has no place for a return")
    selector = words().selectors.name
    functions = [
        candidate
        for candidate, _ in header_returns.bodies
        if (candidate.scope, candidate.name) == (selector, first_binding.function)
    ]
    if len(functions) != 1 or not {*first_binding.asks} <= selected.traits.keys():
        required = ", ".join(first_binding.asks)
        raise InputError(
            f"{site.header} has no {selector}::{first_binding.function} that knows {required}"
        )
    (function,) = functions
    constants = {
        name: MemberRule(constant=spell(value)) for name, value in benchmark.always.items()
    }
    selector_struct = header_returns.structs[selector]
    types = dict(zip(selector_struct.fields, selector_struct.types, strict=True))
    return FirstReturn(
        selected,
        site,
        FamilyBinding(
            site=site.name, name=function.label, args=(), members={**constants, **benchmark.returns}
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
        read_aggregate(header_returns.structs, function.returns),
        f"{first_binding.part}." if first_binding.part else "",
        tuple(_condition(name, types[name], selected.traits[name]) for name in first_binding.asks),
        arch,
        next_arch(arch),
    )


def _condition(name: str, type_name: str, value: Value) -> str:
    if isinstance(value, bool):
        return name if value else f"!{name}"
    return (
        f"{name} == {type_name}::{value}" if isinstance(value, str) else f"{name} == {spell(value)}"
    )
