"""Measurements: each variant next to base with its interval, and the noise of the GPU."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from policygen.errors import plural
from policygen.model.measured import (
    FailedVariant,
    KernelMatrix,
    KernelUse,
    MatrixCell,
    MeasureCompile,
    MeasuredVariant,
    MeasuredVariants,
    MeasuredWorkload,
    SkippedPoint,
    StrategyMatrix,
)
from policygen.model.results import Interval
from policygen.model.searches import Finalist, SearchedWorkload
from policygen.model.trees import tree_line
from policygen.model.workload import axes, in_words, runtime_name
from policygen.report.blocks import (
    BLANK,
    Block,
    Cell,
    Column,
    Heading,
    Listing,
    Note,
    Page,
    Styled,
    Table,
    TableRows,
    Words,
    shortened,
)
from policygen.report.charts import heat_map
from policygen.report.console import percent_words, span_words

STYLES = {"faster": "green", "slower": "red", "equal": "dim"}
MICRO = 1e6
SHOWN = 20
"""Variants of a workload shown without -v, best first."""
V = TypeVar("V", MeasuredVariant, Finalist)


def measured(document: MeasuredVariants, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show a table for each workload; -v shows every runtime workload."""
    if head:
        yield Note(tree_line(document.cub), "dim", folded=True)
        setup = f"{document.gpu}, driver {document.driver}, {document.toolchain}"
        processes = plural(document.processes, "process", "processes")
        yield Note(f"{setup}: {processes} of {document.rounds} rounds", "dim", folded=True)
    for workload in document.workloads:
        yield from titled(workload, _workload(workload, verbose=verbose))
    if document.database and head:
        yield BLANK
        yield Note(f"written: {document.database}", folded=True)


def titled(
    workload: MeasuredWorkload | SearchedWorkload, blocks: Iterable[Block]
) -> Iterator[Block]:
    """Show the blocks of a workload below its name, or why it has none."""
    yield BLANK
    yield Note(in_words(workload.benchmark, workload.workload), "bold", folded=True)
    yield from [Words(workload.problem, "red", "  ")] if workload.problem else blocks


def _workload(workload: MeasuredWorkload, *, verbose: bool) -> Iterator[Block]:
    scored = [variant for variant in workload.variants if variant.score is not None]
    shown = scored
    if not verbose and len(scored) > SHOWN:
        shown = sorted(scored, key=lambda variant: -(variant.score or 0))[:SHOWN]
    if scored:
        yield variants_table(shown, "variants compared with base")
    if len(shown) < len(scored):
        yield Note(f"the best {SHOWN} of {len(scored):,}; all: -v, or policygen db top", "dim")
    for variant in workload.variants:
        if variant.failed is not None:
            words = f"{variant.variant}: {failure_mark(variant.failed.kind)}"
            style = "red" if variant.failed.kind == "wrong" else "yellow"
            yield Words(f"{words}: {variant.failed.reason}", style, "  ")
    yield from _noise(workload)
    for variant in scored if verbose else ():
        yield from runtime_blocks(variant, with_times=True)


def failure_mark(kind: str) -> str:
    """Name a kind of failure; wrong results stand out."""
    return "WRONG RESULTS" if kind == "wrong" else kind


def variants_table(
    variants: Sequence[V], label: str, *first: tuple[str, str, Callable[[V], Cell]]
) -> Table:
    """Show measured variants; names are long, so they fold in the last columns."""
    return TableRows(variants).table(
        *first,
        ("score", "whole", lambda variant: variant.score or 0.0),
        ("95 %", "whole", lambda variant: span_words(variant.interval)),
        ("least", "whole", lambda variant: min(row.ratio for row in variant.runtime)),
        ("most", "whole", lambda variant: max(row.ratio for row in variant.runtime)),
        ("", "name", lambda variant: variant.verdict or "not sure"),
        ("variant", "", lambda variant: variant.variant),
        look=lambda variant: STYLES.get(variant.verdict or "", ""),
        label=label,
    )


def runtime_blocks(variant: MeasuredVariant | Finalist, *, with_times: bool) -> Iterator[Block]:
    """Show the runtime workloads of a variant below its name."""
    yield BLANK
    yield Note(variant.variant)
    yield TableRows(variant.runtime).table(
        ("runtime workload", "", lambda row: runtime_name(row.subbench, row.point)),
        ("weight", "", lambda row: row.weight),
        ("base us", "", lambda row: f"{row.base_seconds * MICRO:.2f}") if with_times else None,
        ("us", "", lambda row: f"{row.seconds * MICRO:.2f}") if with_times else None,
        ("ratio", "", lambda row: row.ratio),
        ("95 %", "", lambda row: span_words(row.interval)),
        label=f"runtime workloads of {variant.variant}",
    )


def skipped_points(skipped: Iterable[SkippedPoint]) -> Iterator[Block]:
    """List runtime workloads that were not measured."""
    for point in skipped:
        yield Words(f"not measured: {', '.join(axes(point.point))}: {point.reason}", "dim")


def _noise(workload: MeasuredWorkload) -> Iterator[Block]:
    if workload.noise:
        *noise_by_point, last = (
            f"{', '.join(row.point.values()) or row.subbench}: {percent_words(row.between)}"
            for row in workload.noise
        )
        words = [*(f"{text}," for text in noise_by_point), last]
        yield Words(words, "dim", "base from process to process: ", later="  ")
    if workload.score_noise is not None:
        yield Note(f"score of base against itself: {percent_words(workload.score_noise)}", "dim")
    yield from skipped_points(workload.skipped)
    if workload.repeated or workload.throttled:
        repeated = f"{plural(workload.repeated, 'sample')} repeated because the GPU was throttled"
        yield Note(
            f"{repeated}; {workload.throttled:,} kept although it was throttled",
            "yellow",
            folded=True,
        )
    if workload.restarts:
        yield Note(f"{plural(workload.restarts, 'process', 'processes')} restarted", "yellow")


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
        yield TableRows(document.workloads).table(
            ("workload", "", lambda space: space.name),
            ("variants", "", lambda space: f"{space.variants:,}"),
            ("valid", "", lambda space: f"{space.valid:,}"),
            ("distinct", "", lambda space: f"{space.distinct:,}"),
            ("compiled", "", lambda space: f"{space.compiled:,}"),
            ("failed", "", lambda space: f"{len(space.failed):,}"),
            label="variants of workloads",
        )
    for space in document.workloads:
        if space.failed:
            yield BLANK
            yield Note(space.name, folded=True)
            yield from shortened(space.failed, COMPILE_SHOWN, _failure, verbose=verbose)
    for unmeasured in document.unmeasured:
        yield Words(f"{unmeasured.name}: {unmeasured.reason}", "yellow")


def _failure(failed: FailedVariant) -> Iterator[Block]:
    yield Words(f"{failed.variant}: {failed.reason}", "yellow", "  ")


MEANING = (
    "The best variant of each strategy at each size, ranked by the mean over processes of the"
    " median run. A ratio is the time of the best strategy at that size divided by this"
    " strategy's time, in the same processes; intervals are 95 % confidence intervals (Student's"
    " t over processes). close: the interval contains 1. Bandwidth is computed from the bytes"
    " that the workload file declares; its share is relative to a copy kernel on the same GPU."
    " Occupancy is the theoretical limit from registers, shared memory and threads per block."
)
MATRIX_STYLES = {"best": "green", "close": "", "slower": "red", "not known": "yellow"}
GIGA = 1e9


# Strategies of a kernel by size: on a terminal, as Markdown, and as a page


def compared(document: StrategyMatrix, *, verbose: bool, head: bool) -> Iterator[Block]:
    """Show a table of ratios; `-v` adds the details of each strategy."""
    for index, matrix in enumerate(document.kernels):
        if index:
            yield BLANK
        if head:
            copy = f"; {_copy_words(matrix.peak)}" if matrix.peak else ""
            yield Note(f"{matrix.kernel} on {matrix.gpu}{copy}", "bold", folded=True)
        yield _ratios(matrix)
        yield from (Note(_winner(matrix, size), folded=True) for size in matrix.sizes)
        if verbose:
            yield from _details_by_size(matrix)


def page(document: StrategyMatrix, *, is_page: bool) -> Page:
    """Build a page with a heat map, or Markdown without."""
    names = ", ".join(dict.fromkeys(matrix.kernel for matrix in document.kernels))
    facts = {"measured on": "; ".join(dict.fromkeys(matrix.gpu for matrix in document.kernels))}
    facts["databases"] = ", ".join(document.databases)
    blocks: list[Block] = []
    for matrix in document.kernels:
        blocks.append(Heading(f"{matrix.kernel} on {matrix.gpu}"))
        blocks.append(heat_map(matrix) if is_page else _ratios(matrix))
        blocks.append(Listing([_winner(matrix, size) for size in matrix.sizes]))
        if matrix.peak:
            blocks.append(Note(_copy_words(matrix.peak), "soft"))
        blocks += [Heading("Resources of each strategy", 3), _details(matrix)]
    blocks.append(Note(MEANING, "soft"))
    return Page(f"Strategies of {names}", facts, blocks)


def _copy_words(peak: float) -> str:
    return f"a copy kernel reaches {peak / GIGA:,.0f} GB/s"


def _ratios(matrix: KernelMatrix) -> Table:
    rows = [
        [strategy, *(_ratio(matrix.cell(strategy, size)) for size in matrix.sizes)]
        for strategy in matrix.strategies
    ]
    columns = [Column(matrix.by), *(Column(size, "n") for size in matrix.sizes)]
    return Table(columns, rows, label="best time divided by each strategy's time")


def _ratio(cell: MatrixCell | None) -> Cell:
    if cell is None:
        return "-"
    between = _scaled_interval(_ratio_interval(cell))
    return Styled(f"{cell.ratio:.3f}", MATRIX_STYLES[cell.verdict], between)


def _ratio_interval(cell: MatrixCell) -> Interval | None:
    """Interval of a ratio; the best strategy has none because its ratio is always 1."""
    return None if cell.verdict == "best" else cell.ratio_interval


def _winner(matrix: KernelMatrix, size: str) -> str:
    cells = [cell for cell in matrix.cells if cell.size == size]
    best = next(cell for cell in cells if cell.verdict == "best")
    close = ", ".join(cell.strategy for cell in cells if cell.verdict == "close")
    words = f"{size}: {best.strategy}, {best.variant}, {best.seconds * MICRO:,.1f} us"
    if best.bandwidth:
        words += f", {best.bandwidth / GIGA:,.0f} GB/s"
        words += f" ({best.share * 100:.0f} % of a copy)" if best.share else ""
    return f"{words}; close: {close}" if close else words


def _details_by_size(matrix: KernelMatrix) -> Iterator[Block]:
    for size in matrix.sizes:
        yield BLANK
        yield Note(size, "bold")
        for cell in matrix.cells:
            if cell.size == size:
                name = f"{cell.strategy}, {cell.variant}"
                yield Words(name, MATRIX_STYLES[cell.verdict], "  ", "    ")
                yield Words(_cell_details(cell), "dim", "    ", "    ")


def _cell_details(cell: MatrixCell) -> str:
    words = f"{cell.seconds * MICRO:,.2f} us"
    words += f" ({_scaled_interval(cell.interval, MICRO, 2)})" if cell.interval else ""
    words += f", ratio {cell.ratio:.3f}"
    words += f" ({_scaled_interval(_ratio_interval(cell))})" if _ratio_interval(cell) else ""
    words += f", {cell.bandwidth / GIGA:,.0f} GB/s" if cell.bandwidth else ""
    words += f", {cell.share * 100:.0f} % of a copy" if cell.share else ""
    if (use := cell.use) is not None:
        achieved = f" ({_achieved(use)} achieved)" if use.achieved is not None else ""
        occupancy = f"{use.occupancy * 100:.0f} %{achieved}"
        words += f"; {use.grid:,} blocks of {use.block:,}, occupancy {occupancy},"
        words += f" {use.registers} registers, {use.spilled} B spilled, {use.shared:,} B shared"
    return words


def _details(matrix: KernelMatrix) -> Table:
    is_profiled = any(cell.use and cell.use.achieved is not None for cell in matrix.cells)

    def used(write: Callable[[KernelUse], str]) -> Callable[[MatrixCell], str]:
        return lambda cell: write(cell.use) if cell.use else ""

    return TableRows(matrix.cells).table(
        (matrix.by, "name", lambda cell: cell.strategy),
        ("size", "n", lambda cell: cell.size),
        ("us", "n", lambda cell: _with_half_width(cell.seconds, cell.interval, MICRO, 2)),
        ("ratio", "n", lambda cell: _with_half_width(cell.ratio, _ratio_interval(cell))),
        ("GB/s", "n", lambda cell: f"{cell.bandwidth / GIGA:,.0f}" if cell.bandwidth else ""),
        ("of a copy", "n", lambda cell: f"{cell.share * 100:.0f} %" if cell.share else ""),
        ("occupancy", "n", used(lambda use: f"{use.occupancy * 100:.0f} %")),
        ("achieved", "n", used(_achieved)) if is_profiled else None,
        ("registers", "n", used(lambda use: f"{use.registers}")),
        ("spilled", "n", used(lambda use: f"{use.spilled} B")),
        ("shared", "n", used(lambda use: f"{use.shared:,} B")),
        ("block, grid", "", used(lambda use: f"{use.block:,}, {use.grid:,}")),
        ("variant", "", lambda cell: Styled(cell.variant, "code")),
        label="resources of the best variant of each strategy",
    )


def _achieved(use: KernelUse) -> str:
    return "" if use.achieved is None else f"{use.achieved * 100:.0f} %"


def _scaled_interval(interval: Interval | None, scale: float = 1.0, digits: int = 3) -> str:
    if interval is None:
        return ""
    return f"{interval.low * scale:,.{digits}f} to {interval.high * scale:,.{digits}f}"


def _with_half_width(
    value: float, interval: Interval | None, scale: float = 1.0, digits: int = 3
) -> str:
    # A ratio is never large enough for a separator.
    words = f"{value * scale:,.{digits}f}"
    if interval is None:
        return words
    return f"{words} ± {(interval.high - interval.low) / 2 * scale:,.{digits}f}"
