"""Sentences of a search report, shared by the terminal and the page."""

from collections.abc import Iterator

from policygen.model.searches import (
    ReportedFinalist,
    ReportedSession,
    ReportedWorkload,
    SearchReport,
    SearchRun,
)
from policygen.model.workload import axis_name, in_words
from policygen.report.console import plural
from policygen.report.ranking_views import duration

RUNGS = {"screening": "the screening", "sharper": "the sharper rung", "last": "the last rung"}
ENDED = {
    "exhausted": "all distinct variants were tried",
    "budget": "the budget was spent",
    "count": "as many were tried as were asked for",
    "stopped": "somebody stopped it",
    None: "it goes on, or was killed",
}
MICRO = 1e6
EQUAL = 0.0005
"""Scores that differ by less are formatted alike."""


def name(workload: ReportedWorkload) -> str:
    """Name a workload: `cub.bench.reduce.sum T=F32`."""
    return in_words(
        workload.algorithm, {axis_name(axis): value for axis, value in workload.workload.items()}
    )


def score_with_interval(finalist: ReportedFinalist) -> str:
    """Write a score and its interval."""
    if finalist.interval is None:
        return f"{finalist.score:.3f}"
    return f"{finalist.score:.3f} ({finalist.interval.low:.3f} to {finalist.interval.high:.3f})"


def result(workload: ReportedWorkload) -> str:
    """State what won and by how much, in one sentence."""
    best = workload.finalists[0] if workload.finalists else None
    if best is None:
        return "No variant was measured on all runtime workloads yet."
    if workload.rung is None:
        return _of_rows(workload, best)
    if workload.rung != "last":
        return (
            f"The search has not come to its last rung. The best so far is {best.variant} with"
            f" {best.score:.3f} in {RUNGS[workload.rung]}: luck is in that, and nothing is sure."
        )
    processes = plural(best.processes or 0, "process", "processes")
    winner = next((final for final in workload.finalists if final.variant == workload.best), None)
    if winner is None:
        return (
            f"Nothing is faster than base beyond noise: the best, {best.variant}, has"
            f" {score_with_interval(best)} in {processes} of the last rung."
        )
    score = score_with_interval(winner)
    return f"{winner.variant} is faster than base: {score} in {processes} of the last rung."


def _of_rows(workload: ReportedWorkload, best: ReportedFinalist) -> str:
    choice = workload.choice
    if choice is None:
        score = score_with_interval(best)
        return f"The best is {best.variant} with {score}; nothing is chosen by a part."
    if choice.decision == "use":
        return f"db choose takes {choice.variant}: {choice.reason}."
    return f"db choose keeps base: {choice.reason}."


def luck(final: ReportedFinalist) -> str:
    """State the screening score of a finalist, and how much of it was luck."""
    if final.screened is None:
        return ""
    difference = final.screened - final.score
    screening = f"the screening had said {final.screened:.3f}"
    if abs(difference) < EQUAL:
        return f"{screening}, too"
    return (
        f"{screening}: {difference:.3f} of it was luck"
        if difference > 0
        else f"{screening}, {-difference:.3f} less"
    )


def close(workload: ReportedWorkload) -> str:
    """State how many finalists cannot be distinguished from the best."""
    count = sum(final.close for final in workload.finalists)
    other_count = len(workload.finalists) - 1
    if not other_count:
        return "no other was measured as well"
    compared = (
        f"the next {other_count:,}" if workload.rung is None else plural(other_count, "other")
    )
    return f"{count:,} of {compared} cannot be told apart from it"


def today(workload: ReportedWorkload) -> str:
    """State which variant CUB currently selects."""
    if workload.origin == "import":
        return f"Base is {workload.base or 'a variant that the database does not name'}."
    if workload.base is not None:
        return f"CUB selects {workload.base} today."
    if workload.origin == "search":
        return "What CUB selects today is no variant of the search space."
    return "The database does not say which variant CUB selects today."


def convergence(workload: ReportedWorkload) -> Iterator[str]:
    """Explain whether the search converged, as far as that is known."""
    if workload.curve is None:
        yield unordered(workload)
        return
    curve = workload.curve
    last = curve.best[-1]
    evaluation_by_variant = {variant.variant: variant.evaluation for variant in workload.variants}
    if workload.best is not None and evaluation_by_variant.get(workload.best):
        yield (
            f"The winner was number {evaluation_by_variant[workload.best]:,} of"
            f" {curve.evaluations:,} measured."
        )
    later = curve.evaluations - last.evaluation
    if later:
        yield (
            f"The best score of the screening rose last at number {last.evaluation:,}: the"
            f" {later:,} after it brought nothing better."
        )
    else:
        yield "The best score of the screening still rose with the last variant."
    yield from extent(workload)


def extent(workload: ReportedWorkload) -> Iterator[str]:
    """State how much of the space was tried, and why the search ended."""
    yield from (f"{text}." for text in tried(workload))
    for run in workload.searches[-1:]:
        yield f"Strategy {run.strategy}; {ENDED[run.ended]}{_budget(run)}."


def tried(workload: ReportedWorkload) -> Iterator[str]:
    """State how much of the space was tried."""
    for run in workload.searches[-1:]:
        if distinct := whole_number(run.distinct):
            share = part(workload.counts.tried / distinct)
            total = spelled(run.distinct)
            yield f"{workload.counts.tried:,} of {total} distinct variants were tried, {share}"


def unordered(workload: ReportedWorkload) -> str:
    """Explain why convergence is not shown."""
    if workload.origin == "measure":
        return (
            "How the best score rose is not shown: these variants were measured side by side, one"
            " runtime workload after the other, and no search chose what came next."
        )
    if workload.origin in {"rows", "import"}:
        return (
            "How the best score rose is not shown: rows of results do not tell in which order they"
            " were measured."
        )
    return "How the best score rose is not known: no variant was measured whole."


def _budget(run: SearchRun) -> str:
    spent = f" after {duration(run.spent)}" if run.spent else ""
    return f"{spent} of {duration(run.budget)}" if spent and run.budget else spent


def failures(workload: ReportedWorkload) -> str:
    """Summarize what failed."""
    counts = workload.counts
    if workload.origin == "rows":
        if not workload.failures:
            return ""
        return (
            "What failed to build or to run for this benchmark, on any workload: the logs of CCCL's"
            " search name codes, and no reasons."
        )
    parts = []
    if counts.wrong:
        parts.append(f"{plural(counts.wrong, 'variant')} computed something else than base")
    if counts.failed:
        parts.append(f"{plural(counts.failed, 'variant')} failed")
    if counts.incomplete:
        parts.append(
            f"{plural(counts.incomplete, 'variant')} lack some of the runtime workloads"
            if counts.incomplete > 1
            else "1 variant lacks some of the runtime workloads"
        )
    return f"{', '.join(parts)}." if parts else "Nothing failed."


def remarks(workload: ReportedWorkload) -> Iterator[str]:
    """List limitations of the results of a workload."""
    if workload.declared is not None and workload.declared != workload.runtime_workloads:
        yield (
            f"Measured on {workload.runtime_workloads} of {workload.declared} declared runtime"
            " workloads: scores are of those."
        )
    if workload.approximate:
        yield (
            "Scores are approximate: the declared values of the {io} axes are not known, weights"
            " come from the values present."
        )
    if workload.unlisted:
        yield (
            f"{plural(workload.unlisted, 'variant')} more were measured: the slowest are not drawn."
        )
    if (
        workload.rung == "last"
        and workload.choice is not None
        and workload.best != workload.choice.variant
    ):
        if workload.choice.decision == "use":
            yield (
                f"db choose takes {workload.choice.variant} by its rules: {workload.choice.reason}."
            )
        else:
            yield f"db choose keeps base by its rules: {workload.choice.reason}."


def machine(session: ReportedSession) -> str:
    """Describe the machine of a session."""
    parts = [
        session.gpu,
        session.arch,
        f"driver {session.driver}" if session.driver else "",
        f"nvcc {session.nvcc}" if session.nvcc else "",
        f"ctk {session.ctk}" if session.ctk else "",
        f"CCCL {session.cccl}" if session.cccl else "",
    ]
    return ", ".join(filter(None, parts))


def where(document: SearchReport) -> list[str]:
    """List the distinct run keys: GPU, toolkit, and CCCL version."""
    keys = {(workload.gpu, workload.ctk, workload.cccl): None for workload in document.workloads}
    names = ("", "ctk ", "cccl ")
    return [
        ", ".join(f"{name}{text}" for name, text in zip(names, key, strict=True) if text)
        for key in keys
    ]


def part(share: float) -> str:
    """Write a share; small shares become `less than 0.1 %`."""
    return f"{share * 100:.1f} %" if share >= 0.001 else "less than 0.1 %"


def percent(share: float) -> str:
    """Write noise: `0.57 %`."""
    return f"{share * 100:.2f} %"


def whole_number(text: str) -> int | None:
    """Parse a count of any size; None if the text is not a number."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 100 else None


def spelled(text: str) -> str:
    """Write a count, in scientific notation if it is long."""
    count = whole_number(text)
    if count is None:
        return text
    return f"{count:,}" if count < 10**12 else f"{float(count):.2e}"


def between(final: ReportedFinalist) -> str:
    """Write the ends of an interval."""
    interval = final.interval
    return "not known" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"


def number(value: float | None) -> str:
    """Write a ratio, or nothing if there is none."""
    return "" if value is None else f"{value:.3f}"


def point(subbench: str, axes: dict[str, str]) -> str:
    """Name a runtime workload."""
    words = ", ".join(f"{axis_name(axis)}={value}" for axis, value in axes.items())
    return words if words and subbench == "base" else f"{subbench} {words}".strip()


def time(seconds: float) -> str:
    """Write the time of a kernel in microseconds."""
    return f"{seconds * MICRO:,.2f} µs"
