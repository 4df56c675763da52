"""The page of a search: its result first, then the way to it, then what failed."""

from collections.abc import Iterable, Iterator, Sequence

from policygen.model.measured import PointNoise
from policygen.model.search_pages import (
    FailureGroup,
    ReportedFinalist,
    ReportedSession,
    ReportedWorkload,
    SearchReport,
)
from policygen.report import ranking_views, search_words
from policygen.report.blocks import (
    Block,
    Card,
    Cards,
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
from policygen.report.console import plural
from policygen.report.parameter_charts import (
    MOST,
    PAIRED,
    MarkedVariants,
    Space,
    by_pair,
    by_parameter,
    space_of,
)
from policygen.report.search_charts import by_rank, convergence, intervals, quantiles, shown_points

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
            "none" if run.budget is None else ranking_views.duration(run.budget),
            ranking_views.duration(run.spent),
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


# The cards of a searched workload: its winner, what was close, whether it had converged.


def cards(one: ReportedWorkload) -> Cards:
    """Tell what a reader wants to know first."""
    found = [_winner(one), *([_today(one)] if one.origin == "search" else [])]
    if one.finalists:
        count = sum(final.close for final in one.finalists)
        lines = [f"{final.score:.3f}  {final.variant}" for final in one.finalists if final.close]
        hidden = [f"and {len(lines) - 3:,} more"] if len(lines) > 3 else []
        words = search_words.close(one).partition(" of ")[2]
        rest = f"of {words}" if words else "others to compare it with"
        found.append(Card("What else was close", f"{count:,}", [*lines[:3], *hidden], rest))
    return Cards([*found, _extent(one), *_lost(one)])


def _winner(one: ReportedWorkload) -> Card:
    first = next((f for f in one.finalists if f.variant == one.best), None)
    if first is None:
        lines = []
        for final in one.finalists[:1]:
            lines = [f"the best: {final.variant}", search_words.found(final)]
            lines += [search_words.luck(final)] if final.screened is not None else []
        rest = "is not beaten beyond noise" if one.rung in {None, "last"} else "for now"
        return Card("Winner", "base", lines, rest, "plain")
    lines = [first.variant]
    if first.interval:
        how = f", {plural(first.processes, 'process', 'processes')}" if first.processes else ""
        lines.append(f"95 %: {first.interval.low:.3f} to {first.interval.high:.3f}{how}")
    lines += [text] if (text := search_words.luck(first)) else []
    return Card("Winner", f"{first.score:.3f}", lines, "times as fast as base", "good")


def _today(one: ReportedWorkload) -> Card:
    if one.base is None:
        return Card("CUB selects today", "base", [search_words.today(one)])
    own = next((v for v in one.variants if v.variant == one.base), None)
    lines = [] if own is None else [f"itself measured as a variant: {own.score:.3f}"]
    return Card("CUB selects today", one.base, lines, style="label")


def _extent(one: ReportedWorkload) -> Card:
    if one.curve is None:
        return Card("Measured", f"{one.counts.measured:,}", [], "variants")
    last = one.curve.best[-1].evaluation
    lines = [f"the best of the screening rose last at {last:,}", *search_words.tried(one)]
    found = {variant.variant: variant.evaluation for variant in one.variants}
    if place := found.get(one.best or ""):
        rest = f"of {one.curve.evaluations:,} measured was the winner"
        return Card("Had it converged", f"number {place:,}", lines, rest)
    return Card("Had it converged", f"{one.counts.measured:,}", lines, "measured, none won")


def _lost(one: ReportedWorkload) -> list[Card]:
    """Count what failed; rows alone do not tell."""
    counts = one.counts
    kinds = [f"{group.count:,} {group.kind}: {group.reason}" for group in one.failures[:3]]
    if one.origin == "rows":
        failed = sum(group.count for group in one.failures)
        rest = "of the benchmark, on any workload"
        return [Card("Failed", f"{failed:,}", kinds, rest)] if failed else []
    if counts.wrong:
        lines = [f"{plural(counts.wrong, 'variant')} computed something else than base"]
        rest = f"of {counts.tried:,} tried"
        return [Card("Failed", f"{counts.failed + counts.wrong:,}", lines, rest, "bad")]
    return [Card("Failed", f"{counts.failed:,}", kinds, f"of {counts.tried:,} tried")]


# How noisy base was, on which machine it was measured, and what took how long.


def noise(one: ReportedWorkload) -> Iterator[Block]:
    """Show how far base is from itself."""
    yield Heading("Noise", 3)
    if one.score_noise is not None:
        far = search_words.percent(one.score_noise)
        yield Note(
            f"The score of base against itself differs by {far} from process to process (one"
            " standard deviation)."
        )
    if one.choice is not None and one.choice.noise is not None:
        origin = f", {one.choice.noise_origin}" if one.choice.noise_origin else ""
        far = search_words.percent(one.choice.noise)
        yield Note(f"db choose takes {far} for a score in one run{origin}.")
    if one.noise:
        columns = [
            Column("runtime workload"),
            *(Column(t, "n") for t in ("base", "between processes", "beside itself")),
        ]
        yield Table(columns, [_noise_row(row) for row in one.noise], label="Noise", shown=20)
    elif one.score_noise is None:
        yield Note("Base was not measured against itself: how noisy it is stands nowhere.", "soft")


def _noise_row(row: PointNoise) -> list[Inline | Styled]:
    between = "not known" if row.between is None else f"{search_words.percent(row.between)}"
    return [
        search_words.point(row.subbench, row.point),
        search_words.time(row.seconds),
        between,
        f"{search_words.percent(row.beside)}",
    ]


def machine(document: SearchReport) -> Iterator[Block]:
    """Show the sessions, and their steps."""
    yield Heading("Machine")
    if not document.sessions:
        yield Note(
            "The database says no more of the machine than the GPU's name and the versions above:"
            " policygen did not measure it."
        )
        return
    columns = [
        Column("began"),
        Column("took", "n"),
        *(Column(title) for title in ("on", "card", "clocks", "method", "samples")),
    ]
    rows = [_session(one) for one in document.sessions]
    yield Table(columns, rows, "sessions", "Sessions", 20)
    if document.other_sessions:
        yield Note(f"and {plural(document.other_sessions, 'earlier session')}", "soft")
    steps = list(_steps(document.sessions))
    if steps:
        columns = [Column("session"), Column("step"), Column("times", "n"), Column("took", "n")]
        yield Table(columns, steps, "steps", "What took how long", 20)


def _session(one: ReportedSession) -> list[Inline | Styled]:
    clocks = [
        f"{one.sm_clock:,} MHz" if one.sm_clock else "",
        f"memory {one.memory_clock:,} MHz" if one.memory_clock else "",
        f"{one.power_limit:.0f} W" if one.power_limit else "",
    ]
    samples = [
        f"{one.repeated:,} taken again" if one.repeated else "",
        f"{one.throttled:,} while slowed down" if one.throttled else "",
        f"{plural(one.restarts, 'process', 'processes')} started again" if one.restarts else "",
    ]
    method = ", ".join(filter(None, [one.method, "" if one.seed is None else f"seed {one.seed}"]))
    return [
        one.started[:19].replace("T", " "),
        _took(one),
        search_words.machine(one),
        Styled(one.card, "mono"),
        ", ".join(filter(None, clocks)),
        f"{method}, policygen {one.policygen}" if one.policygen else method,
        ", ".join(filter(None, samples)) or "all fine",
    ]


def _took(one: ReportedSession) -> str:
    if one.ended is None:
        return "not ended"
    return "not known" if one.seconds is None else ranking_views.duration(one.seconds)


def _steps(sessions: Iterable[ReportedSession]) -> Iterator[list[Inline | Styled]]:
    for place, one in enumerate(sessions, 1):
        for step in (*one.steps, *([one.other_steps] if one.other_steps else [])):
            yield [f"{place}", step.step, f"{step.count:,}", ranking_views.duration(step.seconds)]
