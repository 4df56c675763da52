"""Finds the workloads to query in a tree, and the sites that decide them."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from policygen.bindings.load import Bound, axis_values, bound, library_types, read, sites_of
from policygen.bindings.words import archs_file, ladder
from policygen.errors import InputError, anchored, listed, no_such_value
from policygen.model.arch import BEYOND, arch_number, capability_number, family_arch
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, Site
from policygen.model.selection import Differing
from policygen.model.trees import BoundVersion, Cub, Dialect
from policygen.model.tuning import Family, TuningHeader
from policygen.model.workload import axis_name
from policygen.proof.probe import workloads
from policygen.proof.units import BoundFamily, SiteQuery, Workload

BENCH = "/benchmark/"


def places(
    cub: Cub,
    headers: Sequence[TuningHeader],
    pattern: re.Pattern[str],
    axes: Mapping[str, frozenset[str]],
    header_names: frozenset[str] = frozenset(),
) -> tuple[SiteQuery, ...]:
    """Makes the queries for these headers and matching benchmarks; finding none is an error."""
    check_axes(cub.bindings, pattern, axes, header_names)
    queries = []
    for algorithm in bound(cub.bindings):
        for site in sites_of(algorithm, cub.dialect):
            if header_names and site.header not in header_names:
                continue
            points = [
                point
                for benchmark in algorithm.benchmarks
                if benchmark.site == site.name and pattern.match(benchmark.name)
                for point in workloads(benchmark, cub.bindings)
                if matches(point, axes, pattern)
            ]
            if points:
                queries.append(query_at(site, points, algorithm, headers))
    if not queries:
        raise nothing_bound(cub.bindings, pattern, axes, header_names)
    return tuple(queries)


def query_at(
    site: Site, points: Iterable[Workload], algorithm: Bound, headers: Sequence[TuningHeader]
) -> SiteQuery:
    """Makes a query for a site's policies and families.

    If families do not fit their bindings, the query records the problem.
    """
    query = SiteQuery(
        site,
        tuple(points),
        algorithm=algorithm.algorithm,
        tuned=any(binding.site == site.name for binding in algorithm.families),
        aggregates=next((h.aggregates for h in headers if h.name == site.header), {}),
    )
    try:
        return replace(query, families=bound_families(algorithm, site, headers))
    except InputError as problem:
        return replace(query, problem=problem)


def bound_families(
    algorithm: Bound, site: Site, headers: Sequence[TuningHeader]
) -> tuple[BoundFamily, ...]:
    """Finds the families that a site's policies read; a policy selector reads none."""
    if site.is_selector:
        return ()
    family_pairs = algorithm.families_at(site, headers)
    return tuple((binding, _kinds(binding, family)) for binding, family in family_pairs)


def scaled_families(version: BoundVersion, query: SiteQuery) -> tuple[BoundFamily, ...]:
    """Finds the families that tell by which type sizes the counts of a site are scaled."""
    return tuple(
        (binding, ())
        for algorithm in bound(version)
        if algorithm.algorithm == query.algorithm
        for binding in algorithm.families
        if binding.site == query.site.name
    )


def marked_members(algorithms: Sequence[Bound], dialect: Dialect) -> dict[tuple[str, str], str]:
    """Maps each family, by namespace and name, to the member that carries its mark."""
    marks = {}
    for algorithm in algorithms:
        for binding in algorithm.families:
            if site := algorithm.site(binding.site, dialect):
                marks[site.scope, binding.name] = binding.mark
    return marks


def with_new_families(
    members: Mapping[tuple[str, str], str], header: TuningHeader
) -> dict[tuple[str, str], str]:
    """Adds families without a binding; they are marked like their siblings."""
    marks = dict(members)
    for family in header.families:
        names = [name for space, name in members if space == family.namespace]
        sibling = _closest_sibling(family, names)
        if sibling is not None:
            marks.setdefault((family.namespace, family.name), members[family.namespace, sibling])
    return marks


def with_new(
    families: Sequence[BoundFamily], declared: Sequence[Family]
) -> tuple[BoundFamily, ...]:
    """Adds a site's new families, each bound like the sibling that it was modeled on."""
    bound_by_name = {binding.name: (binding, kinds) for binding, kinds in families}
    extended = list(families)
    for family in declared:
        sibling = _closest_sibling(family, list(bound_by_name))
        if sibling is not None and family.name not in bound_by_name:
            binding, kinds = bound_by_name[sibling]
            if len(kinds) == len(family.parameters):
                extended.append((binding.model_copy(update={"name": family.name}), kinds))
    return tuple(extended)


def _closest_sibling(family: Family, names: Sequence[str]) -> str | None:
    """Finds the sibling that differs only in the arch: the newest older one, else the newest."""
    end = family.name.removeprefix(family.arch)
    number = arch_number(family.arch)
    same_name = [name for name in names if name.endswith(end)]
    return max(
        same_name, key=lambda name: (family_arch(name) <= number, family_arch(name)), default=None
    )


def devices(headers: Iterable[TuningHeader]) -> set[str]:
    """Returns the AMD architectures that headers name: devices that may share a target's config."""
    names = {name for header in headers for name, _ in header.aggregates.get("target_arch", ())}
    return names & {*archs_file().amd}


def _kinds(binding: FamilyBinding, family: Family) -> tuple[str, ...]:
    if len(binding.args) != len(family.parameters):
        raise InputError(
            f"{family.header}: {family.name} has {len(family.parameters)} template parameters,"
            f" and {len(binding.args)} are bound",
            "Correct the family's args in schemas/bindings.",
        )
    return tuple(parameter.kind for parameter in family.parameters)


def matches(point: Workload, axes: Mapping[str, frozenset[str]], pattern: re.Pattern[str]) -> bool:
    """Whether CCCL's `-a` keeps a workload: `T{ct}=I8`, without flags, or with an older name.

    If `-R` chooses the benchmarks, an axis that a benchmark lacks is ignored, as in CCCL's scripts.
    Without it, the axes choose the benchmarks.
    """
    assert isinstance(point.call, BenchmarkBinding)
    values = {_own_name(point.call, axis): selected for axis, selected in axes.items()}
    if pattern.pattern:
        values = {axis: selected for axis, selected in values.items() if axis in point.values}
    return all(point.values.get(axis) in selected for axis, selected in values.items())


def check_axes(
    version: BoundVersion,
    pattern: re.Pattern[str],
    axes: Mapping[str, frozenset[str]],
    header_names: frozenset[str],
) -> None:
    """Raises if `-a` names an axis that none of the benchmarks chosen by `-R` has."""
    chosen = chosen_benchmarks(version, pattern)
    if any(all(_lacks(benchmark, axis) for benchmark in chosen) for axis in axes):
        raise nothing_bound(version, pattern, axes, header_names)


def check_values(
    versions: Sequence[BoundVersion],
    pattern: re.Pattern[str],
    axes: Mapping[str, frozenset[str]],
) -> None:
    """Raises if `-a` names a value that no benchmark chosen by `-R` has, in any of the versions."""
    for axis, selected in axes.items():
        values = {value for version in versions for value in _values(version, pattern, axis)}
        if values and not selected <= values:
            raise no_such_value(axis_name(axis), selected - values, sorted(values))


def _values(version: BoundVersion, pattern: re.Pattern[str], axis: str) -> set[str]:
    """Returns the values of an axis in the benchmarks chosen by `-R`."""
    return {
        value
        for benchmark in chosen_benchmarks(version, pattern)
        if not _lacks(benchmark, axis)
        for value in axis_values(benchmark, _own_name(benchmark, axis), version)
    }


def ignored_axes(
    version: BoundVersion, pattern: re.Pattern[str], axes: Mapping[str, frozenset[str]]
) -> list[str]:
    """Reports the benchmarks chosen by `-R` that lack an axis named by `-a`."""
    if not pattern.pattern:
        return []
    lacking = {
        axis: [row.name for row in chosen_benchmarks(version, pattern) if _lacks(row, axis)]
        for axis in axes
    }
    return [
        f"-a {axis}=… is ignored for {listed(names)}, which have no such axis"
        for axis, names in lacking.items()
        if names
    ]


def chosen_benchmarks(version: BoundVersion, pattern: re.Pattern[str]) -> list[BenchmarkBinding]:
    """Returns the bound benchmarks whose names match `-R` at their start."""
    benchmarks = (row for algorithm in bound(version) for row in algorithm.benchmarks)
    return [benchmark for benchmark in benchmarks if pattern.match(benchmark.name)]


def _lacks(benchmark: BenchmarkBinding, axis: str) -> bool:
    return _own_name(benchmark, axis) not in benchmark.axes


def _own_name(benchmark: BenchmarkBinding, axis: str) -> str:
    """Returns a benchmark's name for an axis, which may be given with flags or by an older name."""
    name = axis_name(axis)
    renamed = benchmark.renamed.items()
    return next((own for own, older in renamed if older == name and own in benchmark.axes), name)


def nothing_bound(
    version: BoundVersion,
    pattern: re.Pattern[str],
    axes: Mapping[str, frozenset[str]],
    header_names: frozenset[str],
) -> InputError:
    """Reports that nothing matches the filters, and what is available."""
    benchmarks = [benchmark for algorithm in bound(version) for benchmark in algorithm.benchmarks]
    filters = [f"-R {pattern.pattern!r}"] if pattern.pattern else []
    filters += [f"-a '{axis}=[{','.join(sorted(selected))}]'" for axis, selected in axes.items()]
    if not bound_headers(version) <= header_names:
        filters += sorted(header_names)
    matching = chosen_benchmarks(version, pattern)
    known_axes = sorted({axis for benchmark in matching for axis in benchmark.axes})
    unknown = sorted({axis_name(axis) for axis in axes} - set(known_axes))
    hint = None if matching else anchored(pattern, (benchmark.name for benchmark in benchmarks))
    rows = [hint or f"Benchmarks: {listed(benchmark.name for benchmark in matching or benchmarks)}"]
    if matching:
        rows.append(f"their axes: {', '.join(known_axes)}")
    for axis in axes:
        name = axis_name(axis)
        if values := _values(version, pattern, name):
            rows.append(f"{name} is one of {', '.join(sorted(values))}")
    if header_names and not header_names & bound_headers(version):
        names = ", ".join(sorted(header_names))
        remedy = "It takes a TOML file: docs/reference/bindings.md"
        return InputError(f"no binding covers {names}", remedy)
    reason = f"; no benchmark has an axis {', '.join(unknown)}" if unknown and matching else ""
    return InputError(f"no workload matches {' '.join(filters)}{reason}", "\n  ".join(rows))


def remarks(
    cub: Cub, header_names: Set[str] = frozenset(), *, whole: bool = False
) -> tuple[str, ...]:
    """Reports what users should know about a tree's bindings for some, or all, of its headers."""
    compiled, messages = library_types(cub.library).compiled, []
    if not any(f"{cub.version}.".startswith(f"{release}.") for release in compiled):
        messages.append(
            f"{cub.called} {cub.version} is not one of the versions that the bindings were"
            f" compiled with ({', '.join(compiled)}); the nearest version's are used"
        )
    fit_by_name = read(cub.bindings.text).items()
    unfit = (name for name, fit in fit_by_name if fit.row is None and BENCH in name)
    absent = sorted(name.rpartition("/")[2] for name in unfit)
    if absent:
        messages.append(f"{', '.join(absent)}: the tree lacks what they call; they are skipped")
    bound_names = bound_headers(cub.bindings)
    if unbound := ", ".join(sorted(header_names - bound_names)):
        messages.append(f"no binding covers {unbound}: what they select is not known")
    if whole and (missing := bound_names - header_names):
        messages.append(
            f"{len(missing)} of {len(bound_names)} bound headers are missing from this tree"
        )
    return tuple(messages)


def bound_headers(version: BoundVersion) -> frozenset[str]:
    """Returns the headers that decide a benchmark that is bound."""
    return frozenset(
        site.header
        for algorithm in bound(version)
        for site in algorithm.sites
        if any(benchmark.site == site.name for benchmark in algorithm.benchmarks)
    )


def headers_of_benchmarks(
    names_of_benchmarks: Collection[str], version: BoundVersion
) -> tuple[str, ...]:
    """Returns the headers that decide the named benchmarks."""
    names = set()
    for algorithm in bound(version):
        sites = {b.site for b in algorithm.benchmarks if b.name in names_of_benchmarks}
        names |= {site.header for site in algorithm.sites if site.name in sites}
    return tuple(sorted(names))


# ::cuda::compute_capability{10, 3}, compute_capability(90)
_CAPABILITY = re.compile(rb"\bcompute_capability\s*[{(]\s*(\d+)\s*(?:,\s*(\d+)\s*)?[})]")
# get_sm107_tuning, arch_id::sm_90, Policy1000, ChainedPolicy<900
_NAMED = re.compile(rb"(?:sm_?|policy_?|\bchainedpolicy\s*<\s*)(\d{2,4})(?!\d)", re.IGNORECASE)
# cc >= 90, cc.major_cap() < 10
_COMPARED = re.compile(rb"\bcc\b[\w.()\s]{0,40}[<>=]=?\s*(\d+)\b(?!\s*[{,])")


@dataclass(frozen=True, slots=True)
class AskedArchs:
    """The architectures at which a tree is queried."""

    known: frozenset[str]
    """Architectures that are known, or that a header mentions."""
    between: frozenset[str] = frozenset()
    """Others: each stands for the interval up to the next known architecture, or beyond all."""

    @property
    def ordered(self) -> tuple[str, ...]:
        """All architectures, ascending."""
        return tuple(sorted(self.known | self.between, key=arch_number))


# Architectures to query: the known ones, and one in each interval between them.


def asked_archs(contents: Iterable[bytes], listed: Iterable[str]) -> AskedArchs:
    """Chooses architectures so that every return in the headers is covered.

    A return's range can begin or end only at a number in a header, or right after it.
    """
    mentioned = {number for data in contents for number in _mentioned_numbers(data)}
    numbers = {arch_number(arch) for arch in (*ladder(), *listed)}
    numbers |= {min(number, BEYOND) for number in mentioned if number >= min(numbers)}
    successors = {number + 1 for number in numbers} - numbers
    groups = (numbers, successors)
    return AskedArchs(*(frozenset(f"sm{number}" for number in group) for group in groups))


def without_repeats(rows: Sequence[Differing], archs: AskedArchs) -> list[Differing]:
    """Drops changes at unknown architectures that repeat the change at the preceding one."""
    ordered = archs.ordered
    before = dict(zip(ordered[1:], ordered, strict=False))
    values_by_place = {(row.point, row.arch, row.legacy): (row.before, row.after) for row in rows}
    return [
        row
        for row in rows
        if row.arch not in archs.between
        or values_by_place.get((row.point, before[row.arch], row.legacy)) != (row.before, row.after)
    ]


def _mentioned_numbers(data: bytes) -> Iterator[int]:
    for major, minor in _CAPABILITY.findall(data):
        yield capability_number(major, minor) if minor else _scaled_number(int(major))
    yield from (_scaled_number(int(text)) for text in _NAMED.findall(data))
    yield from (_scaled_number(int(text)) for text in _COMPARED.findall(data))


def _scaled_number(value: int) -> int:
    """Normalizes 10, 103 and 1030, which mean 10.0, 10.3 and 10.3."""
    if value < 20:
        return value * 10
    return value // 10 if value >= 300 else value
