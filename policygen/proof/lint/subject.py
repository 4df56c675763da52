"""What a rule looks at, and what it says."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from policygen.bindings.load import bound
from policygen.bindings.returned import newest_family, rules_of
from policygen.errors import InputError
from policygen.model.base import Span
from policygen.model.bindings import BenchmarkBinding, FamilyBinding
from policygen.model.cub import Cub
from policygen.model.tuning import Entry, Family, Member, Scan


@dataclass(frozen=True, slots=True)
class Subject:
    """One live entry, its family, and what is known about the family."""

    entry: Entry
    family: Family
    families: tuple[Family, ...]
    """Of the whole tree: what an entry inherits stands in others."""
    bindings: tuple[FamilyBinding, ...]
    """How variants come to be values; several where several sites read one family."""
    benchmarks: tuple[BenchmarkBinding, ...] = ()
    """What measured them."""

    def member(self, name: str) -> Member | None:
        """A member of the entry's own."""
        return next(iter(self.called(name)), None)

    def called(self, name: str) -> list[Member]:
        """The members of a name; a return has one in each part of its policy."""
        return [m for m in self.entry.members if m.name.rpartition(".")[2] == name]

    def first(self, names: Iterable[str]) -> Member | None:
        """The first of some members that the entry has."""
        return next((m for name in names if (m := self.member(name))), None)


@dataclass(frozen=True, slots=True)
class Remark:
    """What a rule says about a subject, and where."""

    span: Span
    message: str
    word: str | None = None
    """What to point at within the span; the comments of an entry have no spans of their own."""


def subjects(scan: Scan) -> Iterator[Subject]:
    """Every live entry of a scan, primary templates and guarded returns among them."""
    for family in scan.families:
        bindings = bindings_of(family, scan.cub)
        for entry in family.entries:
            if entry.disabled:
                continue
            known = bindings
            if entry.kind == "branch":
                known = tuple(_as_returned(family, entry, scan.cub))
            yield Subject(entry, family, scan.families, known, _benchmarks(known, scan.cub))


def _as_returned(family: Family, entry: Entry, cub: Cub) -> Iterator[FamilyBinding]:
    """How variants come to be what a return calls its values, at each site of its header."""
    for algorithm in bound(cub.version):
        for name in dict.fromkeys(binding.site for binding in algorithm.families):
            site = algorithm.site(name, cub.dialect)
            if site is None or (site.header, site.scope) != (family.header, family.namespace):
                continue
            with suppress(InputError):  # it returns another algorithm's values
                rules, fields = rules_of(algorithm, site, family, entry)
                members = {fields[value]: rule for value, rule in rules.items()}
                newest = newest_family(algorithm, site)
                yield newest.model_copy(update={"members": members})


def bindings_of(family: Family, cub: Cub) -> tuple[FamilyBinding, ...]:
    """What the bindings say about a family; nothing for one that no site reads."""
    if cub.version == "unknown":
        return ()
    return tuple(
        binding
        for algorithm in bound(cub.version)
        for binding in algorithm.families
        if binding.name == family.name
        # The families of old stay in trees that select otherwise, for the public dispatchers.
        and (site := algorithm.site(binding.site, "specializations"))
        and (site.header, site.scope) == (family.header, family.namespace)
    )


def _benchmarks(bindings: tuple[FamilyBinding, ...], cub: Cub) -> tuple[BenchmarkBinding, ...]:
    sites = {binding.site for binding in bindings}
    if not sites:
        return ()
    return tuple(
        b for algorithm in bound(cub.version) for b in algorithm.benchmarks if b.site in sites
    )
