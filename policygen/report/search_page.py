"""Report page of a search: its result first, then convergence, parameters, and failures."""

from collections.abc import Iterable, Iterator, Sequence

from policygen.model.measured import PointNoise
from policygen.model.searches import (
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
"""Workloads with figures; the table lists all of them."""
OPEN = 4
"""Workloads expanded when the page opens."""
LISTED = 1000
"""Maximum number of workloads in the table."""
SMALL = "figures small"
LARGE = "figures"


def page_blocks(document: SearchReport, *, page: bool) -> Iterator[Block]:
    """Show the whole report; Markdown omits the figures."""
    workloads = document.workloads
    if not workloads:
        yield Note("No workload was measured.")
    if len(workloads) > 1:
        yield Heading("What was found")
        yield _overview(workloads[:LISTED])
        if len(workloads) > LISTED:
            yield Note(f"and {plural(len(workloads) - LISTED, 'more workload')}: -R and -a choose.")
    for index, workload in enumerate(workloads[:DETAILED]):
        blocks = list(_workload(workload, document, page=page))
        if page and len(workloads) > 1:
            summary = ((search_words.name(workload), "bold"),)
            yield Fold(summary, blocks, "workload", open=index < OPEN, anchor=_anchor(workload))
        else:
            yield Heading(search_words.name(workload), 2, _anchor(workload))
            yield from blocks
    if len(workloads) > DETAILED:
        hidden = plural(len(workloads) - DETAILED, "more workload")
        yield Note(f"{hidden} without figures here: -R and -a choose which are shown.")
    yield from machine(document)
    if document.warnings:
        yield Heading("What cannot be used")
        yield Listing([str(warning) for warning in document.warnings[:LISTED]], shown=20)
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


def _anchor(workload: ReportedWorkload) -> str:
    return "/".join(
        ["workload", search_words.name(workload), workload.gpu, workload.ctk, workload.cccl]
    )


def _overview(workloads: Sequence[ReportedWorkload]) -> Table:
    """Show the winner of each workload in one line."""
    columns = [
        Column("workload"),
        Column("winner"),
        *(Column(title, "n") for title in ("score", "95 %", "screening", "close", "failed")),
        Column("verdict"),
    ]
    rows: list[list[Inline | Styled]] = []
    for workload in workloads:
        winner = next(
            (finalist for finalist in workload.finalists if finalist.variant == workload.best), None
        )
        shown = winner or (workload.finalists[0] if workload.finalists else None)
        link = Styled(search_words.name(workload), to=_anchor(workload))
        if shown is None:
            rows.append([link, "base", *[""] * 4, _failed(workload), "nothing measured"])
            continue
        rows.append(
            [
                link,
                Styled(shown.variant, "mono") if winner else _base_wins(shown),
                shown.score,
                search_words.between(shown),
                "" if shown.screened is None else shown.screened,
                f"{sum(finalist.close for finalist in workload.finalists)}",
                _failed(workload),
                _verdict(workload, shown),
            ]
        )
    return Table(columns, rows, "overview", "What was found for each workload")


def _base_wins(finalist: ReportedFinalist) -> Inline:
    """Name base, and the variant that came closest."""
    return ("base", "bold"), ("; the best: ", ""), (finalist.variant, "mono")


def _verdict(workload: ReportedWorkload, finalist: ReportedFinalist) -> Inline | Styled:
    if workload.rung not in {None, "last"}:
        return "last rung not reached"
    styles = {"faster": "good", "better": "good", "slower": "warn", "worse": "warn"}
    text = finalist.verdict or "not sure"
    return Styled(text, styles.get(text, ""))


def _failed(workload: ReportedWorkload) -> Inline | Styled:
    counts = workload.counts
    if counts.wrong:
        return Styled(f"{counts.failed:,}, {counts.wrong:,} wrong", "warn")
    return "" if workload.origin == "rows" else f"{counts.failed:,}"


def _workload(workload: ReportedWorkload, document: SearchReport, *, page: bool) -> Iterator[Block]:
    yield cards(workload)
    yield Note(search_words.result(workload))
    yield from (Note(text, "soft") for text in search_words.remarks(workload))
    space = space_of(workload)
    yield from _finalists(workload, document, page=page)
    yield from _convergence(workload, page=page)
    yield from _parameters(workload, space, page=page)
    yield from _failures(workload)
    yield from noise(workload)


def _finalists(
    workload: ReportedWorkload, document: SearchReport, *, page: bool
) -> Iterator[Block]:
    if not workload.finalists:
        return
    yield Heading("Finalists" if workload.rung == "last" else "The best", 3)
    drawing = intervals(workload) if page else None
    table = _finalists_table(workload)
    if drawing:
        yield Chapter([drawing], LARGE, {})
    yield table
    if workload.other_finalists and workload.rung == "last":
        yield Note(f"and {workload.other_finalists:,} more", "soft")
    if workload.control:
        control = search_words.score_with_interval(workload.control)
        yield Note(f"Base beside itself, measured as they are: {control}.", "soft")
    table_of_points = _runtime(workload)
    if page:
        yield Fold("Runtime workloads of the finalists", [table_of_points])
    else:
        yield table_of_points
    drawn = list(quantiles(workload, document.quantiles)) if page else []
    if drawn:
        yield Heading("Base over variant at quantiles", 3)
        yield Note(
            "Above the line at 1 a variant is faster, at that quantile of all samples.", "soft"
        )
        yield Chapter(drawn[:1], LARGE, {})
        yield Chapter(drawn[1:], SMALL, {})
        point_count = len(
            {
                (quantiles_of_point.subbench, *quantiles_of_point.point.items())
                for finalist in workload.finalists
                for quantiles_of_point in finalist.quantiles
            }
        )
        if (undrawn := point_count - len(shown_points(workload))) > 0:
            yield Note(f"{plural(undrawn, 'lighter runtime workload')} not drawn", "soft")
    elif page:
        yield Note("No quantiles: samples of base and a variant cannot be read.", "soft")


def _finalists_table(workload: ReportedWorkload) -> Table:
    has_rungs = workload.rung in {"last", "sharper"}
    rung_titles = ["screening", "its rank", "luck"] if has_rungs else []
    sharper_title = (
        ["sharper"] if any(finalist.sharper is not None for finalist in workload.finalists) else []
    )
    titles = ["score", "95 %", *rung_titles, *sharper_title, "least", "most"]
    rows: list[list[Inline | Styled]] = []
    for finalist in workload.finalists:
        ratios = [row.ratio for row in finalist.runtime]
        screened = finalist.screened
        cells: list[Inline | Styled] = [finalist.score, search_words.between(finalist)]
        if has_rungs:
            cells += [
                search_words.number(screened),
                f"{finalist.rank:,}" if finalist.rank else "",
                "" if screened is None else f"{screened - finalist.score:+.3f}",
            ]
        cells += [search_words.number(finalist.sharper)] if sharper_title else []
        cells += [
            search_words.number(min(ratios, default=None)),
            search_words.number(max(ratios, default=None)),
        ]
        rows.append(
            [
                Styled(finalist.variant, "mono"),
                *cells,
                _verdict(workload, finalist),
                "close" if finalist.close else "",
            ]
        )
    columns = [Column("variant"), *(Column(title, "n") for title in titles)]
    columns += [Column("verdict"), Column("")]
    return Table(columns, rows, "finalists", f"Finalists of {search_words.name(workload)}")


def _runtime(workload: ReportedWorkload) -> Table:
    """Show base over variant on each runtime workload, for the best finalists."""
    shown = workload.finalists[:6]
    columns = [Column("runtime workload"), Column("weight", "n"), Column("base", "n")]
    columns += [Column(f"{place}", "n") for place, _ in enumerate(shown, 1)]
    rows: list[list[Inline | Styled]] = []
    for place, row in enumerate(shown[0].runtime):
        cells: list[Inline | Styled] = [
            search_words.point(row.subbench, row.point),
            row.weight,
            search_words.time(row.base_seconds),
        ]
        for finalist in shown:
            result = finalist.runtime[place]
            times = map(search_words.time, (result.seconds, result.base_seconds))
            tooltip = f"{finalist.variant}: {' beside '.join(times)}"
            style = "warn" if result.interval and result.interval.high < 1 else ""
            cells.append(Styled(result.ratio, style, tooltip))
        rows.append(cells)
    return Table(columns, rows, "runtime", "Base over variant on each runtime workload", 20)


def _convergence(workload: ReportedWorkload, *, page: bool) -> Iterator[Block]:
    if not workload.variants:
        return
    yield Heading("How it got there" if workload.curve else "All scores", 3)
    yield Note(" ".join(search_words.convergence(workload)))
    if len(workload.searches) > 1:
        yield _searches(workload)
    if page:
        yield Chapter([*convergence(workload), by_rank(workload)], LARGE, {})


def _searches(workload: ReportedWorkload) -> Table:
    columns = [Column("strategy"), *(Column(title, "n") for title in ("seed", "budget", "spent"))]
    columns += [Column("ended")]
    rows = [
        [
            run.strategy,
            "" if run.seed is None else f"{run.seed}",
            "none" if run.budget is None else ranking_views.duration(run.budget),
            ranking_views.duration(run.spent),
            search_words.ENDED[run.ended],
        ]
        for run in workload.searches[:LISTED]
    ]
    return Table(columns, rows, label="Sessions of the search", shown=20)


def _parameters(workload: ReportedWorkload, space: Space, *, page: bool) -> Iterator[Block]:
    if not space.parameters or not space.measured:
        return
    yield Heading("Parameters", 3)
    shares = sorted(space.shares.items(), key=lambda pair: -pair[1])
    share_list = ", ".join(f"{name} {share * 100:.0f} %" for name, share in shares[:MOST])
    hidden = f", and {len(shares) - MOST:,} more" if len(shares) > MOST else ""
    yield Note(f"How much of the difference between scores goes with each: {share_list}{hidden}.")
    if not page:
        return
    marked = MarkedVariants.of(workload)
    if space.failed:
        yield Note("Crosses at the lower edge: variants with these values failed.", "soft")
    yield Chapter(list(by_parameter(space, marked)), SMALL, {})
    drawn = list(by_pair(space, marked))
    if drawn:
        yield Heading("Pairs of parameters", 3)
        if len(space.parameters) > PAIRED:
            yield Note(f"Of the {PAIRED} parameters that scores depend on most.", "soft")
        yield Chapter(drawn, SMALL, {})


def _failures(workload: ReportedWorkload) -> Iterator[Block]:
    words = search_words.failures(workload)
    if not words:
        return
    yield Heading("What failed, and why", 3)
    yield Note(words, "warn" if workload.counts.wrong else "")
    if workload.failures:
        columns = [
            Column("kind", "name"),
            Column("variants", "n"),
            Column("reason"),
            Column("such as"),
        ]
        rows = [_failure(group) for group in workload.failures]
        yield Table(columns, rows, "failures", "Why variants failed", 20)
    if workload.other_failures:
        yield Note(f"and {workload.other_failures:,} other reasons", "soft")


def _failure(group: FailureGroup) -> list[Inline | Styled]:
    kind: Inline | Styled = Styled(group.kind, "name warn") if group.kind == "wrong" else group.kind
    examples = ", ".join(group.variants[:2])
    return [kind, f"{group.count:,}", group.reason, Styled(examples, "mono") if examples else ""]


# Cards of a searched workload: winner, close finalists, and convergence


def cards(workload: ReportedWorkload) -> Cards:
    """Summarize the result at the top of a workload."""
    shown = [
        _winner_card(workload),
        *([_current_card(workload)] if workload.origin == "search" else []),
    ]
    if workload.finalists:
        count = sum(finalist.close for finalist in workload.finalists)
        lines = [
            f"{finalist.score:.3f}  {finalist.variant}"
            for finalist in workload.finalists
            if finalist.close
        ]
        hidden = [f"and {len(lines) - 3:,} more"] if len(lines) > 3 else []
        words = search_words.close(workload).partition(" of ")[2]
        subtitle = f"of {words}" if words else "others to compare it with"
        shown.append(Card("What else was close", f"{count:,}", [*lines[:3], *hidden], subtitle))
    return Cards([*shown, _convergence_card(workload), *_failed_cards(workload)])


def _winner_card(workload: ReportedWorkload) -> Card:
    winner = next(
        (finalist for finalist in workload.finalists if finalist.variant == workload.best), None
    )
    if winner is None:
        lines = []
        for finalist in workload.finalists[:1]:
            lines = [f"the best: {finalist.variant}", search_words.score_with_interval(finalist)]
            lines += [search_words.luck(finalist)] if finalist.screened is not None else []
        subtitle = "is not beaten beyond noise" if workload.rung in {None, "last"} else "for now"
        return Card("Winner", "base", lines, subtitle, "plain")
    lines = [winner.variant]
    if winner.interval:
        processes = (
            f", {plural(winner.processes, 'process', 'processes')}" if winner.processes else ""
        )
        lines.append(f"95 %: {winner.interval.low:.3f} to {winner.interval.high:.3f}{processes}")
    lines += [text] if (text := search_words.luck(winner)) else []
    return Card("Winner", f"{winner.score:.3f}", lines, "times as fast as base", "good")


def _current_card(workload: ReportedWorkload) -> Card:
    if workload.base is None:
        return Card("CUB selects today", "base", [search_words.today(workload)])
    variant_of_base = next(
        (variant for variant in workload.variants if variant.variant == workload.base), None
    )
    lines = (
        []
        if variant_of_base is None
        else [f"itself measured as a variant: {variant_of_base.score:.3f}"]
    )
    return Card("CUB selects today", workload.base, lines, style="label")


def _convergence_card(workload: ReportedWorkload) -> Card:
    if workload.curve is None:
        return Card("Measured", f"{workload.counts.measured:,}", [], "variants")
    last_improvement = workload.curve.best[-1].evaluation
    lines = [
        f"the best of the screening rose last at {last_improvement:,}",
        *search_words.tried(workload),
    ]
    evaluation_by_variant = {variant.variant: variant.evaluation for variant in workload.variants}
    if evaluation := evaluation_by_variant.get(workload.best or ""):
        subtitle = f"of {workload.curve.evaluations:,} measured was the winner"
        return Card("Had it converged", f"number {evaluation:,}", lines, subtitle)
    return Card("Had it converged", f"{workload.counts.measured:,}", lines, "measured, none won")


def _failed_cards(workload: ReportedWorkload) -> list[Card]:
    """Count failed variants; a database with rows only does not record what was tried."""
    counts = workload.counts
    kinds = [f"{group.count:,} {group.kind}: {group.reason}" for group in workload.failures[:3]]
    if workload.origin == "rows":
        failed = sum(group.count for group in workload.failures)
        subtitle = "of the benchmark, on any workload"
        return [Card("Failed", f"{failed:,}", kinds, subtitle)] if failed else []
    if counts.wrong:
        lines = [f"{plural(counts.wrong, 'variant')} computed something else than base"]
        subtitle = f"of {counts.tried:,} tried"
        return [Card("Failed", f"{counts.failed + counts.wrong:,}", lines, subtitle, "bad")]
    return [Card("Failed", f"{counts.failed:,}", kinds, f"of {counts.tried:,} tried")]


# Noise, machine, and time taken


def noise(workload: ReportedWorkload) -> Iterator[Block]:
    """Show how much base differs from itself."""
    yield Heading("Noise", 3)
    if workload.score_noise is not None:
        deviation = search_words.percent(workload.score_noise)
        yield Note(
            f"The score of base against itself differs by {deviation} from process to process (one"
            " standard deviation)."
        )
    if workload.choice is not None and workload.choice.noise is not None:
        origin = f", {workload.choice.noise_origin}" if workload.choice.noise_origin else ""
        deviation = search_words.percent(workload.choice.noise)
        yield Note(f"db choose takes {deviation} for a score in one run{origin}.")
    if workload.noise:
        columns = [
            Column("runtime workload"),
            *(Column(title, "n") for title in ("base", "between processes", "beside itself")),
        ]
        yield Table(columns, [_noise_row(row) for row in workload.noise], label="Noise", shown=20)
    elif workload.score_noise is None:
        yield Note("Base was not measured against itself: how noisy it is stands nowhere.", "soft")


def _noise_row(point_noise: PointNoise) -> list[Inline | Styled]:
    between = (
        "not known"
        if point_noise.between is None
        else f"{search_words.percent(point_noise.between)}"
    )
    return [
        search_words.point(point_noise.subbench, point_noise.point),
        search_words.time(point_noise.seconds),
        between,
        f"{search_words.percent(point_noise.beside)}",
    ]


def machine(document: SearchReport) -> Iterator[Block]:
    """Show the sessions and their steps."""
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
    rows = [_session(session) for session in document.sessions]
    yield Table(columns, rows, "sessions", "Sessions", 20)
    if document.other_sessions:
        yield Note(f"and {plural(document.other_sessions, 'earlier session')}", "soft")
    steps = list(_steps(document.sessions))
    if steps:
        columns = [Column("session"), Column("step"), Column("times", "n"), Column("took", "n")]
        yield Table(columns, steps, "steps", "What took how long", 20)


def _session(session: ReportedSession) -> list[Inline | Styled]:
    clocks = [
        f"{session.sm_clock:,} MHz" if session.sm_clock else "",
        f"memory {session.memory_clock:,} MHz" if session.memory_clock else "",
        f"{session.power_limit:.0f} W" if session.power_limit else "",
    ]
    samples = [
        f"{session.repeated:,} taken again" if session.repeated else "",
        f"{session.throttled:,} while slowed down" if session.throttled else "",
        f"{plural(session.restarts, 'process', 'processes')} started again"
        if session.restarts
        else "",
    ]
    method = ", ".join(
        filter(None, [session.method, "" if session.seed is None else f"seed {session.seed}"])
    )
    return [
        session.started[:19].replace("T", " "),
        _session_duration(session),
        search_words.machine(session),
        Styled(session.card, "mono"),
        ", ".join(filter(None, clocks)),
        f"{method}, policygen {session.policygen}" if session.policygen else method,
        ", ".join(filter(None, samples)) or "all fine",
    ]


def _session_duration(session: ReportedSession) -> str:
    if session.ended is None:
        return "not ended"
    return "not known" if session.seconds is None else ranking_views.duration(session.seconds)


def _steps(sessions: Iterable[ReportedSession]) -> Iterator[list[Inline | Styled]]:
    for number, session in enumerate(sessions, 1):
        for step in (*session.steps, *([session.other_steps] if session.other_steps else [])):
            yield [f"{number}", step.step, f"{step.count:,}", ranking_views.duration(step.seconds)]
