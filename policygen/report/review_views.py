"""Review of a change as JSON, Markdown, a page, and annotations beside its lines."""

from collections.abc import Iterator, Sequence

from policygen.model.arch import arch_number
from policygen.model.edits import changes
from policygen.model.machine_code import VerifySass
from policygen.model.results import PointRatio
from policygen.model.reviews import Evidence, Review, ReviewedEntry
from policygen.model.selection import Differing, Effect
from policygen.model.tuning import asks_more, spell
from policygen.model.verdicts import VerifyPerformance
from policygen.model.workload import axes, in_words, point_of
from policygen.portable import portable
from policygen.report import markdown, pages
from policygen.report.blocks import (
    Block,
    Card,
    Cards,
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
    standing_out,
)
from policygen.report.console import plural, ratio_words, short, tree_line
from policygen.report.performance_views import (
    claim_words,
    is_merged,
    is_slower,
    measured_as_merged,
    performance_blocks,
    runtime_name,
    slower_words,
    summary,
    workload_name,
)
from policygen.report.review_facts import (
    COUNTED,
    EACH,
    NOISE,
    counted,
    entry_anchor,
    evidence_anchor,
    facts,
    measured,
    named,
    not_measured_reason,
    other_anchor,
    runtime_point,
    versions,
)
from policygen.report.value_views import alike
from policygen.untrusted import annotation

COMMENT = 65_536
"""Maximum length of a pull request comment, in characters."""
UNTOUCHED = "No workload gets other values by it: those that it decides keep theirs."
DEFAULT = "It is a default: what gets other values by it, if anything does, is listed below."
UNDECIDED = "No workload that was asked is decided by it."
UNASKED = "Which workloads get other values by it is not known: nobody asked the compiler."
COMPUTED = "No workload gets other values by it alone: it computes them from other returns."


def render(document: Review, form: str) -> str:
    """Render `json`, `md` or `html`; Markdown shortens its lists until it fits into a comment."""
    if form == "json":
        return document.to_json() + "\n"
    document = portable(document)
    if form == "html":
        return pages.render(_page(document, None), "review")
    for rows in (400, 200, 100, 50, 20, 10, 5, 2, 1):
        text = markdown.render(_page(document, rows))
        if len(text) <= COMMENT:
            return text
    notice = "\n\nThe rest does not fit into a comment.\n"
    return text[: COMMENT - len(notice)] + notice


def _page(document: Review, rows: int | None) -> Page:
    """Build a page, or Markdown with lists of at most `rows` rows."""
    headers = plural(len(document.diffs), "header")
    entries = plural(len(document.entries), "tuning entry", "tuning entries")
    compiler = document.toolchain or "not asked"
    tree = tree_line(document.cub)
    facts = {"tree": tree, "compared with": document.base, "compiler": compiler}
    return Page(f"{entries} in {headers}", facts, list(_blocks(document, rows)))


def _blocks(document: Review, rows: int | None) -> Iterator[Block]:
    page, level = rows is None, 2 if rows is None else 3
    yield cards(document)
    if page:
        yield from standing_out(facts(document))
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
        yield Heading("Other values by none of these entries", level)
        cells = [[named(row), row.arch, _changed(row)] for row in document.others]
        columns = ("workload", "arch", "values")
        anchors = [other_anchor(row) for row in document.others]
        yield Table(columns, cells, label="Other values", shown=rows, anchors=anchors)
    if document.actions:
        title = "What was not written, and why"
        yield Heading(title, level)
        cells = [[action.decision, named(action), action.reason] for action in document.actions]
        columns = ("decision" if page else "", "workload", "reason")
        anchors = [f"actions/{named(action)}" for action in document.actions]
        yield Table(columns, cells, label=title, shown=rows, anchors=anchors)
    yield from _proofs(document, level, rows)
    yield from performance_blocks(document, level, rows)
    if page and document.diffs:
        yield Heading("Headers")
    for diff in document.diffs[:rows]:
        yield Diff(diff.path, diff.diff.rstrip("\n").split("\n"), rows and rows * 4)
    if document.commands:
        yield Heading("To see it again", level)
        yield Code(document.commands, "sh")


def _proofs(document: Review, level: int, rows: int | None) -> Iterator[Block]:
    """Show the proofs that the change does what it claims, and nothing else."""
    if document.effect:
        yield Heading("Effect", level)
        yield from _effect(document.effect, rows)
        if document.effect.compared != document.compared:
            yield Note(f"{document.compared:,} are counted above: {COUNTED}", "soft")
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
    yield Heading(badge if page else f"{entry.change}: {name}", 3, entry_anchor(entry))
    variant = " ".join([entry.variant or "", *(f"{score:.3f}" for score in entry.scores or ())])
    comment = f"; {'its comment: ' if page else ''}{variant}" if entry.variant else ""
    yield Note(f"{entry.place.header}:{entry.place.line}{comment}", "soft")
    if values := _values(entry):
        cells = [_before_and_after(before, after) for _, before, after in values]
        columns = [Column(value, "v") for value, _, _ in values]
        yield Table(columns, [cells], "values", f"Values of {name}")
    if entry.asks:
        yield Note(
            (("it was ", ""), (entry.asks[0], "code"), (", and is ", ""), (entry.asks[1], "code"))
        )
    if any(entry.inherits):
        yield Note(_inherits(entry, returns=document.cub.has_returns))
    rows_by_change: dict[tuple[str, str], list[Differing]] = {}
    for row in entry.reached:
        rows_by_change.setdefault((row.arch, _changed(row)), []).append(row)
    for (arch, changed), changed_rows in list(rows_by_change.items())[:rows]:
        yield from _rows_alike(arch, changed, changed_rows, rows)
    if not rows_by_change:
        yield Note(_no_change_words(entry, document) if document.compared else UNASKED)
    for evidence in entry.evidence[:rows]:
        yield from _evidence(evidence, rows)
    if entry.reached and not entry.evidence:
        yield from _without_evidence(entry, document)
    warnings = [
        f"{finding.severity}: {finding.message} ({finding.rule}, line {finding.line})"
        for finding in entry.findings
    ]
    warnings += [f"never selected: {entry.unreachable.reason}"] if entry.unreachable else []
    yield from (Note(text, "warn") if page else Listing([text]) for text in warnings)


def _without_evidence(entry: ReviewedEntry, document: Review) -> Iterator[Block]:
    """State that no database has the entry; workloads measured as merged are shown below."""
    if measured_count := measured_as_merged(entry, document):
        of_all = "" if measured_count == len(entry.reached) else f" of {len(entry.reached)}"
        yield Note(
            f"{plural(measured_count, 'workload')}{of_all} measured before and after, shown below"
        )
    else:
        yield Note(f"Not measured: {not_measured_reason(document)}.", "warn")


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
    """Show what an entry inherits from or, for a computing branch, what it returns."""
    before, after = entry.inherits
    if entry.kind == "branch" and returns:
        verb, texts = "returns ", [text for text in dict.fromkeys((before, after)) if text]
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
    """Show workloads with the same difference together."""
    names = [in_words(short(row.benchmark), row.workload) for row in rows_alike]
    text = f"{changed}, for {', '.join(names[:limit])}"
    if limit is not None:
        hidden = f" and {len(names) - limit} more" if len(names) > limit else ""
        yield Listing([f"on {arch}: {text}{hidden}"])
        return
    yield Note(((arch, "bold"), (f": {text}", "")))
    names_by_values: dict[tuple[tuple[str, str, str], ...], list[str]] = {}
    for row, name in zip(rows_alike, names, strict=True):
        names_by_values.setdefault(tuple(_values(row)), []).append(name)
    blocks: list[Block] = []
    for pairs, group in names_by_values.items():
        if len(names_by_values) > 1:
            blocks.append(Note(f"for {', '.join(group)}:"))
        cells = [[name, was, now if was == now else ((now, "bold"),)] for name, was, now in pairs]
        label = f"Resolved values on {arch} for {', '.join(group)}"
        blocks.append(Table(("value", "before", "after"), cells, "values", label))
    yield Fold(f"all resolved values on {arch}", blocks)


def _changed(row: Differing) -> str:
    return "; ".join(changes(row.before or {}, row.after or {}))


def _evidence(evidence: Evidence, rows: int | None) -> Iterator[Block]:
    interval, worst = evidence.scored.interval, evidence.scored.worst
    workload = in_words(short(evidence.benchmark), evidence.workload)
    kinds = [_kind(ratio) for ratio in evidence.runtime]
    within = f" ({interval.low:.3f} to {interval.high:.3f})" if interval else ""
    counts = f"{kinds.count('win')} faster and {kinds.count('loss')} slower of {len(kinds)}"
    score = f": score {evidence.scored.score:.3f}{within}, {counts}"
    least = f"{worst.ratio:.3f} for {runtime_point(worst)}" if worst else ""
    setup, databases = f"{evidence.gpu}, {versions(evidence)}", ", ".join(evidence.databases)
    rejected = [
        f"{rejected_variant.variant} {rejected_variant.score:.3f}: {rejected_variant.reason}"
        for rejected_variant in evidence.rejected
    ]
    columns = ("runtime workload", Column("base over variant", "n"))
    points = list(zip(evidence.runtime, kinds, strict=True))
    if rows is not None:
        worst_point = ((", worst ", ""), (least, "")) if least else ()
        yield Note(((workload, "bold"), (score, ""), *worst_point, (f"; {setup}, {databases}", "")))
        cells: list[list[Inline]] = [
            [runtime_point(ratio), ((ratio.ratio, ""), (" slower" * (kind == "loss"), ""))]
            for ratio, kind in points
        ]
        yield Table(columns, cells, shown=rows)
        yield from (Listing([f"not taken: {text}"]) for text in rejected[:rows])
        return
    # A bar of 50 % is a ratio of 1.33 or 0.67.
    bars = [
        (
            kind,
            round(min(50, abs(ratio.ratio - 1) * 150), 1),
            f"{runtime_point(ratio)}: {ratio.ratio:.3f}",
        )
        for ratio, kind in points
    ]
    cells_with_bars: list[list[Inline | Styled]] = [
        [runtime_point(ratio), ratio.ratio, Styled(Figure("track", [bar]))]
        for ratio, bar in zip(evidence.runtime, bars, strict=True)
    ]
    label = f"Runtime workloads of {workload}"
    blocks: list[Block] = [Note(f"{least and f'worst {least}; '}{setup}; {databases}", "soft")]
    blocks.append(Table((*columns, "slower, faster"), cells_with_bars, "bars", label))
    blocks += [Note("Not taken:"), Listing(rejected, "soft")] if rejected else []
    summary, figure = ((workload, "bold"), (score, "")), Figure("strip", bars)
    yield Fold(summary, blocks, figure=figure, anchor=evidence_anchor(evidence))


def _kind(ratio: PointRatio) -> str:
    difference = ratio.ratio - 1
    return "same" if abs(difference) <= NOISE else "win" if difference > 0 else "loss"


def _effect(effect: Effect, rows: int | None) -> Iterator[Block]:
    roles = [changed_workload.role for changed_workload in effect.changed]
    counts = {role: roles.count(role) for role in ("written", "shared", "later")}
    changed_counts = ", ".join(f"{count} {role}" for role, count in counts.items() if count)
    yield Note(
        f"{effect.compared:,} compared {EACH}, {len(effect.changed):,} changed"
        f" ({changed_counts or 'none'}), {len(effect.wrong):,} wrong; {effect.covered}"
    )
    if effect.wrong:
        yield Listing(
            [f"{workload.name}: {workload.reason}" for workload in effect.wrong],
            "warn",
            rows,
            loose=True,
        )


def _sass(verification: VerifySass, rows: int | None) -> Iterator[Block]:
    yield Note(f"{verification.toolchain}, compared with {verification.base}", "soft")
    cells: list[list[str | Styled]] = []
    anchors = []
    for group in alike(verification.rows):
        row, archs = group[0], ", ".join(row.arch for row in group)
        counts = [str(n) for n in (row.kernels, row.equal, row.renamed, row.moved)]
        different = Styled(str(row.different), "warn" if row.different else "")
        cells.append([short(row.benchmark), archs, *counts, different])
        anchors.append(f"sass/{short(row.benchmark)}/{archs}")
    titles = ("kernels", "equal", "renamed", "moved", "different")
    numbers = [Column(title, "n") for title in titles]
    columns = (Column("benchmark"), Column("archs"), *numbers)
    yield Table(columns, cells, label="Machine code", shown=rows, anchors=anchors)
    if verification.unmeant:
        kernels = [f"{kernel.where}: {kernel.summary}" for kernel in verification.unmeant]
        yield Listing(kernels, "warn", rows, loose=True)


# Cards at the top of a review


def cards(document: Review) -> Cards:
    """Summarize what changed, why, whether it is proven, and what could get worse."""
    if not document.entries and not document.others and not document.failures:
        return Cards([Card("What changed", "nothing", ["no workload gets other values"])])
    proof_style = "bad" if document.failures else ""
    shown = [
        _answer_card("What changed", *_what_changed(document)),
        _answer_card("Why", *_why_changed(document)),
        _answer_card("Is it proven", *_what_is_proven(document), style=proof_style),
    ]
    if document.performance is not None:
        shown.append(_answer_card("Is it faster", *_faster(document.performance)))
    return Cards([*shown, _answer_card("What could get worse", *_what_could_get_worse(document))])


def _answer_card(title: str, headline: tuple[str, str], rows: list[str], style: str = "") -> Card:
    number, subtitle = headline
    return Card(title, number, rows, subtitle, style)


def _changed_rows(document: Review) -> list[Differing]:
    return [*(row for entry in document.entries for row in entry.reached), *document.others]


def _what_changed(document: Review) -> tuple[tuple[str, str], list[str]]:
    kinds = [entry.change for entry in document.entries]
    counts = {kind: kinds.count(kind) for kind in ("changed", "added", "removed") if kind in kinds}
    entries = "entry" if len(kinds) == 1 else "entries"
    summary = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    words = (
        f"{entries} {summary.partition(' ')[2]}" if len(counts) == 1 else f"{entries}: {summary}"
    )
    head = f"{len(kinds)}", words if counts else entries
    if not document.compared:
        return head, ["which workloads get other values is not known"]
    rows = _changed_rows(document)
    points = plural(len({point_of(row.benchmark, row.workload) for row in rows}), "workload")
    archs = ", ".join(sorted({row.arch for row in rows}, key=arch_number))
    reach = f"{points} with other values on {archs}" if rows else "no workload gets other values"
    return head, [reach, *counted(document, len(rows))]


def _why_changed(document: Review) -> tuple[tuple[str, str], list[str]]:
    evidence = measured(document)
    if not evidence:
        return ("0", "workloads measured"), [not_measured_reason(document)]
    scores = sorted(row.scored.score for row in evidence)
    span = f"{scores[0]:.3f}" if len(scores) == 1 else f"{scores[0]:.3f} to {scores[-1]:.3f}"
    gpus = dict.fromkeys(row.gpu.partition("(")[0].strip() for row in evidence)
    measured_words = f"{plural(len(evidence), 'workload')} measured on {', '.join(gpus)}"
    words = "is the score" if len(scores) == 1 else "are the scores"
    return (span, words), [measured_words, "; ".join(dict.fromkeys(map(versions, evidence)))]


def _what_is_proven(document: Review) -> tuple[tuple[str, str], list[str]]:
    if document.unprovable:
        return ("no", ""), [
            f"not provable: {plural(len(document.unprovable), 'place')} in the headers"
        ]
    if not document.compared:
        return ("no", ""), ["no binding covers what changed"]
    effect, sass = document.effect, document.sass
    if effect is None:
        rows = ["effect: not of a plan; what the compiler selects is below"]
    elif effect.wrong:
        rows = [f"effect: {len(effect.wrong)} wrong"]
    else:
        changed = f"{len(effect.changed):,} of {effect.compared:,}"
        rows = [f"effect: {changed} as planned, all others as before"]
    has_machine_code = document.cub.has_machine_code or sass is not None
    if sass is None:
        rows += ["machine code: not compared"] if has_machine_code else []
    else:
        equal = f"{sass.equal + sass.renamed} of {sass.kernels} kernels equal"
        written = sum(row.as_written for row in sass.rows)
        as_written = f", {written} as written" if written else ""
        rows.append(f"machine code: {equal}{as_written} on {', '.join(sass.archs)}")
    unreachable = sum(entry.unreachable is not None for entry in document.entries)
    never = f"{plural(unreachable, 'entry', 'entries')} never selected"
    rows.append(f"reach: {never if unreachable else 'each entry is selected'}")
    if document.uncovered:
        rows.append(f"not asked: {plural(len(document.uncovered), 'place')} of the change")
    holds = [
        effect is not None and not effect.wrong,
        *([sass is not None and not sass.changed] if has_machine_code else []),
        not unreachable and not document.uncovered,
    ]
    answer = "no" if document.failures else "yes" if all(holds) else "in part"
    return (f"{sum(holds)} of {len(holds)}", f"proofs hold: {answer}"), rows


def _faster(performance: VerifyPerformance) -> tuple[tuple[str, str], list[str]]:
    ratios = sorted(
        workload.ratio for workload in performance.workloads if workload.ratio is not None
    )
    rows = [summary(performance)]
    if performance.gpu:
        rows.append(
            f"on {performance.gpu.partition('(')[0].strip()}, compared with {performance.before}"
        )
    if not ratios:
        same = performance.verdict == "same-code"
        return ("same", "machine code") if same else ("not known", ""), rows
    ends = [ratio_words(ratio) for ratio in dict.fromkeys((ratios[0], ratios[-1]))]
    broken_claims = sum(workload.holds is False for workload in performance.workloads)
    rows += [f"{plural(broken_claims, 'claim')} of the change not kept"] if broken_claims else []
    return (" to ".join(ends), "times as fast as before"), rows


def _worst_as_merged(document: Review) -> tuple[tuple[str, str], list[str]]:
    """Summarize regressions measured for the change as merged."""
    merged = document.merged.values()
    runtimes = [(row, workload) for workload in merged for row in workload.runtime]
    slower = [row.verdict for row, _ in runtimes].count("slower")
    rows = []
    if runtimes:
        row, workload = min(runtimes, key=lambda pair: pair[0].ratio)
        location = f"{runtime_name(workload, row)} of {workload_name(workload)}"
        rows.append(f"worst: {ratio_words(row.ratio)} for {location}")
    if undecided := [row.verdict for row, _ in runtimes].count("undecided"):
        rows.append(f"{plural(undecided, 'runtime workload')} not decided")
    return (f"{slower} of {len(runtimes):,}", "runtime workloads slower"), rows


def _what_could_get_worse(document: Review) -> tuple[tuple[str, str], list[str]]:
    evidence, merged = measured(document), document.merged
    points = [(ratio.ratio, source, ratio) for source in evidence for ratio in source.runtime]
    head: tuple[str, str] = ("not known", "")
    rows: list[str] = []
    if merged:
        head, rows = _worst_as_merged(document)
    elif points:
        slower = sum(ratio < 1 - NOISE for ratio, _, _ in points)
        head = f"{slower} of {len(points):,}", "runtime workloads slower"
        ratio, source, point = min(points, key=lambda item: item[0])
        rows.append(f"worst: {ratio:.3f} for {' '.join(axes(point.point))} of {source.name}")
    measured_points = {row.point for row in evidence}
    reached = {row.point for row in _changed_rows(document) if not is_merged(row, merged)}
    if unmeasured := len(reached - measured_points):
        rows.append(f"{plural(unmeasured, 'workload')} with other values not measured")
    rows = rows or ["nothing was measured"]
    if document.performance is None:
        rows.append("as it is merged: not measured")
    return head, rows


KINDS = {"error": "error", "warning": "warning"}


# Findings of a review as GitHub workflow annotations


def annotations(document: Review) -> str:
    """Write the annotations that GitHub shows beside the changed lines."""
    rows = []
    document = portable(document)
    for entry in document.entries:
        header = entry.place.header
        path = _path(document, header)
        for finding in entry.findings:
            kind = KINDS.get(finding.severity, "notice")
            rows.append(annotation(kind, finding.rule, finding.message, path, finding.line))
        if unreachable := entry.unreachable:
            rows.append(
                annotation("error", "never selected", unreachable.reason, path, unreachable.line)
            )
        if entry.reached and not entry.evidence and not measured_as_merged(entry, document):
            message, line = not_measured_reason(document), entry.place.line
            rows.append(annotation("notice", "not measured", message, path, line))
    unprovable = document.unprovable
    rows += [
        annotation(
            "error",
            unprovable_place.rule,
            unprovable_place.message,
            unprovable_place.path,
            unprovable_place.line,
        )
        for unprovable_place in unprovable
    ]
    wrong = document.effect.wrong if document.effect else ()
    rows += [
        annotation("error", "effect", f"{workload.name}: {workload.reason}") for workload in wrong
    ]
    kernels = document.sass.unmeant if document.sass else ()
    rows += [annotation("error", "SASS", f"{kernel.where}: {kernel.summary}") for kernel in kernels]
    rows += _performance(document)
    return "".join(f"{row}\n" for row in rows)


def _path(document: Review, header: str) -> str:
    return next((diff.path for diff in document.diffs if diff.path.endswith(header)), header)


def _performance(document: Review) -> Iterator[str]:
    """Annotate each workload that got slower or failed, at the line of the changed entry."""
    performance = document.performance
    for workload in performance.workloads if performance else ():
        entry = document.entry_of(workload)
        location = (_path(document, entry.place.header), entry.place.line) if entry else ()
        workload_on_arch = f"{workload.name} on {workload.arch}"
        if workload.failed is not None:
            text = f"{workload_on_arch}: {workload.failed.kind}: {workload.failed.reason}"
            yield annotation("error", "other results", text, *location)
        elif performance and is_slower(workload):
            kind = "error" if performance.slowed(workload) else "warning"
            yield annotation(
                kind, "slower", f"{workload_on_arch}: {slower_words(workload)}", *location
            )
        if workload.holds is False:
            text = (
                f"{workload_on_arch}: {claim_words(workload)}; it is"
                f" {ratio_words(workload.high)} at most"
            )
            yield annotation("error", "less than was claimed", text, *location)
