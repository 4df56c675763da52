"""A guarded return that a result needs and that is not there yet, in the selector dialect."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from policygen.dialects.selectors.fronts import in_front
from policygen.dialects.selectors.functions import find_structs
from policygen.dialects.selectors.marks import SELECTOR
from policygen.dialects.selectors.nearest import (
    Bodies,
    Reached,
    gone_before,
    left,
    nearest,
    reached,
    read_bodies,
)
from policygen.dialects.selectors.truth import Truth, locals_of
from policygen.dialects.selectors.twins import Twin, twin
from policygen.errors import InputError
from policygen.model.arch import arch_number
from policygen.model.bindings import FamilyBinding
from policygen.model.cub import Cub
from policygen.model.facts import Told
from policygen.model.tuning import TuningHeader
from policygen.planning.branches import rules_of
from policygen.planning.cases import Destination, NewReturn
from policygen.planning.destination import site_of
from policygen.planning.measured import Measurement
from policygen.source.text import Text

TYPE = "type_t"
"""What CUB calls the enumeration of types."""


@dataclass(frozen=True, slots=True)
class Read:
    """What the functions of a header do."""

    text: Text
    bodies: Bodies
    constants: Mapping[str, str]
    returns: tuple[Reached, ...]
    types: Mapping[str, str]
    """Members of the policy selector that name a type, and the enumeration of the names."""


@dataclass(frozen=True, slots=True)
class NewReturns:
    """Finds places for returns in the headers of a tree."""

    cub: Cub
    headers: Mapping[str, TuningHeader]
    data: Mapping[str, bytes]
    arch: str
    below: str | None = None
    """The architecture before which a new block ends; none where later ones inherit."""
    headers_read: dict[str, Read] = field(default_factory=dict)

    def beside(self, one: Measurement, told: Told) -> Destination:
        """Among the returns of the architecture, or in a block of its own in front."""
        read, truth, known = self._known(one, told)
        own = [each for each in known if each.family.arch == self.arch]
        near = nearest(own, truth)
        gone = gone_before(near, truth) if near else None
        if near and not gone:
            facts = (*near.around, *near.conditions)
            return self._to(one, near.beside, NewReturn(near, facts, truth))
        if end := left(own, truth, self.arch):
            return self._to(one, end.beside, NewReturn(end, end.around, truth))
        try:
            return self._in_front(one, told, read, known, truth)
        except InputError as error:
            if gone is None:
                raise
            raise InputError(
                f"{read.text.path}:{read.text.line(gone.span.start)} returns for it before the"
                f" returns of {self.arch}"
            ) from error

    def bounded(self, one: Measurement, told: Told, to: Destination) -> Destination:
        """In a block of its own, which later architectures do not get to."""
        read, truth, known = self._known(one, told)
        entry = to.new.like if to.new else told.shown[1] if told.shown else None
        like = [each for each in known if entry and each.entry.body_span == entry.body_span]
        return self._in_front(one, told, read, like or known, truth)

    def _known(self, one: Measurement, told: Told) -> tuple[Read, Truth, list[Reached]]:
        """A header, what is known of a workload, and the returns that have what it tunes."""
        algorithm, site = site_of(one.benchmark, self.cub.version, "selectors")
        read = self._read(site.header)
        known, unused = [], False
        for each in read.returns:
            if each.family.namespace != site.scope:
                continue
            with contextlib.suppress(InputError):
                rules, _ = rules_of(algorithm, site, each.family, each.entry)
                unused = unused or not rules.keys() <= told.values.keys()
                known.append(each)
        if unused:
            raise InputError("CUB selects another algorithm for it than the one that was measured")
        return read, Truth(told.traits, self.arch, read.constants), known

    def _read(self, name: str) -> Read:
        if name not in self.headers_read:
            text = Text(name, self.data[name])
            _check_utf8(text)
            bodies = read_bodies(text)
            found = tuple(reached(bodies, self.headers[name].selectors))
            constants = locals_of(text.code, (f.body for f, _ in bodies))
            selector = find_structs(text.code).get(SELECTOR)
            pairs = zip(selector.fields, selector.types, strict=True) if selector else ()
            types = {name: kind for name, kind in pairs if kind == TYPE}
            self.headers_read[name] = Read(text, bodies, constants, found, types)
        return self.headers_read[name]

    def _in_front(
        self,
        one: Measurement,
        told: Told,
        read: Read,
        known: Sequence[Reached],
        truth: Truth,
    ) -> Destination:
        now = told.shown[1].body_span if told.shown else None
        decides = next((each for each in known if each.entry.body_span == now), None)
        number = arch_number(self.arch)
        earlier = [each for each in known if arch_number(each.family.arch) <= number]
        found = in_front(read.text, earlier, read.bodies, truth, self.below, decides)
        front = found or twin(read.text, known, read.bodies, truth, self.below)
        if front is None:
            raise InputError(
                f"no return of {read.text.path} asks for what it has, but for a size or a type",
                "Add a guarded return for it by hand; policygen updates it from then on.",
            )
        facts = (*([f"before {self.below}"] if self.below else []), *front.conditions)
        return self._to(one, front.beside, NewReturn(front, facts, truth))

    def _to(self, one: Measurement, like: Reached, new: NewReturn) -> Destination:
        algorithm, site = site_of(one.benchmark, self.cub.version, "selectors")
        rules, fields = rules_of(algorithm, site, like.family, like.entry)
        binding = FamilyBinding(site=site.name, name=like.family.name, args=(), members=rules)
        name = new.at.name if isinstance(new.at, Twin) else like.family.name
        types = self._read(site.header).types
        return Destination(
            site, binding, like.family, name, fields, new, types=types, truth=new.truth
        )

    def now(self, to: Destination, told: Told) -> Destination:
        """With what tells the types apart that a return is for."""
        read = self._read(to.site.header)
        span = told.shown[1].body_span if told.shown else None
        now = next((each for each in read.returns if each.entry.body_span == span), None)
        truth = Truth(told.traits, self.arch, read.constants)
        return replace(to, now=now, types=read.types, truth=truth)


def _check_utf8(text: Text) -> None:
    """A plan is JSON: what is made after a line must be text."""
    try:
        text.data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{text.path}:{text.line(error.start)} is not UTF-8", "Save the header as UTF-8."
        ) from error
