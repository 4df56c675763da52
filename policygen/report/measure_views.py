"""Measurements: each variant next to base with its interval, and the noise of the GPU."""

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
"""Variants of a workload shown without -v, best first."""


def measured(document: MeasuredVariants, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show a table for each workload; -v shows every runtime workload."""
    if head:
        yield Note(tree_line(document.cub), "dim", folded=True)
        processes = (
            f"{plural(document.processes, 'process', 'processes')} of {document.rounds} rounds"
        )
        yield Note(
            f"{document.gpu}, driver {document.driver}, {document.toolchain}: {processes}",
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
    scored = [variant for variant in workload.variants if variant.score is not None]
    best = sorted(scored, key=lambda variant: -(variant.score or 0))[:SHOWN]
    shown = scored if verbose or len(scored) <= SHOWN else best
    if scored:
        yield Table(
            # Names are long, so they fold in the last columns.
            (
                *(Column(title, "whole") for title in ("score", "95 %", "least", "most")),
                Column("", "name"),
                "variant",
            ),
            [_row(variant) for variant in shown],
            styles=[STYLES.get(variant.verdict or "", "") for variant in shown],
            label="variants beside base",
        )
    if len(shown) < len(scored):
        yield Note(f"the best {SHOWN} of {len(scored):,}; all: -v, or policygen db top", "dim")
    for variant in workload.variants:
        if variant.failed is not None:
            style = "red" if variant.failed.kind == "wrong" else "yellow"
            mark = "WRONG RESULTS" if variant.failed.kind == "wrong" else variant.failed.kind
            yield Words(f"{variant.variant}: {mark}: {variant.failed.reason}", style, "  ")
    yield from _noise(workload)
    if verbose:
        for variant in scored:
            yield BLANK
            yield Note(variant.variant)
            yield _runtime(variant)


def _row(variant: MeasuredVariant) -> list[str | float]:
    assert variant.score is not None
    ratios = [row.ratio for row in variant.runtime]
    return [
        variant.score,
        _interval_words(variant.interval),
        min(ratios),
        max(ratios),
        variant.verdict or "not sure",
        variant.variant,
    ]


def _runtime(variant: MeasuredVariant) -> Block:
    return Table(
        ("runtime workload", "weight", "base us", "us", "ratio", "95 %"),
        [
            [
                ", ".join(f"{axis}={value}" for axis, value in row.point.items()) or row.subbench,
                row.weight,
                f"{row.base_seconds * MICRO:.2f}",
                f"{row.seconds * MICRO:.2f}",
                row.ratio,
                _interval_words(row.interval),
            ]
            for row in variant.runtime
        ],
        label=f"runtime workloads of {variant.variant}",
    )


def _interval_words(interval: Interval | None) -> str:
    return "not known" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"


def _noise(workload: MeasuredWorkload) -> Iterator[Block]:
    if workload.noise:
        noise_by_point = [
            f"{', '.join(row.point.values()) or row.subbench}: {_percent(row.between)}"
            for row in workload.noise
        ]
        yield Words(
            [f"{text}," for text in noise_by_point[:-1]] + noise_by_point[-1:],
            "dim",
            "base from process to process: ",
            later="  ",
        )
    if workload.score_noise is not None:
        yield Note(f"score of base against itself: {_percent(workload.score_noise)}", "dim")
    for skipped in workload.skipped:
        name = ", ".join(f"{axis}={value}" for axis, value in skipped.point.items())
        yield Words(f"not measured: {name}: {skipped.reason}", "dim")
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
"""Failures of a workload shown without -v."""


# Counts of possible, valid, and distinct variants, and those that do not compile


def compiled_spaces(document: MeasureCompile, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show one line per workload, followed by its failures."""
    if head:
        words = f"{tree_line(document.cub)}, {document.toolchain}, for {document.arch}"
        yield Note(words, "dim", folded=True)
        yield BLANK
    if document.workloads:
        yield Table(
            ("workload", "variants", "valid", "distinct", "compiled", "failed"),
            [_space_row(space) for space in document.workloads],
            label="variants of workloads",
        )
    for space in document.workloads:
        if space.failed:
            yield BLANK
            yield Note(in_words(space.benchmark, space.workload), folded=True)
            yield from _failures(space, verbose=verbose)
    for unmeasured in document.unmeasured:
        name = in_words(unmeasured.benchmark, unmeasured.workload)
        yield Words(f"{name}: {unmeasured.reason}", "yellow")


def _space_row(space: CompiledSpace) -> list[str | float]:
    counts = (space.variants, space.valid, space.distinct, space.compiled, len(space.failed))
    return [in_words(space.benchmark, space.workload), *(f"{count:,}" for count in counts)]


def _failures(space: CompiledSpace, *, verbose: bool) -> Iterator[Block]:
    shown = space.failed if verbose else space.failed[:COMPILE_SHOWN]
    for failed in shown:
        yield Words(f"{failed.variant}: {failed.reason}", "yellow", "  ")
    if len(space.failed) > len(shown):
        yield Note(f"  and {plural(len(space.failed) - len(shown), 'more')}: -v", "dim")


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


# Strategies of a kernel by size: on a terminal, as Markdown, and as a page


def print_matrix(document: StrategyMatrix, *, verbose: bool, quiet: bool) -> None:
    """Print which strategy wins at which size."""
    show(compared(document, verbose=verbose, quiet=quiet))


def compared(document: StrategyMatrix, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show a table of ratios; `-v` adds the details of each strategy."""
    for index, matrix in enumerate(document.kernels):
        if index:
            yield BLANK
        if not quiet:
            yield Note(f"{matrix.kernel} on {matrix.gpu}{_peak(matrix)}", "bold", folded=True)
        yield _ratios(matrix)
        yield from (_winner(matrix, size) for size in matrix.sizes)
        if verbose:
            yield from _details_by_size(matrix)


def render(document: StrategyMatrix, form: str = "html") -> str:
    """Render a page with a heat map, or Markdown without."""
    document = portable(document)
    names = ", ".join(dict.fromkeys(matrix.kernel for matrix in document.kernels))
    facts = {"measured on": "; ".join(dict.fromkeys(matrix.gpu for matrix in document.kernels))}
    facts["databases"] = ", ".join(document.databases)
    blocks: list[Block] = []
    for matrix in document.kernels:
        blocks.append(Heading(f"{matrix.kernel} on {matrix.gpu}"))
        if form == "html":
            blocks.append(heat_map(matrix))
        else:
            blocks.append(_ratios(matrix))
        blocks.append(Listing([_winner(matrix, size).text for size in matrix.sizes]))
        if matrix.peak:
            blocks.append(Note(f"a copy moves {matrix.peak / GIGA:,.0f} GB/s", "soft"))
        blocks += [Heading("What each takes", 3), _details(matrix)]
    blocks.append(Note(MEANING, "soft"))
    page = Page(f"Strategies of {names}", facts, blocks)
    return pages.render(page, "search") if form == "html" else markdown.render(page)


def _peak(matrix: KernelMatrix) -> str:
    return f"; a copy moves {matrix.peak / GIGA:,.0f} GB/s" if matrix.peak else ""


def _ratios(matrix: KernelMatrix) -> Table:
    columns: list[str | Column] = [matrix.by, *(Column(size, "n") for size in matrix.sizes)]
    rows = [
        [strategy, *(_ratio(matrix.cell(strategy, size)) for size in matrix.sizes)]
        for strategy in matrix.strategies
    ]
    return Table(columns, rows, label="the best's time over each strategy's")


def _ratio(cell: MatrixCell | None) -> str | Styled:
    if cell is None:
        return "-"
    return Styled(
        f"{cell.ratio:.3f}", MATRIX_STYLES[cell.verdict], _scaled_interval(_ratio_interval(cell))
    )


def _ratio_interval(cell: MatrixCell) -> Interval | None:
    """Interval of a ratio; the best strategy has none because its ratio is always 1."""
    return None if cell.verdict == "best" else cell.ratio_interval


def _winner(matrix: KernelMatrix, size: str) -> Note:
    best = next(cell for cell in matrix.cells if cell.size == size and cell.verdict == "best")
    close = [
        cell.strategy for cell in matrix.cells if cell.size == size and cell.verdict == "close"
    ]
    words = f"{size}: {best.strategy}, {best.variant}, {best.seconds * 1e6:,.1f} us"
    if best.bandwidth:
        words += f", {best.bandwidth / GIGA:,.0f} GB/s"
        words += f" ({best.share * 100:.0f} % of a copy)" if best.share else ""
    words += f"; close: {', '.join(close)}" if close else ""
    return Note(words, folded=True)


def _details_by_size(matrix: KernelMatrix) -> Iterator[Block]:
    """Show the details of each strategy by size, on a terminal."""
    for size in matrix.sizes:
        yield BLANK
        yield Note(size, "bold")
        for cell in matrix.cells:
            if cell.size == size:
                yield Words(
                    f"{cell.strategy}, {cell.variant}", MATRIX_STYLES[cell.verdict], "  ", "    "
                )
                yield Words(_cell_details(cell), "dim", "    ", "    ")


def _cell_details(cell: MatrixCell) -> str:
    words = f"{cell.seconds * 1e6:,.2f} us"
    words += f" ({_scaled_interval(cell.interval, 1e6, 2)})" if cell.interval else ""
    words += f", ratio {cell.ratio:.3f}"
    words += f" ({_scaled_interval(_ratio_interval(cell))})" if _ratio_interval(cell) else ""
    words += f", {cell.bandwidth / GIGA:,.0f} GB/s" if cell.bandwidth else ""
    words += f", {cell.share * 100:.0f} % of a copy" if cell.share else ""
    if (use := cell.use) is not None:
        words += f"; {use.grid:,} blocks of {use.block:,}, occupancy {_occupancy(use)},"
        words += f" {use.registers} registers, {use.spilled} B spilled, {use.shared:,} B shared"
    return words


def _details(matrix: KernelMatrix) -> Table:
    is_profiled = any(cell.use and cell.use.achieved is not None for cell in matrix.cells)
    columns: list[str | Column] = [
        Column(matrix.by, "name"),
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
    for cell in matrix.cells:
        use = cell.use
        rows.append(
            [
                cell.strategy,
                cell.size,
                f"{cell.seconds * 1e6:,.2f}{_half_width(cell.interval, 1e6, 2)}",
                f"{cell.ratio:.3f}{_half_width(_ratio_interval(cell))}",
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
    """Theoretical occupancy, and achieved occupancy if known."""
    achieved = f" ({_achieved(use)} achieved)" if use.achieved is not None else ""
    return f"{use.occupancy * 100:.0f} %{achieved}"


def _achieved(use: KernelUse | None) -> str:
    return f"{use.achieved * 100:.0f} %" if use and use.achieved is not None else ""


def _scaled_interval(interval: Interval | None, scale: float = 1.0, digits: int = 3) -> str:
    if interval is None:
        return ""
    return f"{interval.low * scale:,.{digits}f} to {interval.high * scale:,.{digits}f}"


def _half_width(interval: Interval | None, scale: float = 1.0, digits: int = 3) -> str:
    if interval is None:
        return ""
    return f" ± {(interval.high - interval.low) / 2 * scale:,.{digits}f}"
