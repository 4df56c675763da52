"""Search results on a terminal: finalists, the search report, and replays; and its sentences."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor, inf, isfinite
from pathlib import Path
from statistics import fmean, median

from policygen.errors import plural
from policygen.model.emitted import TunedProgram, TuneOutcome
from policygen.model.searches import (
    FailureGroup,
    Finalist,
    ReplayedSpace,
    ReplayRun,
    ReportedFinalist,
    ReportedWorkload,
    Searched,
    SearchedWorkload,
    SearchReplay,
    SearchReport,
)
from policygen.model.trees import tree_line
from policygen.model.workload import axes, in_words, plain
from policygen.portable import nearby
from policygen.report import ranking_views
from policygen.report.blocks import BLANK, Block, Note, TableRows, Words, cut
from policygen.report.console import duration, short, span_words
from policygen.report.measure_views import (
    failure_mark,
    runtime_blocks,
    skipped_points,
    titled,
    variants_table,
)
from policygen.report.plan_views import emitted, kernel_outcome, made


def searched(document: Searched, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show a table of finalists for each workload; -v adds their runtime workloads."""
    if head:
        yield Note(tree_line(document.cub), "dim", folded=True)
        setup = f"{document.gpu}, driver {document.driver}, {document.toolchain}"
        yield Note(setup, "dim", folded=True)
    for workload in document.workloads:
        yield from titled(workload, _workload(workload, verbose=verbose))
    if head:
        yield BLANK
        yield Note(f"written: {document.database}", folded=True)


def _workload(workload: SearchedWorkload, *, verbose: bool) -> Iterator[Block]:
    if counts := workload.counts:
        ended = f": {ENDED[workload.ended]}" if workload.ended else ""
        yield Words(
            f"{workload.strategy}: {counts.tried:,} of {counts.distinct:,} distinct variants tried,"
            f" {counts.measured:,} measured, {counts.failed:,} failed{ended}",
            "dim",
        )
    if workload.finalists:
        screened = ("screened", "whole", lambda finalist: finalist.screened)
        yield variants_table(workload.finalists, "finalists compared with base", screened)
    if workload.best is None:
        yield Note("no variant is faster than base beyond noise", folded=True)
    for finding in workload.findings:
        yield from _finding(finding, workload.benchmark, workload.workload)
    counts_of_findings: Counter[str] = Counter()
    for finding in workload.findings:
        counts_of_findings[finding.kind] += finding.count
    for failure in workload.failures:
        if failure.count == counts_of_findings[failure.kind]:
            continue
        words = f"{plural(failure.count, 'variant')}: {failure_mark(failure.kind)}"
        style = "red" if failure.kind == "wrong" else "yellow"
        yield Words(f"{words}: {failure.variant}: {failure.reason}", style, "  ")
    yield from skipped_points(workload.skipped)
    for finalist in workload.finalists if verbose else ():
        yield from runtime_blocks(finalist, with_times=False)


def campaign(document: Searched, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show the best finalist of each workload, the largest gain first."""
    decided = [(row, row.finalists[0]) for row in document.workloads if row.finalists]
    yield TableRows(sorted(decided, key=lambda pair: -(pair[1].score or 0.0))).table(
        ("score", "whole", lambda pair: pair[1].score),
        ("95 %", "whole", lambda pair: span_words(pair[1].interval)),
        ("worst", "whole", lambda pair: min(ratios_of(pair[1]))),
        ("", "name", lambda pair: pair[1].verdict or "not sure"),
        ("workload", "", lambda pair: short(in_words(pair[0].benchmark, pair[0].workload))),
        ("variant", "", lambda pair: pair[1].variant) if verbose else None,
        style="plain",
        look=lambda pair: STYLES.get(pair[1].verdict or "", ""),
        label="the best variant of each workload",
    )
    for row in document.workloads:
        if not row.finalists:
            reason = row.problem or "no finalist was measured; the same command resumes"
            yield Words(f"{in_words(row.benchmark, row.workload)}: {reason}", "yellow", "", "  ")
        for finding in row.findings:
            yield from _finding(finding, row.benchmark, row.workload)
    if head:
        yield BLANK
        yield Note(f"written: {document.database}", folded=True)


def _finding(group: FailureGroup, benchmark: str, workload: Mapping[str, str]) -> Iterator[Block]:
    """Show variants that compute other results, or fail on the GPU, and what memcheck says."""
    style = "red" if group.kind == "wrong" else "yellow"
    yield Words(f"finding: {finding_words(group)}", style, "  ", "    ")
    yield Words(memcheck_words(group, benchmark, workload), style, "    ", "    ")


def finding_words(group: FailureGroup) -> str:
    """Name the variants of a finding, and why they failed."""
    variants, hidden = group.variants[:SHOWN], group.count - len(group.variants[:SHOWN])
    names = ", ".join(variants) + (f" and {hidden:,} more" if hidden else "")
    mark = failure_mark(group.kind)
    return f"{plural(group.count, 'variant')}: {mark}: {names}: {group.reason}"


def memcheck_words(group: FailureGroup, benchmark: str, workload: Mapping[str, str]) -> str:
    """State what memcheck says of one of the variants, or how to run it."""
    memcheck = group.memcheck
    if memcheck is None or memcheck.outcome == "not run":
        reason = f": {memcheck.words.rstrip('.')}" if memcheck and memcheck.words else ""
        values = [word for axis in axes(workload) for word in ("-a", axis)]
        command = ["policygen", "measure", "-R", f"{re.escape(benchmark)}$", *values]
        command += ["--variant", group.variants[0], "--sanitize"] if group.variants else []
        return f"memcheck was not run{reason}. To run it: {shlex.join(command)}"
    variant = memcheck.variant
    if memcheck.outcome == "base":
        reason = "so it says nothing about these variants"
        return f"memcheck also fails for base, {reason}: {memcheck.words}"
    if memcheck.outcome == "clean":
        failure = f", although it fails again: {memcheck.words}" if memcheck.words else ""
        return f"memcheck finds no error in {variant} or in base{failure}"
    if memcheck.in_cub:
        return f"CUB itself fails here: base passes memcheck, {variant} does not: {memcheck.words}"
    return f"base passes memcheck, {variant} does not: {memcheck.words}"


SHOWN = 5
"""Finalists shown without -v."""
STYLES = {"faster": "green", "better": "green", "slower": "red", "worse": "red"}


def reported(document: SearchReport, *, verbose: bool, head: bool) -> Iterator[Block]:
    """Show the winner of each workload, its confidence, and what failed."""
    for index, workload in enumerate(document.workloads):
        if index:
            yield BLANK
        yield from _reported_workload(workload, verbose=verbose, head=head)
    if not document.workloads:
        yield Note("no workload was measured")


def _reported_workload(workload: ReportedWorkload, *, verbose: bool, head: bool) -> Iterator[Block]:
    yield ranking_views.prose(name(workload), style="bold")
    if head:
        parts = ranking_views.key_parts(workload, None)
        yield Words(parts, "dim", "  ", "    ", ranking_views.DOT, even=True)
    yield ranking_views.prose(result(workload), "  ")
    shown, hidden = cut(workload.finalists, SHOWN, verbose=verbose)
    if shown:
        has_rungs = workload.rung in {"last", "sharper"}
        yield TableRows(shown).table(
            ("score", "whole", lambda final: final.score),
            ("95 %", "whole", lambda final: span_words(final.interval)),
            ("screened", "whole", lambda final: final.screened) if has_rungs else None,
            ("least", "whole", lambda final: min(ratios_of(final), default=None)),
            ("", "name", lambda final: final.verdict or "not sure"),
            ("variant", "", lambda final: final.variant),
            style="plain",
            look=lambda final: STYLES.get(final.verdict or "", ""),
            label="finalists",
        )
    for finding in workload.findings:
        yield from _finding(finding, workload.algorithm, plain(workload.workload))
    if not head:
        return
    if hidden:
        yield Note(f"the best {SHOWN} of {len(workload.finalists):,}; all: -v", "dim")
    for text in (today(workload), *convergence(workload)):
        yield ranking_views.note(text)
    if failure_words := failures(workload):
        yield ranking_views.prose(failure_words, style="red" if workload.counts.wrong else "")
        yield from map(_failure, cut(workload.failures, SHOWN, verbose=verbose)[0])
    yield from map(ranking_views.note, remarks(workload))


def _failure(group: FailureGroup) -> Block:
    style = "red" if group.kind == "wrong" else ""
    example = f", such as {group.variants[0]}" if group.variants else ""
    words = f"{group.count:,} {group.kind}: {group.reason}{example}".split()
    return Words(words, style, "  ", "    ")


SHARES = (0.99, 0.995, 0.999, 1.0)
"""Fractions of the best score."""
COUNTS = (10, 25, 50, 100, 200, 400, 800, 1600, 3200)
"""Evaluation counts at which the distance from the best score is shown."""


# Replays: how quickly a strategy finds the best variant, and how close it is before


def replayed(document: SearchReplay, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show two tables for each space; -v adds every run."""
    if head:
        source = "recorded scores"
        if document.samples:
            source = f"scores of {plural(document.samples, 'sample')}"
        batch = f"{plural(document.batch, 'variant')} at once"
        yield Note(f"strategy {document.strategy}, {batch}, {source}", "dim", folded=True)
    for space in document.spaces:
        yield BLANK
        key = (space.benchmark, space.workload, space.gpu, space.ctk, space.cccl)
        runs = [
            run
            for run in document.runs
            if (run.benchmark, run.workload, run.gpu, run.ctk, run.cccl) == key
        ]
        yield from _space(space, runs, head=head, verbose=verbose)


def _space(
    space: ReplayedSpace, runs: Sequence[ReplayRun], *, head: bool, verbose: bool
) -> Iterator[Block]:
    best = space.best.score
    yield Note(in_words(space.benchmark, space.workload), "bold", folded=True)
    if head:
        location = f"{space.gpu}, ctk {space.ctk}, cccl {space.cccl}"
        yield Note(f"{location}: {', '.join(space.databases)}", "dim", folded=True)
    yield Note(f"best: {space.best.variant} {best:.6f}", folded=True)
    if head and space.starts:
        yield Note(f"begins with: {', '.join(space.starts)}", "dim", folded=True)
    yield Note("; ".join(_facts(space, runs)), "dim", folded=True)
    evaluations = {share: sorted(_reached(run, best * share) for run in runs) for share in SHARES}
    yield TableRows(SHARES).table(
        ("reached", "", lambda share: f"{share * 100:g} % of the best"),
        ("runs", "n", lambda share: f"{sum(map(isfinite, evaluations[share]))} of {len(runs)}"),
        ("a quarter", "n", lambda share: _quantile(evaluations[share], 0.25)),
        ("median", "n", lambda share: _quantile(evaluations[share], 0.5)),
        ("3 quarters", "n", lambda share: _quantile(evaluations[share], 0.75)),
        label="evaluations needed to reach a share of the best score",
    )
    max_evaluations = max((run.evaluations for run in runs), default=0)
    if counts := [count for count in COUNTS if count <= max_evaluations]:
        distances = {
            count: [
                100 * (1 - max(score for at, score in run.curve if at <= count) / best)
                for run in runs
                if run.curve
            ]
            for count in counts
        }
        yield BLANK
        yield TableRows(counts).table(
            ("evaluations", "", lambda count: f"{count:,}"),
            ("median", "n", lambda count: f"{median(distances[count]):.2f} %"),
            ("mean", "n", lambda count: f"{fmean(distances[count]):.2f} %"),
            ("worst", "n", lambda count: f"{max(distances[count]):.2f} %"),
            label="distance from the best score after that many evaluations, in percent",
        )
    if verbose:
        yield BLANK
        yield TableRows(runs).table(
            ("seed", "n", lambda run: str(run.seed)),
            ("evaluations", "n", lambda run: f"{run.evaluations:,}"),
            ("score", "", lambda run: f"{run.best.score:.6f}" if run.best else ""),
            ("best", "name", lambda run: run.best.variant if run.best else "nothing"),
            label="the runs",
        )


def _facts(space: ReplayedSpace, runs: Sequence[ReplayRun]) -> Iterator[str]:
    yield f"{space.recorded:,} of {space.product:,} variants are recorded"
    if space.others:
        yield f"{plural(space.others, 'variant')} with other parameters ignored"
    if space.incomplete:
        yield f"{plural(space.incomplete, 'variant')} not measured whole"
    if not space.sampled:
        yield "no samples: the recorded scores are used"
    if space.approximate:
        yield "scores are approximate"
    if invalid := sum(run.invalid for run in runs):
        yield f"{plural(invalid, 'variant')} requested that are not recorded"
    yield plural(len(runs), "run")


def _reached(run: ReplayRun, score: float) -> float:
    """Number of evaluations until a run has a score."""
    return next((count for count, best in run.curve if best >= score), inf)


def _quantile(counts: Sequence[float], part: float) -> str:
    """Smallest count that at least a fraction `part` of the sorted counts does not exceed."""
    count = counts[max(0, ceil(part * len(counts)) - 1)]
    return "more" if count == inf else f"{count:,.0f}"


# Tuning for a program: the gains and the header


def outcome_words(outcome: TuneOutcome) -> str:
    """State how good the best finalist is, and why it is not in the header."""
    if outcome.variant is not None:
        return f"{outcome.best} is not in the header: {outcome.passed_over}"
    if outcome.score is None or outcome.interval is None:
        return f"base stays: {outcome.reason}"
    score = f"{outcome.score:.3f} ({span_words(outcome.interval)})"
    best = f"best {score}"
    if outcome.interval.high < 1:
        return f"base is best: what comes next is slower, {score}"
    if outcome.interval.low <= 1:
        return f"{best}: not faster than base beyond noise"
    if outcome.score < outcome.least_score:
        gain = floor(100 * outcome.score) / 100
        enough = gain if gain > 1 else floor(1000 * outcome.score) / 1000
        remedy = f"--least-score {enough:g} takes it"
        return f"{best}, below the {outcome.least_score:g} that a tuning must gain; {remedy}"
    return f"{best}, but {outcome.reason}"


def tuned(document: TunedProgram, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show the finalists of each workload, then what the header contains."""
    yield from searched(document.searched, head=head, verbose=verbose)
    yield BLANK
    if document.kernel is not None:
        yield from kernel_outcome(document.kernel)
        return
    several = len(document.outcomes) > 1
    for outcome in document.outcomes:
        if outcome.variant is None or outcome.passed_over:
            name = f"{in_words(outcome.benchmark, outcome.workload)}: " if several else ""
            yield Note(f"{name}{outcome_words(outcome)}", "yellow", folded=True)
    if document.overlay is not None:
        yield from made(document.overlay, head=head, verbose=verbose)
        return
    if document.emitted is None:
        yield Note("nothing was written", "yellow", folded=True)
        return
    yield from emitted(document.emitted, document.header, verbose=verbose)
    if document.header is not None and head:
        name = nearby(Path(document.header))
        yield Note(f'#include "{name}" and pass its selectors in the environment', folded=True)
        if document.example is not None:
            program = nearby(Path(document.example))
            text = f"{program} runs the algorithm with and without it and prints both times"
            yield Note(text, folded=True)


RUNGS = {"screening": "the screening", "sharper": "the sharper rung", "last": "the last rung"}
ENDED = {
    "exhausted": "all distinct variants were tried",
    "budget": "the budget was spent",
    "count": "the requested number was tried",
    "stopped": "it was stopped",
    None: "it is still running, or was killed",
}
EQUAL = 0.0005
"""Scores that differ by less are formatted alike."""


# Sentences of a search report, shared by the terminal and the page


def name(workload: ReportedWorkload) -> str:
    """Name a workload: `cub.bench.reduce.sum T=F32`."""
    return in_words(workload.algorithm, plain(workload.workload))


def ratios_of(finalist: ReportedFinalist | Finalist) -> list[float]:
    """Ratios of all runtime workloads of a finalist."""
    return [row.ratio for row in finalist.runtime]


def score_with_interval(finalist: ReportedFinalist) -> str:
    """Write a score and its interval."""
    between = f" ({span_words(finalist.interval)})" if finalist.interval else ""
    return f"{finalist.score:.3f}{between}"


def winner_of(workload: ReportedWorkload) -> ReportedFinalist | None:
    """Return the finalist that won."""
    return next((final for final in workload.finalists if final.variant == workload.best), None)


def result(workload: ReportedWorkload) -> str:
    """State what won and by how much, in one sentence."""
    best = workload.finalists[0] if workload.finalists else None
    if best is None:
        return "No variant was measured on all runtime workloads yet."
    if workload.rung is None:
        choice = workload.choice
        if choice is None:
            subject = f"{best.variant} with {score_with_interval(best)}"
            return f"The best so far is {subject}; a choice needs all runtime workloads."
        decision = f"takes {choice.variant}" if choice.decision == "use" else "keeps base"
        return f"db choose {decision}: {choice.reason}."
    if workload.rung != "last":
        return (
            f"The search has not reached its last rung. The best so far is {best.variant} with"
            f" {best.score:.3f} in {RUNGS[workload.rung]}, a score that still contains selection"
            " bias."
        )
    processes = plural(best.processes or 0, "process", "processes")
    winner = winner_of(workload)
    if winner is None:
        return (
            f"No variant beats base by more than noise: the best, {best.variant}, scores"
            f" {score_with_interval(best)} in {processes} of the last rung."
        )
    score = score_with_interval(winner)
    return f"{winner.variant} is faster than base: {score} in {processes} of the last rung."


def luck(final: ReportedFinalist) -> str:
    """State the screening score of a finalist, and how much of it was selection bias."""
    if final.screened is None:
        return ""
    difference = final.screened - final.score
    screening = f"the screening score was {final.screened:.3f}"
    if abs(difference) < EQUAL:
        return f"{screening}, too"
    if difference > 0:
        return f"{screening}: {difference:.3f} of it was selection bias"
    return f"{screening}, {-difference:.3f} less"


def close(workload: ReportedWorkload) -> str:
    """State how many finalists cannot be distinguished from the best."""
    count = sum(final.close for final in workload.finalists)
    other_count = len(workload.finalists) - 1
    if not other_count:
        return "no other was measured as precisely"
    compared = plural(other_count, "other")
    if workload.rung is None:
        compared = f"the next {other_count:,}"
    return f"{count:,} of {compared} cannot be told apart from it"


def today(workload: ReportedWorkload) -> str:
    """State which variant CUB currently selects."""
    if workload.origin == "import":
        return f"Base is {workload.base or 'a variant that the database does not name'}."
    if workload.base is not None:
        return f"CUB selects {workload.base} today."
    if workload.origin == "search":
        return "CUB's current choice is not in the search space."
    return "The database does not say which variant CUB selects today."


def winner_evaluation(workload: ReportedWorkload) -> int | None:
    """Return the evaluation at which the winner was measured."""
    evaluations = {variant.variant: variant.evaluation for variant in workload.variants}
    return evaluations.get(workload.best) if workload.best is not None else None


def convergence(workload: ReportedWorkload) -> Iterator[str]:
    """Explain whether the search converged, as far as that is known."""
    curve = workload.curve
    if curve is None:
        yield _unordered(workload)
        return
    last = curve.best[-1]
    if evaluation := winner_evaluation(workload):
        yield f"The winner was number {evaluation:,} of {curve.evaluations:,} measured."
    if later := curve.evaluations - last.evaluation:
        yield (
            f"The best screening score last rose at number {last.evaluation:,}; the {later:,}"
            " after it were not better."
        )
    else:
        yield "The best screening score was still rising at the last variant."
    yield from extent(workload)


def extent(workload: ReportedWorkload) -> Iterator[str]:
    """State how much of the space was tried, and why the search ended."""
    yield from (f"{text}." for text in tried(workload))
    for run in workload.searches[-1:]:
        spent = f" after {duration(run.spent)}" if run.spent else ""
        budget = f" of {duration(run.budget)}" if spent and run.budget else ""
        yield f"Strategy {run.strategy}; {ENDED[run.ended]}{spent}{budget}."


def tried(workload: ReportedWorkload) -> Iterator[str]:
    """State how much of the space was tried; a long count is in scientific notation."""
    for run in workload.searches[-1:]:
        text = run.distinct
        if text.isascii() and text.isdecimal() and len(text) < 100 and (distinct := int(text)):
            share = workload.counts.tried / distinct
            part = f"{share * 100:.1f} %" if share >= 0.001 else "less than 0.1 %"
            total = f"{distinct:,}" if distinct < 10**12 else f"{float(distinct):.2e}"
            yield f"{workload.counts.tried:,} of {total} distinct variants were tried, {part}"


def _unordered(workload: ReportedWorkload) -> str:
    if workload.origin == "measure":
        return (
            "No convergence is shown: these variants were measured side by side, one runtime"
            " workload after another, not in an order chosen by a search."
        )
    if workload.origin in {"rows", "import"}:
        return "No convergence is shown: rows of results do not record the order of measurement."
    return "No convergence is shown: no variant was measured on all runtime workloads."


def failures(workload: ReportedWorkload) -> str:
    """Summarize what failed."""
    counts = workload.counts
    if workload.origin == "rows":
        if not workload.failures:
            return ""
        return (
            "Failed builds and runs of this benchmark, over all workloads; CCCL's logs record"
            " exit codes but no reasons."
        )
    verb = "lacks" if counts.incomplete == 1 else "lack"
    words = {
        "computed other results than base": counts.wrong,
        "failed": counts.failed,
        f"{verb} some of the runtime workloads": counts.incomplete,
    }
    parts = [f"{plural(count, 'variant')} {text}" for text, count in words.items() if count]
    return f"{', '.join(parts)}." if parts else "Nothing failed."


def remarks(workload: ReportedWorkload) -> Iterator[str]:
    """List limitations of the results of a workload."""
    if workload.declared is not None and workload.declared != workload.runtime_workloads:
        part = f"{workload.runtime_workloads} of {workload.declared} declared runtime workloads"
        yield f"Measured on {part}; scores cover only those."
    if workload.approximate:
        yield (
            "Scores are approximate: the declared values of the {io} axes are unknown, so the"
            " weights come from the values present."
        )
    if workload.unlisted:
        count = plural(workload.unlisted, "variant")
        yield f"{count} more were measured; the slowest are not drawn."
    choice = workload.choice
    if workload.rung == "last" and choice is not None and workload.best != choice.variant:
        decision = f"takes {choice.variant}" if choice.decision == "use" else "keeps base"
        yield f"db choose {decision} by its rules: {choice.reason}."
