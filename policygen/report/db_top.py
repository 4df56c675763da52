"""A ranking on the terminal: a table for each workload, wide or with details below each row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policygen.model.results import DbTop, ScoredVariant, ScoredWorkload
from policygen.report.bench import wrap
from policygen.report.console import plural
from policygen.report.db_text import (
    APPROXIMATE,
    DOT,
    STYLES,
    Line,
    filled,
    heading,
    key_parts,
    line,
    long_point,
    note,
    percent,
    prose,
    short_point,
    span,
    workload_name,
)

NUMBERS = ("score", "min", "mean", "max")
DETAILS = ("interval", "verdict", "worst", "slower")
INDENT = "  "
GAP = "  "
DIGITS = 8

Cells = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of all workloads are laid out, so that their columns agree."""

    width: int
    label: int
    details: tuple[int, ...]
    """Widths of the columns behind the numbers; 0 for one that nobody needs."""
    wide: bool


def top_lines(document: DbTop, width: int, *, verbose: bool, quiet: bool) -> Iterator[Line]:
    """All workloads, then what holds for all of them."""
    layout = lay_out(document, width)
    files = verbose or len({one.database for one in document.workloads}) > 1
    for index, one in enumerate(document.workloads):
        if index:
            yield line("")
        where = key_parts(one, one.database if files else None)
        yield from heading(workload_name(one.algorithm, one.workload), where, width)
        yield from _table(one, layout, verbose=verbose)
        if not quiet:
            yield from _workload_notes(one, width)
    if not document.workloads:
        yield line("no workload has a base to compare with")
    elif not quiet:
        notes = list(_notes(document, width))
        yield from ([line(""), *notes] if notes else [])


def lay_out(document: DbTop, width: int) -> Layout:
    """One line a variant where that fits, else its details below it."""
    rows = [(v, details(v, one)) for one in document.workloads for v in one.variants]
    label = max([len("variant"), *(len(variant.variant) for variant, _ in rows)])
    columns = tuple(
        max(len(title), *cells) if any(cells := [len(row[i]) for _, row in rows]) else 0
        for i, title in enumerate(DETAILS)
    )
    numbers = len(NUMBERS) * (DIGITS + len(GAP))
    whole = len(INDENT) + label + numbers + sum(len(GAP) + column for column in columns if column)
    if whole <= width:
        return Layout(width, label, columns, wide=True)
    return Layout(width, max(0, min(label, width - len(INDENT) - numbers)), columns, wide=False)


def details(variant: ScoredVariant, one: ScoredWorkload) -> Cells:
    """Interval, verdict, worst runtime workload and how many got slower, in words."""
    worst = variant.worst
    return (
        span(variant.interval),
        variant.verdict or "",
        f"{short_point(worst)} {worst.ratio:.3f}" if worst else "",
        "" if variant.slower is None else f"{variant.slower} of {one.runtime_workloads}",
    )


def _table(one: ScoredWorkload, layout: Layout, *, verbose: bool) -> Iterator[Line]:
    if not one.variants:
        yield line(f"{INDENT}no variant")
        return
    titles = [title for title, room in zip(DETAILS, layout.details, strict=True) if room]
    yield from _row("variant", NUMBERS, titles if layout.wide else (), layout, ("dim",) * 3)
    for variant in one.variants:
        style = STYLES[variant.verdict]
        cells = details(variant, one)
        numbers = [f"{n:.6f}" for n in (variant.score, variant.min, variant.mean, variant.max)]
        shown = [cell for cell, room in zip(cells, layout.details, strict=True) if room]
        behind = shown if layout.wide else ()
        yield from _row(variant.variant, numbers, behind, layout, ("", style, style))
        if not layout.wide:
            yield from _below(cells, layout.width, style)
        if verbose:
            yield from _more(variant, layout.width)


def _row(
    label: str,
    numbers: Sequence[str],
    behind: Sequence[str],
    layout: Layout,
    styles: tuple[str, str, str],
) -> Iterator[Line]:
    """A label that is too long for its column has lines of its own above the numbers."""
    plain, marked, last = styles
    if len(label) > layout.label:
        for row in wrap(label.split("."), ".", layout.width - 2 * len(INDENT)):
            yield line(INDENT + row, plain)
        label = ""
    first, *others = (GAP + number.rjust(DIGITS) for number in numbers)
    rooms = [room for room in layout.details if room]
    tail = "".join(GAP + c.ljust(room) for c, room in zip(behind, rooms, strict=bool(behind)))
    pieces = [
        (INDENT + label.ljust(layout.label), plain),
        (first, marked),
        ("".join(others), plain),
    ]
    yield (*pieces, (tail.rstrip(), last)) if tail.strip() else tuple(pieces)


def _below(cells: Cells, width: int, style: str) -> Iterator[Line]:
    interval, verdict, worst, slower = cells
    parts = [verdict, interval, f"worst {worst}" if worst else ""]
    parts += [f"slower {slower}" if slower else ""]
    yield from filled([part for part in parts if part], DOT, width, style=style, first=2 * INDENT)


def _more(variant: ScoredVariant, width: int) -> Iterator[Line]:
    worst = variant.worst
    if worst is None:
        return
    within = f" ({span(worst.interval)})" if worst.interval else ""
    parts = [f"worst at {worst.ratio:.6f}{within}: {long_point(worst)}"]
    parts += [f"weight {worst.weight:.4f}"]
    if variant.loss is not None:
        parts += [f"up to {variant.loss * 100:.1f} % slower"]
    yield from filled(
        " · ".join(parts).split(" "), " ", width, style="dim", first=2 * INDENT, hang=3 * INDENT
    )


def _workload_notes(one: ScoredWorkload, width: int) -> Iterator[Line]:
    parts = []
    if hidden := one.complete - len(one.variants):
        parts.append(f"{hidden:,} more")
    if one.incomplete:
        were = "was" if one.incomplete == 1 else "were"
        total = plural(one.runtime_workloads, "runtime workload")
        parts.append(f"{plural(one.incomplete, 'variant')} {were} not measured on all {total}")
    if one.approximate:
        parts.append("scores are approximate")
    yield from prose("; ".join(parts), width, style="dim", indent=INDENT)


def _notes(document: DbTop, width: int) -> Iterator[Line]:
    if any(one.approximate for one in document.workloads):
        yield from note(APPROXIMATE, width)
    worst = [v.worst for one in document.workloads for v in one.variants if v.worst]
    names = dict.fromkeys("/".join(one.point) for one in worst if one.point)
    if names:
        yield from note(
            f"worst: the runtime workload with the least ratio, by {', '.join(names)}", width
        )
    if any(v.slower is not None for one in document.workloads for v in one.variants):
        rules = document.rules
        yield from note(
            f"interval: {percent(rules.confidence)} confidence; slower: runtime workloads slower"
            f" by more than {percent(rules.point_noise)}, beyond noise",
            width,
        )
    if document.alpha < 1:
        yield from note(
            f"alpha {document.alpha:g}: only runtime workloads whose samples differ from base's",
            width,
        )
