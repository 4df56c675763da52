"""Terminal views of tuning databases: rankings, choices, contents, and coverage.

Text is never truncated: what exceeds the terminal width continues on the next line.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.errors import plural
from policygen.model.records import grouped
from policygen.model.results import (
    Choice,
    CoveredWorkload,
    DatabaseInfo,
    DbCoverage,
    DbInfo,
    DbTop,
    Interval,
    PointRatio,
    Reasoning,
    RejectedVariant,
    Rules,
    RunKey,
    ScoredVariant,
    ScoredWorkload,
    TableInfo,
    Verdict,
)
from policygen.model.workload import BASE, axes, runtime_name
from policygen.report.blocks import BLANK, Beside, Block, Note, Words, cut
from policygen.report.console import duration
from policygen.report.terminal import wrap

DOT = " · "
SHOWN = 8
"""Values and workloads listed without --verbose."""
CALLED = {"rocprim": "rocPRIM"}
NOTHING = Note("no workload has a baseline")


# Shared by the views of tuning databases: headings, notes, and numbers


def heading(name: list[str], details: list[str]) -> Block:
    """Show what was measured and where, on one line if it fits."""
    title = Words(name, "bold", later="    ", joint=", ", even=True)
    return Beside(title, Words(details, "dim", "  ", "  ", DOT, even=True))


def prose(text: str, indent: str = "", style: str = "") -> Block:
    """Wrap text, with all lines indented alike."""
    return Words(text.split(), style, indent, indent, even=True)


def note(text: str) -> Block:
    """Format a remark below the results."""
    return Words(text.split(), "dim", even=True)


def _approximate(workloads: Sequence[ScoredWorkload]) -> Iterator[Block]:
    if any(workload.approximate for workload in workloads):
        yield note(
            "approximate: the declared values of the {io} axes are unknown, so the weights come"
            " from the values present; name the benchmark's source with --bench"
        )


def key_parts(key: RunKey, database: str | None) -> list[str]:
    """Name where a run was measured: GPU, toolkit, library, and database."""
    # NVBench results name neither the toolkit nor CCCL.
    return [key.gpu, *versions_of(key.ctk, key.cccl), *([database] if database else [])]


def versions_of(ctk: str, cccl: str) -> list[str]:
    """Name the known toolkit and library versions; `rocprim@` has an unknown version."""
    name, separator, version = cccl.partition("@")
    library = f"{CALLED.get(name, name)} {version}" if separator else f"cccl {cccl}"
    parts = (f"ctk {ctk}", ctk), (library, version if separator else cccl)
    return [text for text, present in parts if present]


def workload_name(algorithm: str, workload: Mapping[str, str]) -> list[str]:
    """Name `cub.bench.reduce.sum[T{ct}=I32, OffsetT{ct}=I32]` as parts to be joined by `, `."""
    if not workload:
        return [algorithm]
    *parts, last = axes(workload)
    first, *rest = [*parts, f"{last}]"]
    return [f"{algorithm}[{first}", *rest]


def span(interval: Interval | None) -> str:
    """Write both ends, separated by a dash."""
    return f"{interval.low:.3f}\N{EN DASH}{interval.high:.3f}" if interval else ""


def _within(interval: Interval | None, before: str = " (", after: str = ")") -> str:
    return f"{before}{span(interval)}{after}" if interval else ""


def short_point(worst: PointRatio) -> str:
    """Write `16/0.201`, preceded by the sub-benchmark unless it is `base`."""
    values = "/".join(worst.point.values())
    return values if values and worst.subbench == BASE else f"{worst.subbench}:{values}".rstrip(":")


def percent(share: float) -> str:
    """Write `95 %`, `99.9 %`."""
    return f"{share * 100:.4g} %"


# Contents of databases


def info(document: DbInfo, *, verbose: bool, head: bool) -> Iterator[Block]:
    """Show each file with its tables and failures."""
    for index, database in enumerate(document.databases):
        if index:
            yield BLANK
        yield heading([database.path], _facts(database, verbose=verbose))
        if not database.tables:
            yield Note("  no measurements")
        for table in database.tables:
            yield from _table(table, verbose=verbose)
        for failure in database.failures:
            failed = plural(failure.count, f"failed {failure.kind}")
            yield prose(f"{failed} of {failure.algorithm}, code {failure.code}", "  ", "yellow")
    if head and len(document.databases) != 1:
        rows = sum(table.rows for database in document.databases for table in database.tables)
        yield BLANK
        yield Note(f"{plural(len(document.databases), 'database')}, {plural(rows, 'row')}")


def _facts(database: DatabaseInfo, *, verbose: bool) -> list[str]:
    facts = [f"layout {database.layout}"]
    for kind, seconds in (("builds", database.build_seconds), ("runs", database.run_seconds)):
        facts += [] if seconds is None else [f"{kind} took {duration(seconds)}"]
    return [*facts, f"sha256 {database.sha256 if verbose else database.sha256[:12]}"]


def _table(table: TableInfo, *, verbose: bool) -> Iterator[Block]:
    counts = [plural(table.rows, "row")]
    counts += [f"{table.unusable:,} unusable"] if table.unusable else []
    counts += [plural(table.variants, "variant"), plural(len(table.workloads), "workload")]
    name = Words([f"{table.algorithm}.{table.subbench}"], "cyan", "  ", even=True)
    yield Beside(name, Words(counts, "", "    ", "    ", DOT, even=True))
    for key in table.keys:
        yield Words(key_parts(key, None), "", "    ", "    ", DOT, even=True)
    points = [", ".join(axes(workload)) for workload in table.workloads if workload]
    yield _listed("workloads", points, "; ", verbose=verbose)
    declared = "declared" if table.declared else "values present"
    for axis, values in table.axes.items():
        title = f"{axis} ({declared})" if "{io}" in axis else axis
        yield _listed(title, values, " ", verbose=verbose)
    for parameter, texts in table.values.items():
        meanings = [f"{number} is {text}" for number, text in texts.items()]
        yield _listed(parameter, meanings, DOT, verbose=verbose)


def _listed(title: str, values: Sequence[str], joint: str, *, verbose: bool) -> Block:
    shown, hidden = cut(values, SHOWN, verbose=verbose)
    words = [*shown, *([f"… {hidden:,} more (-v lists them)"] if hidden else [])]
    return Words(words, "", f"    {title}: ", "      ", joint, even=True, mark="dim")


DIGITS = 8
ROOM = 36
"""Minimum width for reasons next to their variants."""


# Choices: the decision for each workload, and the rejected alternatives


def choices(document: DbTop, width: int, *, verbose: bool, head: bool) -> Iterator[Block]:
    """Show each workload with its choice, then the rules and a count."""
    chosen = [(workload, workload.choice) for workload in document.workloads if workload.choice]
    files = verbose or len({workload.database for workload, _ in chosen}) > 1
    for index, (workload, choice) in enumerate(chosen):
        yield from _workload_heading(workload, index, files=files)
        yield from _choice(workload, choice, width)
    if not chosen:
        yield NOTHING
    elif head:
        yield BLANK
        yield from _approximate(document.workloads)
        yield note(f"rules: {rules_in_words(document.rules)}")
        used = sum(choice.decision == "use" for _, choice in chosen)
        yield Note(f"use a variant for {used:,}, keep base for {len(chosen) - used:,}")


def _workload_heading(workload: ScoredWorkload, index: int, *, files: bool) -> Iterator[Block]:
    if index:
        yield BLANK
    location = key_parts(workload, workload.database if files else None)
    yield heading(workload_name(workload.algorithm, workload.workload), location)


def _choice(workload: ScoredWorkload, choice: Choice, width: int) -> Iterator[Block]:
    use = choice.decision == "use"
    title = f"use {choice.variant}" if use else "keep base"
    style = "bold green" if use else "bold"
    *upper_lines, last_line = wrap(title.split("."), ".", width - 4)
    yield from (Note(f"  {row}", style) for row in upper_lines)
    scored = workload.chosen
    score = scored.score if scored else choice.score
    if not use or score is None:
        yield Note(f"  {last_line}", style)
    else:
        facts = f"score {score:.6f}{_within(scored.interval) if scored else ''}"
        facts += f", {scored.verdict}" if scored and scored.verdict else ""
        facts += ", approximate" if workload.approximate else ""
        right = Words(facts.split(), "", "    ", "    ", even=True)
        yield Beside(Words([last_line], style, "  ", even=True), right)
    yield prose(choice.reason, "    ")
    yield from _rejected(choice.rejected, width)


def _rejected(rejected: Sequence[RejectedVariant], width: int) -> Iterator[Block]:
    """Show reasons next to the variants if the width allows it, else below them."""
    if not rejected:
        return
    yield Note("  not taken:", "dim")
    label_width = max(len(variant.variant) for variant in rejected)
    indent = " " * (4 + label_width + 2 + DIGITS + 2)
    for variant in rejected:
        score = f"{variant.score:.6f}" if variant.score is not None else "-"
        if width - len(indent) >= ROOM:
            head = f"    {variant.variant:<{label_width}}  {score:>{DIGITS}}  "
            words = variant.reason.split()
            yield Words(words, "", head, indent, even=True) if words else Note(head.rstrip())
        else:
            yield Words(variant.variant.split("."), "", "    ", "    ", ".", even=True)
            yield prose(f"{score} {variant.reason}", "      ")


def rules_in_words(rules: Rules) -> str:
    """Describe when a variant is chosen."""
    parts = [
        f"score at least {rules.least_score:g}",
        f"no runtime workload under {rules.worst_allowed:g}",
        f"above 1 with {percent(rules.confidence)} confidence",
    ]
    if rules.prefer_simple:
        parts.append("among those too close to call, the closest to the current values")
    return ", ".join(parts)


UNKNOWN_SPACE = (
    "where a size is missing, the search space is unknown: name the benchmark's source or the"
    " cccl_meta_bench.csv with --bench"
)


def coverage(document: DbCoverage, width: int, *, verbose: bool, head: bool) -> Iterator[Block]:
    """Group workloads by where they were measured, and show the covered share of each."""
    groups = grouped(document.workloads, lambda row: (row.gpu, row.ctk, row.cccl, row.database))
    files = verbose or len({workload.database for workload in document.workloads}) > 1
    columns = zip(*map(_cells, document.workloads), strict=True)
    name_width, *number_widths = (max(map(len, column)) for column in columns) if groups else (0,)
    name_room = width - len("     of   ") - sum(number_widths)
    for index, workloads in enumerate(groups.values()):
        if index:
            yield BLANK
        location = key_parts(workloads[0], workloads[0].database if files else None)
        yield Words(location, "bold", "", "", DOT, even=True)
        for workload in workloads:
            yield from _covered(workload, max(20, min(name_width, name_room)), number_widths)
    if not groups:
        yield NOTHING
    elif head and any(workload.variants is None for workload in document.workloads):
        yield BLANK
        yield note(UNKNOWN_SPACE)


def _cells(workload: CoveredWorkload) -> tuple[str, str, str, str]:
    name = ", ".join(workload_name(workload.algorithm, workload.workload))
    total = "?" if workload.variants is None else f"{workload.variants:,}"
    share = "" if workload.share is None else f"{workload.share * 100:.4f} %"
    return name, f"{workload.covered:,}", total, share


def _covered(
    workload: CoveredWorkload, name_width: int, number_widths: Sequence[int]
) -> Iterator[Block]:
    """Show one line per workload; a long name is wrapped onto lines above it."""
    name, *cells = _cells(workload)
    covered, total, share = (
        cell.rjust(number_width) for cell, number_width in zip(cells, number_widths, strict=True)
    )
    parts = workload_name(workload.algorithm, workload.workload)
    *upper_lines, last_line = (
        [name] if len(name) <= name_width else wrap(parts, ", ", name_width - 2)
    )
    for index, row in enumerate(upper_lines):
        yield Note(f"    {row}" if index else f"  {row}")
    prefix = f"{'    ' if upper_lines else '  '}{last_line}".ljust(2 + name_width)
    style = "green" if workload.share is not None and workload.share >= 1 else ""
    yield Note(((prefix, ""), (f"  {covered} of {total}  {share}".rstrip(), style)))


NUMBERS = ("score", "min", "mean", "max")
DETAILS = ("interval", "verdict", "worst", "slower")
STYLES: Mapping[Verdict | None, str] = {
    "better": "green",
    "worse": "red",
    "mixed": "yellow",
    "too close to call": "dim",
    None: "",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout shared by the rows of all workloads, so that their columns line up."""

    width: int
    label: int
    details: tuple[int, ...]
    """Widths of the columns after the numbers; 0 for a column that is not needed."""
    wide: bool


# Rankings: a table per workload, wide or with details below each row


def ranking(document: DbTop, width: int, *, verbose: bool, head: bool) -> Iterator[Block]:
    """Show all workloads, then the notes that apply to all of them."""
    layout = _layout(document, width)
    files = verbose or len({workload.database for workload in document.workloads}) > 1
    for index, workload in enumerate(document.workloads):
        yield from _workload_heading(workload, index, files=files)
        yield from _variants(workload, layout, verbose=verbose)
        if head:
            yield prose("; ".join(_omissions(workload)), "  ", "dim")
    if not document.workloads:
        yield NOTHING
    elif head and (notes := list(_notes(document))):
        yield from (BLANK, *notes)


def _layout(document: DbTop, width: int) -> Layout:
    """Use one line per variant if it fits, else put the details below it."""
    labels, details = ["variant"], []
    for workload in document.workloads:
        labels += [variant.variant for variant in workload.variants]
        details += [_details(variant, workload) for variant in workload.variants]
    label = max(map(len, labels))
    widths = [max(map(len, column)) for column in zip(*details, strict=True)] or [0] * len(DETAILS)
    widths = [
        cells and max(len(title), cells) for title, cells in zip(DETAILS, widths, strict=True)
    ]
    numbers = 2 + len(NUMBERS) * (DIGITS + 2)
    wide = numbers + label + sum(cells + 2 for cells in widths if cells) <= width
    return Layout(
        width, label if wide else max(0, min(label, width - numbers)), tuple(widths), wide
    )


def _details(variant: ScoredVariant, workload: ScoredWorkload) -> tuple[str, ...]:
    """Return interval, verdict, worst runtime workload, and number of slower ones."""
    worst = variant.worst
    return (
        span(variant.interval),
        variant.verdict or "",
        f"{short_point(worst)} {worst.ratio:.3f}" if worst else "",
        "" if variant.slower is None else f"{variant.slower} of {workload.runtime_workloads}",
    )


def _variants(workload: ScoredWorkload, layout: Layout, *, verbose: bool) -> Iterator[Block]:
    if not workload.variants:
        yield Note("  no variant")
        return
    yield from _row("variant", NUMBERS, DETAILS, layout, ("dim", "dim"))
    for variant in workload.variants:
        style = STYLES[variant.verdict]
        numbers = (variant.score, variant.min, variant.mean, variant.max)
        cells = _details(variant, workload)
        yield from _row(variant.variant, [f"{n:.6f}" for n in numbers], cells, layout, ("", style))
        if not layout.wide:
            interval, verdict, worst, slower = cells
            parts = [verdict, interval, worst and f"worst {worst}", slower and f"slower {slower}"]
            yield Words(list(filter(None, parts)), style, "    ", "    ", DOT, even=True)
        if verbose:
            yield from _worst(variant)


def _row(
    label: str,
    numbers: Sequence[str],
    details: Sequence[str],
    layout: Layout,
    styles: tuple[str, str],
) -> Iterator[Block]:
    """Show a row; a label that is too long for its column goes on lines above it."""
    plain, marked = styles
    if len(label) > layout.label:
        for line in wrap(label.split("."), ".", layout.width - 4):
            yield Note(f"  {line}", plain)
        label = ""
    score, *other_numbers = (f"  {number:>{DIGITS}}" for number in numbers)
    cells = zip(details, layout.details, strict=True) if layout.wide else ()
    detail_text = "".join(f"  {cell:<{width}}" for cell, width in cells if width).rstrip()
    row = ((f"  {label:<{layout.label}}", plain), (score, marked), ("".join(other_numbers), plain))
    yield Note((*row, (detail_text, marked)) if detail_text else row)


def _worst(variant: ScoredVariant) -> Iterator[Block]:
    worst = variant.worst
    if worst is None:
        return
    place = runtime_name(worst.subbench, worst.point)
    parts = [f"worst at {worst.ratio:.6f}{_within(worst.interval)}: {place}"]
    parts += [f"weight {worst.weight:.4f}"]
    parts += [] if variant.loss is None else [f"up to {variant.loss * 100:.1f} % slower"]
    yield Words(DOT.join(parts), "dim", "    ", even=True)


def _omissions(workload: ScoredWorkload) -> Iterator[str]:
    if hidden := workload.complete - len(workload.variants):
        yield f"{hidden:,} more"
    if workload.incomplete:
        verb = "was" if workload.incomplete == 1 else "were"
        total = plural(workload.runtime_workloads, "runtime workload")
        yield f"{plural(workload.incomplete, 'variant')} {verb} not measured on all {total}"
    if workload.approximate:
        yield "scores are approximate"


def _notes(document: DbTop) -> Iterator[Block]:
    yield from _approximate(document.workloads)
    variants = [variant for workload in document.workloads for variant in workload.variants]
    worst = [variant.worst for variant in variants if variant.worst]
    if names := dict.fromkeys("/".join(ratio.point) for ratio in worst if ratio.point):
        yield note(f"worst: the runtime workload with the lowest ratio, by {', '.join(names)}")
    if any(variant.slower is not None for variant in variants):
        confidence, noise = map(percent, (document.rules.confidence, document.rules.point_noise))
        yield note(
            f"interval: {confidence} confidence; slower: runtime workloads slower by more than"
            f" {noise}, beyond noise"
        )
    if document.alpha < 1:
        alpha = f"alpha {document.alpha:g}"
        yield note(f"{alpha}: only runtime workloads whose samples differ from base's")


WHY_ROOM = 10
"""Width of the column with the names of the steps."""


# Reasoning behind a choice: rows, weights, noise, luck, confirmation, and what would change it


def why(document: DbTop, width: int, /, **_options: bool) -> Iterator[Block]:
    """Show each workload with its choice, then all the evidence for it."""
    for index, workload in enumerate(document.workloads):
        if index:
            yield BLANK
        single = document.model_copy(update={"workloads": (workload,)})
        yield from choices(single, width, verbose=True, head=False)
        choice, reasoning = workload.choice, workload.reasoning
        if choice is not None and reasoning is not None:
            yield BLANK
            for title, text in _parts(workload, choice, reasoning, document.rules):
                yield Words(text, "", f"{title:<{WHY_ROOM}}", " " * WHY_ROOM, mark="bold")


def _parts(
    workload: ScoredWorkload, choice: Choice, reasoning: Reasoning, rules: Rules
) -> Iterator[tuple[str, str]]:
    yield "rows", _rows(workload, choice)
    for runtime in reasoning.runtime:
        title = runtime_name(runtime.subbench, runtime.point)
        base = f"base {runtime.base * 1e6:,.2f} us"
        yield "", f"{title}: weight {runtime.weight:.4f}, {base}, noise {runtime.noise:.2%}"
    yield "noise", f"{choice.noise or 0:.4f} for a score in one run, from {choice.noise_origin}"
    yield (
        "luck",
        f"of {plural(choice.tried, 'variant')} as fast as base, the best exceeds"
        f" {choice.luck or 1:.4f} in {1 - rules.confidence:.0%} of searches",
    )
    best = next((variant for variant in workload.variants if variant.variant != "base"), None)
    if best is not None:
        score = f"{best.score:.6f}{_within(best.interval, ', ', '')}"
        yield "best", f"{best.variant} with {score}: {best.verdict or 'no samples'}"
    yield "confirmed", _confirmed(choice, reasoning)
    yield "changes", _what_would_change_it(workload, choice, reasoning, rules)


def _rows(workload: ScoredWorkload, choice: Choice) -> str:
    of_declared = "" if workload.declared is None else f" of {workload.declared:,} declared"
    missing = f"; base is missing for {'; '.join(workload.missing)}" if workload.missing else ""
    weights = ", weights from the values present" if workload.approximate else ""
    return (
        f"{plural(choice.tried, 'variant')} and base on"
        f" {workload.runtime_workloads:,}{of_declared} runtime workloads in"
        f" {plural(choice.runs, 'run')} ({workload.database}), {workload.incomplete:,} measured"
        f" only in part{weights}{missing}"
    )


def _confirmed(choice: Choice, reasoning: Reasoning) -> str:
    if not reasoning.confirming:
        runs = "more than nine runs" if reasoning.runs is None else plural(reasoning.runs, "run")
        return (
            "by no run: --confirm DB adds one that the choice has not seen; to find a gain of 3%"
            f" in 4 of 5 searches takes {runs} of the finalists"
        )
    files = " + ".join(reasoning.confirming)
    return f"{'yes' if choice.decision == 'use' else 'no'}, by {files}"


def _what_would_change_it(
    workload: ScoredWorkload, choice: Choice, reasoning: Reasoning, rules: Rules
) -> str:
    if workload.missing:
        return "base measured there as well"
    if reasoning.enough is None:
        return (
            f"a variant with no runtime workload under {rules.worst_allowed:g}, or different rules"
        )
    if reasoning.confirming:
        return "further confirming runs: their mean is less noisy"
    if choice.decision == "use":
        return f"a confirming run in which it scores less than {reasoning.enough:.4f}"
    return f"a confirming run in which the best scores at least {reasoning.enough:.4f}"
