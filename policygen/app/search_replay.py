"""Strategies of a search, tried on spaces that databases have whole."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policygen.app.inputs import Inputs, ResultFiles, nothing_matches, open_inputs
from policygen.errors import InputError
from policygen.gpu.replay import RecordedSpace, curve_of, recorded_space, replay
from policygen.gpu.strategies import STRATEGIES, StrategyName, make_strategy
from policygen.model.searches import BestVariant, ReplayedSpace, ReplayRun, SearchReplay
from policygen.model.workload import as_label, axis_name
from policygen.results.ranking import Warnings, open_cases
from policygen.results.samples import Decoder
from policygen.results.score import SampleReader, score_case
from policygen.steps import HowFar, Progress
from policygen.untrusted import visible

NAMES = STRATEGIES
"""What strategies are called."""
DEFAULT: StrategyName = "local"
BATCH = 16
"""As many compiles as run at once where most was measured."""
SAMPLES = 10
"""The least that a first look at a variant takes."""


@dataclass(frozen=True, slots=True)
class Replaying:
    """How a strategy is tried."""

    strategy: StrategyName = DEFAULT
    seed: int = 1
    seeds: int = 1
    """As many seeds, from the first one on."""
    variants: int | None = None
    """Evaluations at most; none: all that there are."""
    batch: int = BATCH
    late: int = 0
    """As many batches are asked for before one is told; a search measures while it compiles."""
    samples: int = SAMPLES
    """Of each runtime workload, by which the strategy is told scores; 0: what was recorded."""
    starts: tuple[str, ...] | None = None
    """Labels to begin with; none: what databases name, and for `random` nothing."""

    @property
    def begins(self) -> tuple[str, ...] | None:
        """The same, where what databases name is none for a baseline."""
        return () if self.starts is None and self.strategy == "random" else self.starts


def replay_search(
    given: ResultFiles, how: Replaying | None = None, *, progress: Progress | None = None
) -> SearchReplay:
    """Runs a strategy on each workload of databases as if it measured; needs no GPU."""
    how, warnings = how or Replaying(), Warnings()
    with open_inputs(given) as files:
        sampled = how.samples > 0
        spaces = recorded_spaces(given, files, warnings, sampled=sampled, starts=how.begins)
        named = [_described(one, files) for one in spaces]
    if not spaces:
        if not warnings.all:
            raise nothing_matches(given.where, given.files)
        told = "\n".join(visible(str(one)) for one in warnings.all)
        raise InputError("no variant can be compared with base", told)
    return SearchReplay(
        strategy=how.strategy,
        batch=how.batch,
        late=how.late,
        samples=how.samples,
        spaces=tuple(named),
        runs=tuple(_runs(spaces, named, how, progress)),
        warnings=warnings.all,
    )


def recorded_spaces(
    given: ResultFiles,
    files: Inputs,
    warnings: Warnings,
    *,
    sampled: bool,
    starts: Sequence[str] | None = None,
) -> list[RecordedSpace]:
    """Those of all workloads that are asked for; GPUs and versions are kept apart."""
    where, found = given.where, []
    with (
        Decoder() as decoder,
        open_cases(files.databases, warnings, where.pattern, where.values) as cases,
    ):
        for case in cases:
            reader = SampleReader(case, decoder, warnings.add) if sampled else None
            space = recorded_space(score_case(case, files.declared), reader, starts)
            if space is not None:
                found.append(space)
    return found


def _described(space: RecordedSpace, files: Inputs) -> ReplayedSpace:
    scores = space.scores
    case = scores.case
    best = min(space.place, key=lambda values: space.place[values])
    paths = [name for path in case.files for name in files.made.get(path, (path,))]
    return ReplayedSpace(
        **dict(case.key),
        benchmark=case.algorithm,
        workload={axis_name(axis): value for axis, value in case.workload.items()},
        databases=tuple(paths),
        recorded=len(space.place),
        product=space.domain.count,
        others=space.others,
        incomplete=scores.incomplete,
        sampled=bool(space.cells),
        approximate=scores.approximate,
        starts=tuple(as_label(space.domain.named(one)) for one in space.starts),
        best=BestVariant(variant=space.label(best), score=space.score[best]),
    )


def _runs(
    spaces: Sequence[RecordedSpace],
    named: Sequence[ReplayedSpace],
    how: Replaying,
    progress: Progress | None,
) -> Iterator[ReplayRun]:
    total = len(spaces) * how.seeds
    for number, (space, about) in enumerate(zip(spaces, named, strict=True)):
        for which in range(how.seeds):
            if progress:
                progress(HowFar("replaying", number * how.seeds + which, total))
            yield _run(space, about, how, how.seed + which)
    if progress:
        progress(HowFar("replaying", total, total))


def _run(space: RecordedSpace, about: ReplayedSpace, how: Replaying, seed: int) -> ReplayRun:
    strategy = make_strategy(how.strategy, space.domain, seed, space.starts)
    most = len(space.place) if how.variants is None else how.variants
    told = space.told(how.samples, seed)
    found = replay(strategy, told, most=most, batch=how.batch, late=how.late)
    score = space.score
    best = max(found.evaluated, key=lambda values: score[values], default=None)
    return ReplayRun(
        gpu=about.gpu,
        ctk=about.ctk,
        cccl=about.cccl,
        benchmark=about.benchmark,
        workload=about.workload,
        strategy=how.strategy,
        seed=seed,
        evaluations=len(found.evaluated),
        invalid=found.invalid,
        best=None if best is None else BestVariant(variant=space.label(best), score=score[best]),
        curve=curve_of([score[values] for values in found.evaluated]),
    )
