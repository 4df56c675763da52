"""Replays search strategies on fully measured search spaces."""

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
"""Names of strategies."""
DEFAULT: StrategyName = "local"
BATCH = 16
"""Typical number of variants compiled at once in the recorded searches."""
SAMPLES = 10
"""Minimum number of samples for the first measurement of a variant."""


@dataclass(frozen=True, slots=True)
class Replaying:
    """How to replay a strategy."""

    strategy: StrategyName = DEFAULT
    seed: int = 1
    seeds: int = 1
    """Number of seeds, starting at `seed`."""
    variants: int | None = None
    """Maximum number of evaluations; None means all variants."""
    batch: int = BATCH
    late: int = 0
    """Batches requested before the scores of one are reported: a search measures while it compiles.
    """
    samples: int = SAMPLES
    """Samples per runtime workload that determine the strategy's scores; 0 uses the recorded
    scores.
    """
    starts: tuple[str, ...] | None = None
    """Labels to start from; None: those named by databases, or nothing for `random`."""

    @property
    def begins(self) -> tuple[str, ...] | None:
        """The start labels; empty by default for the `random` baseline."""
        return () if self.starts is None and self.strategy == "random" else self.starts


def replay_search(
    results: ResultFiles, settings: Replaying | None = None, *, progress: Progress | None = None
) -> SearchReplay:
    """Replays a strategy on each workload of databases as if it measured. Needs no GPU."""
    settings, warnings = settings or Replaying(), Warnings()
    with open_inputs(results) as files:
        sampled = settings.samples > 0
        spaces = recorded_spaces(results, files, warnings, sampled=sampled, starts=settings.begins)
        descriptions = [_describe_space(space, files) for space in spaces]
    if not spaces:
        if not warnings.all:
            raise nothing_matches(results.where, results.files)
        messages = "\n".join(visible(str(warning)) for warning in warnings.all)
        raise InputError("no variant can be compared with base", messages)
    return SearchReplay(
        strategy=settings.strategy,
        batch=settings.batch,
        late=settings.late,
        samples=settings.samples,
        spaces=tuple(descriptions),
        runs=tuple(_runs(spaces, descriptions, settings, progress)),
        warnings=warnings.all,
    )


def recorded_spaces(
    results: ResultFiles,
    files: Inputs,
    warnings: Warnings,
    *,
    sampled: bool,
    starts: Sequence[str] | None = None,
) -> list[RecordedSpace]:
    """Returns the recorded spaces of selected workloads, one per GPU and version."""
    where, spaces = results.where, []
    with (
        Decoder() as decoder,
        open_cases(files.databases, warnings, where.pattern, where.values) as cases,
    ):
        for case in cases:
            reader = SampleReader(case, decoder, warnings.add) if sampled else None
            space = recorded_space(score_case(case, files.declared), reader, starts)
            if space is not None:
                spaces.append(space)
    return spaces


def _describe_space(space: RecordedSpace, files: Inputs) -> ReplayedSpace:
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
        starts=tuple(as_label(space.domain.named(values)) for values in space.starts),
        best=BestVariant(variant=space.label(best), score=space.score[best]),
    )


def _runs(
    spaces: Sequence[RecordedSpace],
    descriptions: Sequence[ReplayedSpace],
    settings: Replaying,
    progress: Progress | None,
) -> Iterator[ReplayRun]:
    total = len(spaces) * settings.seeds
    for number, (space, about) in enumerate(zip(spaces, descriptions, strict=True)):
        for offset in range(settings.seeds):
            if progress:
                progress(HowFar("replaying", number * settings.seeds + offset, total))
            yield _run(space, about, settings, settings.seed + offset)
    if progress:
        progress(HowFar("replaying", total, total))


def _run(space: RecordedSpace, about: ReplayedSpace, settings: Replaying, seed: int) -> ReplayRun:
    strategy = make_strategy(settings.strategy, space.domain, seed, space.starts)
    limit = len(space.place) if settings.variants is None else settings.variants
    known_scores = space.told(settings.samples, seed)
    result = replay(strategy, known_scores, most=limit, batch=settings.batch, late=settings.late)
    score = space.score
    best = max(result.evaluated, key=lambda values: score[values], default=None)
    return ReplayRun(
        gpu=about.gpu,
        ctk=about.ctk,
        cccl=about.cccl,
        benchmark=about.benchmark,
        workload=about.workload,
        strategy=settings.strategy,
        seed=seed,
        evaluations=len(result.evaluated),
        invalid=result.invalid,
        best=None if best is None else BestVariant(variant=space.label(best), score=score[best]),
        curve=curve_of([score[values] for values in result.evaluated]),
    )
