"""Which rows of the bindings a tree's headers fit: what a header holds decides, not its version.

Versions are the first guess. A row fits where the header has what it names: the hub with as many
template parameters, the members of the policy, the parameters of a family.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Generic, TypeVar, cast

from policygen.bindings.words import words
from policygen.model.bindings import BenchmarkBinding, Binding, FamilyBinding, Site
from policygen.model.trees import Cub, Dialect, Versioned, numbers

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


@dataclass(frozen=True, slots=True)
class Other:
    """A row that holds instead of a version's own, or none."""

    row: int | None
    """Its place in its group."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Member → what the tree calls it."""

    def __str__(self) -> str:
        names = [f"{old}>{new}" for old, new in sorted(self.renamed.items())]
        return "|".join([NONE if self.row is None else str(self.row), *names])


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


Row = TypeVar("Row", bound=Versioned)


@dataclass(frozen=True, slots=True, eq=False)
class Alternatives(Generic[Row]):
    """Rows of the same name: at most one of them holds."""

    name: str
    rows: tuple[Row, ...]


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


NONE = "none"


# Rows of the same name in a binding, and which of them hold for a tree.
#
# A version tells it: `3.6.0`. Where a tree's headers are not what its version says, the version
# is
# followed by the rows that hold instead: `3.6.0+topk/site/topk/selectors=1`.


def groups(algorithm: str, rows: Iterable[Row]) -> Iterator[Alternatives[Row]]:
    """The rows of a kind, by what they are called, in the order in which they stand."""
    lots: dict[str, list[Row]] = {}
    for row in rows:
        lots.setdefault(f"{algorithm}/{_name(row)}", []).append(row)
    for name, lot in lots.items():
        yield Alternatives(name, tuple(lot))


def _name(row: Versioned) -> str:
    if isinstance(row, Site):
        return f"site/{row.name}/{row.dialect}"
    if isinstance(row, FamilyBinding):
        return f"family/{row.site}/{row.name}"
    assert isinstance(row, BenchmarkBinding)
    return f"benchmark/{row.name}"


def guess(rows: Iterable[Row], at: tuple[int, ...]) -> Row | None:
    """The row of a version."""
    return next((row for row in rows if row.covers(at)), None)


def nearest_first(rows: Sequence[Row], at: tuple[int, ...]) -> list[Row]:
    """The version's own, then older ones, then newer ones: `main` is not yet what it is called."""
    ordered = sorted(rows, key=lambda row: numbers(row.since or "0"))
    own = [row for row in ordered if row.covers(at)]
    newer = [row for row in ordered if row.since and numbers(row.since) > at]
    older = [row for row in ordered if row not in own and row not in newer]
    return [*own, *reversed(older), *newer]


def as_read(version: str, others: Mapping[str, Other]) -> str:
    """A version with the rows that hold instead of its own."""
    told = [f"{name}={row}" for name, row in sorted(others.items())]
    return f"{version}+{','.join(told)}" if told else version


@lru_cache(maxsize=64)
def read(version: str) -> dict[str, Other]:
    """The rows that hold instead of the version's own, by group."""
    found = {}
    for one in filter(None, version.partition("+")[2].split(",")):
        name, _, told = one.partition("=")
        row, *names = told.split("|")
        pairs = (pair.partition(">") for pair in names)
        found[name] = Other(None if row == NONE else int(row), {old: new for old, _, new in pairs})
    return found


def chosen(
    algorithm: str, rows: Sequence[Row], at: tuple[int, ...], version: str
) -> tuple[Row, ...]:
    """The rows that hold, in the order in which they stand."""
    others = read(version)
    if not others:
        return tuple(row for row in rows if row.covers(at))
    kept: dict[int, Row] = {}
    for group in groups(algorithm, rows):
        other = others.get(group.name)
        if other is None:
            kept |= {id(row): row for row in group.rows if row.covers(at)}
        elif other.row is not None:
            kept[id(group.rows[other.row])] = _respelled(group.rows[other.row], other)
    return tuple(kept[id(row)] for row in rows if id(row) in kept)


def _respelled(row: Row, other: Other) -> Row:
    if not isinstance(row, Site) or not other.renamed:
        return row
    return cast("Row", respelled(row, other.renamed))


# policy.lookback_delay.kind, selected.lookahead.items_per_thread, other.algorithm
_PATH = re.compile(r"\b(policy|selected|other)((?:\.\w+)+)")
# TransformAlgorithm::prefetch
_ENUMERATOR = re.compile(r"(?<![\w:])([A-Z]\w+)::(\w+)")
Path = tuple[str, ...]
Structs = Mapping[str, Mapping[str, str]]
"""Struct → member → its type, by the last part of its name."""


# What a site reads of a policy, as a tree calls it: members had other names before, or none.


def renamed(site: Site, known: Structs, text: str) -> dict[str, str] | None:
    """What a tree calls otherwise, or has not; none where it does not have what a site reads.

    All members belong to one struct, which is what the policy selector returns.
    """
    paths = sorted(set(_paths(site)))
    best: dict[Path, Path | None] | None = None
    for root in known:
        found = _all(root, paths, known)
        if found and (best is None or _changes(found) < _changes(best)):
            best = found
    others = _enumerators(site, text)
    if best is None or others is None:
        return None
    told = {".".join(old): ".".join(new or ()) for old, new in best.items() if old != new}
    return {**told, **others}


def respelled(site: Site, told: Mapping[str, str]) -> Site:
    """A site with the names that a tree has; values that it has not are left out."""
    head = tuple(site.policy.split(".")) if site.policy else ()
    policy = told.get(site.policy, site.policy)
    cut = len(policy.split(".")) if policy else 0

    def path(match: re.Match[str]) -> str:
        parts = tuple(match[2].strip(".").split("."))
        inside = match[1] == "policy"
        full = (*head, *parts) if inside else parts
        for end in range(len(full), 0, -1):  # a delay is known by its own name alone
            if (known := told.get(".".join(full[:end]))) is not None:
                new = (*filter(None, known.split(".")), *full[end:])
                return ".".join([match[1], *(new[cut:] if inside else new)])
        return match[0]

    def text(one: str) -> str:
        one = _PATH.sub(path, one)
        return _ENUMERATOR.sub(lambda m: told.get(m[0], m[0]), one)

    def lost(one: str) -> bool:
        pairs = ((m[1], tuple(m[2].strip(".").split("."))) for m in _PATH.finditer(one))
        return any(
            told.get(".".join((*head, *p) if root == "policy" else p)) == "" for root, p in pairs
        )

    return site.model_copy(
        update={
            "policy": policy,
            "values": {name: text(one) for name, one in site.values.items() if not lost(one)},
            "types": {name: text(one) for name, one in site.types.items() if not lost(one)},
            "delay": tuple(map(text, site.delay)) if site.delay else None,
            "setup": tuple(map(text, site.setup)),
            "support": tuple(map(text, site.support)),
        }
    )


def _paths(site: Site) -> Iterator[Path]:
    """Each member that is read, from the selected policy on."""
    head = tuple(site.policy.split(".")) if site.policy else ()
    if head:
        yield head
    delay = [one.rpartition(".")[0] for one in site.delay or ()]
    told = (*site.values.values(), *site.types.values(), *delay, *site.setup)
    for match in (match for one in told for match in _PATH.finditer(one)):
        parts = tuple(match[2].strip(".").split("."))
        yield (*head, *parts) if match[1] == "policy" else parts


def _all(root: str, paths: Sequence[Path], known: Structs) -> dict[Path, Path | None]:
    """Each path as a struct has it; nothing where it lacks one."""
    found: dict[Path, Path | None] = {}
    for path in paths:
        ways = list(_ways(root, path, known))
        if not ways:
            return {}
        found[path] = min(ways, key=lambda way: (way is None, way != path, way or ()))
    kept = [way for path, way in found.items() if way and path]
    return found if kept else {}


def _ways(struct: str, path: Path, known: Structs) -> Iterator[Path | None]:
    """What a path can be called in a struct; none where older trees had nothing of the kind."""
    if not path:
        yield ()
        return
    name, *rest = path
    members = known.get(struct, {})
    for called in (name, *words().older.get(name, ())):
        if called in members:
            if not rest:
                yield (called,)
            elif members[called] in known:
                for way in _ways(members[called], tuple(rest), known):
                    yield None if way is None else (called, *way)
            else:  # a struct of another header
                yield (called, *rest)
        elif not called and name not in members:
            yield from _ways(struct, tuple(rest), known) if rest else (None,)


def _changes(found: Mapping[Path, Path | None]) -> int:
    return sum(old != new for old, new in found.items())


def _enumerators(site: Site, text: str) -> dict[str, str] | None:
    """The enumerators that have another name; none where a tree lacks their enumeration."""
    found = {}
    for match in (m for one in (*site.setup, *site.support) for m in _ENUMERATOR.finditer(one)):
        for called in (match[0], *words().older.get(match[0], ())):
            if re.search(rf"\b{called.partition('::')[0]}\b", text):
                if called != match[0]:
                    found[match[0]] = called
                break
        else:
            return None
    return found


_OPEN, _CLOSE = "<([{", ">)]}"
# struct reduce_policy {
_STRUCT = re.compile(r"\bstruct\s+(\w+)\s*(?:final\s*)?\{")
# using rle_encode_policy = reduce_by_key::reduce_by_key_policy;
_ALIAS = re.compile(r"\busing\s+(\w+)\s*=\s*(?:[\w:]*::)?(\w+)\s*;")
# scan_lookback_policy lookback = {}
_MEMBER = re.compile(r"([\w:]+(?:<[^()]*>)?)\s+(\w+)\s*(?:=[\s\S]*|\{\})?$")
_NESTED = re.compile(r"\{[^{}]*\}")
_DIRECTIVE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_TYPE = re.compile(r"(\w+)(?:<.*>)?$", re.DOTALL)
_ENDS = re.compile(r";|\{\}(?!\s*;)")


# What a header declares, by its text: template parameters, and the members of its structs.


def parameters(text: str, name: str) -> list[tuple[int, int]]:
    """How many template arguments a name takes, at least and at most, for each declaration."""
    found = []
    for match in re.finditer(rf"\b(?:struct|class|using)\s+{name}\b(?!\s*[<])", text):
        before = text[: match.start()].rstrip()
        start = _opening(before) if before.endswith(">") else 0
        if not (start and re.search(r"\btemplate\s*$", before[:start])):
            found.append((0, 0))
            continue
        listed = split(before[start:])
        most = 1000 if any("..." in one for one in listed) else len(listed)
        found.append((sum("=" not in one and "..." not in one for one in listed), most))
    return found


def _opening(text: str) -> int:
    """Where the bracket opens that ends a text."""
    depth = 0
    for index in range(len(text) - 1, -1, -1):
        char = text[index]
        if char in _CLOSE and text[index - 1 : index + 1] != "->":
            depth += 1
        elif char in _OPEN:
            depth -= 1
            if depth == 0:
                return index
    return 0


def split(text: str) -> list[str]:
    """The parts of the bracket that begins a text: `<A, B<C, D>>` has two."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in _OPEN) - (char in _CLOSE)
        if depth == 0:
            break
        if char == "," and depth == 1:
            parts.append("")
        elif depth > 1 or char not in _OPEN:
            parts[-1] += char
    found = [part.strip() for part in parts]
    return found if found != [""] else []


@lru_cache(maxsize=256)
def structs(text: str) -> Structs:
    """The structs of a header with their members; an alias has those of its struct."""
    found: dict[str, dict[str, str]] = {}
    for match in _STRUCT.finditer(text):
        members = dict(_members(_body(text, match.end())))
        if members:
            found.setdefault(match[1], members)
    for match in _ALIAS.finditer(text):
        if match[2] in found:
            found.setdefault(match[1], found[match[2]])
    return found


def _body(text: str, start: int) -> str:
    depth = 1
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return text[start : match.start()]
    return text[start:]


def _members(body: str) -> Iterator[tuple[str, str]]:
    """Name and type of each; what has parameters is no member."""
    flat = _DIRECTIVE.sub("", body)
    while (less := _NESTED.sub("\0", flat)) != flat:
        flat = less
    for part in _ENDS.split(flat.replace("\0", "{}")):
        lines = " ".join(part.split())
        match = _MEMBER.match(lines)
        if match and "(" not in lines.partition("=")[0]:
            kind = _TYPE.search(match[1])
            yield match[2], kind[1] if kind else ""
