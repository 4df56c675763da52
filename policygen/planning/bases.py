"""Whether what was measured as base is what the tree selects now."""

from collections.abc import Iterator, Mapping, Sequence

from policygen.bindings.recorded import Recorded, benchmark_of, today, version_of
from policygen.errors import InputError, PolicygenError
from policygen.model.plan import Action, Plan
from policygen.model.tuning import spell
from policygen.model.workload import Point, in_words, point_of
from policygen.planning.oracle import Oracle


def base_remarks(plan: Plan, version: str, bases: Mapping[str, Oracle]) -> list[str]:
    """What differs between the measured bases and the tree, or that it could not be compared."""
    found: list[str] = []
    for measured, actions in _by_version(plan).items():
        if measured in bases:
            found += _differences(actions, version, measured, bases[measured], plan.options.arch)
        elif measured != version:
            found.append(
                f"measured on CCCL {measured}, and the tree is CUB {version}: whether base is the"
                " same was not asked; --measured-on TREE compares"
            )
    return found


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
    points = [_point(action, version, measured) for action in actions]
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
        names = [n for n, v in then.values.items() if n in before and before[n] != v]
        if names:
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


def _point(action: Action, version: str, measured: str) -> Point | None:
    """A workload as the measured version calls it: complex<float> was `C64` once."""
    try:
        benchmark = benchmark_of(action.benchmark, version)
        then = today(Recorded(benchmark, version, action.workload), measured)
    except InputError:
        return None
    return point_of(action.benchmark, then)
