"""Tuning databases: rankings, choices, contents, coverage.

Nothing that matters is cut: what does not fit the width of the terminal takes more lines.
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
    """Print what to do for each workload."""
    show(choices(document, results().width, verbose=verbose, quiet=quiet))


def print_why(document: DbTop, **_how: bool) -> None:
    """Print the whole reasoning of choices, which is not said shorter or longer."""
    show(why(document, results().width))


def print_coverage(document: DbCoverage, *, verbose: bool, quiet: bool) -> None:
    """Print how much of the search space that is."""
    show(coverage(document, results().width, verbose=verbose, quiet=quiet))


# What databases hold, and how much of the search space that is.


def info(document: DbInfo, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show each file, its tables, and what failed."""
    for index, database in enumerate(document.databases):
        if index:
            yield BLANK
        yield heading([database.path], _facts(database, verbose=verbose))
        if not database.tables:
            yield Note("  no measurements")
        for table in database.tables:
            yield from _table(table, verbose=verbose)
        for failure in database.failures:
            what = plural(failure.count, f"failed {failure.kind}")
            yield prose(f"{what} of {failure.algorithm}, code {failure.code}", "  ", "yellow")
    if not quiet and len(document.databases) != 1:
        rows = sum(t.rows for database in document.databases for t in database.tables)
        yield BLANK
        yield Note(f"{plural(len(document.databases), 'database')}, {plural(rows, 'row')}")


# What the views of tuning databases have in common: headings, notes, numbers.


def heading(name: list[str], where: list[str]) -> Block:
    """Head what was measured, and where, on one line or on as many as it takes."""
    left = Words(name, "bold", later="    ", joint=", ", even=True)
    return Beside(left, Words(where, "dim", "  ", "  ", DOT, even=True))


DOT = " · "


def prose(text: str, indent: str = "", style: str = "") -> Block:
    """Set words, all lines indented alike."""
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
    points = [", ".join(f"{axis}={value}" for axis, value in w.items()) for w in table.workloads]
    yield from _listed("workloads", list(filter(None, points)), "; ", verbose=verbose)
    declared = "declared" if table.declared else "values present"
    for axis, values in table.axes.items():
        title = f"{axis} ({declared})" if "{io}" in axis else axis
        yield from _listed(title, values, " ", verbose=verbose)
    for parameter, texts in table.values.items():
        told = [f"{number} is {text}" for number, text in texts.items()]
        yield from _listed(parameter, told, DOT, verbose=verbose)


def key_parts(key: RunKey, database: str | None) -> list[str]:
    """Name where it was measured, in parts."""
    # NVBench's results name neither toolkit nor CCCL.
    return [key.gpu, *versions_of(key.ctk, key.cccl), *([database] if database else [])]


def versions_of(ctk: str, cccl: str) -> list[str]:
    """Name what is known of toolkit and library; `rocprim@` is a library of unknown version."""
    other, sign, version = cccl.partition("@")
    library = f"{CALLED.get(other, other)} {version}" if sign else f"cccl {cccl}"
    known = (f"ctk {ctk}", ctk), (library, version if sign else cccl)
    return [text for text, said in known if said]


CALLED = {"rocprim": "rocPRIM"}


def _listed(title: str, values: Sequence[str], joint: str, *, verbose: bool) -> Iterator[Block]:
    """List values; a list that is cut says how much was cut."""
    shown = list(values if verbose else values[:SHOWN])
    if hidden := len(values) - len(shown):
        shown.append(f"… {hidden:,} more, see them with -v")
    yield Words(shown, "", f"    {title}: ", "      ", joint, even=True, mark="dim")


SHOWN = 8
"""Values and workloads that are listed without --verbose."""
print_info = printed(info)
DIGITS = 8
ROOM = 36
"""The least width for reasons beside their variants."""


# Choices: what to do for each workload, and why not something else.


def choices(document: DbTop, width: int, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show each workload with its choice, then the rules and a count."""
    chosen = [(one, one.choice) for one in document.workloads if one.choice]
    files = verbose or len({one.database for one, _ in chosen}) > 1
    for index, (one, choice) in enumerate(chosen):
        if index:
            yield BLANK
        where = key_parts(one, one.database if files else None)
        yield heading(workload_name(one.algorithm, one.workload), where)
        yield from _choice(one, choice, width)
    if not chosen:
        yield NOTHING
    elif not quiet:
        yield BLANK
        if any(one.approximate for one in document.workloads):
            yield approximate()
        yield note(f"rules: {rules_in_words(document.rules)}")
        used = sum(choice.decision == "use" for _, choice in chosen)
        yield Note(f"use a variant for {used:,}, keep base for {len(chosen) - used:,}")


def _choice(one: ScoredWorkload, choice: Choice, width: int) -> Iterator[Block]:
    use = choice.decision == "use"
    title = f"use {choice.variant}" if use else "keep base"
    style = "bold green" if use else "bold"
    *above, last = wrap(title.split("."), ".", width - 4)
    yield from (Note(f"  {row}", style) for row in above)
    found = next((v for v in one.variants if v.variant == choice.variant), None)
    score = found.score if found else choice.score
    if not use or score is None:
        yield Note(f"  {last}", style)
    else:
        within = f" ({span(found.interval)})" if found and found.interval else ""
        verdict = f", {found.verdict}" if found and found.verdict else ""
        mark = ", approximate" if one.approximate else ""
        facts = f"score {score:.6f}{within}{verdict}{mark}"
        right = Words(facts.split(), "", "    ", "    ", even=True)
        yield Beside(Words([last], style, "  ", even=True), right)
    yield prose(choice.reason, "    ")
    yield from _rejected(choice.rejected, width)


def _rejected(rejected: Sequence[RejectedVariant], width: int) -> Iterator[Block]:
    """Show reasons beside the variants where there is room, else below them."""
    if not rejected:
        return
    yield Note("  not taken:", "dim")
    label = max(len(one.variant) for one in rejected)
    room = " " * (4 + label + 2 + DIGITS + 2)
    for one in rejected:
        score = f"{one.score:.6f}" if one.score is not None else "-"
        if width - len(room) >= ROOM:
            head = f"    {one.variant:<{label}}  {score:>{DIGITS}}  "
            if words := one.reason.split():
                yield Words(words, "", head, room, even=True)
            else:
                yield Note(head.rstrip())
        else:
            yield Words(one.variant.split("."), "", "    ", "    ", ".", even=True)
            yield prose(f"{score} {one.reason}", "      ")


def rules_in_words(rules: Rules) -> str:
    """Tell when a variant is taken."""
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
    """Show workloads below what they were measured on, each with its share."""
    groups: dict[tuple[RunKey, str], list[CoveredWorkload]] = {}
    for one in document.workloads:
        key = RunKey(gpu=one.gpu, ctk=one.ctk, cccl=one.cccl)
        groups.setdefault((key, one.database), []).append(one)
    files = verbose or len({database for _, database in groups}) > 1
    rooms = [max(map(len, column)) for column in zip(*map(_cells, document.workloads), strict=True)]
    for index, ((key, database), workloads) in enumerate(groups.items()):
        if index:
            yield BLANK
        where = key_parts(key, database if files else None)
        yield Words(where, "bold", "", "", DOT, even=True)
        name, *numbers = rooms
        room = width - len("     of   ") - sum(numbers)
        for one in workloads:
            yield from _covered(one, max(20, min(name, room)), numbers)
    if not groups:
        yield NOTHING
    elif not quiet and any(one.variants is None for one in document.workloads):
        yield BLANK
        yield note(UNKNOWN_SPACE)


def _cells(one: CoveredWorkload) -> tuple[str, str, str, str]:
    name = ", ".join(workload_name(one.algorithm, one.workload))
    total = "?" if one.variants is None else f"{one.variants:,}"
    share = "" if one.share is None else f"{one.share * 100:.4f} %"
    return name, f"{one.covered:,}", total, share


def _covered(one: CoveredWorkload, room: int, numbers: Sequence[int]) -> Iterator[Block]:
    """Show a line for a workload; a long name takes more lines above it."""
    name, *cells = _cells(one)
    covered, total, share = (cell.rjust(n) for cell, n in zip(cells, numbers, strict=True))
    parts = workload_name(one.algorithm, one.workload)
    *above, last = [name] if len(name) <= room else wrap(parts, ", ", room - 2)
    for index, row in enumerate(above):
        yield Note(f"    {row}" if index else f"  {row}")
    lead = f"{'    ' if above else '  '}{last}".ljust(2 + room)
    style = "green" if one.share is not None and one.share >= 1 else ""
    yield Note(((lead, ""), (f"  {covered} of {total}  {share}".rstrip(), style)))


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
    """How the rows of all workloads are laid out, so that their columns agree."""

    width: int
    label: int
    details: tuple[int, ...]
    """Widths of the columns behind the numbers; 0 for one that nobody needs."""
    wide: bool


# A ranking: a table for each workload, wide or with details below each row.


def ranking(document: DbTop, width: int, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show all workloads, then what holds for all of them."""
    layout = _layout(document, width)
    files = verbose or len({one.database for one in document.workloads}) > 1
    for index, one in enumerate(document.workloads):
        if index:
            yield BLANK
        where = key_parts(one, one.database if files else None)
        yield heading(workload_name(one.algorithm, one.workload), where)
        yield from _variants(one, layout, verbose=verbose)
        if not quiet:
            yield prose("; ".join(_missing(one)), "  ", "dim")
    if not document.workloads:
        yield NOTHING
    elif not quiet and (notes := list(_notes(document))):
        yield from (BLANK, *notes)


def _layout(document: DbTop, width: int) -> Layout:
    """Plan one line a variant where that fits, else its details below it."""
    rows = [(v, _details(v, one)) for one in document.workloads for v in one.variants]
    label = max([len("variant"), *(len(variant.variant) for variant, _ in rows)])
    rooms = [max((len(cells[i]) for _, cells in rows), default=0) for i in range(len(DETAILS))]
    details = tuple(room and max(len(DETAILS[i]), room) for i, room in enumerate(rooms))
    numbers = 2 + len(NUMBERS) * (TOP_DIGITS + 2)
    wide = numbers + label + sum(room + 2 for room in details if room) <= width
    return Layout(width, label if wide else max(0, min(label, width - numbers)), details, wide)


def _details(variant: ScoredVariant, one: ScoredWorkload) -> tuple[str, ...]:
    """Tell interval, verdict, worst runtime workload and how many got slower."""
    worst = variant.worst
    return (
        span(variant.interval),
        variant.verdict or "",
        f"{short_point(worst)} {worst.ratio:.3f}" if worst else "",
        "" if variant.slower is None else f"{variant.slower} of {one.runtime_workloads}",
    )


def _variants(one: ScoredWorkload, layout: Layout, *, verbose: bool) -> Iterator[Block]:
    if not one.variants:
        yield Note("  no variant")
        return
    yield from _row("variant", NUMBERS, DETAILS, layout, ("dim", "dim"))
    for variant in one.variants:
        style = STYLES[variant.verdict]
        numbers = [f"{n:.6f}" for n in (variant.score, variant.min, variant.mean, variant.max)]
        cells = _details(variant, one)
        yield from _row(variant.variant, numbers, cells, layout, ("", style))
        if not layout.wide:
            interval, verdict, worst, slower = cells
            parts = [verdict, interval, worst and f"worst {worst}", slower and f"slower {slower}"]
            told = [part for part in parts if part]
            yield Words(told, style, "    ", "    ", DOT, even=True)
        if verbose:
            yield from _worst(variant)


def _row(
    label: str,
    numbers: Sequence[str],
    details: Sequence[str],
    layout: Layout,
    styles: tuple[str, str],
) -> Iterator[Block]:
    """Show a row; a label that is too long for its column has lines of its own above it."""
    plain, marked = styles
    if len(label) > layout.label:
        for line in wrap(label.split("."), ".", layout.width - 4):
            yield Note(f"  {line}", plain)
        label = ""
    first, *others = (f"  {number:>{TOP_DIGITS}}" for number in numbers)
    rooms = [room * layout.wide for room in layout.details]
    cells = zip(details, rooms, strict=True)
    behind = "".join(f"  {cell:<{room}}" for cell, room in cells if room).rstrip()
    row = ((f"  {label:<{layout.label}}", plain), (first, marked), ("".join(others), plain))
    yield Note((*row, (behind, marked)) if behind else row)


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


def _missing(one: ScoredWorkload) -> Iterator[str]:
    if hidden := one.complete - len(one.variants):
        yield f"{hidden:,} more"
    if one.incomplete:
        were = "was" if one.incomplete == 1 else "were"
        total = plural(one.runtime_workloads, "runtime workload")
        yield f"{plural(one.incomplete, 'variant')} {were} not measured on all {total}"
    if one.approximate:
        yield "scores are approximate"


def _notes(document: DbTop) -> Iterator[Block]:
    if any(one.approximate for one in document.workloads):
        yield approximate()
    variants = [variant for one in document.workloads for variant in one.variants]
    worst = [variant.worst for variant in variants if variant.worst]
    if names := dict.fromkeys("/".join(one.point) for one in worst if one.point):
        by = ", ".join(names)
        yield note(f"worst: the runtime workload with the least ratio, by {by}")
    if any(variant.slower is not None for variant in variants):
        sure, noise = map(percent, (document.rules.confidence, document.rules.point_noise))
        yield note(
            f"interval: {sure} confidence; slower: runtime workloads slower by more than {noise},"
            " beyond noise"
        )
    if document.alpha < 1:
        alpha = f"alpha {document.alpha:g}"
        yield note(f"{alpha}: only runtime workloads whose samples differ from base's")


WHY_ROOM = 10
"""For the name of a step."""


# Why a choice is what it is: rows, weights, noise, luck, confirmation, what would change it.


def why(document: DbTop, width: int) -> Iterator[Block]:
    """Show each workload with its choice, then what it rests on."""
    for index, one in enumerate(document.workloads):
        if index:
            yield BLANK
        alone = document.model_copy(update={"workloads": (one,)})
        yield from choices(alone, width, verbose=True, quiet=True)
        if one.choice is not None and one.reasoning is not None:
            yield BLANK
            for title, text in _parts(one, one.choice, one.reasoning, document.rules):
                head = f"{title:<{WHY_ROOM}}"
                yield Words(text, "", head, " " * WHY_ROOM, mark="bold")


def _parts(
    one: ScoredWorkload, choice: Choice, reasoning: Reasoning, rules: Rules
) -> Iterator[tuple[str, str]]:
    yield "rows", _rows(one, choice)
    for runtime in reasoning.runtime:
        named = ", ".join(f"{axis}={value}" for axis, value in runtime.point.items())
        title = f"{runtime.subbench}: {named}" if runtime.subbench != "base" else named
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
    best = next((v for v in one.variants if v.variant != "base"), None)
    if best is not None:
        yield "best", _best(best)
    yield "confirmed", _confirmed(choice, reasoning)
    yield "changes", _changes(one, choice, reasoning, rules)


def _rows(one: ScoredWorkload, choice: Choice) -> str:
    runs = plural(choice.runs, "run")
    of = "" if one.declared is None else f" of {one.declared:,} declared"
    missing = f"; base is missing in {'; '.join(one.missing)}" if one.missing else ""
    weights = ", weights from the values present" if one.approximate else ""
    return (
        f"{plural(choice.tried, 'variant')} and base on {one.runtime_workloads:,}{of} runtime"
        f" workloads in {runs} ({one.database}), {one.incomplete:,} not measured whole"
        f"{weights}{missing}"
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


def _changes(one: ScoredWorkload, choice: Choice, reasoning: Reasoning, rules: Rules) -> str:
    if one.missing:
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
    """Name `cub.bench.reduce.sum[T{ct}=I32, OffsetT{ct}=I32]` in parts that `, ` joins."""
    if not workload:
        return [algorithm]
    *parts, last = (f"{axis}={value}" for axis, value in workload.items())
    first, *others = [*parts, f"{last}]"]
    return [f"{algorithm}[{first}", *others]


def note(text: str) -> Block:
    """Set a remark below the results."""
    return Words(text.split(), "dim", even=True)


def approximate() -> Block:
    """Say why scores are approximate."""
    return note(
        "approximate: the declared values of the {io} axes are not known, weights come from the"
        " values present; give the benchmark's source with --bench"
    )


def span(interval: Interval | None) -> str:
    """Write both ends with a dash between them."""
    return f"{interval.low:.3f}\N{EN DASH}{interval.high:.3f}" if interval else ""


def short_point(worst: PointRatio) -> str:
    """Write `16/0.201`; a sub-benchmark other than `base` goes before it."""
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
