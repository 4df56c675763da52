"""Results as databases would give them, made up: which variant is chosen for which workload."""

import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from policygen import trees
from policygen.bindings.load import bound
from policygen.model.bindings import BenchmarkBinding
from policygen.model.plans import Options, Plan
from policygen.model.results import Choice, ScoredVariant, ScoredWorkload
from policygen.model.trees import BoundVersion
from policygen.opening import read_bytes
from policygen.planning.decide import remembered
from policygen.planning.judge import judge
from policygen.planning.places import PlacedResult
from policygen.planning.plan import Planner, remake_plan
from policygen.planning.saved import changed_headers, check_decisions, check_same
from policygen.proof.oracle import Compiler, compiler_for
from policygen.proof.probe import workloads
from policygen.proof.reading import read_tree
from policygen.results.together import Together
from policygen.store.applies import apply, undo
from policygen.store.replacement import Change
from tests.probing import TUNINGS

GPUS = {"sm90": "H200 (6144, 132, eccon)", "sm100": "B200 (8192, 148, eccon)"}


def label(benchmark: BenchmarkBinding, seed: str) -> str:
    """A variant out of a benchmark's search space."""
    rng = random.Random(seed)
    parts = []
    for name, space in benchmark.parameters.items():
        start, end, step = (int(part) for part in space.split(":"))
        parts.append(f"{name}_{rng.randrange(start, end + 1, step)}")
    return ".".join(parts)


def scored(
    benchmark: BenchmarkBinding,
    workload: dict[str, str],
    variant: str | None,
    version: str,
    gpu: str = GPUS["sm90"],
) -> ScoredWorkload:
    """A workload for which a variant is chosen, or base."""
    found = ScoredVariant(variant=variant or "base", score=1.2, min=1.0, mean=1.1, max=1.3)
    choice = Choice(
        decision="use" if variant else "keep base",
        variant=variant,
        score=1.2 if variant else None,
        reason="best score: 1.200000" if variant else "no variant passes the rules",
    )
    return ScoredWorkload(
        gpu=gpu,
        ctk="13.0.88",
        cccl=f"v{version}",
        algorithm=benchmark.name,
        workload={f"{axis}{{ct}}": value for axis, value in workload.items()},
        databases=("made-up.db",),
        approximate=False,
        runtime_workloads=4,
        complete=2,
        incomplete=0,
        variants=(found,),
        choice=choice,
    )


def every_benchmark(version: str, *, writable: bool = True) -> list[BenchmarkBinding]:
    """The benchmarks of a version whose results have a place in the headers."""
    return [
        benchmark
        for algorithm in bound(BoundVersion(version))
        for benchmark in algorithm.benchmarks
        if benchmark.writable == writable
    ]


def benchmark(version: str, name: str) -> BenchmarkBinding:
    """One benchmark."""
    (found,) = [
        b
        for a in bound(BoundVersion(version))
        for b in a.benchmarks
        if b.name == f"cub.bench.{name}"
    ]
    return found


def points(of: BenchmarkBinding, version: str) -> list[dict[str, str]]:
    """All workloads of a benchmark."""
    return [dict(workload.values) for workload in workloads(of, BoundVersion(version))]


def workload_count(version: str, header: str | None = None) -> int:
    """How many workloads the benchmarks of a version have, or those that one header tunes."""
    return sum(
        len(workloads(one, BoundVersion(version)))
        for algorithm in bound(BoundVersion(version))
        for one in algorithm.benchmarks
        if header is None
        or any(site.name == one.site and site.header == header for site in algorithm.sites)
    )


def no_common_variant(cases: Sequence[PlacedResult]) -> Together:
    """Nothing that was measured for one was measured for another."""
    return Together((), f"no variant was measured for all {len(cases)}")


def assert_taken_back(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> None:
    """Headers that are written in one apply are, byte for byte, what they were after one undo."""
    when = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve()
        changes = [Change(tree / TUNINGS / name, before[name], after[name]) for name in after]
        changes[0].path.parent.mkdir(parents=True)
        for change in changes:
            change.path.write_bytes(change.before)
        apply(changes, tree / "policygen.db", tree, "sm90", "{}", when)
        assert [change.path.read_bytes() for change in changes] == [c.after for c in changes]
        undo(tree / "policygen.db", tree, 1, when)
        assert [change.path.read_bytes() for change in changes] == [c.before for c in changes]


def made(maker, results):
    """A plan; what it decided gives it once more, without databases and without looking back."""
    found = maker.plan(results)
    kept = Plan.model_validate_json(found.model_dump_json())
    check_decisions(kept)
    unasked = replace(maker, together=remembered(kept.joint), prove=False)
    again_made = remake_plan(unasked, kept, kept.results)
    check_same(kept, again_made)
    assert again_made.model_copy(update={"joint": kept.joint, "instead": kept.instead}) == kept
    return found


class Planned:
    """A plan on a tree, and what is needed to look at what it does."""

    def __init__(
        self, root: Path, wanted: Sequence[ScoredWorkload], *, together=no_common_variant, **options
    ) -> None:
        names = {
            site.header
            for a in bound(BoundVersion(trees.open_tree(root).version))
            for b in a.benchmarks
            for site in a.sites
            if site.name == b.site and b.name in {one.algorithm for one in wanted}
        }
        found = read_tree(trees.open_tree(root))
        assert not found.errors
        self.tree = read_tree(found.cub, sorted(names & found.paths.keys()))
        self.data = {name: read_bytes(path) for name, path in self.tree.paths.items()}
        self.compiler = self.asked(compiler_for(self.tree))
        self.planner = Planner(self.compiler.sources, Options(**options), self.compiler, together)
        self.plan: Plan = made(self.planner, wanted)
        self.after = changed_headers(self.plan, self.data)

    def asked(self, compiler: Compiler) -> Compiler:
        """The compiler, or one that is asked less."""
        return compiler

    @property
    def decisions(self) -> dict[str, str]:
        """Each workload's decision."""
        return {
            " ".join([a.benchmark, *(f"{n}={v}" for n, v in a.workload.items())]): a.decision
            for a in self.plan.actions
        }

    def effect(self):
        """What the compiler says of the whole change."""
        return judge(
            self.plan,
            self.compiler.compare(self.after),
            lambda point, arch: self.compiler.why_not(self.after, point, arch),
        )
