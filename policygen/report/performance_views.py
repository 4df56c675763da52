"""Performance of a change on a GPU: per-workload results, regressions, and measurement noise."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from policygen.errors import plural
from policygen.model.plans import Plan
from policygen.model.reviews import Merged, Review, ReviewedEntry
from policygen.model.selection import Differing
from policygen.model.trees import tree_line
from policygen.model.verdicts import RuntimePerformance, VerifyPerformance, WorkloadPerformance
from policygen.model.workload import in_words, plain, runtime_name
from policygen.report import charts
from policygen.report.blocks import (
    BLANK,
    Block,
    Cell,
    Chapter,
    Fold,
    Heading,
    Listing,
    Note,
    Styled,
    Table,
    TableRows,
    Words,
    more,
    remarks,
    shortened,
)
from policygen.report.console import interval_words, percent_words, ratio_words, short
from policygen.report.measure_views import MICRO, failure_mark

STYLES = {"faster": "green", "slower": "red", "equal": "dim", "undecided": "yellow"}
WORST = 4
"""Runtime workloads shown per workload without -v."""
SHOWN = 12
"""Workloads with identical code named without -v."""
NONE = "no entry"


def performance(
    document: VerifyPerformance, *, head: bool, verbose: bool, entries: bool = False
) -> Iterator[Block]:
    """Show a row per workload, followed by its runtime workloads that are not equal."""
    if head:
        if document.cub:
            yield Note(tree_line(document.cub), "dim", folded=True)
        yield Words(f"before: {document.before}", "dim")
        if not document.cub:
            yield Words(f"after: {document.after}", "dim")
        if document.gpu:
            yield Note(", ".join(_setup(document, document.gpu)), "dim", folded=True)
        yield BLANK
    measured = [workload for workload in document.workloads if workload.ratio is not None]
    if measured:
        yield TableRows(measured).table(
            ("ratio", "whole", lambda workload: workload.ratio or 0.0),
            ("between", "whole", _between),
            ("verdict", "whole", verdict_words),
            ("workload", "", lambda workload: workload.name),
            look=lambda workload: STYLES[workload.verdict],
            label="before over after, by workload",
        )
    for workload in measured:
        yield from _runtime(document, workload, verbose=verbose)
    if entries:
        yield from _entries(document)
    for workload in measured:
        if workload.holds is False:
            claim = f"the change claims {workload.claimed:.3f}, at least {workload.least:.3f}"
            words = f"{workload.name}: {claim}; measured at most {workload.high:.3f}"
            yield Words(words, "red", "  ")
    yield from _problems(document)
    if same := [row for row in document.workloads if row.verdict == "same-code"]:
        yield Note(_same_words(len(same)), "dim")
    yield from shortened(
        same, SHOWN, lambda row: [Note(f"  {row.name}", "dim", folded=True)], verbose=verbose
    )
    yield from remarks(document.remarks)
    if words := noise_words(document):
        yield Words(words, "dim")
    if head:
        yield Words(summary(document), STYLES.get(document.verdict, "dim"))


def _problems(document: VerifyPerformance) -> Iterator[Block]:
    """List workloads that failed or were not measured, and skipped runtime workloads."""
    for workload in document.workloads:
        if workload.failed is not None:
            words = f"{workload.name}: {failure_mark(workload.failed.kind)}"
            yield Words(f"{words}: {workload.failed.reason}", "red", "  ")
        elif workload.problem is not None:
            action = "measured" if document.cub else "compared"
            yield Words(f"{workload.name}: not {action}: {workload.problem}", "yellow", "  ")
        for reason, count in Counter(point.reason for point in workload.skipped).items():
            skipped = plural(count, "runtime workload")
            yield Words(f"{workload.name}: {skipped} skipped: {reason}", "dim", "  ")


def summary(document: VerifyPerformance) -> str:
    """Summarize the result in one line."""
    workloads = document.workloads
    verdicts = Counter(workload.verdict for workload in workloads)
    counts = {
        "faster": verdicts["faster"],
        "equal": verdicts["equal"],
        "slower": verdicts["slower"],
        "undecided": sum(workload.open for workload in workloads),
        "not running as before": sum(workload.failed is not None for workload in workloads),
        "not measured": sum(workload.problem is not None for workload in workloads),
        "with the same machine code": verdicts["same-code"],
    }
    parts = [f"{count} {words}" for words, count in counts.items() if count]
    text = f"{plural(len(workloads), 'workload')}: {', '.join(parts) or 'none'}"
    rows = sum(row.verdict == "slower" for workload in workloads for row in workload.runtime)
    return f"{text}; {plural(rows, 'runtime workload')} slower" if rows else text


def _between(result: WorkloadPerformance | RuntimePerformance) -> str:
    low, high = result.low, result.high
    return "not known" if low is None or high is None else f"{low:.3f} to {high:.3f}"


def verdict_words(workload: WorkloadPerformance) -> str:
    """State the largest possible difference when neither side is faster."""
    if workload.verdict in {"equal", "undecided"} and workload.within is not None:
        prefix = "" if workload.verdict == "equal" else "undecided: "
        return f"{prefix}within {percent_words(workload.within, 1)}"
    return workload.verdict


def _runtime(
    document: VerifyPerformance, workload: WorkloadPerformance, *, verbose: bool
) -> Iterator[Block]:
    not_good = [row for row in workload.runtime if row.verdict in {"slower", "undecided"}]
    worst = sorted(not_good, key=lambda row: row.ratio)[:WORST]
    shown = [row for row in workload.runtime if verbose or row in worst]
    if not shown:
        return
    yield BLANK
    yield Note(workload.name, "bold", folded=True)
    yield TableRows(shown).table(
        ("us before", "whole", lambda row: f"{row.before_seconds * MICRO:.2f}"),
        ("after", "whole", lambda row: f"{row.after_seconds * MICRO:.2f}"),
        ("ratio", "whole", lambda row: row.ratio),
        ("between", "whole", _between),
        ("noise", "whole", lambda row: "" if row.noise is None else f"{100 * row.noise:.2f} %"),
        ("verdict", "whole", lambda row: row.verdict),
        ("runtime workload", "", lambda row: runtime_name(row.subbench, plain(row.point))),
        look=lambda row: STYLES[row.verdict],
        label=f"runtime workloads of {workload.name}",
    )
    hidden, good_count = len(not_good) - len(worst), len(workload.runtime) - len(not_good)
    if not verbose and (hidden or good_count):
        parts = [f"{hidden:,} more slower or undecided"] if hidden else []
        parts += [f"{good_count:,} faster or equal"] if good_count else []
        yield Note(f"and {', '.join(parts)} (-v)", "dim")
    if document.tolerance is not None and any(map(document.too_slow, workload.runtime)):
        yield Note(f"slower than the allowed {100 * document.tolerance:g} %", "red")


def _entries(document: VerifyPerformance) -> Iterator[Block]:
    yield BLANK
    if not document.entries:
        yield Note("the deciding entries are unknown: nothing was measured, or other files differ")
        return
    yield TableRows(document.entries).table(
        ("ratio", "whole", lambda row: row.ratio),
        ("worst", "whole", lambda row: row.worst_ratio),
        ("faster", "whole", lambda row: str(row.faster)),
        ("slower", "whole", lambda row: str(row.slower)),
        ("of", "whole", lambda row: str(row.workloads)),
        ("entry", "", lambda row: f"{row.entry.header}: {row.entry.name}" if row.entry else NONE),
        look=lambda row: STYLES[row.verdict],
        label="by the entry that decides after the change",
    )


def _same_words(count: int) -> str:
    return f"{plural(count, 'workload')} with the same machine code, equal by construction"


def noise_words(document: VerifyPerformance) -> str:
    """State how much equal code differs from itself; empty if nothing was measured."""
    noise = document.noise
    if noise is None:
        return ""
    subject = "equal code" if document.cub else "a side"
    return (
        f"{subject} compared with itself varies by {percent_words(noise.least)} to"
        f" {percent_words(noise.most)} between processes, median {percent_words(noise.median)};"
        f" all verdicts together hold with {100 * document.confidence:g} % confidence"
    )


def narrowed(plan: Plan | None, path: Path) -> str:
    """State what remains of a plan after its change was measured."""
    if plan is None:
        return "nothing is slower, so there is nothing to narrow"
    written = len(plan.written)
    if not written:
        return f"{path}: nothing faster remains; undo the change with: policygen undo"
    command = f"policygen undo, then policygen apply --plan {shlex.quote(str(path))}"
    return f"{path}: {plural(written, 'workload')} remain. To apply it: {command}"


ROWS = 500
"""Maximum number of rows on a page."""
DRAWN = 12
"""Maximum number of workloads with figures."""
VERDICT_ORDER = ("slower", "undecided", "faster", "equal", "same-code")
LOOKS = {"slower": "warn", "undecided": "warn", "faster": "good"}
MEANING = "The ratio is the time before over the time after: over 1 is faster"


# Performance of a change, as shown in a review


def performance_blocks(document: Review, level: int, rows: int | None) -> Iterator[Block]:
    """Show the measured performance, or nothing if the review has none."""
    performance = document.performance
    if performance is None:
        return
    page, limit = rows is None, rows or ROWS
    yield Heading("Is it faster?", level, "performance" if page else "")
    setup = ", ".join(_setup(performance, performance.gpu, performance.arch)) or "GPU unknown"
    yield Note(f"{setup}; {performance.after}, compared with {performance.before}", "soft")
    yield Note(((f"{summary(performance)}.", "bold"),))
    yield from (Note(text, "warn") for text in _caveats(document, performance))
    measured = sorted(
        (workload for workload in performance.workloads if workload.ratio is not None),
        key=lambda workload: (
            not is_slower(workload),
            VERDICT_ORDER.index(workload.verdict),
            workload.ratio,
            workload.name,
        ),
    )
    if measured:
        noise = noise_words(performance)
        yield Note(f"{MEANING}{noise and f'; {noise}'}.", "soft")
        yield _table(measured[:limit])
        yield from more(len(measured) - limit, "workload")
    yield from _slow_runtime(measured, limit)
    if page:
        yield from _figures(measured, performance.quantiles)
    yield from _unmeasured(performance, limit)
    same = [workload_name(row) for row in performance.workloads if row.verdict == "same-code"]
    if same:
        words, rest = _same_words(len(same)), more(len(same) - ROWS, "workload")
        yield Fold(words, [Listing(same[:ROWS]), *rest]) if page else Note(words)
    yield from (Note(remark, "soft") for remark in performance.remarks[:limit])


def measured_as_merged(entry: ReviewedEntry, document: Review) -> int:
    """Count the workloads of an entry that were measured before and after the change."""
    return sum(is_merged(row, document.merged) for row in entry.reached)


def is_merged(row: Differing, merged: Merged) -> bool:
    """Whether a changed workload is in `merged`; workloads of legacy dispatchers are excluded."""
    return (row.point, row.arch) in merged and not row.legacy


def worst_runtime(workload: WorkloadPerformance) -> RuntimePerformance | None:
    """Return the slowest runtime workload whose verdict is `slower`."""
    slower = (row for row in workload.runtime if row.verdict == "slower")
    return min(slower, key=lambda row: row.ratio, default=None)


def is_slower(workload: WorkloadPerformance) -> bool:
    """Whether the workload or any of its runtime workloads is slower."""
    return workload.verdict == "slower" or worst_runtime(workload) is not None


def workload_name(workload: WorkloadPerformance) -> str:
    """Name a workload as shown on the page."""
    return in_words(short(workload.benchmark), workload.workload)


def performance_anchor(workload: WorkloadPerformance) -> str:
    """Return the anchor of a workload's row on a page."""
    return f"performance/{workload.arch}/{workload_name(workload)}"


def slower_words(workload: WorkloadPerformance) -> str:
    """State how much slower a workload is, and its worst runtime workload."""
    text = f"before over after {ratio_words(workload.ratio)}"
    text += f" ({interval_words(workload.low, workload.high)})"
    worst = worst_runtime(workload)
    if worst is None:
        return text
    location = runtime_name(worst.subbench, plain(worst.point))
    return f"{text}, worst {ratio_words(worst.ratio)} for {location}" if location else text


def claim_words(workload: WorkloadPerformance) -> str:
    """State the claimed speedup of the change and whether it holds."""
    least = f"{ratio_words(workload.claimed)}, at least {ratio_words(workload.least)}"
    return f"{least}: {'holds' if workload.holds else 'does not hold'}"


def _setup(performance: VerifyPerformance, *device: str | None) -> list[str]:
    driver = performance.driver and f"driver {performance.driver}"
    return [part for part in (*device, driver, performance.toolchain) if part]


def _caveats(document: Review, performance: VerifyPerformance) -> Iterator[str]:
    """List what the measurement does not cover of the change under review."""
    if performance.before != document.base:
        pair = f"{performance.before}, and this review compares with {document.base}"
        yield f"It was compared with {pair}; whether the two are the same is unknown."
    if performance.cub is None:
        yield "The measured tree is unknown."
    measured = {(workload.point, workload.arch) for workload in performance.workloads}
    archs = {workload.arch for workload in performance.workloads}
    reached = [row for entry in document.entries for row in entry.reached] + [*document.others]
    expected = {(row.point, row.arch) for row in reached if row.arch in archs and not row.legacy}
    if missing := len(expected - measured):
        workloads = plural(missing, "workload")
        yield f"{workloads} with changed values on {', '.join(sorted(archs))} not measured."


def _table(measured: Sequence[WorkloadPerformance]) -> Table:
    claims = any(workload.claimed is not None for workload in measured)
    return TableRows(measured).table(
        ("workload", "", workload_name),
        ("verdict", "", _verdict),
        ("ratio", "n", lambda workload: ratio_words(workload.ratio)),
        ("between", "n", lambda workload: interval_words(workload.low, workload.high)),
        ("noise", "n", lambda workload: percent_words(workload.noise)),
        ("claim", "", _claim) if claims else None,
        style="speed",
        label="Workloads before and after",
        anchor=performance_anchor,
    )


def _verdict(workload: WorkloadPerformance) -> Styled:
    words, look = verdict_words(workload), LOOKS.get(workload.verdict, "")
    if workload.verdict != "slower" and is_slower(workload):
        count = sum(row.verdict == "slower" for row in workload.runtime)
        words, look = f"{words}; {plural(count, 'runtime workload')} slower", "warn"
    return Styled(words, look)


def _claim(workload: WorkloadPerformance) -> Cell:
    if workload.claimed is None:
        return Styled("none")
    return Styled(claim_words(workload), "" if workload.holds else "warn")


def _slow_runtime(measured: Sequence[WorkloadPerformance], limit: int) -> Iterator[Block]:
    rows_of_workloads = [
        (row, workload)
        for workload in measured
        for row in workload.runtime
        if row.verdict in {"slower", "undecided"}
    ]
    if not rows_of_workloads:
        if any(workload.runtime for workload in measured):
            yield Note("No runtime workload is slower or undecided.")
        return
    rows_of_workloads.sort(key=lambda pair: (VERDICT_ORDER.index(pair[0].verdict), pair[0].ratio))
    yield Note("Runtime workloads that are slower or undecided:")
    yield TableRows(rows_of_workloads[:limit]).table(
        ("runtime workload", "", lambda pair: runtime_name(pair[0].subbench, plain(pair[0].point))),
        ("workload", "", lambda pair: workload_name(pair[1])),
        ("verdict", "", lambda pair: Styled(pair[0].verdict, "warn")),
        ("µs before", "n", lambda pair: _microseconds(pair[0].before_seconds)),
        ("after", "n", lambda pair: _microseconds(pair[0].after_seconds)),
        ("ratio", "n", lambda pair: ratio_words(pair[0].ratio)),
        ("between", "n", lambda pair: interval_words(pair[0].low, pair[0].high)),
        ("noise", "n", lambda pair: percent_words(pair[0].noise)),
        style="speed",
        label="Runtime workloads that are slower or undecided",
    )
    yield from more(len(rows_of_workloads) - limit, "runtime workload")


def _microseconds(seconds: float) -> str:
    microseconds = seconds * MICRO
    return f"{microseconds:,.2f}" if microseconds < MICRO**2 else f"{microseconds:.0e}"


def _figures(measured: Sequence[WorkloadPerformance], levels: Sequence[float]) -> Iterator[Block]:
    drawn = [workload for workload in measured if workload.runtime][:DRAWN]
    if not drawn:
        return
    yield Chapter(
        [charts.ratios(workload_name(workload), workload) for workload in drawn], "figures", {}
    )
    undrawn = sum(bool(workload.runtime) for workload in measured) - len(drawn)
    yield from more(undrawn, "workload", " without figures")
    for workload in drawn:
        if panels := list(charts.quantiles(workload, levels)):
            name = workload_name(workload)
            summary = ((name, "bold"), (": at each quantile of the samples", ""))
            hidden = sum(bool(row.quantiles) for row in workload.runtime) - len(panels)
            notes = [*more(hidden, "runtime workload", " of less weight")]
            yield Fold(summary, [Chapter(panels, "figures small", {}), *notes])


def _unmeasured(performance: VerifyPerformance, limit: int) -> Iterator[Block]:
    """List workloads that failed after the change or could not be measured."""
    problems = []
    for workload in performance.workloads:
        problem = None
        if workload.failed is not None:
            kind = "wrong results" if workload.failed.kind == "wrong" else workload.failed.kind
            problem = f"{kind}: {workload.failed.reason}"
        elif workload.problem is not None:
            problem = f"not measured: {workload.problem}"
        elif workload.ratio is None and workload.open:
            problem = "not measured; the reason is unknown"
        problems += [f"{workload_name(workload)}: {problem}"] if problem else []
    if problems:
        yield Listing(problems[:limit], "warn")
        yield from more(len(problems) - limit, "workload")
