"""Finds entries that no workload can select, by checking which marks ever appear in a policy."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product, starmap
from operator import add, attrgetter

from policygen.bindings.load import bound, types
from policygen.bindings.words import words
from policygen.errors import PolicygenError
from policygen.headers.selectors.functions import template_arguments
from policygen.headers.text import Text
from policygen.model.arch import arch_number
from policygen.model.audits import CallOnly, Cause, Unreachable
from policygen.model.bindings import BenchmarkBinding, Call
from policygen.model.selection import EntryPlace, FamilyKey, Selected
from policygen.model.trees import OF_FUNCTIONS, Cub, Dialect
from policygen.model.tuning import Entry, Family, Marked, TuningHeader, steps, used_families
from policygen.proof.all_inputs import Side, inputs_reaching
from policygen.proof.answers import plain
from policygen.proof.ask import ask
from policygen.proof.lint_subject import all_members
from policygen.proof.probe import LibraryCompiler, QueriedTree, workloads
from policygen.proof.sites import query_at
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import SiteQuery, Workload, overlay
from policygen.steps import Progress

UNANSWERED = Selected({})


@dataclass(slots=True)
class Reachability:
    """Which entries are selected, and which are not."""

    wanted: Collection[EntryPlace] | None = None
    """The entries of interest; None for all."""
    workloads: int = 0
    entries: int = 0
    unreachable: tuple[Unreachable, ...] = ()
    call_only: tuple[CallOnly, ...] = ()
    """Entries that are selected only by calls that no benchmark makes."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Header → number of entries without a verdict, because some workloads could not be queried."""
    archs: tuple[str, ...] = ()
    errors: tuple[PolicygenError, ...] = ()
    unasked: tuple[str, ...] = ()
    """Families without a binding, and functions that no workload reaches."""

    def wants(self, family: Family, entry: Entry) -> bool:
        """Whether an entry is of interest."""
        return self.wanted is None or EntryPlace.of(family, entry) in self.wanted


def reach_all(
    cub: Cub,
    headers: Sequence[TuningHeader],
    copies: Mapping[Dialect, Mapping[str, Marked]],
    toolchain: Toolchain | LibraryCompiler,
    *,
    wanted: Collection[EntryPlace] | None = None,
    progress: Progress | None = None,
) -> Reachability:
    """Finds the entries that are never selected, in all dialects of a tree.

    If only some entries are `wanted`, the others are neither counted nor reported.
    """
    result = Reachability(wanted=wanted)
    for dialect, marked in copies.items():
        queries = tried_sites(cub, headers, dialect)
        if dialect not in OF_FUNCTIONS:
            result.unasked += unasked(headers, queries)
        if marked:
            add_reachability(result, cub, queries, marked, toolchain, progress)
    return result


def tried_sites(
    cub: Cub, headers: Sequence[TuningHeader], dialect: Dialect
) -> tuple[SiteQuery, ...]:
    """Makes the queries for a dialect's sites with entries, on the archs that differ there."""
    chains = {chain.namespace: chain for header in headers for chain in header.chains}
    selectors = {header.name: header.selectors for header in headers if header.selectors}
    queries = []
    for algorithm in bound(cub.bindings):
        for site in algorithm.sites:
            if site.dialect != dialect:
                continue
            calls = [*algorithm.benchmarks, *algorithm.calls]
            own_calls = (call for call in calls if call.site == site.name)
            points = [point for call in own_calls for point in workloads(call, cub.bindings)]
            query = query_at(site, points, algorithm, headers)
            if query.families or query.problem:
                families = {binding.name for binding, _ in query.families}
                policies = chain.policies if (chain := chains.get(site.scope)) else ()
                own_headers = (header for header in headers if header.name == site.header)
                archs = (
                    {p.arch for p in policies if any(use.family in families for use in p.uses)}
                    if site.inherits
                    else {family.arch for header in own_headers for family in header.families}
                )
            elif site.is_selector and site.header in selectors:
                archs = steps(selectors[site.header])
            else:
                continue
            ordered = tuple(sorted(archs, key=arch_number))
            queries.append(replace(query, archs=ordered, values=False, branches=site.is_selector))
    return tuple(queries)


def unasked(headers: Sequence[TuningHeader], tried: Sequence[SiteQuery]) -> tuple[str, ...]:
    """Lists families with specializations but no binding, about which nothing is known."""
    bound_names = {
        (query.site.scope, binding.name) for query in tried for binding, _ in query.families
    }
    families = (family for header in headers for family in header.families)
    specialized = (family for family in families if family.specializations)
    names = dict.fromkeys((family.namespace, family.name) for family in specialized)
    return tuple("::".join(name) for name in names if name not in bound_names)


def add_reachability(
    result: Reachability,
    cub: Cub,
    queries: Sequence[SiteQuery],
    marked: Mapping[str, Marked],
    toolchain: Toolchain | LibraryCompiler,
    progress: Progress | None = None,
) -> None:
    """Asks which entry each workload selects, and explains the entries that none selects."""
    tree = QueriedTree(cub.bindings, cub.include_folders, marked)
    of_others = len(result.unreachable)  # in other dialects of the tree
    queries = [
        query for query in queries if any(starmap(result.wants, marked[query.site.header].entries))
    ]
    selection = ask(tree, queries, toolchain, progress=progress)
    rows, errors = {**selection.rows}, selection.errors
    for group in _group_by_entries(queries):
        copy = marked[group[0].site.header]
        for other in (other for query in tuple(group) for other in other_calls(query, copy)):
            seen = {rows[spot].number for each in group for spot in each.spots if spot in rows}
            unseen = (copy.entries[number] for number in {*_candidate_numbers(group, copy)} - seen)
            if not any(entry.kind == "branch" and result.wants(of, entry) for of, entry in unseen):
                break
            answered = ask(tree, [other], toolchain, progress=progress)
            rows |= answered.rows
            errors += answered.errors
            group.append(other)
        _count_entries(result, group, copy, rows)
    # The same workload may be queried for the old dispatcher and for the new one.
    result.workloads = max(result.workloads, sum(len(query.points) for query in queries))
    archs = {arch for query in queries for arch in query.archs}
    result.archs = tuple(sorted({*result.archs, *archs}, key=arch_number))
    result.errors += errors
    result.unknown = dict(sorted(result.unknown.items()))
    added = result.unreachable[of_others:]
    if isinstance(toolchain, Toolchain) and any(row.cause == "condition" for row in added):
        added = tuple(_with_inputs(added, result.archs, tree, toolchain, progress))
    order = attrgetter("header", "line")
    result.unreachable = tuple(sorted((*result.unreachable[:of_others], *added), key=order))
    result.call_only = tuple(sorted(result.call_only, key=order))


def _with_inputs(
    rows: Sequence[Unreachable],
    archs: Sequence[str],
    tree: QueriedTree,
    toolchain: Toolchain,
    progress: Progress | None,
) -> Iterator[Unreachable]:
    """Yields what is unreachable; for a return, says whether any input of its selector gets it."""
    names = sorted({row.header for row in rows if row.cause == "condition"})
    marks = {name: tree.marked[name] for name in names}
    folders = (overlay(name, copy.data) for name, copy in marks.items())
    side = Side.of((*folders, *tree.includes), marked=True)
    reached = inputs_reaching(marks, side, archs, toolchain, progress)
    for row in rows:
        own = reached.get(row.header)
        if row.cause != "condition" or own is None:
            yield row
            continue
        lines = [entry.line for _, entry in marks[row.header].entries]
        inputs = own.get(lines.index(row.line))
        update = {"reason": OF_NO_INPUT}
        if inputs is not None:
            update = {"reason": ONLY_INPUTS, "example": f"inputs where {inputs}"}
        yield row.model_copy(update=update)


_POINTER = re.compile(r"(?:const )?([\w:]+)\*")


def other_calls(query: SiteQuery, copy: Marked) -> Iterator[SiteQuery]:
    """Yields what no benchmark calls a policy selector with: other iterators, other flags."""
    site, vocabulary = query.site, words().selectors
    code = Text(site.header, copy.data).code
    arguments = template_arguments(code, site.header, site.hub) if site.is_selector else ()
    iterators = [arg for arg in arguments if arg.is_type and _POINTER.search(arg.text)]
    flags = [[], *([arg] for arg in arguments if arg.kind == "bool")]
    # The smallest change comes first; others follow only while a return is unseen.
    changes = [iterators, [], *([arg] for arg in iterators if len(iterators) > 1)]
    for changed in sorted(filter(None, starmap(add, product(changes, flags))), key=len):
        texts = {
            arg.parameter: _POINTER.sub(rf"{vocabulary.fancy}<\1>", arg.text)
            if arg.is_type
            else f"!({arg.text})"
            for arg in changed
        }
        given = ", ".join(texts.get(arg.parameter, arg.text) for arg in arguments)
        hub = f"{site.hub.partition('<')[0]}<{given}>"
        update = {"hub": hub, "includes": (*site.includes, vocabulary.fancy_header)}
        points = (
            (Call.model_validate(point.call.model_dump(include={*Call.model_fields})), point.values)
            for point in query.points
        )
        others = tuple(Workload(call, {**values, **texts}) for call, values in points)
        yield replace(query, site=site.model_copy(update=update), points=others)


def _group_by_entries(queries: Sequence[SiteQuery]) -> list[list[SiteQuery]]:
    """Groups sites that share entries: of one header, and of one namespace if it has families."""
    groups: dict[tuple[str, str], list[SiteQuery]] = {}
    for query in queries:
        scope = "" if query.site.is_selector else query.site.scope
        groups.setdefault((query.site.header, scope), []).append(query)
    return list(groups.values())


def _count_entries(
    result: Reachability,
    queries: Sequence[SiteQuery],
    copy: Marked,
    rows: Mapping[tuple[Workload, str], Selected],
) -> None:
    """Counts the entries of some sites: selected by benchmarks, only by other calls, or never."""
    lines = {number: entry.line for number, (_, entry) in enumerate(copy.entries)}
    seen = KeysSeen({}, {}, lines, UNMET.get(queries[0].site.dialect, OF_RETURNS))
    # The first workload that selects an entry is its example.
    by_benchmark, by_call = dict[int, str](), dict[int, str]()
    for query in queries:
        chains, scope = copy.header.chains, query.site.scope
        read = {arch: used_families(chains, scope, arch) for arch in query.archs}
        for point, arch in query.spots:
            row, example = rows.get((point, arch), UNANSWERED), f"{point.name} on {arch}"
            if row.number is not None:
                is_benchmark = isinstance(point.call, BenchmarkBinding)
                (by_benchmark if is_benchmark else by_call).setdefault(row.number, example)
            seen.look(row, read[arch], example)
    complete = all(spot in rows for query in queries for spot in query.spots)
    functions = {copy.entries[number][0].name for number in (*by_benchmark, *by_call)}
    for number in _candidate_numbers(queries, copy):
        family, entry = copy.entries[number]
        if not result.wants(family, entry):
            continue
        function = f"{family.namespace}::{family.name}"
        if entry.kind == "branch" and complete and family.name not in functions:
            result.unasked = tuple(dict.fromkeys((*result.unasked, function)))
            continue
        result.entries += 1
        if number in by_benchmark:
            continue
        if number in by_call:
            result.call_only += (CallOnly.of(family, entry, example=by_call[number]),)
        elif complete:
            result.unreachable += (explain(copy.header, family, entry, number, seen),)
        else:
            result.unknown[family.header] = result.unknown.get(family.header, 0) + 1


OF_RETURNS = (
    "no policy shows its values: no workload meets its conditions, an earlier return decides"
    " them, or its result is not used"
)
OF_NO_INPUT = (
    "no input of the selector gets its values: its conditions exclude each other, an earlier return"
    " decides them, or its result is not used"
)
ONLY_INPUTS = "no call that was tried gets its values; some inputs of the selector would"


@dataclass(frozen=True, slots=True)
class KeysSeen:
    """The keys of a site's workloads, by family."""

    keys: dict[str, dict[tuple[int, tuple[str, ...]], str]]
    """Entry number and arguments → the first workload with that key."""
    shown: dict[str, set[tuple[str, ...]]]
    """Arguments of keys whose entry was selected."""
    lines: Mapping[int, int] = field(default_factory=dict)
    """The line of each entry."""
    unmet: str = OF_RETURNS
    """The reason to give for a condition that no workload meets."""

    def look(self, row: Selected, read: Collection[str], workload: str) -> None:
        """Records a workload's keys in the families that its policy reads."""
        for family, key in row.keys.items():
            if family in read:
                self.note(family, key, row.number, workload)

    def note(self, family: str, key: FamilyKey, shown: int | None, workload: str) -> None:
        """Records a workload's key in a family, and the entry that the policy shows."""
        self.keys.setdefault(family, {}).setdefault((key.number, key.args), workload)
        if shown is not None and shown == key.number:
            self.shown.setdefault(family, set()).add(key.args)


def _candidate_numbers(queries: Sequence[SiteQuery], copy: Marked) -> list[int]:
    """Returns the entries that some sites may select: specializations, or returns for keys."""
    names = {(query.site.scope, binding.name) for query in queries for binding, _ in query.families}
    return [
        number
        for number, (family, entry) in enumerate(copy.entries)
        if (
            entry.specific  # a default tests only the compute capability
            if entry.kind == "branch" and not names
            else entry.kind != "primary" and (family.namespace, family.name) in names
        )
    ]


UNMET: Mapping[Dialect, str] = {
    "configs": "none of the types tried gets its values: none meets all of its conditions, or"
    " another entry decides them",
}
"""The reason for entries whose condition is never met and that are not returns, by dialect."""
_BOOLEAN_LITERALS = {"0": "false", "1": "true"}
"""The compiler prints booleans as numbers; headers use these literals."""


# Explains why an entry is never selected.


def explain(
    header: TuningHeader, family: Family, entry: Entry, number: int, seen: KeysSeen
) -> Unreachable:
    """Returns the reason, with an example if a workload has the entry's key."""
    if entry.kind == "branch":
        return Unreachable.of(family, entry, cause="condition", reason=seen.unmet, example=None)
    keys = seen.keys.get(family.name, {})
    examples = (text for (entry_number, _), text in keys.items() if entry_number == number)
    example = next(examples, None)
    cause: Cause = "gate"
    if missing := _missing(header, family, entry):
        cause, reason = _missing_cause(entry, missing)
    elif example is not None:
        reason = _gate_reason(family, entry, seen)
    else:
        cause, reason = _unmatched_cause(family, entry, keys, seen.lines)
    return Unreachable.of(family, entry, cause=cause, reason=reason, example=example)


def _missing(header: TuningHeader, family: Family, entry: Entry) -> tuple[str, ...]:
    """Returns the members that the selection reads but the entry lacks."""
    reads: dict[str, None] = {}
    for chain in header.chains:
        for policy in chain.policies if chain.namespace == family.namespace else ():
            for use in policy.uses:
                if use.family == family.name:
                    reads |= dict.fromkeys(use.reads)
    members = all_members(header, family, entry)
    return () if members is None else tuple(name for name in reads if name not in members)


def _missing_cause(entry: Entry, missing: Sequence[str]) -> tuple[Cause, str]:
    names = ", ".join(missing)
    if entry.inherits:
        return "inherits without", (
            f"inherits from {entry.inherits}, which has no {names}; the selection needs it"
        )
    if not entry.members:
        return "empty", "has no members: workloads with this key get the fallback"
    return "missing member", f"has no {names}; the selection needs it"


def _gate_reason(family: Family, entry: Entry, seen: KeysSeen) -> str:
    """Returns what the keys of selected entries have in common and this key lacks."""
    shown = [*seen.shown.get(family.name, set())]
    literals = _literals(entry, shown)
    lacking = _unseen_positions(literals, shown) if shown else []
    if not lacking:
        return "its key selects it, but the policy does not use its values"
    lines = {specialization.line for specialization in family.specializations}
    keys = seen.keys.get(family.name, {})
    refused = [args for n, args in keys if args not in shown and seen.lines.get(n) in lines]
    alone = [position for position in lacking if _decides(position, literals, shown)]
    # An argument value that some selected key has is not the reason for refusing others.
    distinguishing = [
        position
        for position in lacking
        if not {*_values(position, refused)} & {*_values(position, shown)}
    ]
    alone += distinguishing if len(distinguishing) == 1 else []
    conditions = [
        f"{family.parameters[position].label} is {_join_words(_values(position, shown))}"
        for position in alone[:1] or lacking
    ]
    return f"the policy reads the family only where {' and '.join(conditions)}"


def _unmatched_cause(
    family: Family,
    entry: Entry,
    keys: dict[tuple[int, tuple[str, ...]], str],
    lines: Mapping[int, int],
) -> tuple[Cause, str]:
    """Explains why no key matches the entry: one fact if it suffices, else several."""
    numbers = {args: number for number, args in keys}
    tried = [*numbers]
    literals = _literals(entry, tried)
    for args in tried:
        if not _differing_positions(literals, args) and numbers[args] >= 0:
            line = lines.get(numbers[args])
            suffix = "" if line is None else f", that in line {line},"
            reason = f"another entry of the family{suffix} is selected for each of its keys"
            return "shadowed", reason
    never = _unseen_positions(literals, tried)
    if never and (not tried or (len(never) == 1 and _decides(never[0], literals, tried))):
        name, values = family.parameters[never[0]].label, _values(never[0], tried)
        return "argument", f"{name} is never {literals[never[0]]}; it is {_join_words(values)}"
    nearest = min(tried, key=lambda args: len(_differing_positions(literals, args)), default=())
    differing = _differing_positions(literals, nearest) if nearest else []
    if len(differing) > 1:
        facts = [
            f"{family.parameters[position].label} {nearest[position]} for {literals[position]}"
            for position in differing
        ]
        nearest_has = f"the nearest workload has {_join_words(facts, 'and')}"
        return "argument" if never else "key", f"several conditions exclude it: {nearest_has}"
    return "key", _never_together(family, literals, tried)


def _never_together(
    family: Family, literals: Mapping[int, str], tried: Sequence[tuple[str, ...]]
) -> str:
    """Finds two arguments that never occur together although either would decide."""
    for first, second in combinations(literals, 2):
        companions = sorted({args[second] for args in tried if args[first] == literals[first]})
        decides = any(_decides(position, literals, tried) for position in (first, second))
        if decides and literals[second] not in companions:
            name, with_name = (family.parameters[index].label for index in (first, second))
            never = f"{name} {literals[first]} never occurs with {with_name} {literals[second]}"
            return f"{never}; it occurs with {_join_words(companions)}"
    return "no workload combines its arguments"


def _literals(entry: Entry, tried: Sequence[tuple[str, ...]]) -> dict[int, str]:
    """Returns the fixed arguments by position, as the compiler prints them."""
    own = entry.own_parameters
    literals = {}
    for position, arg in enumerate(entry.args):
        if arg not in own:
            text = plain(arg)
            if not {*_values(position, tried)}.isdisjoint(_BOOLEAN_LITERALS.values()):
                text = _BOOLEAN_LITERALS.get(text, text)
            literals[position] = types().spellings.get(text, text)
    return literals


def _values(position: int, tried: Sequence[tuple[str, ...]]) -> list[str]:
    """Returns the values of an argument among the tried keys."""
    return sorted({args[position] for args in tried if position < len(args)})


def _unseen_positions(literals: Mapping[int, str], tried: Sequence[tuple[str, ...]]) -> list[int]:
    """Returns the positions of arguments that no key has."""
    return [
        position
        for position, literal in literals.items()
        if literal not in _values(position, tried)
    ]


def _differing_positions(literals: Mapping[int, str], args: Sequence[str]) -> list[int]:
    """Returns the positions of arguments that a key does not have."""
    return [position for position, literal in literals.items() if args[position] != literal]


def _decides(position: int, literals: Mapping[int, str], tried: Sequence[tuple[str, ...]]) -> bool:
    """Whether some key lacks only this argument, and would lead to the entry with it."""
    return any(_differing_positions(literals, args) == [position] for args in tried)


def _join_words(values: Sequence[str], last: str = "or") -> str:
    if len(values) < 2:
        return "".join(values) or "nothing"
    return f"{', '.join(values[:-1])} {last} {values[-1]}"
