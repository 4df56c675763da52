"""Which workloads are asked for; the others stay known, and nothing is written for them."""

import re
from collections.abc import Mapping, Sequence

from policygen.errors import InputError
from policygen.model.results import Choice, ScoredWorkload
from policygen.model.workload import spelled

NOT_ASKED = "left out by -R or -a"
KEPT = Choice(decision="keep base", variant=None, reason=NOT_ASKED)


def split(
    workloads: Sequence[ScoredWorkload],
    pattern: re.Pattern[str],
    axes: Mapping[str, frozenset[str]],
) -> tuple[tuple[ScoredWorkload, ...], tuple[ScoredWorkload, ...]]:
    """Those that are asked for, and all others, whose base is kept."""
    known = {axis for one in workloads for axis in one.workload}
    axes = spelled(axes, known)
    for axis in axes:
        if axis not in known:
            raise InputError(
                f"-a {axis}: there is no such compile-time axis, and what is written is for whole"
                " workloads",
                f"There are: {', '.join(sorted(known))}",
            )
    asked = tuple(one for one in workloads if _is_asked(one, pattern, axes))
    others = (one for one in workloads if one not in asked)
    return asked, tuple(one.model_copy(update={"choice": KEPT}) for one in others)


def _is_asked(
    one: ScoredWorkload, pattern: re.Pattern[str], axes: Mapping[str, frozenset[str]]
) -> bool:
    mine = {axis: values for axis, values in axes.items() if axis in one.workload}
    fits = all(one.workload[axis] in values for axis, values in mine.items())
    return fits and pattern.match(one.algorithm) is not None
