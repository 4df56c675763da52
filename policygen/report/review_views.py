"""Review of a change as JSON, Markdown, a page, and annotations beside its lines."""

from collections.abc import Callable, Iterator, Sequence

from policygen.errors import noun, plural
from policygen.model.arch import arch_number
from policygen.model.machine_code import VerifySass
from policygen.model.records import grouped
from policygen.model.results import PointRatio
from policygen.model.reviews import UNBOUND, Evidence, Review, ReviewedEntry
from policygen.model.selection import Differing, Effect
from policygen.model.trees import tree_line
from policygen.model.tuning import asks_more, changes, spell
from policygen.model.verdicts import VerifyPerformance
from policygen.model.workload import Point, axes, in_words, plain, point_of, runtime_name
from policygen.report import performance_views, review_facts
from policygen.report.blocks import (
    Block,
    Card,
    Cards,
    Cell,
    Chapter,
    Code,
    Column,
    Diff,
    Figure,
    Filters,
    Fold,
    Heading,
    Inline,
    Listing,
    Note,
    Page,
    Styled,
    Table,
    TableRows,
    standing_out,
)
from policygen.report.console import interval_words, ratio_words, short, span_words
from policygen.report.plan_views import measured_with
from policygen.report.value_views import alike

UNTOUCHED = "It changes no workload: those that it decides keep their values."
DEFAULT = "It is a default; any workloads that it changes are listed below."
UNDECIDED = "It decides no workload that was compiled."
UNASKED = "Which workloads it changes is unknown: the compiler was not queried."
UNANSWERED = "Which workloads it changes is unknown: the changed headers do not compile."
COMPUTED = "It changes no workload by itself: it computes its values from other returns."


def page(document: Review, rows: int | None) -> Page:
    """Build a page, or Markdown with lists of at most `rows` rows."""
    entries = plural(len(document.entries), "tuning entry", "tuning entries")
    facts = {
        "tree": tree_line(document.cub),
        "compared with": document.base,
        "compiler": document.toolchain or "not queried",
    }
    title = f"{entries} in {plural(len(document.diffs), 'header')}"
    return Page(title, facts, list(_blocks(document, rows)))


def _blocks(document: Review, rows: int | None) -> Iterator[Block]:
    page, level = rows is None, 2 if rows is None else 3
    yield cards(document)
    if page:
        yield from standing_out(review_facts.facts(document))
    if document.failures:
        title = "Not to be merged"
        yield Heading(title) if page else Note(((f"{title}:", "bold"),))
        yield Listing(document.failures, "warn", rows)
    yield from (Note(remark, "soft") for remark in document.remarks)
    if page and document.entries:
        yield Heading("Entries")
        yield Filters("any word", _choices(document))
    for entry in document.entries[:rows]:
        yield Chapter(list(_entry(entry, rows, document)), "entry", _facets(entry))
    if rows and len(document.entries) > rows:
        yield Note(f"and {len(document.entries) - rows} more")
    if document.others:
        yield Heading("Workloads that change through none of these entries", level)
        changed = document.others
        cells = [_across([row])[0] for row in changed] if page else _across(changed)
        anchors = [review_facts.other_anchor(row) for row in changed if page]
        columns = ("workload", "arch", "values")
        yield Table(columns, cells, "", "Changed values", rows, anchors=anchors)
    if document.inputs:
        yield Heading("All inputs", level)
        yield TableRows(document.inputs).table(
            ("inputs", "", lambda row: row.text),
            ("measured by", "", lambda row: row.measured_by),
            label="All inputs",
            shown=rows,
        )
    if document.actions:
        title = "What was not written, and why"
        yield Heading(title, level)
        yield TableRows(document.actions).table(
            ("decision" if page else "", "", lambda action: action.decision),
            ("workload", "", review_facts.named),
            ("reason", "", lambda action: action.reason),
            label=title,
            shown=rows,
            anchor=lambda action: f"actions/{review_facts.named(action)}",
        )
    yield from _proofs(document, level, rows)
    yield from performance_views.performance_blocks(document, level, rows)
    if page and document.diffs:
        yield Heading("Headers")
    for diff in document.diffs[:rows]:
        yield Diff(diff.path, diff.diff.rstrip("\n").split("\n"), rows and rows * 4)
    if document.commands:
        yield Heading("To reproduce", level)
        yield Code(document.commands, "sh")
    if rows is not None:
        yield from _pull_request(document)


# What CCCL's reviewers ask for in a pull request with tunings

_NVBENCH = {"faster": "FAST", "slower": "SLOW", "equal": "SAME", "undecided": "AMBG"}
VERDICTS = {verdict: f"{verdict} ({nvbench})" for verdict, nvbench in _NVBENCH.items()}
"""With the words of `nvbench-compare-robust`; machine code that is the same is not measured."""


def _pull_request(document: Review, rows: int = 10) -> Iterator[Block]:
    """Show before and after of each changed workload, what else it reaches, and the evidence."""
    yield Heading("For the pull request", 3)
    ratios = _speedups(document)
    reached = [row for row in _changed_rows(document) if not row.legacy]
    changed = _across(reached, lambda row: ratios.get((row.point, row.arch), ("", "not measured")))
    columns = ("workload", "arch", "before → after", Column("speedup", "n"), "verdict")
    if changed:
        yield Table(columns, changed[:rows])
    if rest := changed[rows:]:
        yield Fold(plural(len(rest), "more row"), [Table(columns, rest)])
    own = {entry.arch for entry in document.entries}
    others = sorted({row.arch for row in reached} - own, key=arch_number)
    facts = [f"Other architectures with changed workloads: {', '.join(others) or 'none'}"]
    compared = _machine_code(document) or ["machine code: not compared; policygen verify-sass does"]
    facts += [fact.replace("m", "M", 1) for fact in compared]
    digests = zip(document.databases, document.digests, strict=False)  # older reviews have none
    facts += [f"{name}: sha256 {digest}" for name, digest in digests if digest]
    yield Listing(facts)


def _speedups(document: Review) -> dict[tuple[Point, str], tuple[str, str]]:
    """Return ratios with their intervals, and verdicts in our words and NVBench's.

    What was measured of the merged change comes before what a search has of the variant.
    """
    speedups: dict[tuple[Point, str], tuple[str, str]] = {}
    for entry in document.entries:
        scored_by_point = {row.point: row.scored for row in reversed(entry.evidence)}
        for row in entry.reached:
            if not row.legacy and (scored := scored_by_point.get(row.point)):
                span = f" ({span_words(scored.interval)})" if scored.interval else ""
                words = f"{scored.score:.3f}{span}", "as searched, not as merged"
                speedups.setdefault((row.point, row.arch), words)
    for key, measured in document.merged.items():
        ratio = f"{ratio_words(measured.ratio)} ({interval_words(measured.low, measured.high)})"
        speedups[key] = ratio, VERDICTS.get(measured.verdict, measured.verdict)
    return speedups


def _proofs(document: Review, level: int, rows: int | None) -> Iterator[Block]:
    """Show the proofs that the change does what it claims, and nothing else."""
    if document.effect:
        yield Heading("Effect", level)
        yield from _effect(document.effect, rows)
        if document.effect.compared != document.compared:
            yield Note(f"{document.compared:,} are counted above: {review_facts.COUNTED}", "soft")
    if document.sass:
        yield Heading("Machine code", level)
        yield from _sass(document.sass, rows)


def _facets(*entries: ReviewedEntry) -> dict[str, list[str]]:
    rows = [row for entry in entries for row in entry.reached]
    return {
        "algorithms": sorted({short(row.benchmark) for row in rows}),
        "types": sorted({value for row in rows for value in row.workload.values()}),
        "archs": [*(entry.arch for entry in entries), *(row.arch for row in rows)],
    }


def _choices(document: Review) -> dict[str, tuple[str, Sequence[str]]]:
    facets = {**_facets(*document.entries), "archs": document.archs}
    titles = ("Algorithm", "Type", "Arch")
    return {name: (title, facets[name]) for name, title in zip(facets, titles, strict=True)}


def _entry(entry: ReviewedEntry, rows: int | None, document: Review) -> Iterator[Block]:
    page, name = rows is None, entry.place.name
    badge: Inline = ((entry.change, f"badge {entry.change}"), (" ", ""), (name, "code"))
    yield Heading(badge if page else f"{entry.change}: {name}", 3, review_facts.entry_anchor(entry))
    variant = " ".join([entry.variant or "", *(f"{score:.3f}" for score in entry.scores or ())])
    comment = f"; {'its comment: ' if page else ''}{variant}" if entry.variant else ""
    yield Note(f"{entry.place.where}{comment}", "soft")
    if values := _values(entry):
        cells = [_before_and_after(before, after) for _, before, after in values]
        columns = [Column(value, "v") for value, _, _ in values]
        yield Table(columns, [cells], "values", f"Values of {name}")
    if entry.asks:
        before, after = entry.asks
        yield Note((("it was ", ""), (before, "code"), (", and is ", ""), (after, "code")))
    if any(entry.inherits):
        yield Note(_inherits(entry, returns=document.cub.has_returns))
    rows_by_change = grouped(entry.reached, lambda row: (row.arch, _changed(row)))
    for (arch, changed), changed_rows in list(rows_by_change.items())[:rows]:
        yield from _rows_alike(arch, changed, changed_rows, rows)
    if not rows_by_change:
        unknown = UNANSWERED if document.toolchain else UNASKED
        yield Note(_no_change_words(entry, document) if document.compared else unknown)
    for evidence in entry.evidence[:rows]:
        yield from _evidence(evidence, rows)
    if entry.reached and not entry.evidence:
        yield _without_evidence(entry, document)
    warnings = [
        f"{finding.severity}: {finding.message} ({finding.rule}, line {finding.line})"
        for finding in entry.findings
    ]
    warnings += [f"never selected: {entry.unreachable.reason}"] if entry.unreachable else []
    warnings += [leak] if (leak := document.leak_of(entry)) else []
    yield from (Note(text, "warn") if page else Listing([text]) for text in warnings)


def _without_evidence(entry: ReviewedEntry, document: Review) -> Block:
    """State that no database has the entry; workloads measured as merged are shown below."""
    count = performance_views.measured_as_merged(entry, document)
    if not count:
        return Note(f"Not measured: {review_facts.not_measured_reason(document)}.", "warn")
    of_all = "" if count == len(entry.reached) else f" of {len(entry.reached)}"
    return Note(f"{plural(count, 'workload')}{of_all} measured before and after, shown below")


def _no_change_words(entry: ReviewedEntry, document: Review) -> str:
    if entry.kind == "branch" and any(entry.inherits) and document.cub.has_returns:
        return COMPUTED
    if entry.kind == "branch" and not asks_more(entry.place.args):
        return DEFAULT
    return UNTOUCHED if entry.decides else UNDECIDED


def _before_and_after(before: str, after: str) -> Inline:
    if before == after:
        return after
    return (before or "·", ""), (" → ", ""), (after or "·", "bold")


def _inherits(entry: ReviewedEntry, *, returns: bool) -> Inline:
    """State what an entry inherits from or, for a computing branch, what it returns."""
    before, after = entry.inherits
    if entry.kind == "branch" and returns:
        verb, texts = "returns ", [text for text in dict.fromkeys((before, after)) if text]
    elif before and entry.after and not after:
        keeps = f": {entry.arch} keeps its values through this entry" * (not entry.reached)
        has_own = f", and now has values of its own{keeps}"
        return (("inherited ", ""), (before, "mono"), (has_own, ""))
    else:
        verb, texts = "inherits ", list(dict.fromkeys(text or "nothing" for text in entry.inherits))
    rest = [piece for text in texts[1:] for piece in ((" → ", ""), (text, "mono"))]
    return ((verb, ""), (texts[0], "mono"), *rest)


def _values(entry: ReviewedEntry | Differing) -> list[tuple[str, str, str]]:
    """Pair the values before and after, including unchanged ones."""
    old, new = (
        {name: spell(value) for name, value in (side or {}).items()}
        for side in (entry.before, entry.after)
    )
    return [(name, old.get(name, ""), new.get(name, "")) for name in {**old, **new}]


def _rows_alike(
    arch: str, changed: str, rows_alike: Sequence[Differing], limit: int | None
) -> Iterator[Block]:
    names = [in_words(short(row.benchmark), row.workload) for row in rows_alike]
    text = f"{changed}, for {', '.join(names[:limit])}"
    if limit is not None:
        hidden = f" and {len(names) - limit} more" if len(names) > limit else ""
        yield Listing([f"on {arch}: {text}{hidden}"])
        return
    yield Note(((arch, "bold"), (f": {text}", "")))
    rows_by_values = grouped(
        zip(rows_alike, names, strict=True), lambda pair: tuple(_values(pair[0]))
    )
    blocks: list[Block] = []
    for pairs, group in rows_by_values.items():
        workloads = ", ".join(name for _, name in group)
        if len(rows_by_values) > 1:
            blocks.append(Note(f"for {workloads}:"))
        cells = [[name, was, now if was == now else ((now, "bold"),)] for name, was, now in pairs]
        label = f"Resolved values on {arch} for {workloads}"
        blocks.append(Table(("value", "before", "after"), cells, "values", label))
    yield Fold(f"all resolved values on {arch}", blocks)


def _across(
    rows: Sequence[Differing], more: Callable[[Differing], tuple[str, ...]] = lambda _: ()
) -> list[tuple[str, ...]]:
    """Return cells of changed workloads: one row for all architectures where they are alike."""
    alike_rows = grouped(rows, lambda row: (review_facts.named(row), _changed(row), *more(row)))
    joined = ((key, ", ".join(row.arch for row in group)) for key, group in alike_rows.items())
    return [(name, archs, *cells) for (name, *cells), archs in joined]


def _changed(row: Differing) -> str:
    return "; ".join(changes(row.before or {}, row.after or {}))


def _evidence(evidence: Evidence, rows: int | None) -> Iterator[Block]:
    scored, worst = evidence.scored, evidence.scored.worst
    workload = in_words(short(evidence.benchmark), evidence.workload)
    kinds = [_kind(ratio) for ratio in evidence.runtime]
    within = f" ({span_words(scored.interval)})" if scored.interval else ""
    counts = f"{kinds.count('win')} faster and {kinds.count('loss')} slower of {len(kinds)}"
    score = f": score {scored.score:.3f}{within}, {counts}"
    least = f"{worst.ratio:.3f} for {runtime_name(worst.subbench, worst.point)}" if worst else ""
    setup = f"{evidence.gpu}, {measured_with(evidence.ctk, evidence.cccl)}"
    databases = ", ".join(evidence.databases)
    rejected = [f"{row.variant} {row.score:.3f}: {row.reason}" for row in evidence.rejected]
    points = TableRows(evidence.runtime)
    if rows is not None:
        worst_point = ((", worst ", ""), (least, "")) if least else ()
        yield Note(((workload, "bold"), (score, ""), *worst_point, (f"; {setup}, {databases}", "")))
        yield points.table(
            ("runtime workload", "", lambda row: runtime_name(row.subbench, row.point)),
            ("base over variant", "n", _ratio_cell),
            shown=rows,
        )
        yield from (Listing([f"rejected: {text}"]) for text in rejected[:rows])
        return
    table = points.table(
        ("runtime workload", "", lambda row: runtime_name(row.subbench, row.point)),
        ("base over variant", "n", lambda ratio: ratio.ratio),
        ("slower, faster", "", lambda ratio: Styled(Figure("track", [_bar(ratio)]))),
        style="bars",
        label=f"Runtime workloads of {workload}",
    )
    blocks: list[Block] = [
        Note(f"{least and f'worst {least}; '}{setup}; {databases}", "soft"),
        table,
    ]
    blocks += [Note("Rejected:"), Listing(rejected, "soft")] if rejected else []
    figure = Figure("strip", [_bar(ratio) for ratio in evidence.runtime])
    summary = ((workload, "bold"), (score, ""))
    yield Fold(summary, blocks, figure=figure, anchor=review_facts.evidence_anchor(evidence))


def _ratio_cell(row: PointRatio) -> Cell:
    return ((row.ratio, ""), (" slower" * (_kind(row) == "loss"), ""))


def _bar(ratio: PointRatio) -> tuple[str, float, str]:
    """Draw a ratio of 1.33 or 0.67 as 50 %."""
    percent = round(min(50, abs(ratio.ratio - 1) * 150), 1)
    return _kind(ratio), percent, f"{runtime_name(ratio.subbench, ratio.point)}: {ratio.ratio:.3f}"


def _kind(ratio: PointRatio) -> str:
    difference = ratio.ratio - 1
    return "same" if abs(difference) <= review_facts.NOISE else "win" if difference > 0 else "loss"


def _effect(effect: Effect, rows: int | None) -> Iterator[Block]:
    roles = [workload.role for workload in effect.changed]
    names = ("written", "shared", "later")
    counts = ", ".join(f"{roles.count(role)} {role}" for role in names if role in roles)
    yield Note(
        f"{effect.compared:,} compared {review_facts.EACH}, {len(roles):,} changed"
        f" ({counts or 'none'}), {len(effect.wrong):,} wrong; {effect.covered}"
    )
    if effect.wrong:
        wrong = [f"{workload.name}: {workload.reason}" for workload in effect.wrong]
        yield Listing(wrong, "warn", rows, loose=True)


def _sass(verification: VerifySass, rows: int | None) -> Iterator[Block]:
    yield Note(f"{verification.toolchain}, compared with {verification.base}", "soft")
    groups = [
        (rows_alike[0], ", ".join(row.arch for row in rows_alike))
        for rows_alike in alike(verification.rows)
    ]
    if not groups:
        yield Note(verification.summary)
        return
    yield TableRows(groups).table(
        ("benchmark", "", lambda group: short(group[0].benchmark)),
        ("archs", "", lambda group: group[1]),
        ("kernels", "n", lambda group: str(group[0].kernels)),
        ("equal", "n", lambda group: str(group[0].equal)),
        ("renamed", "n", lambda group: str(group[0].renamed)),
        ("moved", "n", lambda group: str(group[0].moved)),
        ("different", "n", lambda group: Styled(str(n := group[0].different), "warn" if n else "")),
        label="Machine code",
        shown=rows,
        anchor=lambda group: f"sass/{short(group[0].benchmark)}/{group[1]}",
    )
    if verification.unmeant:
        kernels = [f"{kernel.where}: {kernel.summary}" for kernel in verification.unmeant]
        yield Listing(kernels, "warn", rows, loose=True)


Answer = tuple[tuple[str, str], list[str]]
"""Number and subtitle of a card, and its lines."""


# Cards at the top of a review


def cards(document: Review) -> Cards:
    """Summarize what changed, why, whether it is proven, and what could get worse."""
    if not document.entries and not document.others and not document.failures:
        rows = ["no workload changes", *_machine_code(document)]
        return Cards([Card("What changed", "nothing", rows)])
    answers = {
        "What changed": _what_changed(document),
        "Why": _why_changed(document),
        "Is it proven": _what_is_proven(document),
    }
    if document.performance is not None:
        answers["Is it faster"] = _faster(document.performance)
    answers["What could get worse"] = _what_could_get_worse(document)
    bad = "Is it proven" if document.failures else ""
    return Cards(
        [
            Card(title, number, rows, subtitle, "bad" if title == bad else "")
            for title, ((number, subtitle), rows) in answers.items()
        ]
    )


def _changed_rows(document: Review) -> list[Differing]:
    return [*(row for entry in document.entries for row in entry.reached), *document.others]


def _what_changed(document: Review) -> Answer:
    kinds = [entry.change for entry in document.entries]
    words = noun(len(kinds), "entry", "entries")
    present = [kind for kind in ("changed", "added", "removed") if kind in kinds]
    if len(present) == 1:
        words += f" {present[0]}"
    elif present:
        words += f": {', '.join(f'{kinds.count(kind)} {kind}' for kind in present)}"
    head = f"{len(kinds)}", words
    if not document.compared:
        return head, ["which workloads change is unknown"]
    rows = _changed_rows(document)
    inputs = []
    if count := len(document.inputs):
        inputs.append(f"{plural(count, 'condition')} of {document.inputs_compared:,} other inputs")
    points = plural(len({point_of(row.benchmark, row.workload) for row in rows}), "workload")
    archs = ", ".join(sorted({row.arch for row in rows}, key=arch_number))
    reach = f"{points} changed on {archs}" if rows else "no workload changes"
    if unjudged := len(document.unjudged):
        reach = reach if rows else "no compiled workload changes"
        places = plural(unjudged, "place")
        inputs.append(f"{places} not judged")
    return head, [reach, *review_facts.counted(document, len(rows)), *inputs]


def _why_changed(document: Review) -> Answer:
    evidence = review_facts.measured(document)
    if not evidence:
        return ("0", "workloads measured"), [review_facts.not_measured_reason(document)]
    scores = sorted(row.scored.score for row in evidence)
    span = f"{scores[0]:.3f}" if len(scores) == 1 else f"{scores[0]:.3f} to {scores[-1]:.3f}"
    gpus = dict.fromkeys(row.gpu.partition("(")[0].strip() for row in evidence)
    measured_words = f"{plural(len(evidence), 'workload')} measured on {', '.join(gpus)}"
    versions = dict.fromkeys(measured_with(row.ctk, row.cccl) for row in evidence)
    words = noun(len(scores), "is the score", "are the scores")
    return (span, words), [measured_words, "; ".join(versions)]


def _what_is_proven(document: Review) -> Answer:
    if document.unprovable:
        places = plural(len(document.unprovable), "place")
        return ("no", ""), [f"not provable: {places} in the headers", *_machine_code(document)]
    if not document.compared:
        return ("no", ""), [*_reasons_not_compared(document), *_machine_code(document)]
    effect, sass = document.effect, document.sass
    if effect is None:
        rows = ["effect: not part of a plan; see below what the compiler selects"]
    elif effect.wrong:
        rows = [f"effect: {len(effect.wrong)} wrong"]
    else:
        changed = f"{len(effect.changed):,} of {effect.compared:,}"
        rows = [f"effect: {changed} as planned, all others as before"]
    has_machine_code = document.cub.has_machine_code or sass is not None
    if sass is None and has_machine_code:
        rows.append("machine code: not compared")
    rows += _machine_code(document)
    unreachable = sum(entry.unreachable is not None for entry in document.entries)
    never = f"{plural(unreachable, 'entry', 'entries')} never selected"
    rows.append(f"reach: {never if unreachable else 'each entry is selected'}")
    if document.unjudged:
        rows.append(f"not judged: {plural(len(document.unjudged), 'place')} of the change")
    holds = [
        effect is not None and not effect.wrong,
        *([sass is not None and not sass.changed] if has_machine_code else []),
        not unreachable and not document.unjudged,
    ]
    answer = "no" if document.failures else "yes" if all(holds) else "in part"
    return (f"{sum(holds)} of {len(holds)}", f"proofs hold: {answer}"), rows


def _reasons_not_compared(document: Review) -> list[str]:
    """Explain why no values were compared, each reason with its place."""
    unanswered = [place.where for place in document.uncovered if place.what != UNBOUND]
    if unanswered:
        return unanswered
    return ["no binding covers what changed" if document.uncovered else "no values were compared"]


def _machine_code(document: Review) -> list[str]:
    """Summarize the comparison of machine code, if there is one."""
    sass = document.sass
    if sass is None:
        return []
    if not sass.kernels:
        return [f"machine code: {sass.summary.partition(': ')[2]}"]
    equal = f"{sass.equal + sass.renamed} of {sass.kernels} kernels equal"
    written = sum(row.as_written for row in sass.rows)
    as_written = f", {written} as written" if written else ""
    return [f"machine code: {equal}{as_written} on {', '.join(sass.archs)}"]


def _faster(performance: VerifyPerformance) -> Answer:
    workloads = performance.workloads
    ratios = sorted(workload.ratio for workload in workloads if workload.ratio is not None)
    rows = [performance_views.summary(performance)]
    if performance.gpu:
        gpu = performance.gpu.partition("(")[0].strip()
        rows.append(f"on {gpu}, compared with {performance.before}")
    if not ratios:
        same = performance.verdict == "same-code"
        return ("same", "machine code") if same else ("not known", ""), rows
    ends = [ratio_words(ratio) for ratio in dict.fromkeys((ratios[0], ratios[-1]))]
    broken_claims = sum(workload.holds is False for workload in workloads)
    rows += [f"{plural(broken_claims, 'claim')} of the change not met"] if broken_claims else []
    return (" to ".join(ends), "times as fast as before"), rows


def _worst_as_merged(document: Review) -> Answer:
    merged = document.merged.values()
    runtimes = [(row, workload) for workload in merged for row in workload.runtime]
    slower = [row.verdict for row, _ in runtimes].count("slower")
    rows = []
    if runtimes:
        row, workload = min(runtimes, key=lambda pair: pair[0].ratio)
        name = runtime_name(row.subbench, plain(row.point))
        location = f"{name} of {performance_views.workload_name(workload)}"
        rows.append(f"worst: {ratio_words(row.ratio)} for {location}")
    if undecided := [row.verdict for row, _ in runtimes].count("undecided"):
        rows.append(f"{plural(undecided, 'runtime workload')} undecided")
    return (f"{slower} of {len(runtimes):,}", "runtime workloads slower"), rows


def _what_could_get_worse(document: Review) -> Answer:
    evidence, merged = review_facts.measured(document), document.merged
    points = [(ratio.ratio, source, ratio) for source in evidence for ratio in source.runtime]
    head: tuple[str, str] = ("not known", "")
    rows: list[str] = []
    if merged:
        head, rows = _worst_as_merged(document)
    elif points:
        slower = sum(ratio < 1 - review_facts.NOISE for ratio, _, _ in points)
        head = f"{slower} of {len(points):,}", "runtime workloads slower"
        ratio, source, point = min(points, key=lambda item: item[0])
        rows.append(f"worst: {ratio:.3f} for {' '.join(axes(point.point))} of {source.name}")
    measured_points = {row.point for row in evidence}
    reached = {
        row.point for row in _changed_rows(document) if not performance_views.is_merged(row, merged)
    }
    if unmeasured := len(reached - measured_points):
        rows.append(f"{plural(unmeasured, 'workload')} changed but not measured")
    rows = rows or ["nothing was measured"]
    if document.performance is None:
        rows.append("as merged: not measured")
    return head, rows
