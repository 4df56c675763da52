"""The guarded return that decides a workload, or where one goes that is not there yet."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from policygen.bindings.returned import optional_rules, rules_of, says_algorithm
from policygen.dialects.protocol import Spot, TuningTree
from policygen.dialects.selectors.arch_blocks import in_front
from policygen.dialects.selectors.arch_functions import ArchFunction, arch_function
from policygen.dialects.selectors.first_return import FirstReturn, first_return
from policygen.dialects.selectors.guarded_return import GuardedReturn, NewReturn
from policygen.dialects.selectors.header_returns import HeaderReturns, read_returns
from policygen.dialects.selectors.nearest import KnownReturn, empty_case, gone_before, nearest
from policygen.dialects.selectors.truth import Truth
from policygen.dialects.sites import site_of
from policygen.errors import InputError
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding, FamilyBinding
from policygen.model.selection import Selected
from policygen.source.text import Text


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
