"""Report page of a search: its result first, then convergence, parameters, and failures."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from policygen.errors import plural
from policygen.model.searches import (
    ReportedFinalist,
    ReportedSession,
    ReportedWorkload,
    SearchReport,
)
from policygen.model.workload import plain, runtime_name
from policygen.report import charts, search_charts, search_views
from policygen.report.blocks import (
    Block,
    Card,
    Cards,
    Cell,
    Chapter,
    Column,
    Drawing,
    Fold,
    Heading,
    Listing,
    Note,
    Page,
    Styled,
    Table,
    TableRows,
    more,
)
from policygen.report.console import duration, percent_words, short, span_words
from policygen.report.ranking_views import key_parts

DETAILED = 40
"""Workloads with figures; the table lists all of them."""
OPEN = 4
"""Workloads expanded when the page opens."""
LISTED = 1000
"""Maximum number of workloads in the table."""
SMALL = "figures small"
LARGE = "figures"
MEANING = (
    "A score is the speedup over base, weighted over all runtime workloads. The screening takes"
    " few samples of every variant, so the score of its best variant is too high: that variant"
    " was also lucky (selection bias). The last rung measures the finalists and base again in"
    " fresh processes, on samples that no choice has used; intervals are 95 % confidence"
    " intervals (Student's t over processes). A finalist is close if its interval overlaps that"
    " of the first. Some selection bias remains, but only that of choosing among the finalists,"
    " not among all variants."
)


def page(document: SearchReport, *, is_page: bool) -> Page:
    """Build a page with figures, or Markdown without."""
    keys = (", ".join(key_parts(row, None)) for row in document.workloads)
    facts = {"measured on": "; ".join(dict.fromkeys(keys))} if document.workloads else {}
    facts["databases"] = ", ".join(document.databases)
    return Page(_title(document), facts, list(_blocks(document, page=is_page)))


def _title(document: SearchReport) -> str:
    names = list(dict.fromkeys(short(workload.algorithm) for workload in document.workloads))
    if not names:
        return "Search report"
    is_search = any(workload.origin == "search" for workload in document.workloads)
    subject = names[0] if len(names) == 1 else plural(len(names), "benchmark")
    return f"{'Search' if is_search else 'Measurements'} of {subject}"


def _blocks(document: SearchReport, *, page: bool) -> Iterator[Block]:
    """Show the whole report; Markdown omits the figures."""
    workloads = document.workloads
    if not workloads:
        yield Note("No workload was measured.")
    if len(workloads) > 1:
        yield Heading("Results")
        if page and (drawing := overview(workloads)):
            yield Chapter([drawing], LARGE, {})
        # Without a winner, the variant that came closest is shown.
        shown = [
            search_views.winner_of(row) or next(iter(row.finalists), None) for row in workloads
        ]
        yield TableRows([*zip(workloads[:LISTED], shown, strict=False)]).table(
            ("workload", "", lambda row: Styled(search_views.name(row[0]), to=_anchor(row[0]))),
            ("winner", "", lambda row: _winner_cell(row[0])),
            ("score", "n", lambda row: row[1].score if row[1] else None),
            ("95 %", "n", lambda row: span_words(row[1].interval) if row[1] else None),
            ("screening", "n", lambda row: row[1].screened if row[1] else None),
            ("close", "n", lambda row: f"{len(_close(row[0]))}" if row[1] else None),
            ("failed", "n", lambda row: _failed(row[0])),
            ("verdict", "", lambda row: _verdict(*row)),
            style="overview",
            label="Result for each workload",
        )
        yield from more(len(workloads) - LISTED, "workload", "; choose with -R and -a.")
    for index, workload in enumerate(workloads[:DETAILED]):
        blocks = list(_workload(workload, document, page=page))
        if page and len(workloads) > 1:
            summary = ((search_views.name(workload), "bold"),)
            yield Fold(summary, blocks, "workload", open=index < OPEN, anchor=_anchor(workload))
        else:
            yield Heading(search_views.name(workload), 2, _anchor(workload))
            yield from blocks
    if len(workloads) > DETAILED:
        hidden = plural(len(workloads) - DETAILED, "more workload")
        yield Note(f"{hidden} without figures on this page; choose workloads with -R and -a.")
    yield from _machine(document)
    if document.warnings:
        yield Heading("Ignored rows")
        yield Listing([str(warning) for warning in document.warnings[:LISTED]], shown=20)
        if len(document.warnings) > LISTED:
            yield Note(f"and {len(document.warnings) - LISTED:,} more")
    yield Note(MEANING, "soft")


def _anchor(workload: ReportedWorkload) -> str:
    return "/".join(
        ["workload", search_views.name(workload), workload.gpu, workload.ctk, workload.cccl]
    )


def _close(workload: ReportedWorkload) -> list[ReportedFinalist]:
    return [finalist for finalist in workload.finalists if finalist.close]


def _winner_cell(workload: ReportedWorkload) -> Cell:
    if winner := search_views.winner_of(workload):
        return Styled(winner.variant, "mono")
    if not workload.finalists:
        return "base"
    return ("base", "bold"), ("; best: ", ""), (workload.finalists[0].variant, "mono")


def _verdict(workload: ReportedWorkload, finalist: ReportedFinalist | None) -> Cell:
    if finalist is None:
        return "nothing measured"
    if workload.rung not in {None, "last"}:
        return "last rung not reached"
    styles = {"faster": "good", "better": "good", "slower": "warn", "worse": "warn"}
    text = finalist.verdict or "not sure"
    return Styled(text, styles.get(text, ""))


def _failed(workload: ReportedWorkload) -> Cell:
    counts = workload.counts
    if counts.wrong:
        return Styled(f"{counts.failed:,}, {counts.wrong:,} wrong", "warn")
    return "" if workload.origin == "rows" else f"{counts.failed:,}"


def _workload(workload: ReportedWorkload, document: SearchReport, *, page: bool) -> Iterator[Block]:
    yield _cards(workload)
    yield Note(search_views.result(workload))
    yield from (Note(text, "soft") for text in search_views.remarks(workload))
    yield from _findings(workload)
    yield from _finalists(workload, document, page=page)
    if workload.variants:
        yield Heading("Progress of the search" if workload.curve else "All scores", 3)
        yield Note(" ".join(search_views.convergence(workload)))
        if len(workload.searches) > 1:
            yield TableRows(workload.searches[:LISTED]).table(
                ("strategy", "", lambda run: run.strategy),
                ("seed", "n", lambda run: "" if run.seed is None else f"{run.seed}"),
                ("budget", "n", lambda run: "none" if run.budget is None else duration(run.budget)),
                ("spent", "n", lambda run: duration(run.spent)),
                ("ended", "", lambda run: search_views.ENDED[run.ended]),
                label="Sessions of the search",
                shown=20,
            )
        if page:
            drawings = [*search_charts.convergence(workload), search_charts.by_rank(workload)]
            yield Chapter(drawings, LARGE, {})
    yield from _parameters(workload, search_charts.space_of(workload), page=page)
    yield from _failures(workload)
    yield from _noise(workload)


def _finalists(
    workload: ReportedWorkload, document: SearchReport, *, page: bool
) -> Iterator[Block]:
    if not workload.finalists:
        return
    yield Heading("Finalists" if workload.rung == "last" else "The best", 3)
    if page and (drawing := search_charts.intervals(workload)):
        yield Chapter([drawing], LARGE, {})
    yield _finalists_table(workload)
    if workload.other_finalists and workload.rung == "last":
        yield Note(f"and {workload.other_finalists:,} more", "soft")
    if workload.control:
        control = search_views.score_with_interval(workload.control)
        yield Note(f"Base against itself, measured in the same way: {control}.", "soft")
    yield Fold("Runtime workloads of the finalists", [_runtime(workload)])
    drawn = list(charts.finalist_quantiles(workload, document.quantiles)) if page else []
    if drawn:
        yield Heading("Base time divided by variant time, by quantile", 3)
        meaning = "Above the line at 1, the variant is faster at that quantile of the samples."
        yield Note(meaning, "soft")
        yield Chapter(drawn[:1], LARGE, {})
        yield Chapter(drawn[1:], SMALL, {})
        points = {
            (row.subbench, *row.point.items())
            for finalist in workload.finalists
            for row in finalist.quantiles
        }
        if (undrawn := len(points) - len(charts.shown_points(workload))) > 0:
            yield Note(f"{plural(undrawn, 'lighter runtime workload')} not drawn", "soft")
    elif page:
        yield Note("No quantiles: the samples of base or of a variant cannot be read.", "soft")


def _finalists_table(workload: ReportedWorkload) -> Table:
    rungs = workload.rung in {"last", "sharper"}
    is_sharper = any(final.sharper is not None for final in workload.finalists)
    return TableRows(workload.finalists).table(
        ("variant", "", lambda final: Styled(final.variant, "mono")),
        ("score", "n", lambda final: final.score),
        ("95 %", "n", lambda final: span_words(final.interval)),
        ("screening", "n", lambda final: final.screened) if rungs else None,
        ("its rank", "n", lambda final: final.rank and f"{final.rank:,}") if rungs else None,
        ("luck", "n", lambda f: f.screened and f"{f.screened - f.score:+.3f}") if rungs else None,
        ("sharper", "n", lambda final: final.sharper) if is_sharper else None,
        ("least", "n", lambda final: min(search_views.ratios_of(final), default=None)),
        ("most", "n", lambda final: max(search_views.ratios_of(final), default=None)),
        ("verdict", "", lambda final: _verdict(workload, final)),
        ("", "", lambda final: "close" if final.close else ""),
        style="finalists",
        label=f"Finalists of {search_views.name(workload)}",
    )


def _runtime(workload: ReportedWorkload) -> Table:
    """Show base over variant on each runtime workload, for the best finalists."""
    shown = workload.finalists[:6]
    numbers = ("weight", "base", *(f"{place}" for place, _ in enumerate(shown, 1)))
    rows: list[list[Cell]] = []
    for place, row in enumerate(shown[0].runtime):
        point = runtime_name(row.subbench, plain(row.point))
        cells: list[Cell] = [point, row.weight, _time(row.base_seconds)]
        for finalist in shown:
            ratio = finalist.runtime[place]
            times = f"{_time(ratio.seconds)} beside {_time(ratio.base_seconds)}"
            style = "warn" if ratio.interval and ratio.interval.high < 1 else ""
            cells.append(Styled(ratio.ratio, style, f"{finalist.variant}: {times}"))
        rows.append(cells)
    columns = [Column("runtime workload"), *(Column(title, "n") for title in numbers)]
    return Table(columns, rows, "runtime", "Base over variant on each runtime workload", 20)


def _time(seconds: float) -> str:
    """Write the time of a kernel in microseconds."""
    return f"{seconds * 1e6:,.2f} µs"


def _parameters(
    workload: ReportedWorkload, space: search_charts.Space, *, page: bool
) -> Iterator[Block]:
    if not space.parameters or not space.measured:
        return
    yield Heading("Parameters", 3)
    shares = sorted(space.shares.items(), key=lambda pair: -pair[1])
    most = search_charts.MOST
    share_list = ", ".join(f"{name} {share * 100:.0f} %" for name, share in shares[:most])
    hidden = f", and {len(shares) - most:,} more" if len(shares) > most else ""
    yield Note(f"Share of the variance of scores that each explains: {share_list}{hidden}.")
    if not page:
        return
    marked = search_charts.MarkedVariants.of(workload)
    if space.failed:
        yield Note("Crosses at the lower edge mark variants with these values that failed.", "soft")
    yield Chapter(list(search_charts.by_parameter(space, marked)), SMALL, {})
    if drawn := list(search_charts.by_pair(space, marked)):
        yield Heading("Pairs of parameters", 3)
        if len(space.parameters) > (paired := search_charts.PAIRED):
            yield Note(f"Of the {paired} parameters with the largest effect on scores.", "soft")
        yield Chapter(drawn, SMALL, {})


def _findings(workload: ReportedWorkload) -> Iterator[Block]:
    """Show variants that compute other results than base, or fail on the GPU."""
    if not workload.findings:
        return
    yield Heading("Findings", 3)
    values = plain(workload.workload)
    yield TableRows(workload.findings).table(
        ("finding", "", search_views.finding_words),
        (
            "memcheck",
            "",
            lambda group: search_views.memcheck_words(group, workload.algorithm, values),
        ),
        style="failures",
        label="Variants that fail on the GPU or compute wrong results",
        shown=20,
    )


def _failures(workload: ReportedWorkload) -> Iterator[Block]:
    words = search_views.failures(workload)
    if not words:
        return
    yield Heading("What failed, and why", 3)
    yield Note(words, "warn" if workload.counts.wrong else "")
    if workload.failures:
        yield TableRows(workload.failures).table(
            ("kind", "name", lambda row: Styled(row.kind, "name warn" * (row.kind == "wrong"))),
            ("variants", "n", lambda group: f"{group.count:,}"),
            ("reason", "", lambda group: group.reason),
            ("such as", "", lambda group: Styled(", ".join(group.variants[:2]), "mono")),
            style="failures",
            label="Why variants failed",
            shown=20,
        )
    if workload.other_failures:
        yield Note(f"and {workload.other_failures:,} other reasons", "soft")


# Cards of a searched workload: winner, close finalists, and convergence


def _cards(workload: ReportedWorkload) -> Cards:
    cards = [_winner_card(workload)]
    cards += [_current_card(workload)] if workload.origin == "search" else []
    if workload.finalists:
        lines = [f"{final.score:.3f}  {final.variant}" for final in _close(workload)]
        hidden = [f"and {len(lines) - 3:,} more"] if len(lines) > 3 else []
        words = search_views.close(workload).partition(" of ")[2]
        subtitle = f"of {words}" if words else "other finalists to compare it with"
        count, shown = f"{len(lines):,}", [*lines[:3], *hidden]
        cards.append(Card("What else was close", count, shown, subtitle))
    return Cards([*cards, _convergence_card(workload), *_failed_cards(workload)])


def _winner_card(workload: ReportedWorkload) -> Card:
    winner = search_views.winner_of(workload)
    if winner is None:
        lines = []
        for final in workload.finalists[:1]:
            lines = [f"the best: {final.variant}", search_views.score_with_interval(final)]
            lines += [search_views.luck(final)] if final.screened is not None else []
        is_final = workload.rung in {None, "last"}
        subtitle = "is not beaten by more than noise" if is_final else "for now"
        return Card("Winner", "base", lines, subtitle, "plain")
    lines = [winner.variant]
    if winner.interval:
        count = winner.processes
        processes = f", {plural(count, 'process', 'processes')}" if count else ""
        lines.append(f"95 %: {span_words(winner.interval)}{processes}")
    lines += filter(None, [search_views.luck(winner)])
    return Card("Winner", f"{winner.score:.3f}", lines, "times as fast as base", "good")


def _current_card(workload: ReportedWorkload) -> Card:
    title = "CUB selects today"
    if workload.base is None:
        return Card(title, "base", [search_views.today(workload)])
    scores = (row.score for row in workload.variants if row.variant == workload.base)
    lines = [f"itself measured as a variant: {score:.3f}" for score in scores][:1]
    return Card(title, workload.base, lines, style="label")


def _convergence_card(workload: ReportedWorkload) -> Card:
    measured = f"{workload.counts.measured:,}"
    if workload.curve is None:
        return Card("Measured", measured, [], "variants")
    last = workload.curve.best[-1].evaluation
    lines = [f"the best screening score last rose at {last:,}", *search_views.tried(workload)]
    if evaluation := search_views.winner_evaluation(workload):
        subtitle = f"of {workload.curve.evaluations:,} measured was the winner"
        return Card("Has it converged?", f"number {evaluation:,}", lines, subtitle)
    return Card("Has it converged?", measured, lines, "measured, none won")


def _failed_cards(workload: ReportedWorkload) -> list[Card]:
    """Count failed variants; a database with rows only does not record what was tried."""
    counts = workload.counts
    kinds = [f"{group.count:,} {group.kind}: {group.reason}" for group in workload.failures[:3]]
    if workload.origin == "rows":
        failed = sum(group.count for group in workload.failures)
        subtitle = "of the benchmark, on any workload"
        return [Card("Failed", f"{failed:,}", kinds, subtitle)] if failed else []
    if counts.wrong:
        kinds = [f"{plural(counts.wrong, 'variant')} computed other results than base"]
    failed, style = counts.failed + counts.wrong, "bad" if counts.wrong else ""
    return [Card("Failed", f"{failed:,}", kinds, f"of {counts.tried:,} tried", style)]


# Noise, machine, and time taken


def _noise(workload: ReportedWorkload) -> Iterator[Block]:
    yield Heading("Noise", 3)
    if workload.score_noise is not None:
        deviation = percent_words(workload.score_noise)
        words = f"Between processes, the score of base against itself varies by {deviation}"
        yield Note(f"{words} (one standard deviation).")
    choice = workload.choice
    if choice is not None and choice.noise is not None:
        origin = f", {choice.noise_origin}" if choice.noise_origin else ""
        deviation = percent_words(choice.noise)
        yield Note(f"db choose assumes {deviation} for a score in one run{origin}.")
    if workload.noise:
        yield TableRows(workload.noise).table(
            ("runtime workload", "", lambda row: runtime_name(row.subbench, plain(row.point))),
            ("base", "n", lambda row: _time(row.seconds)),
            ("between processes", "n", lambda row: percent_words(row.between)),
            ("within a process", "n", lambda row: percent_words(row.beside)),
            label="Noise",
            shown=20,
        )
    elif workload.score_noise is None:
        yield Note("Base was not measured against itself, so its noise is unknown.", "soft")


def _machine(document: SearchReport) -> Iterator[Block]:
    yield Heading("Machine")
    if not document.sessions:
        yield Note(
            "Beyond the GPU's name and the versions above, the machine is unknown: policygen did"
            " not make these measurements."
        )
        return
    yield TableRows(document.sessions).table(
        ("began", "", lambda session: session.started[:19].replace("T", " ")),
        ("took", "n", _session_duration),
        ("on", "", _session_machine),
        ("card", "", lambda session: Styled(session.card, "mono")),
        ("clocks", "", _session_clocks),
        ("method", "", _session_method),
        ("samples", "", _session_samples),
        style="sessions",
        label="Sessions",
        shown=20,
    )
    if document.other_sessions:
        yield Note(f"and {plural(document.other_sessions, 'earlier session')}", "soft")
    steps = [
        (number, step)
        for number, session in enumerate(document.sessions, 1)
        for step in (*session.steps, *filter(None, [session.other_steps]))
    ]
    if steps:
        yield TableRows(steps).table(
            ("session", "", lambda row: f"{row[0]}"),
            ("step", "", lambda row: row[1].step),
            ("times", "n", lambda row: f"{row[1].count:,}"),
            ("took", "n", lambda row: duration(row[1].seconds)),
            style="steps",
            label="Time spent by step",
            shown=20,
        )


def _session_duration(session: ReportedSession) -> str:
    if session.ended is None:
        return "not ended"
    return "not known" if session.seconds is None else duration(session.seconds)


def _session_machine(session: ReportedSession) -> str:
    versions = {
        "driver": session.driver,
        "nvcc": session.nvcc,
        "ctk": session.ctk,
        "CCCL": session.cccl,
    }
    words = [f"{title} {version}" for title, version in versions.items() if version]
    return ", ".join([*filter(None, [session.gpu, session.arch]), *words])


def _session_clocks(session: ReportedSession) -> str:
    clocks = [
        f"{session.sm_clock:,} MHz" if session.sm_clock else "",
        f"memory {session.memory_clock:,} MHz" if session.memory_clock else "",
        f"{session.power_limit:.0f} W" if session.power_limit else "",
    ]
    return ", ".join(filter(None, clocks))


def _session_method(session: ReportedSession) -> str:
    seed = "" if session.seed is None else f"seed {session.seed}"
    method = ", ".join(filter(None, [session.method, seed]))
    return f"{method}, policygen {session.policygen}" if session.policygen else method


def _session_samples(session: ReportedSession) -> str:
    restarts = f"{plural(session.restarts, 'process', 'processes')} restarted"
    samples = [
        f"{session.repeated:,} repeated" if session.repeated else "",
        f"{session.throttled:,} while throttled" if session.throttled else "",
        restarts if session.restarts else "",
    ]
    return ", ".join(filter(None, samples)) or "all fine"


def overview(workloads: Sequence[ReportedWorkload]) -> Drawing | None:
    """The finalist of each workload that counts, and its worst runtime workload."""
    decided = decisive(workloads)
    if not decided:
        return None
    rows = [_overview_row(workload, final) for workload, final in decided]
    values = [value for _, final in decided for value in search_charts.score_and_interval(final)]
    title = "The best variant of each workload"
    return charts.interval_chart(
        title,
        title,
        rows,
        [*values, *(row.ring[0] for row in rows if row.ring)],
        [("last won", "faster"), ("last", "not sure"), ("ring", "worst runtime workload")],
        ("speedup over base, 95 %", "base", 7),
        f"{len(rows)} workloads, the largest gain first.",
        "",
    )


def decisive(
    workloads: Sequence[ReportedWorkload],
) -> list[tuple[ReportedWorkload, ReportedFinalist]]:
    """Workloads that reached the last rung, with what was chosen or else the best finalist."""
    pairs = []
    for workload in workloads:
        if workload.rung == "last" and workload.finalists:
            chosen = workload.choice and workload.choice.variant
            by_variant = {final.variant: final for final in workload.finalists}
            pairs.append((workload, by_variant.get(chosen or "", workload.finalists[0])))
    return sorted(pairs, key=lambda pair: -pair[1].score)


def _overview_row(workload: ReportedWorkload, final: ReportedFinalist) -> charts.IntervalRow:
    row = search_charts.finalist_row(final, 0 if final.verdict in {"faster", "better"} else 1)
    worst = min(search_views.ratios_of(final), default=final.score)
    name = short(search_views.name(workload))
    words = f"{name}: {worst:.3f} on its worst runtime workload"
    return replace(row, name=name, ring=(worst, words))
