"""Which rows of the bindings a tree's headers fit: what a header holds decides, not its version.

Versions are the first guess. A row fits where the header has what it names: the hub with as many
template parameters, the members of the policy, the parameters of a family.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from policygen.bindings.rows import Alternatives, Other, Row, as_read, groups, guess, nearest_first
from policygen.bindings.shapes import parameters, split, structs
from policygen.bindings.spelled import renamed
from policygen.model.bindings import BenchmarkBinding, Binding, FamilyBinding, Site
from policygen.model.cub import Cub, Dialect
from policygen.model.versions import numbers

WORD = re.compile(r"\w+")
# cub::detail::arg_min, ::cub::KeyValuePair<int, T>
_OURS = re.compile(r"(?<!\w)cub::(?:\w+::)*(\w+)")
# SelectImpl::Partition
_ENUMERATIONS = re.compile(r"(?<![\w:])([A-Z]\w+)::")
# policy_selector_from_types<KeyT, ValueT>
_HUB = re.compile(r"\s*([\w:]+)\s*(<.*)?", re.DOTALL)
CONFIG = "cub/config.cuh"
"""What every whole tree has."""
Fitting = tuple[Site | None, Mapping[str, str]]
"""A row, and what the tree calls otherwise."""
NOTHING: Fitting = (None, {})


@dataclass(frozen=True)
class TreeText:
    """What a tree's headers hold: text without comments."""

    headers: Mapping[str, str]
    """Tuning headers by name, each with those that it includes."""
    exists: Callable[[str], bool]
    """Whether the tree has a file: `cub/agent/agent_topk.cuh`."""
    rest: Callable[[], str]
    """All that CUB has besides."""

    @cached_property
    def _rest(self) -> str:
        return self.rest()

    def has(self, word: str) -> bool:
        """Whether CUB has a name anywhere."""
        named = re.compile(rf"\b{word}\b")
        texts = (*self.headers.values(), self._rest)
        return any(word in text and named.search(text) is not None for text in texts)


def read_as(cub: Cub, known: Iterable[Binding], held: TreeText) -> str:
    """The version as which bindings are read for a tree: its own, and the rows that are others."""
    at = numbers(cub.version)
    others: dict[str, Other] = {}
    if cub.library != "cub":
        return as_read(cub.version, _declared(known, at, held))
    if not held.exists(CONFIG):
        return cub.version  # headers of one's own, before those of a toolkit
    for binding in known:
        sites = _sites(binding, at, held, cub.dialect)
        others |= _others({group: row for group, (row, _) in sites.items()}, at)
        for group, (row, names) in sites.items():
            if row is not None and names:
                others[group.name] = Other(group.rows.index(row), names)
        read = [row for row, _ in sites.values() if row is not None]
        others |= _others(_families(binding, at, held, read), at)
        others |= _others(_benchmarks(binding, at, held, read), at)
    return as_read(cub.version, others)


def _declared(known: Iterable[Binding], at: tuple[int, ...], held: TreeText) -> dict[str, Other]:
    """The sites whose hub a header declares, where that of its version is another one."""
    others: dict[str, Other] = {}
    for binding in known:
        found: dict[Alternatives[Site], Site | None] = {}
        for group in groups(binding.algorithm, binding.sites):
            rows = nearest_first(group.rows, at)
            there = (row for row in rows if _names_hub(row, held.headers.get(row.header, "")))
            found[group] = next(there, guess(group.rows, at))
        others |= _others(found, at)
    return others


def _names_hub(site: Site, text: str) -> bool:
    match = _HUB.match(site.hub)
    return match is not None and re.search(rf"\b{match[1]}\b", text) is not None


def _others(found: Mapping[Alternatives[Row], Row | None], at: tuple[int, ...]) -> dict[str, Other]:
    """The rows that are not the version's own, by their place in their group."""
    return {
        group.name: Other(None if row is None else group.rows.index(row))
        for group, row in found.items()
        if row is not guess(group.rows, at)
    }


def _sites(
    binding: Binding, at: tuple[int, ...], held: TreeText, dialect: Dialect
) -> dict[Alternatives[Site], Fitting]:
    """Chooses the site of each name and dialect; where nothing fits, the compiler may tell why."""
    chosen: dict[Alternatives[Site], Fitting] = {}
    by_name: dict[str, list[Alternatives[Site]]] = {}
    for group in groups(binding.algorithm, binding.sites):
        by_name.setdefault(group.rows[0].name, []).append(group)
    for lot in by_name.values():
        first: dict[Alternatives[Site], Fitting] = {g: (guess(g.rows, at), {}) for g in lot}
        fitting = {group: _fitting(group.rows, at, held) for group in lot}
        best = {g: fitting[g] if fitting[g][0] else first[g] for g in lot}
        selectors = [group for group in lot if group.rows[0].is_selector]
        if any(best[group][0] and _has_selector(group.rows, held) for group in selectors):
            # What stands beside a selector decides nothing; CUB 3.3 has them in some headers.
            beside = dialect == "selectors"
            chosen |= {
                g: best[g] if g in selectors else first[g] if beside else NOTHING for g in lot
            }
        elif any(row for row, _ in fitting.values()):
            chosen |= {g: fitting[g] if g in selectors else best[g] for g in lot}
        elif any(_lacks_policy(row, held) for row, _ in first.values() if row):
            chosen |= dict.fromkeys(lot, NOTHING)
        else:
            chosen |= first
    return chosen


def _lacks_policy(site: Site, held: TreeText) -> bool:
    """Whether a header has a site's hub, and nothing that is called as the policy is."""
    text = held.headers.get(site.header)
    if text is None or site.is_selector or not site.policy or not _has_hub(site, text):
        return False
    return not re.search(rf"\b{site.policy.partition('::')[0]}\b", text)


def _fitting(rows: Sequence[Site], at: tuple[int, ...], held: TreeText) -> Fitting:
    """The first row that a header fits as it stands; else the first that fits by older names."""
    found = [
        (row, names) for row in nearest_first(rows, at) if (names := _names(row, held)) is not None
    ]
    return next((one for one in found if not one[1]), found[0] if found else NOTHING)


def _has_selector(rows: Iterable[Site], held: TreeText) -> bool:
    """Whether the header declares what one of the rows calls the policy selector."""
    return any(
        parameters(held.headers.get(site.header, ""), match[1].rpartition("::")[2])
        for site in rows
        if (match := _HUB.match(site.hub))
    )


def _families(
    binding: Binding,
    at: tuple[int, ...],
    held: TreeText,
    sites: Sequence[Site],
) -> dict[Alternatives[FamilyBinding], FamilyBinding | None]:
    """Chooses families by their parameters; those of another version where the site is of it."""
    chosen = {}
    read = {site.name: site for site in sites if not site.is_selector}
    for group in groups(binding.algorithm, binding.families):
        first = guess(group.rows, at)
        site = read.get(group.rows[0].site)
        text = held.headers.get(site.header, "") if site else ""
        declared = parameters(text, group.rows[0].name)
        taking = [row for row in group.rows if _takes(declared, len(row.args))]
        told = site and taking and (first or not site.covers(at))
        chosen[group] = nearest_first(taking, at)[0] if told else first
    return chosen


def _benchmarks(
    binding: Binding,
    at: tuple[int, ...],
    held: TreeText,
    sites: Sequence[Site],
) -> dict[Alternatives[BenchmarkBinding], BenchmarkBinding | None]:
    """Chooses benchmarks that give a site its roles; none where the tree lacks what they name."""
    known = {role for one in binding.benchmarks for role in (*one.roles, *one.constants)}
    decided = {site.name for site in sites}
    needed: dict[str, set[str]] = {}
    for site in sites:
        needed.setdefault(site.name, set()).update(known & {*WORD.findall(site.hub)})
    chosen: dict[Alternatives[BenchmarkBinding], BenchmarkBinding | None] = {}
    for group in groups(binding.algorithm, binding.benchmarks):
        first = guess(group.rows, at)
        decides = first is not None and first.site in decided
        there = [row for row in group.rows if _names_exist(row, held)] if decides else []
        fits = _first(
            there, at, lambda row: needed.get(row.site, set()) <= {*row.roles, *row.constants}
        )
        chosen[group] = fits or (first if first in there else None)
    return chosen


def _names_exist(row: BenchmarkBinding, held: TreeText) -> bool:
    texts = (*row.roles.values(), *row.constants.values())
    return all(held.has(word) for text in texts for word in _OURS.findall(text))


def _first(rows: Sequence[Row], at: tuple[int, ...], fits: Callable[[Row], bool]) -> Row | None:
    """The first row that fits: the version's own, then older ones, then newer ones."""
    return next(filter(fits, nearest_first(rows, at)), None)


def _names(site: Site, held: TreeText) -> Mapping[str, str] | None:
    """What a header calls otherwise than a site; none where it does not fit."""
    text = held.headers.get(site.header)
    if text is None:
        return None
    there = (
        all(re.search(rf"\bnamespace\s+[\w:]*\b{n}\b", text) for n in site.namespace.split("::"))
        and all(held.exists(name) for name in site.includes if name.startswith("cub/"))
        and _has_hub(site, text)
    )
    if not there:
        return None
    if site.is_selector:
        return renamed(site, structs(text), text)
    words = site.policy.split("::") if site.policy else ()
    return {} if all(re.search(rf"\b{word}\b", text) for word in words) else None


def _has_hub(site: Site, text: str) -> bool:
    """Whether a header declares the hub, with as many template parameters as are given."""
    match = _HUB.match(site.hub)
    assert match is not None
    name, rest = match[1].rpartition("::")[2], match[2] or ""
    if any(re.search(rf"\bstruct\s+{name}\b", line) for line in site.support):
        return True
    if not all(re.search(rf"\b{word}\b", text) for word in _ENUMERATIONS.findall(rest)):
        return False
    given = len(split(rest)) if rest else 0
    return _takes(parameters(text, name), given)


def _takes(declared: Iterable[tuple[int, int]], given: int) -> bool:
    return any(least <= given <= most for least, most in declared)
