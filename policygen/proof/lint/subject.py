"""What a rule looks at, and what it says."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from policygen.bindings.load import Bound, bound
from policygen.bindings.returned import newest_family, rules_of
from policygen.errors import InputError
from policygen.model.base import Span
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, Site
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
    returns: bool = True
    """Whether an entry with a condition is a return; else it is a config of types."""

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
        live = [entry for entry in family.entries if not entry.disabled]
        bindings = bindings_of(family, scan.cub)
        branches = not bindings and any(entry.kind == "branch" for entry in live)
        sites = _sites(family, scan.cub) if branches else []
        benchmarks = _benchmarks(bindings, scan.cub)
        for entry in live:
            if branches:
                bindings = tuple(_as_returned(family, entry, sites))
                benchmarks = _benchmarks(bindings, scan.cub)
            returns = scan.cub.has_returns
            yield Subject(entry, family, scan.families, bindings, benchmarks, returns)


def _sites(family: Family, cub: Cub) -> list[tuple[Bound, Site]]:
    """The sites whose selectors a function with returns may be of: those of its header."""
    place = family.header, family.namespace
    return [
        (algorithm, site)
        for algorithm in bound(cub.bindings)
        for name in dict.fromkeys(binding.site for binding in algorithm.families)
        if (site := algorithm.site(name, cub.dialect)) and (site.header, site.scope) == place
    ]


def _as_returned(
    family: Family, entry: Entry, sites: Iterable[tuple[Bound, Site]]
) -> Iterator[FamilyBinding]:
    """How variants come to be what a return calls its values, at each site of its header."""
    for algorithm, site in sites:
        with suppress(InputError):  # it returns another algorithm's values
            rules, fields = rules_of(algorithm, site, None, family, entry)
            members = {fields[value]: rule for value, rule in rules.items()}
            yield newest_family(algorithm, site).model_copy(update={"members": members})


def bindings_of(family: Family, cub: Cub) -> tuple[FamilyBinding, ...]:
    """What the bindings say about a family; nothing for one that no site reads."""
    if cub.version == "unknown":
        return ()
    return tuple(
        binding
        for algorithm in bound(cub.bindings)
        for binding in algorithm.families
        if binding.name == family.name
        # The families of old stay in trees that select otherwise, for the public dispatchers.
        and any(
            site.name == binding.site
            and not site.is_selector
            and (site.header, site.scope) == (family.header, family.namespace)
            for site in algorithm.sites
        )
    )


def _benchmarks(bindings: tuple[FamilyBinding, ...], cub: Cub) -> tuple[BenchmarkBinding, ...]:
    sites = {binding.site for binding in bindings}
    if not sites:
        return ()
    return tuple(
        b for algorithm in bound(cub.bindings) for b in algorithm.benchmarks if b.site in sites
    )
