"""What a change means: as JSON, Markdown, a page, and annotations beside its lines."""

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
    other_anchor,
    runtime_point,
    unfound,
    versions,
)
from policygen.report.value_views import alike
from policygen.untrusted import annotation

COMMENT = 65_536
"""Characters that a comment of a pull request holds."""
UNTOUCHED = "No workload gets other values by it: those that it decides keep theirs."
DEFAULT = "It is a default: what gets other values by it, if anything does, is listed below."
UNDECIDED = "No workload that was asked is decided by it."
UNASKED = "Which workloads get other values by it is not known: nobody asked the compiler."
COMPUTED = "No workload gets other values by it alone: it computes them from other returns."


def render(document: Review, form: str) -> str:
    """Write `json`, `md` or `html`; Markdown as long as it may be, the longest lists cut first."""
    if form == "json":
        return document.to_json() + "\n"
    document = portable(document)
    if form == "html":
        return pages.render(_page(document, None), "review")
    for rows in (400, 200, 100, 50, 20, 10, 5, 2, 1):
        text = markdown.render(_page(document, rows))
        if len(text) <= COMMENT:
            return text
    told = "\n\nThe rest does not fit into a comment.\n"
    return text[: COMMENT - len(told)] + told


def _page(document: Review, rows: int | None) -> Page:
    """Make a page, or Markdown with lists of so many rows."""
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
    for one in document.entries[:rows]:
        yield Chapter(list(_entry(one, rows, document)), "entry", _facets(one))
    if rows and len(document.entries) > rows:
        yield Note(f"and {len(document.entries) - rows} more")
    if document.others:
        yield Heading("Other values by none of these entries", level)
        found = [[named(one), one.arch, _changed(one)] for one in document.others]
        columns = ("workload", "arch", "values")
        anchors = [other_anchor(one) for one in document.others]
        yield Table(columns, found, label="Other values", shown=rows, anchors=anchors)
    if document.actions:
        title = "What was not written, and why"
        yield Heading(title, level)
        found = [[one.decision, named(one), one.reason] for one in document.actions]
        columns = ("decision" if page else "", "workload", "reason")
        anchors = [f"actions/{named(one)}" for one in document.actions]
        yield Table(columns, found, label=title, shown=rows, anchors=anchors)
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
    """Show what proves that the change does what it says, and nothing else."""
    if document.effect:
        yield Heading("Effect", level)
        yield from _effect(document.effect, rows)
        if document.effect.compared != document.compared:
            yield Note(f"{document.compared:,} are counted above: {COUNTED}", "soft")
    if document.sass:
        yield Heading("Machine code", level)
        yield from _sass(document.sass, rows)


def _facets(*entries: ReviewedEntry) -> dict[str, list[str]]:
    rows = [row for one in entries for row in one.reached]
    return {
        "algorithms": sorted({short(row.benchmark) for row in rows}),
        "types": sorted({value for row in rows for value in row.workload.values()}),
        "archs": [*(one.arch for one in entries), *(row.arch for row in rows)],
    }


def _choices(document: Review) -> dict[str, tuple[str, Sequence[str]]]:
    facets = {**_facets(*document.entries), "archs": document.archs}
    titles = ("Algorithm", "Type", "Arch")
    return {name: (title, facets[name]) for name, title in zip(facets, titles, strict=True)}


def _entry(one: ReviewedEntry, rows: int | None, document: Review) -> Iterator[Block]:
    page, name = rows is None, one.place.name
    badge: Inline = ((one.change, f"badge {one.change}"), (" ", ""), (name, "code"))
    yield Heading(badge if page else f"{one.change}: {name}", 3, entry_anchor(one))
    variant = " ".join([one.variant or "", *(f"{score:.3f}" for score in one.scores or ())])
    comment = f"; {'its comment: ' if page else ''}{variant}" if one.variant else ""
    yield Note(f"{one.place.header}:{one.place.line}{comment}", "soft")
    if values := _pairs(one):
        cells = [_turned(before, after) for _, before, after in values]
        columns = [Column(value, "v") for value, _, _ in values]
        yield Table(columns, [cells], "values", f"Values of {name}")
    if one.asks:
        yield Note(
            (("it was ", ""), (one.asks[0], "code"), (", and is ", ""), (one.asks[1], "code"))
        )
    if any(one.inherits):
        yield Note(_takes(one, returns=document.cub.has_returns))
    lots: dict[tuple[str, str], list[Differing]] = {}
    for row in one.reached:
        lots.setdefault((row.arch, _changed(row)), []).append(row)
    for (arch, changed), lot in list(lots.items())[:rows]:
        yield from _lot(arch, changed, lot, rows)
    if not lots:
        yield Note(_untouched(one, document) if document.compared else UNASKED)
    for found in one.evidence[:rows]:
        yield from _evidence(found, rows)
    if one.reached and not one.evidence:
        yield from _unevidenced(one, document)
    told = [f"{f.severity}: {f.message} ({f.rule}, line {f.line})" for f in one.findings]
    told += [f"never selected: {one.unreachable.reason}"] if one.unreachable else []
    yield from (Note(text, "warn") if page else Listing([text]) for text in told)


def _unevidenced(one: ReviewedEntry, document: Review) -> Iterator[Block]:
    """Tell that no database has it; what was measured as it is merged is shown below."""
    if known := measured_as_merged(one, document):
        left = "" if known == len(one.reached) else f" of {len(one.reached)}"
        yield Note(f"{plural(known, 'workload')}{left} measured before and after, shown below")
    else:
        yield Note(f"Not measured: {unfound(document)}.", "warn")


def _untouched(one: ReviewedEntry, document: Review) -> str:
    if one.kind == "branch" and any(one.inherits) and document.cub.has_returns:
        return COMPUTED
    if one.kind == "branch" and not asks_more(one.place.args):
        return DEFAULT
    return UNTOUCHED if one.decides else UNDECIDED


def _turned(before: str, after: str) -> Inline:
    if before == after:
        return after
    return (before or "·", ""), (" → ", ""), (after or "·", "bold")


def _takes(one: ReviewedEntry, *, returns: bool) -> Inline:
    """Tell what it says besides values: the entry that it inherits from, or what it computes."""
    first, last = one.inherits
    if one.kind == "branch" and returns:
        word, texts = "returns ", [text for text in dict.fromkeys((first, last)) if text]
    else:
        word, texts = "inherits ", list(dict.fromkeys(text or "nothing" for text in one.inherits))
    behind = [piece for text in texts[1:] for piece in ((" → ", ""), (text, "mono"))]
    return ((word, ""), (texts[0], "mono"), *behind)


def _pairs(one: ReviewedEntry | Differing) -> list[tuple[str, str, str]]:
    """Set values beside each other, also those that stay."""
    old, new = ({n: spell(v) for n, v in (side or {}).items()} for side in (one.before, one.after))
    return [(name, old.get(name, ""), new.get(name, "")) for name in {**old, **new}]


def _lot(arch: str, changed: str, lot: Sequence[Differing], rows: int | None) -> Iterator[Block]:
    """Show workloads with the same difference together."""
    names = [in_words(short(row.benchmark), row.workload) for row in lot]
    told = f"{changed}, for {', '.join(names[:rows])}"
    if rows is not None:
        more = f" and {len(names) - rows} more" if len(names) > rows else ""
        yield Listing([f"on {arch}: {told}{more}"])
        return
    yield Note(((arch, "bold"), (f": {told}", "")))
    alike: dict[tuple[tuple[str, str, str], ...], list[str]] = {}
    for row, name in zip(lot, names, strict=True):
        alike.setdefault(tuple(_pairs(row)), []).append(name)
    blocks: list[Block] = []
    for pairs, own in alike.items():
        if len(alike) > 1:
            blocks.append(Note(f"for {', '.join(own)}:"))
        whole = [[n, was, now if was == now else ((now, "bold"),)] for n, was, now in pairs]
        label = f"Resolved values on {arch} for {', '.join(own)}"
        blocks.append(Table(("value", "before", "after"), whole, "values", label))
    yield Fold(f"all resolved values on {arch}", blocks)


def _changed(row: Differing) -> str:
    return "; ".join(changes(row.before or {}, row.after or {}))


def _evidence(one: Evidence, rows: int | None) -> Iterator[Block]:
    interval, worst = one.scored.interval, one.scored.worst
    workload = in_words(short(one.benchmark), one.workload)
    kinds = [_kind(ratio) for ratio in one.runtime]
    within = f" ({interval.low:.3f} to {interval.high:.3f})" if interval else ""
    counts = f"{kinds.count('win')} faster and {kinds.count('loss')} slower of {len(kinds)}"
    score = f": score {one.scored.score:.3f}{within}, {counts}"
    least = f"{worst.ratio:.3f} for {runtime_point(worst)}" if worst else ""
    where, databases = f"{one.gpu}, {versions(one)}", ", ".join(one.databases)
    rejected = [f"{v.variant} {v.score:.3f}: {v.reason}" for v in one.rejected]
    columns = ("runtime workload", Column("base over variant", "n"))
    points = list(zip(one.runtime, kinds, strict=True))
    if rows is not None:
        worse = ((", worst ", ""), (least, "")) if least else ()
        yield Note(((workload, "bold"), (score, ""), *worse, (f"; {where}, {databases}", "")))
        told: list[list[Inline]] = [
            [runtime_point(ratio), ((ratio.ratio, ""), (" slower" * (kind == "loss"), ""))]
            for ratio, kind in points
        ]
        yield Table(columns, told, shown=rows)
        yield from (Listing([f"not taken: {text}"]) for text in rejected[:rows])
        return
    # A bar of 50 % is a third faster, or slower.
    bars = [
        (
            kind,
            round(min(50, abs(ratio.ratio - 1) * 150), 1),
            f"{runtime_point(ratio)}: {ratio.ratio:.3f}",
        )
        for ratio, kind in points
    ]
    drawn: list[list[Inline | Styled]] = [
        [runtime_point(ratio), ratio.ratio, Styled(Figure("track", [bar]))]
        for ratio, bar in zip(one.runtime, bars, strict=True)
    ]
    label = f"Runtime workloads of {workload}"
    blocks: list[Block] = [Note(f"{least and f'worst {least}; '}{where}; {databases}", "soft")]
    blocks.append(Table((*columns, "slower, faster"), drawn, "bars", label))
    blocks += [Note("Not taken:"), Listing(rejected, "soft")] if rejected else []
    summary, figure = ((workload, "bold"), (score, "")), Figure("strip", bars)
    yield Fold(summary, blocks, figure=figure, anchor=evidence_anchor(one))


def _kind(ratio: PointRatio) -> str:
    away = ratio.ratio - 1
    return "same" if abs(away) <= NOISE else "win" if away > 0 else "loss"


def _effect(one: Effect, rows: int | None) -> Iterator[Block]:
    roles = [changed.role for changed in one.changed]
    counts = {role: roles.count(role) for role in ("written", "shared", "later")}
    told = ", ".join(f"{count} {role}" for role, count in counts.items() if count)
    yield Note(
        f"{one.compared:,} compared {EACH}, {len(one.changed):,} changed ({told or 'none'}),"
        f" {len(one.wrong):,} wrong; {one.covered}"
    )
    if one.wrong:
        yield Listing([f"{w.name}: {w.reason}" for w in one.wrong], "warn", rows, loose=True)


def _sass(one: VerifySass, rows: int | None) -> Iterator[Block]:
    yield Note(f"{one.toolchain}, compared with {one.base}", "soft")
    found: list[list[str | Styled]] = []
    anchors = []
    for lot in alike(one.rows):
        row, archs = lot[0], ", ".join(row.arch for row in lot)
        counts = [str(n) for n in (row.kernels, row.equal, row.renamed, row.moved)]
        different = Styled(str(row.different), "warn" if row.different else "")
        found.append([short(row.benchmark), archs, *counts, different])
        anchors.append(f"sass/{short(row.benchmark)}/{archs}")
    titles = ("kernels", "equal", "renamed", "moved", "different")
    numbers = [Column(title, "n") for title in titles]
    columns = (Column("benchmark"), Column("archs"), *numbers)
    yield Table(columns, found, label="Machine code", shown=rows, anchors=anchors)
    if one.unmeant:
        told = [f"{kernel.where}: {kernel.summary}" for kernel in one.unmeant]
        yield Listing(told, "warn", rows, loose=True)


# The cards at the head of a review: what changed, why, is it proven, what could get worse.


def cards(document: Review) -> Cards:
    """Tell what changed, why, whether it is proven, and what could get worse."""
    if not document.entries and not document.others and not document.failures:
        return Cards([Card("What changed", "nothing", ["no workload gets other values"])])
    bad = "bad" if document.failures else ""
    found = [
        _card("What changed", *_what(document)),
        _card("Why", *_why(document)),
        _card("Is it proven", *_proven(document), style=bad),
    ]
    if document.performance is not None:
        found.append(_card("Is it faster", *_faster(document.performance)))
    return Cards([*found, _card("What could get worse", *_worse(document))])


def _card(title: str, answer: tuple[str, str], rows: list[str], style: str = "") -> Card:
    number, words = answer
    return Card(title, number, rows, words, style)


def _reached(document: Review) -> list[Differing]:
    return [*(row for one in document.entries for row in one.reached), *document.others]


def _what(document: Review) -> tuple[tuple[str, str], list[str]]:
    found = [one.change for one in document.entries]
    counts = {c: found.count(c) for c in ("changed", "added", "removed") if c in found}
    entries = "entry" if len(found) == 1 else "entries"
    told = ", ".join(f"{count} {c}" for c, count in counts.items())
    words = f"{entries} {told.partition(' ')[2]}" if len(counts) == 1 else f"{entries}: {told}"
    head = f"{len(found)}", words if counts else entries
    if not document.compared:
        return head, ["which workloads get other values is not known"]
    rows = _reached(document)
    points = plural(len({point_of(row.benchmark, row.workload) for row in rows}), "workload")
    archs = ", ".join(sorted({row.arch for row in rows}, key=arch_number))
    others = f"{points} with other values on {archs}" if rows else "no workload gets other values"
    return head, [others, *counted(document, len(rows))]


def _why(document: Review) -> tuple[tuple[str, str], list[str]]:
    found = measured(document)
    if not found:
        return ("0", "workloads measured"), [unfound(document)]
    scores = sorted(one.scored.score for one in found)
    span = f"{scores[0]:.3f}" if len(scores) == 1 else f"{scores[0]:.3f} to {scores[-1]:.3f}"
    gpus = dict.fromkeys(one.gpu.partition("(")[0].strip() for one in found)
    told = f"{plural(len(found), 'workload')} measured on {', '.join(gpus)}"
    words = "is the score" if len(scores) == 1 else "are the scores"
    return (span, words), [told, "; ".join(dict.fromkeys(map(versions, found)))]


def _proven(document: Review) -> tuple[tuple[str, str], list[str]]:
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
    compiled = document.cub.has_machine_code or sass is not None
    if sass is None:
        rows += ["machine code: not compared"] if compiled else []
    else:
        equal = f"{sass.equal + sass.renamed} of {sass.kernels} kernels equal"
        written = sum(row.as_written for row in sass.rows)
        more = f", {written} as written" if written else ""
        rows.append(f"machine code: {equal}{more} on {', '.join(sass.archs)}")
    lost = sum(entry.unreachable is not None for entry in document.entries)
    never = f"{plural(lost, 'entry', 'entries')} never selected"
    rows.append(f"reach: {never if lost else 'each entry is selected'}")
    if document.uncovered:
        rows.append(f"not asked: {plural(len(document.uncovered), 'place')} of the change")
    holds = [
        effect is not None and not effect.wrong,
        *([sass is not None and not sass.changed] if compiled else []),
        not lost and not document.uncovered,
    ]
    answer = "no" if document.failures else "yes" if all(holds) else "in part"
    return (f"{sum(holds)} of {len(holds)}", f"proofs hold: {answer}"), rows


def _faster(told: VerifyPerformance) -> tuple[tuple[str, str], list[str]]:
    found = sorted(one.ratio for one in told.workloads if one.ratio is not None)
    rows = [summary(told)]
    if told.gpu:
        rows.append(f"on {told.gpu.partition('(')[0].strip()}, compared with {told.before}")
    if not found:
        same = told.verdict == "same-code"
        return ("same", "machine code") if same else ("not known", ""), rows
    ends = [ratio_words(one) for one in dict.fromkeys((found[0], found[-1]))]
    lost = sum(one.holds is False for one in told.workloads)
    rows += [f"{plural(lost, 'claim')} of the change not kept"] if lost else []
    return (" to ".join(ends), "times as fast as before"), rows


def _merged_worse(document: Review) -> tuple[tuple[str, str], list[str]]:
    """What is known of the change as it is merged."""
    merged = document.merged.values()
    every = [(row, one) for one in merged for row in one.runtime]
    slower = [row.verdict for row, _ in every].count("slower")
    rows = []
    if every:
        row, one = min(every, key=lambda pair: pair[0].ratio)
        told = f"{runtime_name(one, row)} of {workload_name(one)}"
        rows.append(f"worst: {ratio_words(row.ratio)} for {told}")
    if undecided := [row.verdict for row, _ in every].count("undecided"):
        rows.append(f"{plural(undecided, 'runtime workload')} not decided")
    return (f"{slower} of {len(every):,}", "runtime workloads slower"), rows


def _worse(document: Review) -> tuple[tuple[str, str], list[str]]:
    found, merged = measured(document), document.merged
    points = [(ratio.ratio, one, ratio) for one in found for ratio in one.runtime]
    head: tuple[str, str] = ("not known", "")
    rows: list[str] = []
    if merged:
        head, rows = _merged_worse(document)
    elif points:
        slower = sum(ratio < 1 - NOISE for ratio, _, _ in points)
        head = f"{slower} of {len(points):,}", "runtime workloads slower"
        ratio, one, point = min(points, key=lambda item: item[0])
        rows.append(f"worst: {ratio:.3f} for {' '.join(axes(point.point))} of {one.name}")
    known = {one.point for one in found}
    reached = {row.point for row in _reached(document) if not is_merged(row, merged)}
    if lost := len(reached - known):
        rows.append(f"{plural(lost, 'workload')} with other values not measured")
    rows = rows or ["nothing was measured"]
    if document.performance is None:
        rows.append("as it is merged: not measured")
    return head, rows


KINDS = {"error": "error", "warning": "warning"}


# What a review found, as a workflow's annotations: GitHub shows them beside the lines.


def annotations(document: Review) -> str:
    """Write what GitHub shows beside the lines of a change."""
    rows = []
    document = portable(document)
    for entry in document.entries:
        header = entry.place.header
        path = _path(document, header)
        for one in entry.findings:
            kind = KINDS.get(one.severity, "notice")
            rows.append(annotation(kind, one.rule, one.message, path, one.line))
        if lost := entry.unreachable:
            rows.append(annotation("error", "never selected", lost.reason, path, lost.line))
        if entry.reached and not entry.evidence and not measured_as_merged(entry, document):
            text, line = unfound(document), entry.place.line
            rows.append(annotation("notice", "not measured", text, path, line))
    places = document.unprovable
    rows += [annotation("error", one.rule, one.message, one.path, one.line) for one in places]
    wrong = document.effect.wrong if document.effect else ()
    rows += [annotation("error", "effect", f"{one.name}: {one.reason}") for one in wrong]
    kernels = document.sass.unmeant if document.sass else ()
    rows += [annotation("error", "SASS", f"{one.where}: {one.summary}") for one in kernels]
    rows += _performance(document)
    return "".join(f"{row}\n" for row in rows)


def _path(document: Review, header: str) -> str:
    return next((one.path for one in document.diffs if one.path.endswith(header)), header)


def _performance(document: Review) -> Iterator[str]:
    """Each workload that got slower or runs otherwise, at the line of the entry that changed."""
    told = document.performance
    for one in told.workloads if told else ():
        entry = document.entry_of(one)
        place = (_path(document, entry.place.header), entry.place.line) if entry else ()
        name = f"{one.name} on {one.arch}"
        if one.failed is not None:
            text = f"{name}: {one.failed.kind}: {one.failed.reason}"
            yield annotation("error", "other results", text, *place)
        elif told and is_slower(one):
            kind = "error" if told.slowed(one) else "warning"
            yield annotation(kind, "slower", f"{name}: {slower_words(one)}", *place)
        if one.holds is False:
            text = f"{name}: {claim_words(one)}; it is {ratio_words(one.high)} at most"
            yield annotation("error", "less than was claimed", text, *place)
