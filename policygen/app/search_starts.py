"""What a search tries first: what CUB selects for other types and GPUs, and what won before."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from policygen.app.filters import Filter
from policygen.app.measuring import Opened, chosen_workloads, open_workloads
from policygen.app.session import Session
from policygen.bindings.archs import ladder
from policygen.errors import PolicygenError
from policygen.measure.distinct import Classifier
from policygen.measure.meaning import Policy
from policygen.measure.opened import OpenedWorkload
from policygen.model.labels import BASE
from policygen.results.top import rank
from policygen.search.domain import Values
from policygen.search.workload import nearest_values

BEST = 8
"""Of each workload of an earlier database."""
MOST = 16
"""What is tried first is no search yet."""


def selected_policies(session: Session, opened: Opened, arch: str) -> dict[str, list[Policy]]:
    """By benchmark the policies that CUB selects for its types, here and on neighbouring archs.

    Where variants are changed headers, only those that are searched are known.
    """
    found: dict[str, list[Policy]] = {}
    ready = [one for one in opened.values() if isinstance(one, OpenedWorkload)]
    for one in ready:
        found.setdefault(one.meaning.point[0], []).append(one.meaning.base)
    public = {one.meaning.point[0]: one.meaning.benchmark for one in ready if one.headers is None}
    for name, benchmark in public.items():
        for other in (arch, *_neighbours(arch)):
            for known in filter(None, (name, benchmark.like)):
                found[name] += _of_benchmark(session, known, other)
    return found


def earlier_labels(databases: Sequence[Path]) -> dict[str, tuple[str, ...]]:
    """By benchmark the best variants of databases, whatever their types and GPUs."""
    found: dict[str, dict[str, None]] = {}
    for path in databases:
        for one in rank([path], samples=False).workloads:
            best = [v.variant for v in one.variants if v.variant != BASE][:BEST]
            found.setdefault(one.algorithm, {}).update(dict.fromkeys(best))
    return {name: tuple(labels) for name, labels in found.items()}


def starts_of(classifier: Classifier, policies: Sequence[Policy]) -> list[Values]:
    """The variants nearest to policies, each once; the first are those of the first policies."""
    distinct = list({tuple(one.items()): one for one in policies}.values())[:MOST]
    return list(dict.fromkeys(nearest_values(classifier, one)[0] for one in distinct))


def _of_benchmark(session: Session, name: str, arch: str) -> Iterator[Policy]:
    """Those of all its types; none where the architecture cannot be asked about."""
    where = Filter((), f"{re.escape(name)}$", (), ())
    try:
        told = open_workloads(session, chosen_workloads(session, where), arch)
    except PolicygenError:
        return
    for one in told.values():
        if isinstance(one, OpenedWorkload) and one.headers is None:
            yield one.meaning.base


def _neighbours(arch: str) -> Iterator[str]:
    """The architectures of tunings right before and after one."""
    known = list(ladder())
    if arch in known:
        at = known.index(arch)
        yield from known[max(0, at - 1) : at]
        yield from known[at + 1 : at + 2]
