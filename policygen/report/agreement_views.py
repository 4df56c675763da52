"""Comparison of two databases: as tables on the terminal, and as a page with plots."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from policygen.model.databases import (
    Agreement,
    ComparedWorkload,
    DbCompare,
    LoneWorkload,
    SideFiles,
    Winner,
)
from policygen.model.workload import BASE, axis_name
from policygen.portable import portable
from policygen.report import markdown, pages, ranking_views
from policygen.report.blocks import (
    BLANK,
    Block,
    Column,
    Fold,
    Heading,
    Inline,
    Note,
    Page,
    Picture,
    Styled,
    Table,
    Words,
)
from policygen.report.console import plural, results, show
from policygen.report.plots import pairs_drawings

SHOWN = 8
"""Workloads of only one side that are listed without -v."""
WIDE = 100
"""Minimum terminal width, in characters, at which all columns fit."""
PAGE_WIDTH = 10_000
"""Effectively unlimited, because a page scrolls wide tables."""
NEEDED = 58
"""Characters that a winner takes in addition to the label of its variant."""
STYLES = {"holds": "green", "same variant": "green", "contradicts": "red"}
ON_PAGE = {"holds": "holds", "same variant": "holds", "contradicts": "contradicts"}
KEYS = {"gpu": "GPUs", "ctk": "versions of the toolkit", "cccl": "versions of CCCL"}
AGREED: Mapping[Agreement | None, str] = {
    "same variant": "both use the same variant",
    "both keep base": "both keep base",
    "holds": "they choose otherwise and it holds",
    "not confirmed": "a choice is not confirmed",
    "contradicts": "a choice is contradicted",
    "not measured": "a choice was not measured on the other side",
    None: "no choice is made from a part of the runtime workloads",
}
MORE = 1.5
"""Measured noise above this multiple of the expected noise is more than chance."""
ASSESSMENT_VERBS = {"contradicts": "contradicts", "not confirmed": "does not confirm"}
MEANING = (
    "order: Spearman's rank correlation of the scores; best: how many of A's best ones are among"
    " B's; shift and spread: mean and standard deviation of what B's score is above A's; by noise:"
    " the spread that noise alone makes, as choices take it; there: what the other side says of it;"
    " costs: what it lacks to the best one there"
)
Group = tuple[str, list[ComparedWorkload]]


def compared(document: DbCompare, width: int, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show both sides, a table for each benchmark, and notes that apply to all."""
    for name, side in (("A", document.a), ("B", document.b)):
        yield Words(side.databases, "bold", f"{name}  ", "   ", " + ", even=True)
        for key_parts in _all_key_parts(side):
            yield Words(key_parts, "dim", "   ", "     ", ranking_views.DOT, even=True)
    for title, workloads in _groups(document.workloads):
        yield BLANK
        yield Words([title], "cyan", "", "    ", ", ", even=True)
        yield _overview(workloads, STYLES)
        yield BLANK
        yield from _winners(workloads, STYLES, width)
        for text in () if quiet else _reasons(workloads):
            yield ranking_views.prose(text, "  ")
        for workload in workloads if verbose else ():
            yield BLANK
            yield Note(f"{_name(workload)}: runtime workloads", "bold")
            yield _points(workload)
    if not quiet:
        yield BLANK
        yield ranking_views.note(MEANING)
        for text in _remarks(document, verbose=verbose):
            yield ranking_views.note(text)
        for text in _summary(document.workloads):
            yield ranking_views.prose(text)


def print_compared(document: DbCompare, *, verbose: bool, quiet: bool) -> None:
    """Print the comparison of two sides."""
    show(compared(document, results().width, verbose=verbose, quiet=quiet))


def render(document: DbCompare, form: str = "html") -> str:
    """Render a page with plots, or Markdown without; local paths are removed from both."""
    document = portable(document)
    facts = {
        name: "; ".join([" + ".join(side.databases), *map(", ".join, _all_key_parts(side))])
        for name, side in (("A", document.a), ("B", document.b))
    }
    blocks = list(_page(document, plots=form == "html"))
    page = Page("Two databases compared", facts, blocks)
    return pages.render(page, "compare") if form == "html" else markdown.render(page)


def _page(document: DbCompare, *, plots: bool) -> Iterator[Block]:
    for text in (*_summary(document.workloads), *_remarks(document, verbose=True)):
        yield Note(text)
    words = "Scores in B over scores in A, a panel for each workload; the tables have the numbers"
    if plots:
        yield from (Picture(drawing, words) for drawing in pairs_drawings(document))
    for title, workloads in _groups(document.workloads):
        yield Heading(title)
        yield _overview(workloads, ON_PAGE)
        yield from _winners(workloads, ON_PAGE, PAGE_WIDTH)
        yield from map(Note, _reasons(workloads))
        for workload in workloads:
            name = f"{_name(workload)}: runtime workloads"
            if plots:
                yield Fold(name, [_points(workload)])
            else:
                yield from (Heading(name, 3), _points(workload))
    yield Note(MEANING, "soft")


def _all_key_parts(side: SideFiles) -> list[list[str]]:
    return [ranking_views.key_parts(key, None) for key in side.keys]


def _groups(workloads: Sequence[ComparedWorkload]) -> list[Group]:
    """Group workloads by benchmark and by what they were measured on, on either side."""
    groups: dict[str, list[ComparedWorkload]] = {}
    has_several_keys = len({_run_keys(workload) for workload in workloads}) > 1
    for workload in workloads:
        keys = [" ".join(ranking_views.key_parts(side, None)) for side in (workload.a, workload.b)]
        location = f": A on {keys[0]}, B on {keys[1]}" if has_several_keys else ""
        groups.setdefault(f"{workload.algorithm}{location}", []).append(workload)
    return list(groups.items())


def _run_keys(workload: ComparedWorkload) -> tuple[str, ...]:
    return (
        *(getattr(workload.a, key) for key in KEYS),
        *(getattr(workload.b, key) for key in KEYS),
    )


def _name(workload: ComparedWorkload) -> str:
    return ", ".join(workload.workload.values()) or workload.algorithm


def _axes(workloads: Sequence[ComparedWorkload]) -> str:
    return ", ".join(map(axis_name, workloads[0].workload)) or "workload"


def _overview(workloads: Sequence[ComparedWorkload], styles: dict[str, str]) -> Table:
    """Show whether both sides agree, and how far apart they are."""
    columns = [
        Column(_axes(workloads)),
        *(
            Column(title, "whole")
            for title in ("variants", "order", "best", "shift", "spread", "by noise")
        ),
        Column("choices"),
    ]
    rows: list[list[Inline | Styled]] = [
        [
            _name(workload),
            f"{len(workload.scores):,}",
            _coefficient(workload.order.spearman),
            f"{workload.order.in_both}/{workload.order.best}",
            _percent(workload.difference.shift),
            "-" if workload.difference.spread is None else _share(workload.difference.spread),
            _share(workload.difference.expected),
            Styled(workload.agreement or "-", styles.get(workload.agreement or "", "")),
        ]
        for workload in workloads
    ]
    return Table(columns, rows, "plain", "How far both are apart")


def _winners(
    workloads: Sequence[ComparedWorkload], styles: dict[str, str], width: int = WIDE
) -> Iterator[Block]:
    """Show what each side chooses or ranks best, and how that performs on the other side."""
    winners = [
        (workload, name, side.winner)
        for workload in workloads
        for name, side in (("A", workload.a), ("B", workload.b))
        if side.winner is not None
    ]
    if max((len(winner.variant) for *_, winner in winners), default=0) > width - NEEDED:
        for workload, name, winner in winners:
            yield from _winner_on_lines(workload, name, winner, styles)
        return
    costs = ["costs"] if width >= WIDE else []
    columns = [
        Column(_axes(workloads)),
        Column("winner"),
        Column("variant", "name"),
        *(Column(title, "whole") for title in ("in A", "in B", *costs)),
        Column("there"),
    ]
    rows: list[list[Inline | Styled]] = []
    for workload, name, winner in winners:
        in_a, in_b, cost, assessment = _winner_cells(name, winner)
        rows.append(
            [
                _name(workload),
                _wins(name, winner),
                winner.variant,
                *(in_a, in_b),
                *([cost] if costs else []),
                Styled(assessment, styles.get(assessment, "")),
            ]
        )
    yield Table(columns, rows, "plain", "Winners, and how they do on the other side")


def _winner_on_lines(
    workload: ComparedWorkload, name: str, winner: Winner, styles: dict[str, str]
) -> Iterator[Block]:
    """Show a winner on its own lines, with its label wrapped at dots."""
    in_a, in_b, cost, assessment = _winner_cells(name, winner)
    head = f"{_name(workload)}  {_wins(name, winner)}  "
    yield Words(winner.variant.split("."), "", head, "    ", ".", even=True)
    parts = [f"A {in_a}", f"B {in_b}", f"costs {cost}", assessment]
    yield Words(parts, styles.get(assessment, ""), "    ", "    ", ranking_views.DOT, even=True)


def _wins(name: str, winner: Winner) -> str:
    return f"{name} uses" if winner.chosen else f"{name}'s best"


def _winner_cells(name: str, winner: Winner) -> tuple[str, str, str, str]:
    """Return a winner's score in A and in B, its cost, and the other side's assessment."""
    own, other = _scores_and_ranks(winner)
    cost = "-" if winner.costs is None else _share(winner.costs)
    assessment = winner.says or winner.verdict or ("not measured" if other == "-" else "-")
    return (own, other, cost, assessment) if name == "A" else (other, own, cost, assessment)


def _scores_and_ranks(winner: Winner) -> tuple[str, str]:
    """Format score and rank, at home and on the other side."""
    own = f"{winner.score:.4f}"
    if winner.other_score is None:
        return own, "-"
    return f"{own} #{winner.rank:,}", f"{winner.other_score:.4f} #{winner.other_rank:,}"


def _reasons(workloads: Sequence[ComparedWorkload]) -> Iterator[str]:
    """Explain why a choice does not hold."""
    for workload in workloads:
        for name, other, side in (("A", "B", workload.a), ("B", "A", workload.b)):
            winner = side.winner
            if winner is not None and winner.says in ASSESSMENT_VERBS:
                claim = f"{other} {ASSESSMENT_VERBS[winner.says]} {name}'s {winner.variant}"
                yield f"{_name(workload)}: {claim}: {winner.reason}"


def _points(workload: ComparedWorkload) -> Table:
    """Show each runtime workload: base's times, and how far apart the ratios are."""
    columns = [
        Column("runtime workload"),
        *(
            Column(title, "whole")
            for title in ("weight", "base A", "base B", "shift", "spread", "by noise")
        ),
    ]
    rows: list[list[Inline | Styled]] = []
    for point in workload.points:
        values = ", ".join(f"{axis_name(axis)}={value}" for axis, value in point.point.items())
        name = values or point.subbench
        if values and point.subbench != BASE:
            name = f"{point.subbench}: {values}"
        rows.append(
            [
                name,
                f"{point.weight:.3f}",
                _time(point.base_a),
                _time(point.base_b),
                _percent(point.shift),
                "-" if point.spread is None else _share(point.spread),
                _share(point.expected),
            ]
        )
    return Table(columns, rows, "plain", "Runtime workloads")


def _remarks(document: DbCompare, *, verbose: bool) -> Iterator[str]:
    """List caveats that apply to the whole comparison."""
    workloads = document.workloads
    different = [
        label
        for key, label in KEYS.items()
        if any(key in workload.differs for workload in workloads)
    ]
    if different:
        label = " and ".join(filter(None, [", ".join(different[:-1]), different[-1]]))
        yield f"A and B are of different {label}: how far they are apart is not noise alone"
    if copies := sum(workload.copy_of_rows for workload in workloads):
        yield (
            f"{plural(copies, 'workload')} of B {'is a copy' if copies == 1 else 'are copies'} of"
            " A's, the same to the bit: a copy tells nothing of noise, and confirms nothing"
        )
    if any(workload.a.approximate or workload.b.approximate for workload in workloads):
        yield "scores are approximate: the declared values of the {io} axes are not known (--bench)"
    for name, other, index in (("A", "B", 0), ("B", "A", 1)):
        sides = [(workload.a, workload.b)[index] for workload in workloads]
        if count := sum(side.only for side in sides):
            yield f"{plural(count, 'variant')} only in {name}"
        if count := sum(side.runtime_only for side in sides):
            yield (
                f"{plural(count, 'runtime workload')} only in {name}, which do not count here;"
                f" choices of {name} know them"
            )
        if lone_workloads := (document.only_a, document.only_b)[index]:
            yield f"not in {other}: {_listed(lone_workloads, verbose=verbose)}"


def _listed(lone_workloads: Sequence[LoneWorkload], *, verbose: bool) -> str:
    names = [
        ", ".join(ranking_views.workload_name(workload.algorithm, workload.workload))
        for workload in lone_workloads
    ]
    shown = names if verbose else names[:SHOWN]
    hidden = len(names) - len(shown)
    return "; ".join([*shown, *([f"and {hidden:,} more, see them with -v"] if hidden else [])])


def _summary(workloads: Sequence[ComparedWorkload]) -> Iterator[str]:
    """Summarize the comparison in two sentences."""
    counts = Counter(workload.agreement for workload in workloads)
    counted = [(text, counts[agreement]) for agreement, text in AGREED.items() if counts[agreement]]
    agreements = ", ".join(f"{text} for {count:,}" for text, count in counted)
    yield f"{plural(len(workloads), 'workload')} in both: {agreements}"
    noise = sorted(
        workload.difference.noise for workload in workloads if workload.difference.noise is not None
    )
    if noise:
        expected = median(workload.difference.expected for workload in workloads)
        yield (
            f"noise of a score in one run, by these two: {_share(median(noise))}"
            f" ({_share(noise[0])} to {_share(noise[-1])}); choices take {_share(expected)}"
        )
        if median(noise) > MORE * expected:
            yield (
                "that is more than choices take: state it as noise under [choose] of a"
                " policygen.toml, or find out what else differs between the two"
            )


def _coefficient(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _percent(value: float) -> str:
    return f"{value * 100:+.2f} %"


def _share(value: float) -> str:
    return f"{value * 100:.2f} %"


def _time(seconds: float) -> str:
    """Write `6.88 µs`, `1.23 ms`."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("\N{MICRO SIGN}s", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"
