"""Strategies of a kernel against sizes: on a terminal, as Markdown, and as a page."""

from collections.abc import Iterator

from policygen.model.matrix import KernelMatrix, KernelUse, MatrixCell, StrategyMatrix
from policygen.model.results import Interval
from policygen.portable import portable
from policygen.report import html, markdown
from policygen.report.blocks import (
    BLANK,
    Block,
    Column,
    Heading,
    Inline,
    Listing,
    Note,
    Page,
    Styled,
    Table,
    Words,
)
from policygen.report.chart_matrix import heat_map
from policygen.report.console import show

MEANING = (
    "At each size the best variant of each strategy, by the mean over processes of the median of"
    " their runs. A ratio is the time of the best at that size over a strategy's, in the same"
    " processes; intervals are of 95 %, by Student's distribution over processes. close: the"
    " interval holds 1. Bandwidth is what the kernel says that it moves, and its share is that of"
    " what a copy kernel reached on the same GPU. Occupancy is what fits by registers, shared"
    " memory and threads of a block."
)
STYLES = {"best": "green", "close": "", "slower": "red", "not known": "yellow"}
GIGA = 1e9


def print_matrix(document: StrategyMatrix, *, verbose: bool, quiet: bool) -> None:
    """Print who wins where."""
    show(compared(document, verbose=verbose, quiet=quiet))


def compared(document: StrategyMatrix, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show a table of ratios, and with `-v` what each takes."""
    for place, one in enumerate(document.kernels):
        if place:
            yield BLANK
        if not quiet:
            yield Note(f"{one.kernel} on {one.gpu}{_peak(one)}", "bold", folded=True)
        yield _ratios(one)
        yield from (_winner(one, size) for size in one.sizes)
        if verbose:
            yield from _lines(one)


def render(document: StrategyMatrix, form: str = "html") -> str:
    """Write a page with a heat map, or Markdown without."""
    document = portable(document)
    names = ", ".join(dict.fromkeys(one.kernel for one in document.kernels))
    facts = {"measured on": "; ".join(dict.fromkeys(one.gpu for one in document.kernels))}
    facts["databases"] = ", ".join(document.databases)
    blocks: list[Block] = []
    for one in document.kernels:
        blocks.append(Heading(f"{one.kernel} on {one.gpu}"))
        if form == "html":
            blocks.append(heat_map(one))
        else:
            blocks.append(_ratios(one))
        blocks.append(Listing([_winner(one, size).text for size in one.sizes]))
        if one.peak:
            blocks.append(Note(f"a copy moves {one.peak / GIGA:,.0f} GB/s", "soft"))
        blocks += [Heading("What each takes", 3), _details(one)]
    blocks.append(Note(MEANING, "soft"))
    page = Page(f"Strategies of {names}", facts, blocks)
    return html.render(page, "search") if form == "html" else markdown.render(page)


def _peak(one: KernelMatrix) -> str:
    return f"; a copy moves {one.peak / GIGA:,.0f} GB/s" if one.peak else ""


def _ratios(one: KernelMatrix) -> Table:
    columns: list[str | Column] = [one.by, *(Column(size, "n") for size in one.sizes)]
    rows = [
        [strategy, *(_ratio(one.cell(strategy, size)) for size in one.sizes)]
        for strategy in one.strategies
    ]
    return Table(columns, rows, label="the best's time over each strategy's")


def _ratio(cell: MatrixCell | None) -> str | Styled:
    if cell is None:
        return "-"
    return Styled(f"{cell.ratio:.3f}", STYLES[cell.verdict], _spread(_apart(cell)))


def _apart(cell: MatrixCell) -> Interval | None:
    """How sure a ratio is; the best one's is 1."""
    return None if cell.verdict == "best" else cell.ratio_interval


def _winner(one: KernelMatrix, size: str) -> Note:
    best = next(cell for cell in one.cells if cell.size == size and cell.verdict == "best")
    close = [c.strategy for c in one.cells if c.size == size and c.verdict == "close"]
    words = f"{size}: {best.strategy}, {best.variant}, {best.seconds * 1e6:,.1f} us"
    if best.bandwidth:
        words += f", {best.bandwidth / GIGA:,.0f} GB/s"
        words += f" ({best.share * 100:.0f} % of a copy)" if best.share else ""
    words += f"; close: {', '.join(close)}" if close else ""
    return Note(words, folded=True)


def _lines(one: KernelMatrix) -> Iterator[Block]:
    """Show what each takes, on a terminal."""
    for size in one.sizes:
        yield BLANK
        yield Note(size, "bold")
        for cell in one.cells:
            if cell.size == size:
                yield Words(f"{cell.strategy}, {cell.variant}", STYLES[cell.verdict], "  ", "    ")
                yield Words(_told(cell), "dim", "    ", "    ")


def _told(cell: MatrixCell) -> str:
    words = f"{cell.seconds * 1e6:,.2f} us"
    words += f" ({_spread(cell.interval, 1e6, 2)})" if cell.interval else ""
    words += f", ratio {cell.ratio:.3f}"
    words += f" ({_spread(_apart(cell))})" if _apart(cell) else ""
    words += f", {cell.bandwidth / GIGA:,.0f} GB/s" if cell.bandwidth else ""
    words += f", {cell.share * 100:.0f} % of a copy" if cell.share else ""
    if (use := cell.use) is not None:
        words += f"; {use.grid:,} blocks of {use.block:,}, occupancy {_occupancy(use)},"
        words += f" {use.registers} registers, {use.spilled} B spilled, {use.shared:,} B shared"
    return words


def _details(one: KernelMatrix) -> Table:
    is_profiled = any(cell.use and cell.use.achieved is not None for cell in one.cells)
    columns: list[str | Column] = [
        Column(one.by, "name"),
        Column("size", "n"),
        Column("us", "n"),
        Column("ratio", "n"),
        Column("GB/s", "n"),
        Column("of a copy", "n"),
        Column("occupancy", "n"),
        *([Column("achieved", "n")] if is_profiled else []),
        Column("registers", "n"),
        Column("spilled", "n"),
        Column("shared", "n"),
        "block, grid",
        "variant",
    ]
    rows: list[list[Inline | Styled]] = []
    for cell in one.cells:
        use = cell.use
        rows.append(
            [
                cell.strategy,
                cell.size,
                f"{cell.seconds * 1e6:,.2f}{_half(cell.interval, 1e6, 2)}",
                f"{cell.ratio:.3f}{_half(_apart(cell))}",
                f"{cell.bandwidth / GIGA:,.0f}" if cell.bandwidth else "",
                f"{cell.share * 100:.0f} %" if cell.share else "",
                f"{use.occupancy * 100:.0f} %" if use else "",
                *([_achieved(use)] if is_profiled else []),
                str(use.registers) if use else "",
                f"{use.spilled} B" if use else "",
                f"{use.shared:,} B" if use else "",
                f"{use.block:,}, {use.grid:,}" if use else "",
                Styled(cell.variant, "code"),
            ]
        )
    return Table(columns, rows, label="what the best variant of each strategy takes")


def _occupancy(use: KernelUse) -> str:
    """What fits, and what was at work where that is known."""
    achieved = f" ({_achieved(use)} achieved)" if use.achieved is not None else ""
    return f"{use.occupancy * 100:.0f} %{achieved}"


def _achieved(use: KernelUse | None) -> str:
    return f"{use.achieved * 100:.0f} %" if use and use.achieved is not None else ""


def _spread(interval: Interval | None, scale: float = 1.0, digits: int = 3) -> str:
    if interval is None:
        return ""
    return f"{interval.low * scale:,.{digits}f} to {interval.high * scale:,.{digits}f}"


def _half(interval: Interval | None, scale: float = 1.0, digits: int = 3) -> str:
    if interval is None:
        return ""
    return f" ± {(interval.high - interval.low) / 2 * scale:,.{digits}f}"
