"""Terminal views of tuning databases: rankings, choices, contents, and coverage.

Text is never truncated: what exceeds the terminal width continues on the next line.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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
from policygen.report.blocks import BLANK, Beside, Block, Note, Words
from policygen.report.console import plural, printed, results, show
from policygen.report.terminal import wrap


def print_top(document: DbTop, *, verbose: bool, quiet: bool) -> None:
    """Print a ranking."""
    show(ranking(document, results().width, verbose=verbose, quiet=quiet))


def print_choices(document: DbTop, *, verbose: bool, quiet: bool) -> None:
    """Print the choice for each workload."""
    show(choices(document, results().width, verbose=verbose, quiet=quiet))


def print_why(document: DbTop, **_options: bool) -> None:
    """Print the full reasoning behind choices; verbosity options do not apply."""
    show(why(document, results().width))


def print_coverage(document: DbCoverage, *, verbose: bool, quiet: bool) -> None:
    """Print how much of the search space was measured."""
    show(coverage(document, results().width, verbose=verbose, quiet=quiet))


# Contents of databases, and the covered share of the search space


def info(document: DbInfo, *, verbose: bool, quiet: bool) -> Iterator[Block]:
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
    if not quiet and len(document.databases) != 1:
        rows = sum(t.rows for database in document.databases for t in database.tables)
        yield BLANK
        yield Note(f"{plural(len(document.databases), 'database')}, {plural(rows, 'row')}")


# Shared by the views of tuning databases: headings, notes, and numbers


def heading(name: list[str], details: list[str]) -> Block:
    """Show what was measured and where, on one line if it fits."""
    title = Words(name, "bold", later="    ", joint=", ", even=True)
    return Beside(title, Words(details, "dim", "  ", "  ", DOT, even=True))


DOT = " · "


def prose(text: str, indent: str = "", style: str = "") -> Block:
    """Wrap text, with all lines indented alike."""
    return Words(text.split(), style, indent, indent, even=True)


def _facts(database: DatabaseInfo, *, verbose: bool) -> list[str]:
    facts = [f"layout {database.layout}"]
    for kind, seconds in (("builds", database.build_seconds), ("runs", database.run_seconds)):
        facts += [] if seconds is None else [f"{kind} took {duration(seconds)}"]
    return [*facts, f"sha256 {database.sha256 if verbose else database.sha256[:12]}"]


def duration(seconds: float) -> str:
    """Write `12.3 s`, `4 min 05 s`, `2 h 07 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60:,} h {minutes % 60:02} min"


def _table(table: TableInfo, *, verbose: bool) -> Iterator[Block]:
    counts = [
        plural(table.rows, "row"),
        plural(table.variants, "variant"),
        plural(len(table.workloads), "workload"),
    ]
    if table.unusable:
        counts.insert(1, f"{table.unusable:,} unusable")
    name = Words([f"{table.algorithm}.{table.subbench}"], "cyan", "  ", even=True)
    yield Beside(name, Words(counts, "", "    ", "    ", DOT, even=True))
    for key in table.keys:
        yield Words(key_parts(key, None), "", "    ", "    ", DOT, even=True)
    points = [
        ", ".join(f"{axis}={value}" for axis, value in workload.items())
        for workload in table.workloads
    ]
    yield from _listed("workloads", list(filter(None, points)), "; ", verbose=verbose)
    declared = "declared" if table.declared else "values present"
    for axis, values in table.axes.items():
        title = f"{axis} ({declared})" if "{io}" in axis else axis
        yield from _listed(title, values, " ", verbose=verbose)
    for parameter, texts in table.values.items():
        meanings = [f"{number} is {text}" for number, text in texts.items()]
        yield from _listed(parameter, meanings, DOT, verbose=verbose)


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


CALLED = {"rocprim": "rocPRIM"}


def _listed(title: str, values: Sequence[str], joint: str, *, verbose: bool) -> Iterator[Block]:
    """List values; a truncated list states how many are hidden."""
    shown = list(values if verbose else values[:SHOWN])
    if hidden := len(values) - len(shown):
        shown.append(f"… {hidden:,} more, see them with -v")
    yield Words(shown, "", f"    {title}: ", "      ", joint, even=True, mark="dim")


SHOWN = 8
"""Values and workloads listed without --verbose."""
print_info = printed(info)
DIGITS = 8
ROOM = 36
"""Minimum width for reasons next to their variants."""


# Choices: the decision for each workload, and the rejected alternatives


def choices(document: DbTop, width: int, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show each workload with its choice, then the rules and a count."""
    chosen = [(workload, workload.choice) for workload in document.workloads if workload.choice]
    files = verbose or len({workload.database for workload, _ in chosen}) > 1
    for index, (workload, choice) in enumerate(chosen):
        if index:
            yield BLANK
        location = key_parts(workload, workload.database if files else None)
        yield heading(workload_name(workload.algorithm, workload.workload), location)
        yield from _choice(workload, choice, width)
    if not chosen:
        yield NOTHING
    elif not quiet:
        yield BLANK
        if any(workload.approximate for workload in document.workloads):
            yield approximate()
        yield note(f"rules: {rules_in_words(document.rules)}")
        used = sum(choice.decision == "use" for _, choice in chosen)
        yield Note(f"use a variant for {used:,}, keep base for {len(chosen) - used:,}")


def _choice(workload: ScoredWorkload, choice: Choice, width: int) -> Iterator[Block]:
    use = choice.decision == "use"
    title = f"use {choice.variant}" if use else "keep base"
    style = "bold green" if use else "bold"
    *upper_lines, last_line = wrap(title.split("."), ".", width - 4)
    yield from (Note(f"  {row}", style) for row in upper_lines)
    scored = next(
        (variant for variant in workload.variants if variant.variant == choice.variant), None
    )
    score = scored.score if scored else choice.score
    if not use or score is None:
        yield Note(f"  {last_line}", style)
    else:
        within = f" ({span(scored.interval)})" if scored and scored.interval else ""
        verdict = f", {scored.verdict}" if scored and scored.verdict else ""
        mark = ", approximate" if workload.approximate else ""
        facts = f"score {score:.6f}{within}{verdict}{mark}"
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
            if words := variant.reason.split():
                yield Words(words, "", head, indent, even=True)
            else:
                yield Note(head.rstrip())
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
        parts.append("among those too close to call, the one closest to the current values")
    return ", ".join(parts)


UNKNOWN_SPACE = (
    "the search space is not known where a size is missing: give the benchmark's source or the"
    " cccl_meta_bench.csv with --bench"
)


def coverage(document: DbCoverage, width: int, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Group workloads by where they were measured, and show the covered share of each."""
    groups: dict[tuple[RunKey, str], list[CoveredWorkload]] = {}
    for workload in document.workloads:
        key = RunKey(gpu=workload.gpu, ctk=workload.ctk, cccl=workload.cccl)
        groups.setdefault((key, workload.database), []).append(workload)
    files = verbose or len({database for _, database in groups}) > 1
    widths = [
        max(map(len, column)) for column in zip(*map(_cells, document.workloads), strict=True)
    ]
    for index, ((key, database), workloads) in enumerate(groups.items()):
        if index:
            yield BLANK
        location = key_parts(key, database if files else None)
        yield Words(location, "bold", "", "", DOT, even=True)
        name_width, *number_widths = widths
        name_room = width - len("     of   ") - sum(number_widths)
        for workload in workloads:
            yield from _covered(workload, max(20, min(name_width, name_room)), number_widths)
    if not groups:
        yield NOTHING
    elif not quiet and any(workload.variants is None for workload in document.workloads):
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
TOP_DIGITS = 8
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


def ranking(document: DbTop, width: int, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show all workloads, then the notes that apply to all of them."""
    layout = _layout(document, width)
    files = verbose or len({workload.database for workload in document.workloads}) > 1
    for index, workload in enumerate(document.workloads):
        if index:
            yield BLANK
        location = key_parts(workload, workload.database if files else None)
        yield heading(workload_name(workload.algorithm, workload.workload), location)
        yield from _variants(workload, layout, verbose=verbose)
        if not quiet:
            yield prose("; ".join(_omissions(workload)), "  ", "dim")
    if not document.workloads:
        yield NOTHING
    elif not quiet and (notes := list(_notes(document))):
        yield from (BLANK, *notes)


def _layout(document: DbTop, width: int) -> Layout:
    """Use one line per variant if it fits, else put the details below it."""
    rows = [
        (variant, _details(variant, workload))
        for workload in document.workloads
        for variant in workload.variants
    ]
    label = max([len("variant"), *(len(variant.variant) for variant, _ in rows)])
    widths = [max((len(cells[i]) for _, cells in rows), default=0) for i in range(len(DETAILS))]
    details = tuple(
        detail_width and max(len(DETAILS[i]), detail_width) for i, detail_width in enumerate(widths)
    )
    numbers = 2 + len(NUMBERS) * (TOP_DIGITS + 2)
    wide = (
        numbers + label + sum(detail_width + 2 for detail_width in details if detail_width) <= width
    )
    return Layout(width, label if wide else max(0, min(label, width - numbers)), details, wide)


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
        numbers = [
            f"{number:.6f}" for number in (variant.score, variant.min, variant.mean, variant.max)
        ]
        cells = _details(variant, workload)
        yield from _row(variant.variant, numbers, cells, layout, ("", style))
        if not layout.wide:
            interval, verdict, worst, slower = cells
            parts = [verdict, interval, worst and f"worst {worst}", slower and f"slower {slower}"]
            details = [part for part in parts if part]
            yield Words(details, style, "    ", "    ", DOT, even=True)
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
    score, *other_numbers = (f"  {number:>{TOP_DIGITS}}" for number in numbers)
    widths = [width * layout.wide for width in layout.details]
    cells = zip(details, widths, strict=True)
    detail_text = "".join(f"  {cell:<{width}}" for cell, width in cells if width).rstrip()
    row = ((f"  {label:<{layout.label}}", plain), (score, marked), ("".join(other_numbers), plain))
    yield Note((*row, (detail_text, marked)) if detail_text else row)


def _worst(variant: ScoredVariant) -> Iterator[Block]:
    worst = variant.worst
    if worst is None:
        return
    within = f" ({span(worst.interval)})" if worst.interval else ""
    parts = [f"worst at {worst.ratio:.6f}{within}: {long_point(worst)}"]
    parts += [f"weight {worst.weight:.4f}"]
    if variant.loss is not None:
        parts += [f"up to {variant.loss * 100:.1f} % slower"]
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
    if any(workload.approximate for workload in document.workloads):
        yield approximate()
    variants = [variant for workload in document.workloads for variant in workload.variants]
    worst = [variant.worst for variant in variants if variant.worst]
    if names := dict.fromkeys("/".join(ratio.point) for ratio in worst if ratio.point):
        axes = ", ".join(names)
        yield note(f"worst: the runtime workload with the least ratio, by {axes}")
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


def why(document: DbTop, width: int) -> Iterator[Block]:
    """Show each workload with its choice, then the evidence for it."""
    for index, workload in enumerate(document.workloads):
        if index:
            yield BLANK
        single = document.model_copy(update={"workloads": (workload,)})
        yield from choices(single, width, verbose=True, quiet=True)
        if workload.choice is not None and workload.reasoning is not None:
            yield BLANK
            for title, text in _parts(
                workload, workload.choice, workload.reasoning, document.rules
            ):
                head = f"{title:<{WHY_ROOM}}"
                yield Words(text, "", head, " " * WHY_ROOM, mark="bold")


def _parts(
    workload: ScoredWorkload, choice: Choice, reasoning: Reasoning, rules: Rules
) -> Iterator[tuple[str, str]]:
    yield "rows", _rows(workload, choice)
    for runtime in reasoning.runtime:
        values = ", ".join(f"{axis}={value}" for axis, value in runtime.point.items())
        title = f"{runtime.subbench}: {values}" if runtime.subbench != "base" else values
        yield (
            "",
            f"{title}: weight {runtime.weight:.4f}, base {runtime.base * 1e6:,.2f} us,"
            f" noise {runtime.noise:.2%}",
        )
    yield "noise", f"{choice.noise or 0:.4f} of a score in one run, from {choice.noise_origin}"
    yield (
        "luck",
        f"of {plural(choice.tried, 'variant')} as fast as base, the best gets above"
        f" {choice.luck or 1:.4f} in {1 - rules.confidence:.0%} of searches",
    )
    best = next((variant for variant in workload.variants if variant.variant != "base"), None)
    if best is not None:
        yield "best", _best(best)
    yield "confirmed", _confirmed(choice, reasoning)
    yield "changes", _what_would_change_it(workload, choice, reasoning, rules)


def _rows(workload: ScoredWorkload, choice: Choice) -> str:
    runs = plural(choice.runs, "run")
    of_declared = "" if workload.declared is None else f" of {workload.declared:,} declared"
    missing = f"; base is missing in {'; '.join(workload.missing)}" if workload.missing else ""
    weights = ", weights from the values present" if workload.approximate else ""
    return (
        f"{plural(choice.tried, 'variant')} and base on {workload.runtime_workloads:,}{of_declared}"
        f" runtime workloads in {runs} ({workload.database}), {workload.incomplete:,} not measured"
        f" whole{weights}{missing}"
    )


def _best(best: ScoredVariant) -> str:
    within = f", {span(best.interval)}" if best.interval else ""
    return f"{best.variant} with {best.score:.6f}{within}: {best.verdict or 'no samples'}"


def _confirmed(choice: Choice, reasoning: Reasoning) -> str:
    if not reasoning.confirming:
        runs = "more than nine runs" if reasoning.runs is None else plural(reasoning.runs, "run")
        return (
            "by no run: --confirm DB names one that the choice did not see; a gain of 3% takes"
            f" {runs} of the finalists to be found in 4 of 5 searches"
        )
    files = " + ".join(reasoning.confirming)
    return f"{'yes' if choice.decision == 'use' else 'no'}, by {files}"


def _what_would_change_it(
    workload: ScoredWorkload, choice: Choice, reasoning: Reasoning, rules: Rules
) -> str:
    if workload.missing:
        return "base measured there, too"
    if reasoning.enough is None:
        return f"a variant with no runtime workload under {rules.worst_allowed:g}, or other rules"
    if reasoning.confirming:
        return "further confirming runs: their mean is less noisy"
    if choice.decision == "use":
        return f"a confirming run where it has less than {reasoning.enough:.4f}"
    return f"a confirming run where the best has at least {reasoning.enough:.4f}"


NOTHING = Note("no workload has a base to compare with")


def workload_name(algorithm: str, workload: Mapping[str, str]) -> list[str]:
    """Name `cub.bench.reduce.sum[T{ct}=I32, OffsetT{ct}=I32]` as parts to be joined by `, `."""
    if not workload:
        return [algorithm]
    *parts, last = (f"{axis}={value}" for axis, value in workload.items())
    first, *rest = [*parts, f"{last}]"]
    return [f"{algorithm}[{first}", *rest]


def note(text: str) -> Block:
    """Format a remark below the results."""
    return Words(text.split(), "dim", even=True)


def approximate() -> Block:
    """Explain why scores are approximate."""
    return note(
        "approximate: the declared values of the {io} axes are not known, weights come from the"
        " values present; give the benchmark's source with --bench"
    )


def span(interval: Interval | None) -> str:
    """Write both ends, separated by a dash."""
    return f"{interval.low:.3f}\N{EN DASH}{interval.high:.3f}" if interval else ""


def short_point(worst: PointRatio) -> str:
    """Write `16/0.201`, preceded by the sub-benchmark unless it is `base`."""
    return _point(worst, "/".join(worst.point.values()), ":")


def long_point(worst: PointRatio) -> str:
    """Write `Elements{io}[pow2]=16, Entropy=0.201`."""
    return _point(worst, ", ".join(f"{axis}={value}" for axis, value in worst.point.items()), ": ")


def _point(worst: PointRatio, values: str, joint: str) -> str:
    if worst.subbench == "base" and values:
        return values
    return f"{worst.subbench}{joint}{values}" if values else worst.subbench


def percent(share: float) -> str:
    """Write `95 %`, `99.9 %`."""
    return f"{share * 100:.4g} %"
