"""Whether verdicts of speed are right: `python -m benchmarks.performance_check TREE [RUNS]`.

It needs a GPU. The same code on both sides must be called equal: of all runtime workloads, one in
a hundred may be called otherwise. Beside it, in the same runs, stand variants that are some 3 %
slower than what CUB selects, and CUB's own after such: they must be called so in every run. What
was found is kept in benchmarks/results, so that the same command goes on there.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from policygen import PolicygenError, VariantsWanted, measure_variants, open_session
from policygen.app.filters import Filter
from policygen.app.measured_workloads import Effort, chosen_workloads, open_workloads
from policygen.app.performance import PerformanceEffort, measure_change
from policygen.app.session import Session
from policygen.errors import InputError
from policygen.gpu.changes import AFTER, PreparedChange, Runs
from policygen.gpu.compiling import Candidate, WorkloadToCompile
from policygen.gpu.machine import find_gpu
from policygen.gpu.opened import OpenedWorkload, PublicWorkload
from policygen.gpu.space import Policy
from policygen.gpu.units import WorkloadRun, inputs_text, variants_text
from policygen.model.verdicts import VerifyPerformance
from policygen.model.workload import Point, in_words, point_of

EQUAL = (
    ("cub.bench.reduce.sum$", ("T=[I8,I16,F32,F64]", "OffsetT=I32")),
    ("cub.bench.scan.exclusive.sum$", ("T=[I8,I16,F32,F64]", "OffsetT=I32")),
    ("cub.bench.radix_sort.keys$", ("T=[I8,I16,F32,F64]", "OffsetT=I32")),
    ("cub.bench.select.if$", ("T=[I8,I16,I32,I64]", "InPlace=false")),
    ("cub.bench.select.unique_by_key$", ("KeyT=[I8,I32,I64]", "ValueT=[I32,I64]")),
    ("cub.bench.reduce.by_key$", ("KeyT=[I8,I32]", "ValueT=[I32,F32]")),
    ("cub.bench.merge_sort.keys$", ("T=[I16,I32,I64,F32]", "OffsetT=I32")),
)
"""Workloads whose code is the same on both sides: over 200 runtime workloads."""
ALGORITHMS = r"cub\.bench\.(reduce\.sum|scan\.exclusive\.sum|radix_sort\.keys)$"
PLANTED = {"I32": "slower", "I64": "faster"}
"""Types whose workloads get a slower variant after what CUB selects, or CUB's own after such."""
ELEMENTS = "Elements{io}[pow2]"
SIZES, LARGE = ("16", "20", "24"), "24"
"""What is measured: 2^28 would be most of the time. And the size from which on 3 % are found."""
SCORE = 0.97
"""The score that a planted variant is to have, or a little less."""
PARTS = 4
"""A run has every fourth workload of equal code, by turns: all of them would take minutes."""
DRAWN = 24
"""Variants that are measured to find one."""
OTHERWISE = 0.01
"""The share of equal runtime workloads that may be called otherwise."""
RUNS = 20
PATIENCE = 600.0
"""Seconds to wait for a GPU that somebody else measures on."""
KEPT = Path("benchmarks/results/performance.json")
"""The variants that were planted, and what each run called what."""
Way = str
"""`equal`, `slower` or `faster`."""


def opened(session: Session, where: Filter, arch: str) -> dict[Point, OpenedWorkload]:
    """Workloads that take policies; one that cannot be measured ends the check."""
    found = {}
    for point, one in open_workloads(session, chosen_workloads(session, where), arch).items():
        if isinstance(one, PolicygenError):
            raise one
        found[point] = one
    return found


def sides(
    opened_ones: Mapping[Point, OpenedWorkload], planted: Mapping[Point, tuple[Way, str]]
) -> PreparedChange:
    """A change that plants variants before or after CUB's own, said as policies, and no other."""
    prepared: dict[Point, Runs] = {}
    for point, one in opened_ones.items():
        way, label = planted.get(point, ("equal", None))
        before, after = (label if way == side else None for side in ("faster", "slower"))
        prepared[point] = [(run, _both(one, run, before, after)) for run in one.runs]
    return PreparedChange("CUB's own", "with planted variants", prepared, (), {}, {})


def _both(
    one: OpenedWorkload, run: WorkloadRun, before: str | None, after: str | None
) -> WorkloadToCompile:
    meaning = one.meaning
    assert isinstance(meaning, PublicWorkload)
    policy_name = meaning.selector.selector.policy

    def policy(label: str | None) -> Policy:
        return meaning.base if label is None else meaning.policy(one.space.variant(label))

    policies = {AFTER: policy(after)}

    def render(lot: Sequence[Candidate]) -> str:
        chosen = [policies.get(c.label, policy(before)) for c in lot]
        return variants_text(run, chosen, policy_name, meaning.fields)

    folders = run.cub.include_folders
    return WorkloadToCompile(
        one.name, meaning.arch, folders, inputs_text(run), render, (Candidate(AFTER),)
    )


def find_planted(session: Session, axes: Sequence[str]) -> dict[str, str]:
    """Measures variants of each workload; by its name the one that is about so much slower."""
    sizes = f"{ELEMENTS}=[{LARGE}]"
    document = measure_variants(
        session,
        Filter((), ALGORITHMS, (*axes, sizes), ()),
        VariantsWanted((), DRAWN),
        effort=Effort(processes=2, rounds=10),
    )
    found = {}
    for workload in document.workloads:
        name = in_words(workload.benchmark, workload.workload)
        known = {one.variant: one.score for one in workload.variants if one.score is not None}
        if not known:
            raise InputError(f"{name}: no variant of {DRAWN} could be measured")
        far = [one for one in known if known[one] <= SCORE]
        label = min(far or known, key=lambda one: abs(known[one] - SCORE))
        print(f"planted: {name} {label} {known[label]:.4f}", flush=True)
        found[name] = label
    return found


def told(document: VerifyPerformance, planted: Mapping[Point, tuple[Way, str]]) -> dict[str, int]:
    """How often what was called what: `equal: equal`, of runtime workloads where code is equal."""
    found: Counter[str] = Counter()
    for one in document.workloads:
        point = point_of(one.benchmark, one.workload)
        if one.problem:
            found[f"problem: {one.name}: {one.problem}"] += 1
        elif point in planted:
            large = (row for row in one.runtime if row.point.get(ELEMENTS) == LARGE)
            found.update(f"{planted[point][0]} {one.name}: {row.verdict}" for row in large)
        else:
            found.update(f"equal: {row.verdict}" for row in one.runtime)
    return dict(found)


def wrong(runs: Sequence[Mapping[str, int]]) -> Iterator[str]:
    """What is not as it must be."""
    total: Counter[str] = Counter()
    for run in runs:
        total.update(run)
    equal = {key: count for key, count in total.items() if key.startswith("equal: ")}
    every, otherwise = sum(equal.values()), sum(equal.values()) - equal.get("equal: equal", 0)
    print(f"equal: {otherwise} of {every} runtime workloads are called otherwise")
    if every == 0 or otherwise > OTHERWISE * every:
        yield f"{otherwise} of {every} equal runtime workloads are called otherwise"
    for key, count in sorted(total.items()):
        way, _, verdict = key.partition(" ")[0], *key.rpartition(": ")[1:]
        if way in {"slower", "faster"}:
            print(f"{key}: {count} times in {len(runs)} runs")
        if way not in {verdict, "equal:"}:
            yield f"{key}: {count} times in {len(runs)} runs"


def check(tree: str, runs: int, kept: Path = KEPT) -> list[str]:
    """Measures as many runs as are not there yet; what is wrong with all of them."""
    session = open_session(tree)
    arch = find_gpu().arch
    there = json.loads(kept.read_text()) if kept.exists() else {"planted": {}, "runs": []}
    every: dict[Point, OpenedWorkload] = {}
    for regex, axes in EQUAL:
        every |= opened(session, Filter((), regex, axes, ()), arch)
    axes = (f"T=[{','.join(PLANTED)}]", "OffsetT=I32")
    there["planted"] = there["planted"] or find_planted(session, axes)
    planted: dict[Point, tuple[Way, str]] = {}
    for point, one in opened(session, Filter((), ALGORITHMS, axes, ()), arch).items():
        every[point] = one
        planted[point] = (PLANTED[dict(point[1])["T"]], there["planted"][one.name])
    sizes = f"{ELEMENTS}=[{','.join(SIZES)}]"
    equal = [point for point in every if point not in planted]
    for seed in range(len(there["runs"]) + 1, runs + 1):
        effort = PerformanceEffort(seed=seed, patience=PATIENCE)
        part = {point: every[point] for point in (*equal[seed % PARTS :: PARTS], *planted)}
        change = sides(part, planted)
        document = measure_change(
            session, change, Filter((), "", (sizes,), ()), arch, effort=effort
        )
        there["runs"].append(told(document, planted))
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(there))
        print(f"run {seed}: {there['runs'][-1]} in {document.seconds:.0f} s", flush=True)
    return list(wrong(there["runs"]))


def main(tree: str, runs: int) -> int:
    """The number of what is wrong."""
    found = check(tree, runs)
    print("\n".join(found) or "all verdicts are right")
    return len(found)


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else RUNS)))
