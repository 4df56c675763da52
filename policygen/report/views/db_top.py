"""A ranking: a table for each workload, wide or with details below each row."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.model.results import DbTop, ScoredVariant, ScoredWorkload, Verdict
from policygen.report.blocks import BLANK, Block, Note, Words
from policygen.report.console import plural
from policygen.report.layout import wrap
from policygen.report.views import db_words

NUMBERS = ("score", "min", "mean", "max")
DETAILS = ("interval", "verdict", "worst", "slower")
DIGITS = 8
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


def ranking(document: DbTop, width: int, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show all workloads, then what holds for all of them."""
    layout = _layout(document, width)
    files = verbose or len({one.database for one in document.workloads}) > 1
    for index, one in enumerate(document.workloads):
        if index:
            yield BLANK
        where = db_words.key_parts(one, one.database if files else None)
        yield db_words.heading(db_words.workload_name(one.algorithm, one.workload), where)
        yield from _variants(one, layout, verbose=verbose)
        if not quiet:
            yield db_words.prose("; ".join(_missing(one)), "  ", "dim")
    if not document.workloads:
        yield db_words.NOTHING
    elif not quiet and (notes := list(_notes(document))):
        yield from (BLANK, *notes)


def _layout(document: DbTop, width: int) -> Layout:
    """Plan one line a variant where that fits, else its details below it."""
    rows = [(v, _details(v, one)) for one in document.workloads for v in one.variants]
    label = max([len("variant"), *(len(variant.variant) for variant, _ in rows)])
    rooms = [max((len(cells[i]) for _, cells in rows), default=0) for i in range(len(DETAILS))]
    details = tuple(room and max(len(DETAILS[i]), room) for i, room in enumerate(rooms))
    numbers = 2 + len(NUMBERS) * (DIGITS + 2)
    wide = numbers + label + sum(room + 2 for room in details if room) <= width
    return Layout(width, label if wide else max(0, min(label, width - numbers)), details, wide)


def _details(variant: ScoredVariant, one: ScoredWorkload) -> tuple[str, ...]:
    """Tell interval, verdict, worst runtime workload and how many got slower."""
    worst = variant.worst
    return (
        db_words.span(variant.interval),
        variant.verdict or "",
        f"{db_words.short_point(worst)} {worst.ratio:.3f}" if worst else "",
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
            yield Words(told, style, "    ", "    ", db_words.DOT, even=True)
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
    first, *others = (f"  {number:>{DIGITS}}" for number in numbers)
    rooms = [room * layout.wide for room in layout.details]
    cells = zip(details, rooms, strict=True)
    behind = "".join(f"  {cell:<{room}}" for cell, room in cells if room).rstrip()
    row = ((f"  {label:<{layout.label}}", plain), (first, marked), ("".join(others), plain))
    yield Note((*row, (behind, marked)) if behind else row)


def _worst(variant: ScoredVariant) -> Iterator[Block]:
    worst = variant.worst
    if worst is None:
        return
    within = f" ({db_words.span(worst.interval)})" if worst.interval else ""
    parts = [f"worst at {worst.ratio:.6f}{within}: {db_words.long_point(worst)}"]
    parts += [f"weight {worst.weight:.4f}"]
    if variant.loss is not None:
        parts += [f"up to {variant.loss * 100:.1f} % slower"]
    yield Words(db_words.DOT.join(parts), "dim", "    ", even=True)


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
        yield db_words.approximate()
    variants = [variant for one in document.workloads for variant in one.variants]
    worst = [variant.worst for variant in variants if variant.worst]
    if names := dict.fromkeys("/".join(one.point) for one in worst if one.point):
        by = ", ".join(names)
        yield db_words.note(f"worst: the runtime workload with the least ratio, by {by}")
    if any(variant.slower is not None for variant in variants):
        sure, noise = map(db_words.percent, (document.rules.confidence, document.rules.point_noise))
        yield db_words.note(
            f"interval: {sure} confidence; slower: runtime workloads slower by more than {noise},"
            " beyond noise"
        )
    if document.alpha < 1:
        alpha = f"alpha {document.alpha:g}"
        yield db_words.note(f"{alpha}: only runtime workloads whose samples differ from base's")
