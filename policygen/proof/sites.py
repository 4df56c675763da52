"""Finds the workloads that a tree is asked about, and the sites that decide them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.bindings.fit import read
from policygen.bindings.load import Bound, axis_values, bound, library_types
from policygen.bindings.words import amd_archs, ladder
from policygen.errors import InputError, anchored, listed
from policygen.model.arch import arch_number, family_arch
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, Site
from policygen.model.selection import Differing
from policygen.model.trees import Cub, Dialect, side_by_side
from policygen.model.tuning import Family, TuningHeader
from policygen.model.workload import axis_name
from policygen.proof.probe import Asked, workloads
from policygen.proof.units import BoundFamily, Workload

BENCH = "/benchmark/"


def places(
    cub: Cub,
    headers: Sequence[TuningHeader],
    pattern: re.Pattern[str],
    axes: Mapping[str, frozenset[str]],
    header_names: frozenset[str] = frozenset(),
) -> tuple[Asked, ...]:
    """Finds the sites of these headers with benchmarks that match; finding none is an error."""
    found = []
    known = {header.name: header.aggregates for header in headers}
    for algorithm in bound(cub.bindings):
        for site in sites_of(algorithm, cub.dialect):
            if header_names and site.header not in header_names:
                continue
            points = [
                point
                for benchmark in algorithm.benchmarks
                if benchmark.site == site.name and pattern.match(benchmark.name)
                for point in workloads(benchmark, cub.bindings)
                if matches(point, axes)
            ]
            if points:
                tuned = any(binding.site == site.name for binding in algorithm.families)
                asked = Asked(site, tuple(points), tuned=tuned, algorithm=algorithm.algorithm)
                asked = replace(asked, aggregates=known.get(site.header, {}))
                found.append(_with_families(asked, algorithm, headers))
    if not found:
        raise nothing_bound(cub.bindings, pattern, axes, header_names)
    return tuple(found)


def _with_families(asked: Asked, algorithm: Bound, headers: Sequence[TuningHeader]) -> Asked:
    """Adds the families; where they are others than are bound, nothing of the site is asked."""
    try:
        return replace(asked, families=bound_families(algorithm, asked.site, headers))
    except InputError as problem:
        return replace(asked, problem=problem)


def bound_families(
    algorithm: Bound, site: Site, headers: Sequence[TuningHeader]
) -> tuple[BoundFamily, ...]:
    """Finds the families that a site's policies read; a policy selector reads none."""
    if site.is_selector:
        return ()
    found = algorithm.families_at(site, headers)
    return tuple((binding, _kinds(binding, family)) for binding, family in found)


def scaled_families(version: str, place: Asked) -> tuple[BoundFamily, ...]:
    """Finds the families that tell by which sizes the counts of a site are scaled."""
    return tuple(
        (binding, ())
        for algorithm in bound(version)
        if algorithm.algorithm == place.algorithm
        for binding in algorithm.families
        if binding.site == place.site.name
    )


def marked_members(algorithms: Sequence[Bound], dialect: Dialect) -> dict[tuple[str, str], str]:
    """Finds the member of each family that carries a mark, by namespace and name."""
    found = {}
    for algorithm in algorithms:
        for binding in algorithm.families:
            if site := algorithm.site(binding.site, dialect):
                found[site.scope, binding.name] = binding.mark
    return found


def with_new_families(
    members: Mapping[tuple[str, str], str], header: TuningHeader
) -> dict[tuple[str, str], str]:
    """Adds families that no binding knows yet: they are marked as their siblings are."""
    found = dict(members)
    for family in header.families:
        like = _like(family, [name for space, name in members if space == family.namespace])
        if like is not None:
            found.setdefault((family.namespace, family.name), members[family.namespace, like])
    return found


def with_new(
    families: Sequence[BoundFamily], declared: Sequence[Family]
) -> tuple[BoundFamily, ...]:
    """Adds to a site's families those of its namespace that were made after one of them."""
    known = {binding.name: (binding, kinds) for binding, kinds in families}
    found = list(families)
    for family in declared:
        like = _like(family, list(known))
        if like is not None and family.name not in known:
            binding, kinds = known[like]
            if len(kinds) == len(family.parameters):
                found.append((binding.model_copy(update={"name": family.name}), kinds))
    return tuple(found)


def _like(family: Family, names: Sequence[str]) -> str | None:
    """Finds the newest earlier family that is called the same but for its arch, else the newest."""
    end = family.name.removeprefix(family.arch)
    number = arch_number(family.arch)
    same = [name for name in names if name.endswith(end)]
    return max(same, key=lambda one: (family_arch(one) <= number, family_arch(one)), default=None)


def sites_of(algorithm: Bound, dialect: Dialect) -> list[Site]:
    """Chooses a site for each name: in the tree's dialect where it has one, else in another."""
    names = dict.fromkeys(site.name for site in algorithm.sites)
    order = sorted(side_by_side(dialect), key=lambda one: one != dialect)
    sites = ((algorithm.site(name, one) for one in order) for name in names)
    found = (next((site for site in known if site is not None), None) for known in sites)
    return [site for site in found if site is not None]


def devices(headers: Iterable[TuningHeader]) -> set[str]:
    """Architectures of devices that may get what a target of others has."""
    named = {name for header in headers for name, _ in header.aggregates.get("target_arch", ())}
    return named & {*amd_archs()}


def _kinds(binding: FamilyBinding, family: Family) -> tuple[str, ...]:
    if len(binding.args) != len(family.parameters):
        raise InputError(
            f"{family.header}: {family.name} has {len(family.parameters)} template parameters,"
            f" and {len(binding.args)} are bound",
            "Correct the family's args in schemas/bindings.",
        )
    return tuple(parameter.kind for parameter in family.parameters)


def matches(point: Workload, axes: Mapping[str, frozenset[str]]) -> bool:
    """Whether CCCL's `-a` keeps a workload: `T{ct}=I8`, also without flags, or by an older name."""
    assert isinstance(point.call, BenchmarkBinding)
    names = {**{name: name for name in point.values}, **_older(point.call)}
    return all(
        point.values.get(names.get(axis_name(axis), axis), None) in wanted
        for axis, wanted in axes.items()
    )


def _older(benchmark: BenchmarkBinding) -> dict[str, str]:
    return {older: axis for axis, older in benchmark.renamed.items() if axis in benchmark.axes}


def nothing_bound(
    version: str,
    pattern: re.Pattern[str],
    axes: Mapping[str, frozenset[str]],
    header_names: frozenset[str],
) -> InputError:
    """Says what was asked for, and what there is."""
    benchmarks = [b for algorithm in bound(version) for b in algorithm.benchmarks]
    asked = [f"-R {pattern.pattern!r}"] if pattern.pattern else []
    asked += [f"-a '{axis}=[{','.join(sorted(wanted))}]'" for axis, wanted in axes.items()]
    if not bound_headers(version) <= header_names:
        asked += sorted(header_names)
    named = [b for b in benchmarks if pattern.match(b.name)]
    known = sorted({axis for b in named for axis in b.axes})
    unknown = sorted({axis_name(axis) for axis in axes} - set(known))
    hint = None if named else anchored(pattern, (b.name for b in benchmarks))
    rows = [hint or f"Benchmarks: {listed(b.name for b in named or benchmarks)}"]
    if named:
        rows.append(f"their axes: {', '.join(known)}")
    for axis in axes:
        name = axis_name(axis)
        values = {v for b in named if name in b.axes for v in axis_values(b, name, version)}
        if values:
            rows.append(f"{name} is one of {', '.join(sorted(values))}")
    reason = f"; no benchmark has an axis {', '.join(unknown)}" if unknown and named else ""
    return InputError(f"nothing is bound that matches {' '.join(asked)}{reason}", "\n  ".join(rows))


def remarks(cub: Cub, header_names: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Says what a user should know of the bindings of a tree; `header_names` are all of its own."""
    compiled, found = library_types(cub.library).compiled, []
    if not any(cub.version == known or cub.version.startswith(f"{known}.") for known in compiled):
        found.append(
            f"{cub.called} {cub.version} is none of the versions that the bindings were compiled"
            f" with ({', '.join(compiled)}); those of the nearest version are used"
        )
    others = read(cub.bindings)
    absent = sorted(n.rpartition("/")[2] for n, o in others.items() if o.row is None and BENCH in n)
    if absent:
        found.append(
            f"{', '.join(absent)}: the tree has nothing that they call; they are not asked"
        )
    known = bound_headers(cub.bindings)
    if header_names and (lost := known - header_names):
        found.append(f"{len(lost)} of {len(known)} headers that are bound are not in this tree")
    return tuple(found)


def bound_headers(version: str) -> frozenset[str]:
    """Lists the headers that bindings name."""
    return frozenset(site.header for algorithm in bound(version) for site in algorithm.sites)


# ::cuda::compute_capability{10, 3}, compute_capability(90)
_CAPABILITY = re.compile(rb"\bcompute_capability\s*[{(]\s*(\d+)\s*(?:,\s*(\d+)\s*)?[})]")
# get_sm107_tuning, arch_id::sm_90, Policy1000, ChainedPolicy<900
_NAMED = re.compile(rb"(?:sm_?|policy_?|\bchainedpolicy\s*<\s*)(\d{2,4})(?!\d)", re.IGNORECASE)
# cc >= 90, cc.major_cap() < 10
_COMPARED = re.compile(rb"\bcc\b[\w.()\s]{0,40}[<>=]=?\s*(\d+)\b(?!\s*[{,])")


@dataclass(frozen=True, slots=True)
class AskedArchs:
    """Where a tree is asked."""

    known: frozenset[str]
    """The architectures that are known, or that stand in a header."""
    between: frozenset[str] = frozenset()
    """Others: each stands for the interval up to the next that is known, or beyond all."""

    @property
    def ordered(self) -> tuple[str, ...]:
        """All of them, ascending."""
        return tuple(sorted(self.known | self.between, key=arch_number))


# The architectures at which a tree is asked: no interval between two of them is left out.


def asked_archs(contents: Iterable[bytes], listed: Iterable[str]) -> AskedArchs:
    """Finds where headers are asked, so that no return of theirs is left out.

    A return can begin or end only at what stands in a header, or right behind it.
    """
    named = {number for data in contents for number in _numbers(data)}
    known = {arch_number(arch) for arch in (*ladder(), *listed)}
    known |= {number for number in named if number >= min(known)}
    behind = {number + 1 for number in known} - known
    return AskedArchs(frozenset(map(_name, known)), frozenset(map(_name, behind)))


def without_repeats(rows: Sequence[Differing], archs: AskedArchs) -> list[Differing]:
    """Leaves out what changes between known architectures just as on the one before."""
    ordered = archs.ordered
    before = dict(zip(ordered[1:], ordered, strict=False))
    known = {(row.point, row.arch, row.legacy): (row.before, row.after) for row in rows}
    return [
        row
        for row in rows
        if row.arch not in archs.between
        or known.get((row.point, before[row.arch], row.legacy)) != (row.before, row.after)
    ]


def _name(number: int) -> str:
    return f"sm{number}"


def _numbers(data: bytes) -> Iterator[int]:
    for major, minor in _CAPABILITY.findall(data):
        yield int(major) * 10 + int(minor) if minor else _number(int(major))
    yield from (_number(int(text)) for text in _NAMED.findall(data))
    yield from (_number(int(text)) for text in _COMPARED.findall(data))


def _number(value: int) -> int:
    """10, 103 and 1030 are 10.0, 10.3 and 10.3."""
    if value < 20:
        return value * 10
    return value // 10 if value >= 300 else value
