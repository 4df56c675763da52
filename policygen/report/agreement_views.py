"""Two databases beside each other: as tables on the terminal, and as a page with plots."""

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
"""Workloads of one side alone that are listed without -v."""
WIDE = 100
"""Letters of a terminal, from which on there is room for all columns."""
PAGE_WIDTH = 10_000
"""A page scrolls what is wide."""
NEEDED = 58
"""Letters that a winner takes besides the label of a variant."""
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
"""So many times what choices take is more than chance."""
SAID = {"contradicts": "contradicts", "not confirmed": "does not confirm"}
MEANING = (
    "order: Spearman's rank correlation of the scores; best: how many of A's best ones are among"
    " B's; shift and spread: mean and standard deviation of what B's score is above A's; by noise:"
    " the spread that noise alone makes, as choices take it; there: what the other side says of it;"
    " costs: what it lacks to the best one there"
)
Group = tuple[str, list[ComparedWorkload]]


def compared(document: DbCompare, width: int, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show both sides, a table for each benchmark, and what holds for all."""
    for name, side in (("A", document.a), ("B", document.b)):
        yield Words(side.databases, "bold", f"{name}  ", "   ", " + ", even=True)
        for where in _where(side):
            yield Words(where, "dim", "   ", "     ", ranking_views.DOT, even=True)
    for title, workloads in _groups(document.workloads):
        yield BLANK
        yield Words([title], "cyan", "", "    ", ", ", even=True)
        yield _overview(workloads, STYLES)
        yield BLANK
        yield from _winners(workloads, STYLES, width)
        for text in () if quiet else _reasons(workloads):
            yield ranking_views.prose(text, "  ")
        for one in workloads if verbose else ():
            yield BLANK
            yield Note(f"{_name(one)}: runtime workloads", "bold")
            yield _points(one)
    if not quiet:
        yield BLANK
        yield ranking_views.note(MEANING)
        for text in _remarks(document, verbose=verbose):
            yield ranking_views.note(text)
        for text in _summary(document.workloads):
            yield ranking_views.prose(text)


def print_compared(document: DbCompare, *, verbose: bool, quiet: bool) -> None:
    """Print what two sides say."""
    show(compared(document, results().width, verbose=verbose, quiet=quiet))


def render(document: DbCompare, form: str = "html") -> str:
    """Write a page with plots, or Markdown without; neither names a path of a machine."""
    document = portable(document)
    facts = {
        name: "; ".join([" + ".join(side.databases), *map(", ".join, _where(side))])
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
        yield from (Picture(one, words) for one in pairs_drawings(document))
    for title, workloads in _groups(document.workloads):
        yield Heading(title)
        yield _overview(workloads, ON_PAGE)
        yield from _winners(workloads, ON_PAGE, PAGE_WIDTH)
        yield from map(Note, _reasons(workloads))
        for one in workloads:
            name = f"{_name(one)}: runtime workloads"
            if plots:
                yield Fold(name, [_points(one)])
            else:
                yield from (Heading(name, 3), _points(one))
    yield Note(MEANING, "soft")


def _where(side: SideFiles) -> list[list[str]]:
    return [ranking_views.key_parts(key, None) for key in side.keys]


def _groups(workloads: Sequence[ComparedWorkload]) -> list[Group]:
    """Group workloads of one benchmark that were measured on the same, on either side."""
    found: dict[str, list[ComparedWorkload]] = {}
    several = len({_measured(one) for one in workloads}) > 1
    for one in workloads:
        keys = [" ".join(ranking_views.key_parts(side, None)) for side in (one.a, one.b)]
        where = f": A on {keys[0]}, B on {keys[1]}" if several else ""
        found.setdefault(f"{one.algorithm}{where}", []).append(one)
    return list(found.items())


def _measured(one: ComparedWorkload) -> tuple[str, ...]:
    return (*(getattr(one.a, key) for key in KEYS), *(getattr(one.b, key) for key in KEYS))


def _name(one: ComparedWorkload) -> str:
    return ", ".join(one.workload.values()) or one.algorithm


def _axes(workloads: Sequence[ComparedWorkload]) -> str:
    return ", ".join(map(axis_name, workloads[0].workload)) or "workload"


def _overview(workloads: Sequence[ComparedWorkload], styles: dict[str, str]) -> Table:
    """Show whether both say the same, and how far they are apart."""
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
            _name(one),
            f"{len(one.scores):,}",
            _coefficient(one.order.spearman),
            f"{one.order.in_both}/{one.order.best}",
            _percent(one.difference.shift),
            "-" if one.difference.spread is None else _share(one.difference.spread),
            _share(one.difference.expected),
            Styled(one.agreement or "-", styles.get(one.agreement or "", "")),
        ]
        for one in workloads
    ]
    return Table(columns, rows, "plain", "How far both are apart")


def _winners(
    workloads: Sequence[ComparedWorkload], styles: dict[str, str], width: int = WIDE
) -> Iterator[Block]:
    """Show what each side chooses, or finds best, and how that does on the other one."""
    winners = [
        (one, name, side.winner)
        for one in workloads
        for name, side in (("A", one.a), ("B", one.b))
        if side.winner is not None
    ]
    if max((len(winner.variant) for *_, winner in winners), default=0) > width - NEEDED:
        for one, name, winner in winners:
            yield from _narrow(one, name, winner, styles)
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
    for one, name, winner in winners:
        in_a, in_b, lacks, said = _told(name, winner)
        rows.append(
            [
                _name(one),
                _wins(name, winner),
                winner.variant,
                *(in_a, in_b),
                *([lacks] if costs else []),
                Styled(said, styles.get(said, "")),
            ]
        )
    yield Table(columns, rows, "plain", "Winners, and how they do on the other side")


def _narrow(
    one: ComparedWorkload, name: str, winner: Winner, styles: dict[str, str]
) -> Iterator[Block]:
    """Show a winner on lines of its own: its label breaks at dots."""
    in_a, in_b, lacks, said = _told(name, winner)
    head = f"{_name(one)}  {_wins(name, winner)}  "
    yield Words(winner.variant.split("."), "", head, "    ", ".", even=True)
    told = [f"A {in_a}", f"B {in_b}", f"costs {lacks}", said]
    yield Words(told, styles.get(said, ""), "    ", "    ", ranking_views.DOT, even=True)


def _wins(name: str, winner: Winner) -> str:
    return f"{name} uses" if winner.chosen else f"{name}'s best"


def _told(name: str, winner: Winner) -> tuple[str, str, str, str]:
    """Write a winner's scores in A and in B, what it costs, and what the other side says of it."""
    own, other = _places(winner)
    lacks = "-" if winner.costs is None else _share(winner.costs)
    said = winner.says or winner.verdict or ("not measured" if other == "-" else "-")
    return (own, other, lacks, said) if name == "A" else (other, own, lacks, said)


def _places(winner: Winner) -> tuple[str, str]:
    """Write score and rank, at home and on the other side."""
    own = f"{winner.score:.4f}"
    if winner.other_score is None:
        return own, "-"
    return f"{own} #{winner.rank:,}", f"{winner.other_score:.4f} #{winner.other_rank:,}"


def _reasons(workloads: Sequence[ComparedWorkload]) -> Iterator[str]:
    """Tell why a choice does not hold."""
    for one in workloads:
        for name, other, side in (("A", "B", one.a), ("B", "A", one.b)):
            winner = side.winner
            if winner is not None and winner.says in SAID:
                what = f"{other} {SAID[winner.says]} {name}'s {winner.variant}"
                yield f"{_name(one)}: {what}: {winner.reason}"


def _points(one: ComparedWorkload) -> Table:
    """Show each runtime workload: base's times, and how far the ratios are apart."""
    columns = [
        Column("runtime workload"),
        *(
            Column(title, "whole")
            for title in ("weight", "base A", "base B", "shift", "spread", "by noise")
        ),
    ]
    rows: list[list[Inline | Styled]] = []
    for point in one.points:
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
    """Tell what the user should know of the whole."""
    workloads = document.workloads
    different = [what for key, what in KEYS.items() if any(key in one.differs for one in workloads)]
    if different:
        what = " and ".join(filter(None, [", ".join(different[:-1]), different[-1]]))
        yield f"A and B are of different {what}: how far they are apart is not noise alone"
    if copies := sum(one.copy_of_rows for one in workloads):
        yield (
            f"{plural(copies, 'workload')} of B {'is a copy' if copies == 1 else 'are copies'} of"
            " A's, the same to the bit: a copy tells nothing of noise, and confirms nothing"
        )
    if any(one.a.approximate or one.b.approximate for one in workloads):
        yield "scores are approximate: the declared values of the {io} axes are not known (--bench)"
    for name, other, index in (("A", "B", 0), ("B", "A", 1)):
        sides = [(one.a, one.b)[index] for one in workloads]
        if count := sum(side.only for side in sides):
            yield f"{plural(count, 'variant')} only in {name}"
        if count := sum(side.runtime_only for side in sides):
            yield (
                f"{plural(count, 'runtime workload')} only in {name}, which do not count here;"
                f" choices of {name} know them"
            )
        if alone := (document.only_a, document.only_b)[index]:
            yield f"not in {other}: {_listed(alone, verbose=verbose)}"


def _listed(alone: Sequence[LoneWorkload], *, verbose: bool) -> str:
    names = [", ".join(ranking_views.workload_name(one.algorithm, one.workload)) for one in alone]
    shown = names if verbose else names[:SHOWN]
    hidden = len(names) - len(shown)
    return "; ".join([*shown, *([f"and {hidden:,} more, see them with -v"] if hidden else [])])


def _summary(workloads: Sequence[ComparedWorkload]) -> Iterator[str]:
    """Tell the whole in two sentences."""
    counts = Counter(one.agreement for one in workloads)
    known_for = [(text, counts[what]) for what, text in AGREED.items() if counts[what]]
    told = ", ".join(f"{text} for {count:,}" for text, count in known_for)
    yield f"{plural(len(workloads), 'workload')} in both: {told}"
    noise = sorted(one.difference.noise for one in workloads if one.difference.noise is not None)
    if noise:
        known = median(one.difference.expected for one in workloads)
        yield (
            f"noise of a score in one run, by these two: {_share(median(noise))}"
            f" ({_share(noise[0])} to {_share(noise[-1])}); choices take {_share(known)}"
        )
        if median(noise) > MORE * known:
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
