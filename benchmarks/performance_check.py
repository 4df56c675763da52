"""Whether verdicts of speed are right: `python -m benchmarks.performance_check TREE [RUNS]`.

It needs a GPU. The same code on both sides must be called equal: of all runtime workloads, one in
a hundred may be called otherwise. A variant that is some 3 % slower than what CUB selects must be
called slower in every run, and CUB's own beside it faster.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen import PolicygenError, VariantsWanted, measure_variants, open_session
from policygen.app.filters import Filter
from policygen.app.measure import Effort
from policygen.app.measuring import chosen_workloads, open_workloads
from policygen.app.performance import PerformanceEffort, measure_change
from policygen.app.performance_objects import PreparedChange, Runs
from policygen.app.session import Session
from policygen.measure.compiling import Candidate, WorkloadToCompile
from policygen.measure.gpus import find_gpu
from policygen.measure.meaning import Policy
from policygen.measure.opened import OpenedWorkload
from policygen.measure.public import PublicWorkload
from policygen.measure.runs import WorkloadRun
from policygen.measure.units import PublicPolicy, inputs_text, variants_text
from policygen.model.performance import VerifyPerformance
from policygen.model.workload import Point
from policygen.performance.changes import AFTER

EQUAL = (
    ("cub.bench.reduce.sum$", ("T=[I8,I16,I32,F32,F64]", "OffsetT=I32")),
    ("cub.bench.scan.exclusive.sum$", ("T=[I8,I16,I32,F32,F64]", "OffsetT=I32")),
    ("cub.bench.radix_sort.keys$", ("T=[I8,I16,I32,I64]", "OffsetT=I32")),
    ("cub.bench.select.if$", ("T=[I8,I32,I64]", "InPlace=false")),
    ("cub.bench.select.unique_by_key$", ("KeyT=[I8,I32]", "ValueT=I32")),
    ("cub.bench.reduce.by_key$", ("KeyT=I32", "ValueT=[I32,F32]")),
    ("cub.bench.merge_sort.keys$", ("T=[I32,I64]", "OffsetT=I32")),
)
"""Workloads whose code is the same on both sides: over 200 runtime workloads."""
PLANTED = (
    ("cub.bench.reduce.sum$", ("T=F32", "OffsetT=I32")),
    ("cub.bench.scan.exclusive.sum$", ("T=I32", "OffsetT=I32")),
    ("cub.bench.radix_sort.keys$", ("T=I32", "OffsetT=I32")),
)
LARGE = "Elements{io}[pow2]=[24,28]"
"""Sizes at which 3 % are found."""
SLOWER = 0.97
"""The score that a planted variant is to have, about."""
DRAWN = 40
"""Variants that are measured to find one."""
OTHERWISE = 0.01
"""The share of equal runtime workloads that may be called otherwise."""
RUNS = 20


@dataclass(frozen=True, slots=True)
class Planted:
    """A workload, and a variant of it with about the score that is wanted."""

    regex: str
    axes: tuple[str, ...]
    label: str
    score: float

    @property
    def where(self) -> Filter:
        """The workload at large sizes."""
        return Filter((), self.regex, (*self.axes, LARGE), ())


def opened(session: Session, where: Filter, arch: str) -> dict[Point, OpenedWorkload]:
    """Workloads that take policies; one that cannot be measured ends the check."""
    part = Filter((), where.regex, tuple(axis for axis in where.axes if axis != LARGE), ())
    found = {}
    for point, one in open_workloads(session, chosen_workloads(session, part), arch).items():
        if isinstance(one, PolicygenError):
            raise one
        found[point] = one
    return found


def sides(
    workloads: Mapping[Point, OpenedWorkload], before: str | None, after: str | None
) -> PreparedChange:
    """A change from one variant to another one; none is what CUB selects, said as a policy."""
    runs = {
        point: [(run, _both(one, run, before, after)) for run in one.runs]
        for point, one in workloads.items()
    }
    prepared: dict[Point, Runs] = dict(runs)
    words = [label or "CUB's own" for label in (before, after)]
    return PreparedChange(words[0], words[1], prepared, (), {}, {})


def _both(
    one: OpenedWorkload, run: WorkloadRun, before: str | None, after: str | None
) -> WorkloadToCompile:
    meaning = one.meaning
    assert isinstance(meaning, PublicWorkload)
    public = PublicPolicy(meaning.selector.selector.policy, meaning.fields)

    def policy(label: str | None) -> Policy:
        return meaning.base if label is None else meaning.policy(one.space.variant(label))

    policies = {AFTER: policy(after)}

    def render(lot: Sequence[Candidate]) -> str:
        return variants_text(run, [policies.get(c.label, policy(before)) for c in lot], public)

    folders = run.cub.include_folders
    return WorkloadToCompile(
        one.name, meaning.arch, folders, inputs_text(run), render, (Candidate(AFTER),)
    )


def verdicts(document: VerifyPerformance) -> Counter[str]:
    """How many runtime workloads were called what."""
    return Counter(row.verdict for one in document.workloads for row in one.runtime)


def check_equal(session: Session, arch: str, runs: int) -> Iterator[str]:
    """Measures the same code on both sides, run by run."""
    every: dict[Point, OpenedWorkload] = {}
    for regex, axes in EQUAL:
        every |= opened(session, Filter((), regex, axes, ()), arch)
    found: Counter[str] = Counter()
    for seed in range(1, runs + 1):
        document = measure_change(
            session,
            sides(every, None, None),
            Filter(),
            arch,
            effort=PerformanceEffort(seed=seed),
        )
        told = verdicts(document)
        found += told
        print(f"equal, run {seed}: {dict(told)} in {document.seconds:.0f} s", flush=True)
        yield from (f"{one.name}: {one.problem}" for one in document.workloads if one.problem)
    total = found.total()
    wrong = total - found["equal"]
    print(f"equal: {wrong} of {total} runtime workloads are called otherwise")
    if total == 0 or wrong > OTHERWISE * total:
        yield f"{wrong} of {total} equal runtime workloads are called otherwise"


def find_planted(session: Session) -> Iterator[Planted]:
    """Measures variants of each workload, and tells the one that is about so much slower."""
    for regex, axes in PLANTED:
        document = measure_variants(
            session,
            Filter((), regex, (*axes, LARGE), ()),
            VariantsWanted((), DRAWN),
            effort=Effort(processes=3),
        )
        (workload,) = document.workloads
        known = [one for one in workload.variants if one.score is not None]
        best = min(known, key=lambda one: abs((one.score or 0) - SLOWER), default=None)
        if best is not None and best.score is not None:
            print(f"planted: {regex} {best.variant} {best.score:.4f}", flush=True)
            yield Planted(regex, axes, best.variant, best.score)


def check_planted(session: Session, arch: str, runs: int) -> Iterator[str]:
    """Measures a slower variant after CUB's own, and CUB's own after it, run by run."""
    for one in find_planted(session):
        workloads = opened(session, one.where, arch)
        for way, change in (
            ("slower", sides(workloads, None, one.label)),
            ("faster", sides(workloads, one.label, None)),
        ):
            found: Counter[str] = Counter()
            for seed in range(1, runs + 1):
                effort = PerformanceEffort(seed=seed)
                document = measure_change(session, change, one.where, arch, effort=effort)
                found[document.workloads[0].verdict] += 1
            print(f"{way}: {one.regex} {one.label}: {dict(found)}", flush=True)
            if found[way] < runs:
                yield f"{one.regex} {one.label} is {way} in {found[way]} of {runs} runs"


def main(tree: str, runs: int) -> int:
    """Runs both checks; the number of what is wrong."""
    session = open_session(tree)
    arch = find_gpu().arch
    wrong = [*check_equal(session, arch, runs), *check_planted(session, arch, runs)]
    print("\n".join(wrong) or "all verdicts are right")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else RUNS)))
