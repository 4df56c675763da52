"""Compares calls that no benchmark makes: what hubs give them, and what selectors know of them."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from policygen.bindings.load import Bound, axis_type, axis_values, bound, is_constant
from policygen.bindings.words import words
from policygen.headers.selectors.branches import expose_traits
from policygen.headers.selectors.functions import HeaderCode
from policygen.headers.spelling import replaced
from policygen.headers.text import Text, blank, reachable
from policygen.model.bindings import Call, Site
from policygen.model.records import Span
from policygen.model.selection import InputChange, Selected, differs, in_full
from policygen.model.trees import BoundVersion
from policygen.model.tuning import Marked, TuningHeader, Value
from policygen.process import threads
from policygen.proof.all_inputs import (
    ChangedBox,
    ChangedInputs,
    Compiled,
    CompiledSelector,
    Examples,
    InputAxis,
    InputDelta,
    Selector,
    Side,
    compare_inputs,
    compile_selectors,
    described,
    policies_of,
)
from policygen.proof.ask import ask
from policygen.proof.lexemes import first_difference
from policygen.proof.probe import QueriedTree, Selection, workloads
from policygen.proof.sites import asked_archs
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import SiteQuery, Workload
from policygen.steps import Progress
from policygen.trees.manifest import shipped

INPUTS = "any_input"
"""The group of types that take the place of a benchmark's."""
_WORD = re.compile(rb"[A-Za-z_]\w*")
OFFSETS = frozenset({"I32", "I64"})
LARGEST, ODD = "user_16", "user_12"


DifferentCall = tuple[Workload, str, Selected, Selected]
"""A call on an architecture, with what it gets before and after."""


def changes_elsewhere(name: str, before: bytes, after: bytes) -> bool:
    """Returns whether a header differs outside of the functions that a selector consists of."""
    rest = [_without_functions(name, data) for data in (before, after)]
    return first_difference(name, *rest) is not None


def _without_functions(name: str, data: bytes) -> bytes:
    """Blanks the functions of a selector, those that they call, and what these return."""
    code = Text(name, data).code
    declared = HeaderCode(code)
    own = [row for row in declared.functions if row.scope == words().selectors.name]
    free = [row for row in declared.functions if not row.scope]
    reached, count = {row.body for row in own}, -1
    while len(reached) > count:
        count = len(reached)
        names = {word for body in reached for word in _WORD.findall(code[slice(*body)])}
        reached |= {row.body for row in free if row.name.encode() in names}
    spans = {row.body for row in own}
    # A function that is new, or a struct, stands where there was nothing.
    new = [row for row in declared.blocks if row.body in reached - spans]
    spans |= {Span(row.head.start, row.body.end + 1) for row in new}
    returned = {row.returns for row in free if row.body in reached} - {row.returns for row in own}
    structs = (declared.structs[name].span for name in returned)
    spans |= {Span(span.start, span.end + 1) for span in structs}
    return blank(code, sorted(spans))


def dependent_headers(names: Collection[str], contents: Mapping[str, bytes]) -> tuple[str, ...]:
    """Returns the tuning headers that include one of some headers, and these themselves."""
    folder = f"{shipped().tree.tunings}/"
    neighbors = {f"{folder}{name}": data for name, data in contents.items()}
    paths = {f"{folder}{name}" for name in names}
    return tuple(
        name
        for name, data in sorted(contents.items())
        if name in names or not paths.isdisjoint(reachable(data, neighbors))
    )


def compare_all_inputs(
    names: Collection[str],
    sides: tuple[Side, Side],
    version: BoundVersion,
    toolchain: Toolchain,
    progress: Progress | None = None,
) -> InputDelta:
    """Compares everything that headers decide: selectors for all inputs, and hubs for calls.

    Headers that include one of them are compared, too.
    """
    dependents = {name for side in sides for name in dependent_headers(names, side.contents)}
    headers = sorted(dependents)
    with threads(2) as pool:
        pending = [
            pool.submit(compile_selectors, headers, side, toolchain, progress) for side in sides
        ]
        before, after = (future.result() for future in pending)
    contents = [data for side in sides for name, data in side.contents.items() if name in names]
    archs = asked_archs(contents, toolchain.archs).ordered
    result = compare_inputs(
        before,
        after,
        archs,
        lambda selectors: find_examples(selectors, sides[1], version, toolchain, progress),
    )
    if not any(
        changes_elsewhere(name, *(side.contents.get(name, b"") for side in sides)) for name in names
    ):
        return result
    calls = compare_calls(headers, sides, version, toolchain, after, archs, progress)
    changes, unknown = (*result.changes, *calls.changes), (*result.unknown, *calls.unknown)
    return InputDelta(changes, result.compared + calls.compared, unknown, result.headers)


def compare_calls(
    names: Collection[str],
    sides: tuple[Side, Side],
    version: BoundVersion,
    toolchain: Toolchain,
    compiled: Compiled,
    archs: Sequence[str],
    progress: Progress | None,
) -> InputDelta:
    """Compares calls of the algorithms whose selectors and hubs are in some headers.

    `compiled` are the selectors after the change, `archs` those to evaluate them for.
    """
    changes: list[InputChange] = []
    unknown: list[tuple[str, str]] = []
    compared = 0
    for of_selectors in (False, True):
        queries = list(_queries(names, sides, version, of_selectors=of_selectors))
        if not queries:
            continue
        results = [_answers(side, version, queries, toolchain, progress) for side in sides]
        for query in queries:
            spots, rows, lost = _differing(query, results)
            if of_selectors:
                rows = _on_archs(query.site, rows, compiled, archs)
            compared += spots
            changes += _described(query, rows, archs if of_selectors else query.archs)
            unknown += [(query.site.header, reason) for reason in lost]
    by_text = {change.text: change for change in changes}  # calls may differ in what is the same
    return InputDelta(tuple(by_text.values()), compared, tuple(dict.fromkeys(unknown)))


def find_examples(
    selectors: Sequence[Selector],
    side: Side,
    version: BoundVersion,
    toolchain: Toolchain,
    progress: Progress | None = None,
) -> dict[tuple[str, str], Examples]:
    """Asks what the members of selectors are for benchmarks' workloads."""
    places = {(selector.header, selector.namespace) for selector in selectors}
    queries: list[SiteQuery] = []
    for algorithm in bound(version):
        for site in algorithm.sites:
            if (site.header, site.scope) in places:
                calls = [row for row in algorithm.benchmarks if row.site == site.name]
                points = tuple(point for call in calls for point in workloads(call, version))
                queries += _of_traits(site, points, (side,))
    selection = _answers(side, version, queries, toolchain, progress)
    examples: dict[tuple[str, str], dict[str, Mapping[str, Value]]] = {}
    for query in queries:
        rows = examples.setdefault((query.site.header, query.site.scope), {})
        for workload, arch in query.spots:
            if row := selection.rows.get((workload, arch)):
                rows[workload.name] = row.traits
    return dict(examples)


ANY = "sm90"
"""What a selector knows of types is the same on all architectures."""


def _of_traits(site: Site, points: tuple[Workload, ...], sides: Sequence[Side]) -> list[SiteQuery]:
    """Asks what a selector knows of the types of calls, if all sides have the first's members."""
    first, *others = (expose_traits(side.contents.get(site.header, b""))[1] for side in sides)
    if not site.is_selector or not points or not first:
        return []
    if any(members[: len(first)] != first for members in others):
        return []
    return [SiteQuery(site, points, (ANY,), values=False, branches=True, traits=first)]


def _queries(
    names: Collection[str], sides: tuple[Side, Side], version: BoundVersion, *, of_selectors: bool
) -> Iterator[SiteQuery]:
    for algorithm in bound(version):
        for site in algorithm.sites:
            if site.header not in names or site.is_selector != of_selectors:
                continue
            points = other_calls(algorithm, site, version)
            archs = _chain_archs(side.contents.get(site.header, b"") for side in sides)
            if of_selectors:
                yield from _of_traits(site, points, sides)
            elif points and archs:
                yield SiteQuery(site, points, archs)


# ChainedPolicy<900, Policy900, Policy860>, chained_policy<500
_LINK = re.compile(rb"\b[Cc]hained_?[Pp]olicy\s*<\s*(\d+)0\s*,")


def _chain_archs(contents: Iterable[bytes]) -> tuple[str, ...]:
    """Returns the architectures at which a chain has a policy; others get that of the last."""
    numbers = {int(number) for data in contents for number in _LINK.findall(data)}
    return tuple(f"sm{number}" for number in sorted(numbers))


def _answers(
    side: Side,
    version: BoundVersion,
    queries: Sequence[SiteQuery],
    toolchain: Toolchain,
    progress: Progress | None,
) -> Selection:
    """Asks a tree; selectors report all of their members in a copy of their header."""
    marked, own = {}, []
    for query in queries:
        name, traits = query.site.header, query.traits
        if query.site.is_selector:
            data = side.contents[name]
            edits, traits = expose_traits(data)
            header = TuningHeader(name=name, families=(), chains=())
            marked[name] = Marked(header, replaced(data, edits), (), traits)
        own.append(replace(query, traits=traits))
    return ask(QueriedTree(version, side.includes, marked), own, toolchain, progress=progress)


def other_calls(algorithm: Bound, site: Site, version: BoundVersion) -> tuple[Workload, ...]:
    """Lists calls that no benchmark makes: bound ones, else benchmarks' calls with other types."""
    calls: dict[str, Call] = {}
    for call in algorithm.calls:
        if call.site == site.name:
            axes = {axis: _with_odd(axis_values(call, axis, version)) for axis in call.axes}
            calls[repr(call)] = call.model_copy(update={"axes": axes})
    for benchmark in () if calls else algorithm.benchmarks:
        if benchmark.site == site.name:
            call = Call(
                site=site.name,
                axes={
                    axis: INPUTS if _is_input(benchmark, axis, version) else values
                    for axis, values in benchmark.axes.items()
                },
                roles=benchmark.roles,
                constants=benchmark.constants,
                includes=benchmark.includes,
            )
            calls.setdefault(repr((call.roles, call.constants)), call)
    return tuple(point for call in calls.values() for point in workloads(call, version))


def _with_odd(values: tuple[str, ...]) -> tuple[str, ...]:
    """Adds a struct with a size that is not a power of two to types of all sizes."""
    return (*values, ODD) if LARGEST in values and ODD not in values else values


def _is_input(call: Call, axis: str, version: BoundVersion) -> bool:
    """Returns whether an axis has types of elements rather than offsets."""
    values = axis_values(call, axis, version)
    if any(map(is_constant, values)) or OFFSETS.issuperset(values):
        return False
    return all(axis_type(value, version).size for value in values)


def _differing(
    query: SiteQuery, results: Sequence[Selection]
) -> tuple[int, list[DifferentCall], list[str]]:
    """Returns how many calls were compared, those that differ, and why others were not."""
    count, rows, lost = 0, [], []
    for workload, arch in query.spots:
        before, after = (result.rows.get((workload, arch)) for result in results)
        if before is not None and after is not None:
            count += 1
            knows_other = not before.traits.items() <= after.traits.items()
            if knows_other if query.site.is_selector else differs(before, after):
                rows.append((workload, arch, before, after))
        elif before is not None:
            error = results[1].refused.get(workload)
            lost.append(f"calls that compiled do not compile: {error}")
    return count, rows, lost


def _on_archs(
    site: Site, rows: Sequence[DifferentCall], compiled: Compiled, archs: Sequence[str]
) -> list[DifferentCall]:
    """Evaluates a selector for the members that it had before, and those that it has now.

    Returns the calls that get another policy, on each architecture. A member that it had not is as
    it is now: what that changes is a change of the selector.
    """
    selector = compiled.get((site.header, words().selectors.name))
    different = []
    for workload, _, *sides in rows:
        if isinstance(selector, CompiledSelector):
            inputs = ({**sides[1].traits, **side.traits} for side in sides)
            before, after = (policies_of(selector, members, archs) for members in inputs)
        else:
            before, after = ({arch: dict(side.traits) for arch in archs} for side in sides)
        for arch in archs:
            if before[arch] != after[arch]:
                row = workload, arch, Selected(before[arch]), Selected(after[arch])
                different.append(row)
    return different


def _described(
    query: SiteQuery, rows: Sequence[DifferentCall], archs: Sequence[str]
) -> Iterator[InputChange]:
    """Describes the calls that differ, those of one kind together."""
    site = query.site
    selector = f"{site.namespace.rpartition('::')[2]}::{site.hub.partition('<')[0]}"
    for call in dict.fromkeys(id(workload.call) for workload, *_ in rows):
        points = [workload for workload in query.points if id(workload.call) == call]
        names = list(points[0].values)
        spelled = {
            name: tuple(dict.fromkeys(point.values[name] for point in points)) for name in names
        }
        axes = [InputAxis("arch", tuple(range(len(archs))), tuple(archs))]
        axes += [InputAxis(name, tuple(range(len(spelled[name]))), spelled[name]) for name in names]
        change = ChangedInputs(site.header, selector, axes)
        regions: dict[str, list[ChangedBox]] = {}
        for workload, arch, before, after in rows:
            if id(workload.call) == call:
                box = [frozenset({archs.index(arch)})]
                box += [frozenset({spelled[name].index(workload.values[name])}) for name in names]
                pairs = _values(before, after)
                group = "" if site.is_selector else repr(pairs)
                regions.setdefault(group, []).append(ChangedBox(tuple(box), pairs))
        for alike in regions.values():
            yield from described(change, alike)


def _values(before: Selected, after: Selected) -> Mapping[str, set[tuple[Value, Value]]]:
    sides = in_full(before, after)
    return {
        name: {(sides[0][name], sides[1][name])}
        for name in sides[0]
        if name in sides[1] and sides[0][name] != sides[1][name]
    }
