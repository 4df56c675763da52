"""Selects the binding rows that fit a tree's headers by their contents rather than their version.

The version gives the first guess. A row fits if the header has everything that the row names:
the hub with the given number of template parameters, the policy's members, a family's parameters.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from policygen.bindings.load import (
    ENUMERATOR,
    Alternatives,
    MemberPath,
    Row,
    RowOverride,
    as_read,
    groups,
    guess,
    member_paths,
    nearest_first,
)
from policygen.bindings.words import words
from policygen.headers.selectors.functions import Block, HeaderCode
from policygen.headers.specializations.families import template_head
from policygen.headers.syntax import closing_angle, split_list, statements
from policygen.headers.text import Text, squeeze
from policygen.model.bindings import BenchmarkBinding, Binding, FamilyBinding, Site
from policygen.model.trees import Cub, Dialect, numbers

WORD = re.compile(r"\w+")
# cub::detail::arg_min, ::cub::KeyValuePair<int, T>
_OURS = re.compile(r"(?<!\w)cub::(?:\w+::)*(\w+)")
# SelectImpl::Partition
_ENUMERATIONS = re.compile(r"(?<![\w:])([A-Z]\w+)::")
# policy_selector_from_types<KeyT, ValueT>
_HUB = re.compile(r"\s*([\w:]+)\s*(<.*)?", re.DOTALL)
CONFIG = "cub/config.cuh"
"""A file that every complete tree has."""
Fitting = tuple[Site | None, Mapping[str, str]]
"""A row, and the names that the tree spells differently."""
NOTHING: Fitting = (None, {})


@dataclass(frozen=True)
class TreeText:
    """The text of a tree's headers."""

    headers: Mapping[str, str]
    """Tuning headers by name without comments, each followed by the headers it includes."""
    files: Mapping[str, bytes]
    """All CUB headers by path: `cub/agent/agent_topk.cuh`."""

    @cached_property
    def _text(self) -> bytes:
        return b"\n".join(self.files.values())

    def has(self, word: str) -> bool:
        """Returns whether a name occurs anywhere in CUB."""
        name = word.encode()
        return name in self._text and re.search(rb"\b%b\b" % name, self._text) is not None


def read_as(cub: Cub, bindings: Iterable[Binding], tree: TreeText) -> str:
    """Returns the version with which to read a tree's bindings, plus the rows that override it."""
    version = numbers(cub.version)
    overrides: dict[str, RowOverride] = {}
    if cub.library != "cub":
        return as_read(cub.version, _declared(bindings, version, tree))
    if CONFIG not in tree.files:
        return cub.version  # separate headers that shadow those of a toolkit
    for binding in bindings:
        sites = _sites(binding, version, tree, cub.dialect)
        overrides |= _overrides({group: row for group, (row, _) in sites.items()}, version)
        for group, (row, names) in sites.items():
            if row is not None and names:
                overrides[group.name] = RowOverride(group.rows.index(row), names)
        read = [row for row, _ in sites.values() if row is not None]
        overrides |= _overrides(_families(binding, version, tree, read), version)
        overrides |= _overrides(_benchmarks(binding, version, tree, read), version)
    return as_read(cub.version, overrides)


def _declared(
    bindings: Iterable[Binding], version: tuple[int, ...], tree: TreeText
) -> dict[str, RowOverride]:
    """Finds the sites whose header declares another hub than the one for its version."""
    overrides: dict[str, RowOverride] = {}
    for binding in bindings:
        row_by_group: dict[Alternatives[Site], Site | None] = {}
        for group in groups(binding.algorithm, binding.sites):
            rows = nearest_first(group.rows, version)
            matching = (row for row in rows if _names_hub(row, tree.headers.get(row.header, "")))
            row_by_group[group] = next(matching, guess(group.rows, version))
        overrides |= _overrides(row_by_group, version)
    return overrides


def _names_hub(site: Site, text: str) -> bool:
    match = _HUB.match(site.hub)
    return match is not None and re.search(rf"\b{match[1]}\b", text) is not None


def _overrides(
    row_by_group: Mapping[Alternatives[Row], Row | None], version: tuple[int, ...]
) -> dict[str, RowOverride]:
    """Returns the rows that differ from the version's own, as indices in their groups."""
    return {
        group.name: RowOverride(None if row is None else group.rows.index(row))
        for group, row in row_by_group.items()
        if row is not guess(group.rows, version)
    }


def _sites(
    binding: Binding, version: tuple[int, ...], tree: TreeText, dialect: Dialect
) -> dict[Alternatives[Site], Fitting]:
    """Chooses a site per name and dialect; if nothing fits, the compiler may report why."""
    chosen: dict[Alternatives[Site], Fitting] = {}
    by_name: dict[str, list[Alternatives[Site]]] = {}
    for group in groups(binding.algorithm, binding.sites):
        by_name.setdefault(group.rows[0].name, []).append(group)
    for peers in by_name.values():
        guesses: dict[Alternatives[Site], Fitting]
        guesses = {g: (guess(g.rows, version), {}) for g in peers}
        fitting = {g: _fitting(g.rows, version, tree) for g in peers}
        best = {g: fitting[g] if fitting[g][0] else guesses[g] for g in peers}
        selectors = [g for g in peers if g.rows[0].is_selector]
        if any(best[g][0] and _has_selector(g.rows, tree) for g in selectors):
            # Other dialects beside a selector are ignored; CUB 3.3 has both in some headers.
            keep_others = dialect == "selectors"
            others = guesses if keep_others else dict.fromkeys(peers, NOTHING)
            chosen |= {g: best[g] if g in selectors else others[g] for g in peers}
        elif any(row for row, _ in fitting.values()):
            chosen |= {g: fitting[g] if g in selectors else best[g] for g in peers}
        elif any(_lacks_policy(row, tree) for row, _ in guesses.values() if row):
            chosen |= dict.fromkeys(peers, NOTHING)
        else:
            chosen |= guesses
    return chosen


def _lacks_policy(site: Site, tree: TreeText) -> bool:
    """Returns whether a header declares a site's hub but never mentions its policy."""
    text = tree.headers.get(site.header)
    if text is None or site.is_selector or not site.policy or not _has_hub(site, text):
        return False
    return not re.search(rf"\b{site.policy.partition('::')[0]}\b", text)


def _fitting(rows: Sequence[Site], version: tuple[int, ...], tree: TreeText) -> Fitting:
    """Returns the first row that fits unchanged, else the first that fits with older names."""
    fitting = [
        (row, names)
        for row in nearest_first(rows, version)
        if (names := _renamed_if_fitting(row, tree)) is not None
    ]
    return next((fit for fit in fitting if not fit[1]), fitting[0] if fitting else NOTHING)


def _has_selector(rows: Iterable[Site], tree: TreeText) -> bool:
    """Returns whether the header declares the policy selector that one of the rows names."""
    return any(
        parameters(tree.headers.get(site.header, ""), match[1].rpartition("::")[2])
        for site in rows
        if (match := _HUB.match(site.hub))
    )


def _families(
    binding: Binding, version: tuple[int, ...], tree: TreeText, sites: Sequence[Site]
) -> dict[Alternatives[FamilyBinding], FamilyBinding | None]:
    """Chooses families by their parameters, and rows for another version only with their site."""
    chosen = {}
    site_by_name = {site.name: site for site in sites if not site.is_selector}
    for group in groups(binding.algorithm, binding.families):
        default = guess(group.rows, version)
        site = site_by_name.get(group.rows[0].site)
        text = tree.headers.get(site.header, "") if site else ""
        declared = parameters(text, group.rows[0].name)
        taking = [row for row in group.rows if _accepts(declared, len(row.args))]
        is_decided = site and taking and (default or not site.covers(version))
        chosen[group] = nearest_first(taking, version)[0] if is_decided else default
    return chosen


def _benchmarks(
    binding: Binding, version: tuple[int, ...], tree: TreeText, sites: Sequence[Site]
) -> dict[Alternatives[BenchmarkBinding], BenchmarkBinding | None]:
    """Chooses benchmarks that provide a site's roles; no row if the tree lacks a name they use."""
    known_roles = {role for row in binding.benchmarks for role in (*row.roles, *row.constants)}
    site_names = {site.name for site in sites}
    needed: dict[str, set[str]] = {}
    for site in sites:
        needed.setdefault(site.name, set()).update(known_roles & {*WORD.findall(site.hub)})
    chosen: dict[Alternatives[BenchmarkBinding], BenchmarkBinding | None] = {}
    for group in groups(binding.algorithm, binding.benchmarks):
        default = guess(group.rows, version)
        decides = default is not None and default.site in site_names
        usable = [row for row in group.rows if _names_exist(row, tree)] if decides else []
        fits = (
            row
            for row in nearest_first(usable, version)
            if needed.get(row.site, set()) <= {*row.roles, *row.constants}
        )
        chosen[group] = next(fits, default if default in usable else None)
    return chosen


def _names_exist(row: BenchmarkBinding, tree: TreeText) -> bool:
    texts = (*row.roles.values(), *row.constants.values())
    return all(tree.has(word) for text in texts for word in _OURS.findall(text))


def _renamed_if_fitting(site: Site, tree: TreeText) -> Mapping[str, str] | None:
    """Maps a site's names to the header's where they differ; `None` if the header does not fit."""
    text = tree.headers.get(site.header)
    if text is None:
        return None
    opened = (rf"\bnamespace\s+[\w:]*\b{name}\b" for name in site.namespace.split("::"))
    included = (include for include in site.includes if include.startswith("cub/"))
    if not all(re.search(pattern, text) for pattern in opened):
        return None
    if not all(include in tree.files for include in included) or not _has_hub(site, text):
        return None
    if site.is_selector:
        return renamed(site, structs(text), text)
    policy_names = site.policy.split("::") if site.policy else ()
    return {} if all(re.search(rf"\b{word}\b", text) for word in policy_names) else None


def _has_hub(site: Site, text: str) -> bool:
    """Returns whether a header declares the hub with as many template parameters as are given."""
    match = _HUB.match(site.hub)
    assert match is not None
    name, rest = match[1].rpartition("::")[2], match[2] or ""
    if any(re.search(rf"\bstruct\s+{name}\b", line) for line in site.support):
        return True
    if not all(re.search(rf"\b{word}\b", text) for word in _ENUMERATIONS.findall(rest)):
        return False
    close = closing_angle(rest.encode(), 0) if rest else None
    argument_count = len(split_list(rest.encode(), 1, close)) if close else 0
    return _accepts(parameters(text, name), argument_count)


def _accepts(declared: Iterable[tuple[int, int]], argument_count: int) -> bool:
    return any(minimum <= argument_count <= maximum for minimum, maximum in declared)


Structs = Mapping[str, Mapping[str, str]]
"""Struct → member → type, by the last component of the struct's name."""


# Members of a policy that had other names in older trees, or did not exist


def renamed(site: Site, members_of: Structs, text: str) -> dict[str, str] | None:
    """Maps a site's names to the tree's where they differ, or to "" if the tree has no such member.

    Returns `None` if the tree lacks what the site reads. All members belong to one struct, the one
    that the policy selector returns.
    """
    paths = sorted(set(_paths(site)))
    best: dict[MemberPath, MemberPath | None] | None = None
    for root in members_of:
        changes = _resolve_paths(root, paths, members_of)
        if changes and (best is None or _changes(changes) < _changes(best)):
            best = changes
    enumerators = _enumerators(site, text)
    if best is None or enumerators is None:
        return None
    names = {".".join(old): ".".join(new or ()) for old, new in best.items() if old != new}
    return {**names, **enumerators}


def _paths(site: Site) -> Iterator[MemberPath]:
    """Yields the path of each member read, relative to the selected policy."""
    if site.policy:
        yield tuple(site.policy.split("."))
    delay = [expr.rpartition(".")[0] for expr in site.delay or ()]
    expressions = (*site.values.values(), *site.types.values(), *delay, *site.setup)
    yield from (path for expr in expressions for path in member_paths(site, expr))


def _resolve_paths(
    root: str, paths: Sequence[MemberPath], members_of: Structs
) -> dict[MemberPath, MemberPath | None]:
    """Returns each path as a struct spells it; empty if the struct lacks one."""
    resolved: dict[MemberPath, MemberPath | None] = {}
    for path in paths:
        candidates = list(_candidate_paths(root, path, members_of))
        if not candidates:
            return {}
        resolved[path] = min(candidates, key=lambda c: (c is None, c != path, c or ()))
    non_empty = [new for path, new in resolved.items() if new and path]
    return resolved if non_empty else {}


def _candidate_paths(
    struct: str, path: MemberPath, members_of: Structs
) -> Iterator[MemberPath | None]:
    """Yields the spellings of a path in a struct; `None` where older trees had no such member."""
    if not path:
        yield ()
        return
    name, *rest = path
    members = members_of.get(struct, {})
    for spelling in (name, *words().older.get(name, ())):
        if spelling in members:
            if not rest:
                yield (spelling,)
            elif members[spelling] in members_of:
                for candidate in _candidate_paths(members[spelling], tuple(rest), members_of):
                    yield None if candidate is None else (spelling, *candidate)
            else:  # a struct from another header
                yield (spelling, *rest)
        elif not spelling and name not in members:
            yield from _candidate_paths(struct, tuple(rest), members_of) if rest else (None,)


def _changes(resolved: Mapping[MemberPath, MemberPath | None]) -> int:
    return sum(old != new for old, new in resolved.items())


def _enumerators(site: Site, text: str) -> dict[str, str] | None:
    """Maps enumerators to their older names; `None` if the tree lacks an enumeration."""
    renames = {}
    for match in (m for code in (*site.setup, *site.support) for m in ENUMERATOR.finditer(code)):
        for spelling in (match[0], *words().older.get(match[0], ())):
            if re.search(rf"\b{spelling.partition('::')[0]}\b", text):
                if spelling != match[0]:
                    renames[match[0]] = spelling
                break
        else:
            return None
    return renames


# using rle_encode_policy = reduce_by_key::reduce_by_key_policy;
_ALIAS = re.compile(r"\busing\s+(\w+)\s*=\s*(?:[\w:]*::)?(\w+)\s*;")
# scan_lookback_policy lookback = {}
_MEMBER = re.compile(r"([\w:]+(?:<[^()]*>)?)\s+(\w+)\s*(?:=[\s\S]*|\{[\s\S]*\})?$")
_TYPE = re.compile(r"(\w+)(?:<.*>)?$", re.DOTALL)


# Parsing of a header's declarations


@lru_cache(maxsize=256)
def _declared_in(text: str) -> HeaderCode:
    return HeaderCode(Text("", text.encode()).code)


def parameters(text: str, name: str) -> list[tuple[int, int]]:
    """Returns the fewest and most template arguments for each declaration of a name."""
    code, ranges = _declared_in(text).code, []
    declares = re.compile(rb"\b(?:struct|class|using)\s+%b\b(?!\s*<)" % name.encode())
    for match in declares.finditer(code):
        head = template_head(code, match.start(), 0)
        spans = split_list(code, *head[1]) if head else []
        params = [code[slice(*span)] for span in spans]
        maximum = 1000 if any(b"..." in param for param in params) else len(params)
        ranges.append((sum(b"=" not in param and b"..." not in param for param in params), maximum))
    return ranges


@lru_cache(maxsize=256)
def structs(text: str) -> Structs:
    """Returns the structs of a header with their members; an alias has those of its struct."""
    declared, members_by_struct = _declared_in(text), dict[str, dict[str, str]]()
    for block in declared.blocks:
        if block.kind == "record" and block.plain and (members := dict(_members(declared, block))):
            members_by_struct.setdefault(block.name, members)
    for match in _ALIAS.finditer(text):
        if match[2] in members_by_struct:
            members_by_struct.setdefault(match[1], members_by_struct[match[2]])
    return members_by_struct


def _members(declared: HeaderCode, struct: Block) -> Iterator[tuple[str, str]]:
    """Yields the name and type of each member; functions are skipped."""
    for span in statements(declared.code, struct.body):
        declaration = squeeze(declared.code, span)
        match = _MEMBER.match(declaration)
        if match and "(" not in declaration.partition("=")[0]:
            kind = _TYPE.search(match[1])
            yield match[2], kind[1] if kind else ""
