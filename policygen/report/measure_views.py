"""What was measured: each variant beside base, with its interval, and how noisy the GPU is."""

from collections.abc import Iterator

from policygen.model.measured import (
    CompiledSpace,
    KernelMatrix,
    KernelUse,
    MatrixCell,
    MeasureCompile,
    MeasuredVariant,
    MeasuredVariants,
    MeasuredWorkload,
    StrategyMatrix,
)
from policygen.model.results import Interval
from policygen.model.workload import in_words
from policygen.portable import portable
from policygen.report import markdown, pages
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
from policygen.report.charts import heat_map
from policygen.report.console import plural, printed, show, tree_line

STYLES = {"faster": "green", "slower": "red", "equal": "dim"}
MICRO = 1e6
SHOWN = 20
"""Variants of a workload that are shown without -v, the best ones."""


def measured(document: MeasuredVariants, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show a table for each workload; -v shows every runtime workload."""
    if head:
        yield Note(tree_line(document.cub), "dim", folded=True)
        how = f"{plural(document.processes, 'process', 'processes')} of {document.rounds} rounds"
        yield Note(
            f"{document.gpu}, driver {document.driver}, {document.toolchain}: {how}",
            "dim",
            folded=True,
        )
    for workload in document.workloads:
        yield BLANK
        yield Note(in_words(workload.benchmark, workload.workload), "bold", folded=True)
        if workload.problem:
            yield Words(workload.problem, "red", "  ")
            continue
        yield from _workload(workload, verbose=verbose)
    if document.database and head:
        yield BLANK
        yield Note(f"written: {document.database}", folded=True)


def _workload(workload: MeasuredWorkload, *, verbose: bool) -> Iterator[Block]:
    scored = [one for one in workload.variants if one.score is not None]
    best = sorted(scored, key=lambda one: -(one.score or 0))[:SHOWN]
    shown = scored if verbose or len(scored) <= SHOWN else best
    if scored:
        yield Table(
            # Names are long, and fold where they stand last.
            (
                *(Column(title, "whole") for title in ("score", "95 %", "least", "most")),
                Column("", "name"),
                "variant",
            ),
            [_row(one) for one in shown],
            styles=[STYLES.get(one.verdict or "", "") for one in shown],
            label="variants beside base",
        )
    if len(shown) < len(scored):
        yield Note(f"the best {SHOWN} of {len(scored):,}; all: -v, or policygen db top", "dim")
    for one in workload.variants:
        if one.failed is not None:
            style = "red" if one.failed.kind == "wrong" else "yellow"
            mark = "WRONG RESULTS" if one.failed.kind == "wrong" else one.failed.kind
            yield Words(f"{one.variant}: {mark}: {one.failed.reason}", style, "  ")
    yield from _noise(workload)
    if verbose:
        for one in scored:
            yield BLANK
            yield Note(one.variant)
            yield _runtime(one)


def _row(one: MeasuredVariant) -> list[str | float]:
    assert one.score is not None
    ratios = [row.ratio for row in one.runtime]
    return [
        one.score,
        _between(one.interval),
        min(ratios),
        max(ratios),
        one.verdict or "not sure",
        one.variant,
    ]


def _runtime(one: MeasuredVariant) -> Block:
    return Table(
        ("runtime workload", "weight", "base us", "us", "ratio", "95 %"),
        [
            [
                ", ".join(f"{axis}={value}" for axis, value in row.point.items()) or row.subbench,
                row.weight,
                f"{row.base_seconds * MICRO:.2f}",
                f"{row.seconds * MICRO:.2f}",
                row.ratio,
                _between(row.interval),
            ]
            for row in one.runtime
        ],
        label=f"runtime workloads of {one.variant}",
    )


def _between(interval: Interval | None) -> str:
    return "not known" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"


def _noise(workload: MeasuredWorkload) -> Iterator[Block]:
    if workload.noise:
        told = [
            f"{', '.join(row.point.values()) or row.subbench}: {_percent(row.between)}"
            for row in workload.noise
        ]
        yield Words(
            [f"{one}," for one in told[:-1]] + told[-1:],
            "dim",
            "base from process to process: ",
            later="  ",
        )
    if workload.score_noise is not None:
        yield Note(f"score of base against itself: {_percent(workload.score_noise)}", "dim")
    for one in workload.skipped:
        name = ", ".join(f"{axis}={value}" for axis, value in one.point.items())
        yield Words(f"not measured: {name}: {one.reason}", "dim")
    if workload.repeated or workload.throttled:
        yield Note(
            f"{plural(workload.repeated, 'sample')} taken again as the GPU was slowed down,"
            f" {workload.throttled:,} taken so",
            "yellow",
            folded=True,
        )
    if workload.restarts:
        yield Note(f"{plural(workload.restarts, 'process', 'processes')} started again", "yellow")


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.2f} %"


print_measured = printed(measured)
COMPILE_SHOWN = 10
"""Failures of a workload that are shown without -v."""


# How many variants of workloads there are, can be and differ, and which do not compile.


def compiled_spaces(document: MeasureCompile, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show a line for each workload; below it what fails."""
    if head:
        words = f"{tree_line(document.cub)}, {document.toolchain}, for {document.arch}"
        yield Note(words, "dim", folded=True)
        yield BLANK
    if document.workloads:
        yield Table(
            ("workload", "variants", "valid", "distinct", "compiled", "failed"),
            [_measure_compile_row(one) for one in document.workloads],
            label="variants of workloads",
        )
    for one in document.workloads:
        if one.failed:
            yield BLANK
            yield Note(in_words(one.benchmark, one.workload), folded=True)
            yield from _failures(one, verbose=verbose)
    for other in document.unmeasured:
        name = in_words(other.benchmark, other.workload)
        yield Words(f"{name}: {other.reason}", "yellow")


def _measure_compile_row(one: CompiledSpace) -> list[str | float]:
    counts = (one.variants, one.valid, one.distinct, one.compiled, len(one.failed))
    return [in_words(one.benchmark, one.workload), *(f"{count:,}" for count in counts)]


def _failures(one: CompiledSpace, *, verbose: bool) -> Iterator[Block]:
    shown = one.failed if verbose else one.failed[:COMPILE_SHOWN]
    for failed in shown:
        yield Words(f"{failed.variant}: {failed.reason}", "yellow", "  ")
    if len(one.failed) > len(shown):
        yield Note(f"  and {plural(len(one.failed) - len(shown), 'more')}: -v", "dim")


print_compiled = printed(compiled_spaces)
MEANING = (
    "At each size the best variant of each strategy, by the mean over processes of the median of"
    " their runs. A ratio is the time of the best at that size over a strategy's, in the same"
    " processes; intervals are of 95 %, by Student's distribution over processes. close: the"
    " interval holds 1. Bandwidth is what the kernel says that it moves, and its share is that of"
    " what a copy kernel reached on the same GPU. Occupancy is what fits by registers, shared"
    " memory and threads of a block."
)
MATRIX_STYLES = {"best": "green", "close": "", "slower": "red", "not known": "yellow"}
GIGA = 1e9


# Strategies of a kernel against sizes: on a terminal, as Markdown, and as a page.


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
    return pages.render(page, "search") if form == "html" else markdown.render(page)


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
    return Styled(f"{cell.ratio:.3f}", MATRIX_STYLES[cell.verdict], _spread(_apart(cell)))


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
                yield Words(
                    f"{cell.strategy}, {cell.variant}", MATRIX_STYLES[cell.verdict], "  ", "    "
                )
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
