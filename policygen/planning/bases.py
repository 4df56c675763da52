"""Whether what was measured as base is what the tree selects now."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from policygen.bindings.recorded import Recorded, benchmark_of, today, version_of
from policygen.errors import InputError, PolicygenError
from policygen.model.plan import Action, Plan
from policygen.model.results import ScoredWorkload
from policygen.model.tuning import Value, spell
from policygen.model.workload import Point, in_words, point_of
from policygen.planning.measured import of_versions
from policygen.planning.oracle import Oracle


def base_remarks(plan: Plan, version: str, bases: Mapping[str, Oracle]) -> list[str]:
    """What differs between the measured bases and the tree, or that it could not be compared."""
    found: list[str] = []
    for measured, actions in _by_version(plan).items():
        if measured in bases:
            found += _differences(actions, version, measured, bases[measured], plan.options.arch)
        elif measured != version:
            found.append(
                f"the results are of CCCL {measured}, and the tree is CUB {version}: whether their"
                " base is the same is not known; --measured-on TREE compares them"
            )
    return found


def with_bases(
    scored: Sequence[ScoredWorkload],
    now: Oracle,
    version: str,
    bases: Mapping[str, Oracle],
    arch: str,
) -> tuple[ScoredWorkload, ...]:
    """The results, which say where base had other values than the tree has.

    Asked are workloads of several versions alone, where the tree of one is at hand.
    """
    several = of_versions(scored, version)
    differ: set[int] = set()
    for measured in sorted(bases):
        rows = {
            point: [one for one in each if version_of(one.cccl) == measured]
            for point, each in several.items()
        }
        named = {point: _point(*point, version, measured) for point, ones in rows.items() if ones}
        olds = {point: old for point, old in named.items() if old is not None}
        if not olds:
            continue
        try:
            then, here = bases[measured].tell([*olds.values()], arch), now.tell([*olds], arch)
        except PolicygenError:
            continue  # what is said of the plan's bases tells why
        for point, old in olds.items():
            if old in then and point in here and _others(then[old].values, here[point].values):
                differ |= {id(one) for one in rows[point]}
    return tuple(
        one.model_copy(update={"base_differs": True}) if id(one) in differ else one
        for one in scored
    )


def _others(then: Mapping[str, Value], now: Mapping[str, Value]) -> list[str]:
    """The names of values that both versions have, and that differ."""
    return [name for name, value in then.items() if name in now and now[name] != value]


def _by_version(plan: Plan) -> Mapping[str, list[Action]]:
    """The workloads that the tree was asked about, by the version that was measured."""
    found: dict[str, list[Action]] = {}
    for action in plan.actions:
        if action.before is not None:
            found.setdefault(version_of(action.cccl), []).append(action)
    return dict(sorted(found.items()))


def _differences(
    actions: Sequence[Action], version: str, measured: str, oracle: Oracle, arch: str
) -> Iterator[str]:
    points = [_point(action.benchmark, action.point[1], version, measured) for action in actions]
    try:
        told = oracle.tell([point for point in points if point], arch)
    except PolicygenError as error:
        reason = str(error).partition("\n")[0]
        yield f"whether base is the same as in CUB {measured} could not be asked: {reason}"
        return
    silent = 0
    for action, point in zip(actions, points, strict=True):
        then = told.get(point) if point else None
        before = action.before
        assert before is not None
        if then is None:
            silent += 1
            continue
        if names := _others(then.values, before):
            pairs = ", ".join(
                f"{n} {spell(then.values[n])}, here {spell(before[n])}" for n in names
            )
            name = in_words(action.benchmark, action.workload)
            yield f"{name}: base was measured with other values ({measured}: {pairs})"
    if silent:
        yield (
            f"whether base is the same as in CUB {measured} is not known for {silent} of"
            f" {len(actions)} workloads"
        )


def _point(
    name: str, workload: Iterable[tuple[str, str]], version: str, measured: str
) -> Point | None:
    """A workload as the measured version calls it: complex<float> was `C64` once."""
    try:
        benchmark = benchmark_of(name, version)
        then = today(Recorded(benchmark, version, dict(workload)), measured)
    except InputError:
        return None
    return point_of(name, then)


def several(written: Iterable[tuple[str, str]]) -> Iterator[str]:
    """That results of several releases are written, which is no tuning that was measured whole.

    Of each that is written: its workload, and what it was measured on.
    """
    found: dict[str, set[str]] = {}
    for name, cccl in written:
        found.setdefault(version_of(cccl), set()).add(name)
    if len(found) > 1:
        told = ", ".join(f"{version} ({len(names)})" for version, names in sorted(found.items()))
        yield f"results of several versions of CCCL are written, by workloads: {told}"
