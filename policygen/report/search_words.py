"""What a report says of a search in sentences, the same on a terminal and on a page."""

from collections.abc import Iterator

from policygen.model.search_pages import (
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
"""What differs by less is written the same."""


def name(one: ReportedWorkload) -> str:
    """Name a workload: `cub.bench.reduce.sum T=F32`."""
    return in_words(one.algorithm, {axis_name(axis): v for axis, v in one.workload.items()})


def found(one: ReportedFinalist) -> str:
    """Write a score and its interval."""
    if one.interval is None:
        return f"{one.score:.3f}"
    return f"{one.score:.3f} ({one.interval.low:.3f} to {one.interval.high:.3f})"


def result(one: ReportedWorkload) -> str:
    """Tell what won, and by how much, in a sentence."""
    first = one.finalists[0] if one.finalists else None
    if first is None:
        return "No variant was measured on all runtime workloads yet."
    if one.rung is None:
        return _of_rows(one, first)
    if one.rung != "last":
        return (
            f"The search has not come to its last rung. The best so far is {first.variant} with"
            f" {first.score:.3f} in {RUNGS[one.rung]}: luck is in that, and nothing is sure."
        )
    how = plural(first.processes or 0, "process", "processes")
    winner = next((final for final in one.finalists if final.variant == one.best), None)
    if winner is None:
        return (
            f"Nothing is faster than base beyond noise: the best, {first.variant}, has"
            f" {found(first)} in {how} of the last rung."
        )
    return f"{winner.variant} is faster than base: {found(winner)} in {how} of the last rung."


def _of_rows(one: ReportedWorkload, first: ReportedFinalist) -> str:
    choice = one.choice
    if choice is None:
        return f"The best is {first.variant} with {found(first)}; nothing is chosen by a part."
    if choice.decision == "use":
        return f"db choose takes {choice.variant}: {choice.reason}."
    return f"db choose keeps base: {choice.reason}."


def luck(final: ReportedFinalist) -> str:
    """Tell what the screening had said of a finalist, and how much of it was luck."""
    if final.screened is None:
        return ""
    more = final.screened - final.score
    said = f"the screening had said {final.screened:.3f}"
    if abs(more) < EQUAL:
        return f"{said}, too"
    return f"{said}: {more:.3f} of it was luck" if more > 0 else f"{said}, {-more:.3f} less"


def close(one: ReportedWorkload) -> str:
    """Tell what else is as good."""
    count = sum(final.close for final in one.finalists)
    others = len(one.finalists) - 1
    if not others:
        return "no other was measured as well"
    which = f"the next {others:,}" if one.rung is None else plural(others, "other")
    return f"{count:,} of {which} cannot be told apart from it"


def today(one: ReportedWorkload) -> str:
    """Tell what CUB selects by itself."""
    if one.origin == "import":
        return f"Base is {one.base or 'a variant that the database does not name'}."
    if one.base is not None:
        return f"CUB selects {one.base} today."
    if one.origin == "search":
        return "What CUB selects today is no variant of the search space."
    return "The database does not say which variant CUB selects today."


def convergence(one: ReportedWorkload) -> Iterator[str]:
    """Tell whether the search had converged, as far as that is known."""
    if one.curve is None:
        yield unordered(one)
        return
    curve = one.curve
    last = curve.best[-1]
    where = {variant.variant: variant.evaluation for variant in one.variants}
    if one.best is not None and where.get(one.best):
        yield f"The winner was number {where[one.best]:,} of {curve.evaluations:,} measured."
    rest = curve.evaluations - last.evaluation
    if rest:
        yield (
            f"The best score of the screening rose last at number {last.evaluation:,}: the"
            f" {rest:,} after it brought nothing better."
        )
    else:
        yield "The best score of the screening still rose with the last variant."
    yield from extent(one)


def extent(one: ReportedWorkload) -> Iterator[str]:
    """Tell how much of the space was tried, and why no more."""
    yield from (f"{text}." for text in tried(one))
    for run in one.searches[-1:]:
        yield f"Strategy {run.strategy}; {ENDED[run.ended]}{_budget(run)}."


def tried(one: ReportedWorkload) -> Iterator[str]:
    """Tell how much of the space was tried."""
    for run in one.searches[-1:]:
        if distinct := whole_number(run.distinct):
            share = part(one.counts.tried / distinct)
            of = spelled(run.distinct)
            yield f"{one.counts.tried:,} of {of} distinct variants were tried, {share}"


def unordered(one: ReportedWorkload) -> str:
    """Tell why nothing is said of the way to the best."""
    if one.origin == "measure":
        return (
            "How the best score rose is not shown: these variants were measured side by side, one"
            " runtime workload after the other, and no search chose what came next."
        )
    if one.origin in {"rows", "import"}:
        return (
            "How the best score rose is not shown: rows of results do not tell in which order they"
            " were measured."
        )
    return "How the best score rose is not known: no variant was measured whole."


def _budget(run: SearchRun) -> str:
    spent = f" after {duration(run.spent)}" if run.spent else ""
    return f"{spent} of {duration(run.budget)}" if spent and run.budget else spent


def failures(one: ReportedWorkload) -> str:
    """Count what failed."""
    counts = one.counts
    if one.origin == "rows":
        if not one.failures:
            return ""
        return (
            "What failed to build or to run for this benchmark, on any workload: the logs of CCCL's"
            " search name codes, and no reasons."
        )
    told = []
    if counts.wrong:
        told.append(f"{plural(counts.wrong, 'variant')} computed something else than base")
    if counts.failed:
        told.append(f"{plural(counts.failed, 'variant')} failed")
    if counts.incomplete:
        told.append(
            f"{plural(counts.incomplete, 'variant')} lack some of the runtime workloads"
            if counts.incomplete > 1
            else "1 variant lacks some of the runtime workloads"
        )
    return f"{', '.join(told)}." if told else "Nothing failed."


def remarks(one: ReportedWorkload) -> Iterator[str]:
    """What limits what is told of a workload."""
    if one.declared is not None and one.declared != one.runtime_workloads:
        yield (
            f"Measured on {one.runtime_workloads} of {one.declared} declared runtime workloads:"
            " scores are of those."
        )
    if one.approximate:
        yield (
            "Scores are approximate: the declared values of the {io} axes are not known, weights"
            " come from the values present."
        )
    if one.unlisted:
        yield f"{plural(one.unlisted, 'variant')} more were measured: the slowest are not drawn."
    if one.rung == "last" and one.choice is not None and one.best != one.choice.variant:
        if one.choice.decision == "use":
            yield f"db choose takes {one.choice.variant} by its rules: {one.choice.reason}."
        else:
            yield f"db choose keeps base by its rules: {one.choice.reason}."


def machine(session: ReportedSession) -> str:
    """Tell on what it was measured."""
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
    """The keys under which it was measured."""
    keys = {(one.gpu, one.ctk, one.cccl): None for one in document.workloads}
    names = ("", "ctk ", "cccl ")
    return [
        ", ".join(f"{name}{text}" for name, text in zip(names, key, strict=True) if text)
        for key in keys
    ]


def part(share: float) -> str:
    """Write a small share, too."""
    return f"{share * 100:.1f} %" if share >= 0.001 else "less than 0.1 %"


def percent(share: float) -> str:
    """Write noise: `0.57 %`."""
    return f"{share * 100:.2f} %"


def whole_number(text: str) -> int | None:
    """A count that may be larger than most; none where a text is no number."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 100 else None


def spelled(text: str) -> str:
    """Write a count: short where it is long."""
    count = whole_number(text)
    if count is None:
        return text
    return f"{count:,}" if count < 10**12 else f"{float(count):.2e}"


def between(final: ReportedFinalist) -> str:
    """Write the ends of an interval."""
    interval = final.interval
    return "not known" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"


def number(value: float | None) -> str:
    """Write a ratio, where there is one."""
    return "" if value is None else f"{value:.3f}"


def point(subbench: str, axes: dict[str, str]) -> str:
    """Name a runtime workload."""
    words = ", ".join(f"{axis_name(axis)}={value}" for axis, value in axes.items())
    return words if words and subbench == "base" else f"{subbench} {words}".strip()


def time(seconds: float) -> str:
    """Write what a kernel takes."""
    return f"{seconds * MICRO:,.2f} µs"
