"""The end of a search: sharper samples of the best ones, then finalists beside base."""

from collections.abc import Callable, Sequence

from policygen.model.results import Rules
from policygen.results.provenance import LAST
from policygen.search.bench import SearchBench, SearchEffort, failures
from policygen.search.measuring import RungTask
from policygen.search.rung_rows import SHARPER
from policygen.search.rung_scores import rung_least, rung_scores, rung_times
from policygen.search.rungs import TO_LAST, TO_SHARPER, survivors
from policygen.search.target import SearchTarget
from policygen.search.workload import WorkloadSearch

SHARP, LEAST_SHARP, MOST_SHARP = 0.003, 4, 30
"""The standard error of a score that the second rung is made for, and its rounds on a runtime
workload."""
SURE, LEAST_SURE = 0.002, 5
"""The same of each process of the last rung: less than processes differ by."""
WORST = Rules().worst_allowed - 0.005
"""What loses more than this on a runtime workload would not be chosen, whatever it gains elsewhere;
with what noise may make of it."""
RESTART = 1.0
"""Seconds that a fresh process takes until it measures, at most."""
FRESH_SEED = 1000
"""Orders of the last rung are none of those of the first."""
Tells = Callable[[int], None]
"""Is told that a rung has ended."""


def decide(
    bench: SearchBench, name: str, one: WorkloadSearch, target: SearchTarget, tells: Tells
) -> None:
    """Lets those that may win run again, and those that still may then beside base."""
    first = [point.rounds for point in target.points]
    scores = {label: score for label, score in one.scores.items() if label not in one.failed}
    second = _sharper_rounds(target)
    kept = survivors(scores, target.error(first), TO_SHARPER)
    one.sharper = _sharpened(bench, name, one, target, kept, second)
    tells(SHARPER)
    finalists = _finalists(bench, name, one, target, second)
    for process in range(bench.effort.processes):
        _last(bench, name, one, target, finalists, process)
    last = rung_scores(bench.known(target), LAST)
    one.last = {
        label: last[label] for label in finalists if label in last and label not in one.failed
    }
    tells(LAST)


def _finalists(
    bench: SearchBench, name: str, one: WorkloadSearch, target: SearchTarget, rounds: Sequence[int]
) -> Sequence[str]:
    """Those that may still win; who is found to do harm makes room for the next."""
    least = rung_least(bench.known(target), SHARPER)
    looked: set[str] = set()
    while True:
        known = {label: score for label, score in one.sharper.items() if label not in one.failed}
        fitting = {label: s for label, s in known.items() if least.get(label, 0.0) >= WORST}
        finalists = survivors(fitting or known, target.error(rounds), TO_LAST)
        harmful = bench.harmful(name, target, [one for one in finalists if one not in looked])
        if not harmful:
            return finalists
        one.failed |= harmful
        looked |= {*finalists}


def decision_seconds(target: SearchTarget, effort: SearchEffort) -> float:
    """How long that takes."""
    samples = [point.sample_seconds for point in target.points]
    beside = max(2, TO_LAST.most // 2)  # base runs so often in a round
    sharper = sum(map(_times, samples, _sharper_rounds(target))) * TO_SHARPER.most
    last = sum(map(_times, samples, _last_rounds(target, effort))) * (TO_LAST.most + beside)
    return RESTART + sharper + effort.processes * (RESTART + last)


def _times(seconds: float, rounds: int) -> float:
    return seconds * rounds


def _sharper_rounds(target: SearchTarget) -> list[int]:
    return target.rounds(SHARP, LEAST_SHARP, MOST_SHARP)


def _last_rounds(target: SearchTarget, effort: SearchEffort) -> list[int]:
    return target.rounds(SURE, min(LEAST_SURE, effort.rounds), effort.rounds)


def _sharpened(
    bench: SearchBench,
    name: str,
    one: WorkloadSearch,
    target: SearchTarget,
    kept: Sequence[str],
    rounds: Sequence[int],
) -> dict[str, float]:
    known = rung_scores(bench.known(target), SHARPER)
    if lacking := [label for label in kept if label not in known]:
        functions, failed = bench.functions(name, lacking)
        seed = bench.effort.seed + len(one.history)
        task = RungTask(SHARPER, bench.made[name].bases, functions, rounds, seed)
        found = bench.measure(target, task)
        one.failed |= {**failed, **failures(found)}
        known |= found.scores
    return {label: known[label] for label in kept if label in known}


def _last(
    bench: SearchBench,
    name: str,
    one: WorkloadSearch,
    target: SearchTarget,
    finalists: Sequence[str],
    process: int,
) -> None:
    """One more process of those that were in fewer."""
    times = rung_times(bench.known(target), LAST)
    lacking = [
        label
        for label in finalists
        if label not in one.failed and len(times[0].variants.get(label, ())) <= process
    ]
    if lacking:
        functions, failed = bench.functions(name, lacking)
        rounds = _last_rounds(target, bench.effort)
        seed = bench.effort.seed + FRESH_SEED + process
        task = RungTask(LAST, bench.made[name].bases, functions, rounds, seed, noise=True)
        one.failed |= {**failed, **failures(bench.measure(target, task))}
