"""The page of a search: its result first, then the way to it, then what failed."""

from collections.abc import Iterator, Sequence

from policygen.model.search_report import (
    FailureGroup,
    ReportedFinalist,
    ReportedWorkload,
    SearchReport,
)
from policygen.report.bins import Space, space_of
from policygen.report.blocks import (
    Block,
    Chapter,
    Column,
    Fold,
    Heading,
    Inline,
    Listing,
    Note,
    Styled,
    Table,
)
from policygen.report.chart_finalists import intervals, quantiles, shown_points
from policygen.report.chart_parameters import MOST, PAIRED, MarkedVariants, by_pair, by_parameter
from policygen.report.chart_search import by_rank, convergence
from policygen.report.console import plural
from policygen.report.views import db_words, search_words
from policygen.report.views.search_cards import cards
from policygen.report.views.search_machine import machine, noise

DETAILED = 40
"""Workloads with figures; all are in the table."""
OPEN = 4
"""Workloads that are open when the page opens."""
LISTED = 1000
"""Workloads in the table."""
SMALL = "figures small"
LARGE = "figures"
MICRO = 1e6


def page_blocks(document: SearchReport, *, page: bool) -> Iterator[Block]:
    """All blocks; Markdown has no figures."""
    workloads = document.workloads
    if not workloads:
        yield Note("No workload was measured.")
    if len(workloads) > 1:
        yield Heading("What was found")
        yield _overview(workloads[:LISTED])
        if len(workloads) > LISTED:
            yield Note(f"and {plural(len(workloads) - LISTED, 'more workload')}: -R and -a choose.")
    for place, one in enumerate(workloads[:DETAILED]):
        blocks = list(_workload(one, document, page=page))
        if page and len(workloads) > 1:
            summary = ((search_words.name(one), "bold"),)
            yield Fold(summary, blocks, "workload", open=place < OPEN, anchor=_anchor(one))
        else:
            yield Heading(search_words.name(one), 2, _anchor(one))
            yield from blocks
    if len(workloads) > DETAILED:
        more = plural(len(workloads) - DETAILED, "more workload")
        yield Note(f"{more} without figures here: -R and -a choose which are shown.")
    yield from machine(document)
    if document.warnings:
        yield Heading("What cannot be used")
        yield Listing([str(one) for one in document.warnings[:LISTED]], shown=20)
        if len(document.warnings) > LISTED:
            yield Note(f"and {len(document.warnings) - LISTED:,} more")
    yield Note(MEANING, "soft")


MEANING = (
    "A score is how many times as fast as base a variant is, over all runtime workloads, by their"
    " weights. The screening takes few samples of every variant; the best of many is lucky, too:"
    " its score there is too high. The last rung measures the finalists and base in fresh"
    " processes, on samples that nothing was chosen by; intervals are of 95 %, by Student's"
    " distribution over processes. A finalist is close where its interval reaches that of the"
    " first one. Of several finalists the luckiest leads still: what is left of luck is that of so"
    " many, and no longer that of all variants."
)


def _anchor(one: ReportedWorkload) -> str:
    return "/".join(["workload", search_words.name(one), one.gpu, one.ctk, one.cccl])


def _overview(workloads: Sequence[ReportedWorkload]) -> Table:
    """The winner of each workload in a line."""
    columns = [
        Column("workload"),
        Column("winner"),
        *(Column(title, "n") for title in ("score", "95 %", "screening", "close", "failed")),
        Column("verdict"),
    ]
    rows: list[list[Inline | Styled]] = []
    for one in workloads:
        first = next((f for f in one.finalists if f.variant == one.best), None)
        shown = first or (one.finalists[0] if one.finalists else None)
        where = Styled(search_words.name(one), to=_anchor(one))
        if shown is None:
            rows.append([where, "base", *[""] * 4, _failed(one), "nothing measured"])
            continue
        rows.append(
            [
                where,
                Styled(shown.variant, "mono") if first else _unbeaten(shown),
                shown.score,
                search_words.between(shown),
                "" if shown.screened is None else shown.screened,
                f"{sum(final.close for final in one.finalists)}",
                _failed(one),
                _verdict(one, shown),
            ]
        )
    return Table(columns, rows, "overview", "What was found for each workload")


def _unbeaten(best: ReportedFinalist) -> Inline:
    """Base, and what came nearest."""
    return ("base", "bold"), ("; the best: ", ""), (best.variant, "mono")


def _verdict(one: ReportedWorkload, shown: ReportedFinalist) -> Inline | Styled:
    if one.rung not in {None, "last"}:
        return "last rung not reached"
    look = {"faster": "good", "better": "good", "slower": "warn", "worse": "warn"}
    text = shown.verdict or "not sure"
    return Styled(text, look.get(text, ""))


def _failed(one: ReportedWorkload) -> Inline | Styled:
    counts = one.counts
    if counts.wrong:
        return Styled(f"{counts.failed:,}, {counts.wrong:,} wrong", "warn")
    return "" if one.origin == "rows" else f"{counts.failed:,}"


def _workload(one: ReportedWorkload, document: SearchReport, *, page: bool) -> Iterator[Block]:
    yield cards(one)
    yield Note(search_words.result(one))
    yield from (Note(text, "soft") for text in search_words.remarks(one))
    space = space_of(one)
    yield from _finalists(one, document, page=page)
    yield from _way(one, page=page)
    yield from _parameters(one, space, page=page)
    yield from _failures(one)
    yield from noise(one)


def _finalists(one: ReportedWorkload, document: SearchReport, *, page: bool) -> Iterator[Block]:
    if not one.finalists:
        return
    yield Heading("Finalists" if one.rung == "last" else "The best", 3)
    drawing = intervals(one) if page else None
    table = _finalists_table(one)
    if drawing:
        yield Chapter([drawing], LARGE, {})
    yield table
    if one.other_finalists and one.rung == "last":
        yield Note(f"and {one.other_finalists:,} more", "soft")
    if one.control:
        told = search_words.found(one.control)
        yield Note(f"Base beside itself, measured as they are: {told}.", "soft")
    blocks = _runtime(one)
    if page:
        yield Fold("Runtime workloads of the finalists", [blocks])
    else:
        yield blocks
    drawn = list(quantiles(one, document.quantiles)) if page else []
    if drawn:
        yield Heading("Base over variant at quantiles", 3)
        yield Note(
            "Above the line at 1 a variant is faster, at that quantile of all samples.", "soft"
        )
        yield Chapter(drawn[:1], LARGE, {})
        yield Chapter(drawn[1:], SMALL, {})
        hidden = len({(q.subbench, *q.point.items()) for f in one.finalists for q in f.quantiles})
        if (more := hidden - len(shown_points(one))) > 0:
            yield Note(f"{plural(more, 'lighter runtime workload')} not drawn", "soft")
    elif page:
        yield Note("No quantiles: samples of base and a variant cannot be read.", "soft")


def _finalists_table(one: ReportedWorkload) -> Table:
    rungs = one.rung in {"last", "sharper"}
    middle = ["screening", "its rank", "luck"] if rungs else []
    sharper = ["sharper"] if any(f.sharper is not None for f in one.finalists) else []
    titles = ["score", "95 %", *middle, *sharper, "least", "most"]
    rows: list[list[Inline | Styled]] = []
    for final in one.finalists:
        ratios = [row.ratio for row in final.runtime]
        screened = final.screened
        told: list[Inline | Styled] = [final.score, search_words.between(final)]
        if rungs:
            told += [
                search_words.number(screened),
                f"{final.rank:,}" if final.rank else "",
                "" if screened is None else f"{screened - final.score:+.3f}",
            ]
        told += [search_words.number(final.sharper)] if sharper else []
        told += [
            search_words.number(min(ratios, default=None)),
            search_words.number(max(ratios, default=None)),
        ]
        rows.append(
            [
                Styled(final.variant, "mono"),
                *told,
                _verdict(one, final),
                "close" if final.close else "",
            ]
        )
    columns = [Column("variant"), *(Column(title, "n") for title in titles)]
    columns += [Column("verdict"), Column("")]
    return Table(columns, rows, "finalists", f"Finalists of {search_words.name(one)}")


def _runtime(one: ReportedWorkload) -> Table:
    """Base over each of the best on each runtime workload."""
    shown = one.finalists[:6]
    columns = [Column("runtime workload"), Column("weight", "n"), Column("base", "n")]
    columns += [Column(f"{place}", "n") for place, _ in enumerate(shown, 1)]
    rows: list[list[Inline | Styled]] = []
    for place, row in enumerate(shown[0].runtime):
        cells: list[Inline | Styled] = [
            search_words.point(row.subbench, row.point),
            row.weight,
            search_words.time(row.base_seconds),
        ]
        for final in shown:
            own = final.runtime[place]
            times = map(search_words.time, (own.seconds, own.base_seconds))
            why = f"{final.variant}: {' beside '.join(times)}"
            look = "warn" if own.interval and own.interval.high < 1 else ""
            cells.append(Styled(own.ratio, look, why))
        rows.append(cells)
    return Table(columns, rows, "runtime", "Base over variant on each runtime workload", 20)


def _way(one: ReportedWorkload, *, page: bool) -> Iterator[Block]:
    if not one.variants:
        return
    yield Heading("How it got there" if one.curve else "All scores", 3)
    yield Note(" ".join(search_words.convergence(one)))
    if len(one.searches) > 1:
        yield _searches(one)
    if page:
        yield Chapter([*convergence(one), by_rank(one)], LARGE, {})


def _searches(one: ReportedWorkload) -> Table:
    columns = [Column("strategy"), *(Column(t, "n") for t in ("seed", "budget", "spent"))]
    columns += [Column("ended")]
    rows = [
        [
            run.strategy,
            "" if run.seed is None else f"{run.seed}",
            "none" if run.budget is None else db_words.duration(run.budget),
            db_words.duration(run.spent),
            search_words.ENDED[run.ended],
        ]
        for run in one.searches[:LISTED]
    ]
    return Table(columns, rows, label="Sessions of the search", shown=20)


def _parameters(one: ReportedWorkload, space: Space, *, page: bool) -> Iterator[Block]:
    if not space.parameters or not space.measured:
        return
    yield Heading("Parameters", 3)
    told = sorted(space.shares.items(), key=lambda pair: -pair[1])
    shown = ", ".join(f"{name} {share * 100:.0f} %" for name, share in told[:MOST])
    more = f", and {len(told) - MOST:,} more" if len(told) > MOST else ""
    yield Note(f"How much of the difference between scores goes with each: {shown}{more}.")
    if not page:
        return
    marked = MarkedVariants.of(one)
    if space.failed:
        yield Note("Crosses at the lower edge: variants with these values failed.", "soft")
    yield Chapter(list(by_parameter(space, marked)), SMALL, {})
    drawn = list(by_pair(space, marked))
    if drawn:
        yield Heading("Pairs of parameters", 3)
        if len(space.parameters) > PAIRED:
            yield Note(f"Of the {PAIRED} parameters that scores depend on most.", "soft")
        yield Chapter(drawn, SMALL, {})


def _failures(one: ReportedWorkload) -> Iterator[Block]:
    words = search_words.failures(one)
    if not words:
        return
    yield Heading("What failed, and why", 3)
    yield Note(words, "warn" if one.counts.wrong else "")
    if one.failures:
        columns = [
            Column("kind", "name"),
            Column("variants", "n"),
            Column("reason"),
            Column("such as"),
        ]
        rows = [_failure(group) for group in one.failures]
        yield Table(columns, rows, "failures", "Why variants failed", 20)
    if one.other_failures:
        yield Note(f"and {one.other_failures:,} other reasons", "soft")


def _failure(group: FailureGroup) -> list[Inline | Styled]:
    kind: Inline | Styled = Styled(group.kind, "name warn") if group.kind == "wrong" else group.kind
    such = ", ".join(group.variants[:2])
    return [kind, f"{group.count:,}", group.reason, Styled(such, "mono") if such else ""]
