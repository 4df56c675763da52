"""Plots of databases: charts laid out in SVG files of their own, and the pairs of a comparison."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from markupsafe import Markup

from policygen.errors import InputError
from policygen.model.databases import ComparedWorkload, DbCompare, PointRatios, WorkloadPlot
from policygen.model.searches import QUANTILES
from policygen.model.workload import axes, plain
from policygen.outputs import MAKER
from policygen.rendering import fill
from policygen.report import charts
from policygen.report.blocks import Drawing, Mark
from policygen.report.charts import Panel, path, text
from policygen.report.search_charts import Colours, MarkedVariants, ScoredCell, bins_of, score_map

MARGIN, GAP = 16.0, 24.0
LEAST_WIDTH = 560.0
"""Minimum width of what is drawn in a file."""
LINE = 18.0
"""Height of a line above the charts."""
TITLE_LETTER = 10.0
"""Approximate width of a letter of a file's title."""
ACROSS = 6
"""Maximum number of panels in a row of a nearly square grid."""
# .dots { stroke: var(--dot); }
_COLOUR = re.compile(r"var\(--(\w+)\)")
# :root { --dot: #57606a; --last: #9a6700;
_COLOUR_VALUE = re.compile(r"--(\w+): ([^;]+);")


# SVG files, byte-identical for the same numbers


def svg_file(title: str, words: str, rows: Sequence[Sequence[Drawing]]) -> bytes:
    """Lay out rows of drawings below a title and words about all of them."""
    width = max(LEAST_WIDTH, *(sum(drawing.width + GAP for drawing in row) - GAP for row in rows))
    lines = [("title", line) for line in charts.wrapped(title, width, TITLE_LETTER)]
    lines += [("", line) for line in charts.wrapped(words, width, charts.LETTER)]
    marks = [text(look, 0.0, LINE * place, line) for place, (look, line) in enumerate(lines, 1)]
    heading = Drawing(title, words, width, LINE * len(lines), marks)
    placed, y = [], MARGIN
    for row in [[heading], *rows]:
        x = MARGIN
        for drawing in row:
            # Escaped by charts
            placed.append((x, y, drawing.title, Markup(charts.elements(drawing))))  # noqa: S704
            x += drawing.width + GAP
        y += max(drawing.height for drawing in row) + GAP
    values = {
        "width": charts.number(width + 2 * MARGIN),
        "height": charts.number(y),
        "title": title,
        "maker": MAKER,
        "styles": Markup(_light_styles()),  # noqa: S704
        "drawings": placed,
        "number": charts.number,
    }
    return fill("report/plot.svg.j2", values).encode()


def _light_styles() -> str:
    """Write the light colors into the styles, because Inkscape does not know variables."""
    colours = dict(_COLOUR_VALUE.findall(fill("report/light.css.j2", {})))
    return _COLOUR.sub(lambda match: colours[match[1]], fill("report/marks.css.j2", {}))


def _nearly_square(drawings: Sequence[Drawing]) -> list[Sequence[Drawing]]:
    count = len(drawings)
    columns = min(ACROSS, count if count < 4 else max(2, round(count**0.5 * 1.2)))
    return [drawings[start : start + columns] for start in range(0, count, columns)]


# One workload: ratios of base to variants as in CUB's tuning documentation, or a map of scores


def draw_plot(plot: WorkloadPlot) -> bytes:
    """Draw the ratios of variants to base, or their scores over two parameters."""
    if plot.document.parameters:
        drawing = _cell_map(*plot.document.parameters, plot.cells)
        return svg_file(plot.title, drawing.note, [[drawing]])
    if not plot.points:
        raise InputError("nothing to plot: no runtime workload has samples of base and a variant")
    words = "base / variant at each quantile of the samples: above 1 is faster"
    return svg_file(plot.title, words, _ratio_rows(plot.points))


def _ratio_rows(points: Sequence[PointRatios]) -> list[Sequence[Drawing]]:
    """Draw the key of the lines, and panels that share their axes, one row per size."""
    names = list(dict.fromkeys(name for point in points for name in point.ratios))
    rows: dict[tuple[str, str], list[Drawing]] = {}
    drawings = charts.quantile_panels(names, points, QUANTILES)
    for point, drawing in zip(points, drawings, strict=True):
        sizes = [value for axis, value in point.point.items() if "{io}" in axis]
        row = point.subbench, next(iter([*sizes, *point.point.values()]), "")
        rows.setdefault(row, []).append(drawing)
    key = charts.line_key(names, 40 + charts.BOLD_LETTER * max(map(len, names)))
    if all(len(row) == 1 for row in rows.values()):
        return [[key], *_nearly_square([drawing for row in rows.values() for drawing in row])]
    return [[key], *rows.values()]


def _cell_map(
    x_name: str, y_name: str, scores: Mapping[tuple[int, int], Sequence[float]]
) -> Drawing:
    """Draw one cell per pair of values, or of ranges of them; missing cells are hatched."""
    x = bins_of(x_name, {x for x, _ in scores}, MAP_BINS)
    y = bins_of(y_name, {y for _, y in scores}, MAP_BINS)
    grid = {place: ScoredCell() for place in product(range(len(x.bins)), range(len(y.bins)))}
    for (x_value, y_value), values in scores.items():
        grid[x.place(x_value), y.place(y_value)].scores.extend(values)
    colours = Colours.of([max(cell.scores) for cell in grid.values() if cell.scores])
    width = min(MAP_WIDTH, max(LEAST_WIDTH, 62 + CELL * len(x.bins)))
    marked = MarkedVariants({}, 1.0, {})
    return score_map(x, y, grid, colours, marked, ("missing", "no score"), width)


MAP_WIDTH, CELL = 1100.0, 36.0
"""Maximum width of a map, and width of its cells if there is room."""
MAP_BINS = 64
PANELS = 24
"""Maximum number of workloads in a file."""
SIDE = 236.0
SURE = 1.96
"""Standard deviations that cover 95 %."""
WINNER_NAMES = {
    "last a won": "A uses it",
    "last a": "A's best, base is kept",
    "ring b won": "B uses it",
    "ring b": "B's best, base is kept",
}
"""Name of each look of a winner."""


# Scores of two sides against each other, one panel per workload, with the winners marked


def draw_comparison(document: DbCompare) -> bytes:
    """Draw all workloads, as many as a file can hold."""
    workloads = document.workloads
    if len(workloads) > PANELS:
        raise InputError(
            f"{len(workloads)} workloads match, but a plot shows at most {PANELS}",
            "Choose some with -R and -a, or write a page that shows all: -o FILE.html",
        )
    names = list(dict.fromkeys(workload.algorithm for workload in workloads))
    subject = names[0] if len(names) == 1 else f"{len(names)} benchmarks"
    sides = [*(workload.a for workload in workloads), *(workload.b for workload in workloads)]
    title = f"{subject} on {' and '.join(dict.fromkeys(side.gpu for side in sides))}"
    key = pairs_key(workloads)
    return svg_file(title, key.note, [[key], *_nearly_square(pairs_drawings(workloads))])


def pairs_key(workloads: Sequence[ComparedWorkload]) -> Drawing:
    """Draw the legend of the panels."""
    drawn = {look for workload in workloads for look, *_ in _winners(workload)}
    entries = [("dots pair", "a variant"), ("equal", "equal in both"), ("band", "95 % of noise")]
    entries += [(look, name) for look, name in WINNER_NAMES.items() if look in drawn]
    marks = [
        mark
        for place, entry in enumerate(entries)
        for mark in charts.legend([entry], 14.0 + LINE * place)
    ]
    words = ", ".join(name for _, name in entries)
    note = "Scores in B against scores in A, one panel per workload."
    return Drawing("Marks in the figures below", words, 200.0, LINE * len(entries) + 6, marks, note)


def pairs_drawings(workloads: Sequence[ComparedWorkload]) -> list[Drawing]:
    """Draw a panel per workload; differences within the band are explained by noise."""
    is_same = len({workload.algorithm for workload in workloads}) == 1
    names = [_name(workload, is_short=is_same) for workload in workloads]
    top = 24 + charts.title_height(names)
    return [
        _pairs_panel(workload, name, top) for workload, name in zip(workloads, names, strict=True)
    ]


def _name(workload: ComparedWorkload, *, is_short: bool) -> str:
    parts = [] if is_short else [workload.algorithm.removeprefix("cub.bench.")]
    return ", ".join([*parts, *axes(plain(workload.workload))]) or workload.algorithm


def _pairs_panel(workload: ComparedWorkload, name: str, top: float) -> Drawing:
    scores = workload.scores
    ends = charts.ratio_ends(value for pair in scores for value in (pair.a, pair.b))
    panel = Panel(46, top, SIDE, SIDE, ends, ends)
    places = ((panel.across(pair.a), panel.up(pair.b)) for pair in scores)
    marks = [
        *charts.heads(name),
        path("band", _noise_outline(panel, workload)),
        *charts.y_axis(panel, 6),
        *charts.x_axis(panel, 6),
        *charts.unit(panel),
        charts.upright(panel, "unit", 1, "base"),
        *charts.line([(panel.across(end), panel.up(end)) for end in ends], "equal"),
        *charts.dots(places, "dots pair"),
        *_winner_marks(panel, workload),
        *charts.frame(panel, "score in B", "score in A"),
    ]
    words = f"{len(scores):,} variants"
    if workload.order.spearman is not None:
        order = f"order {workload.order.spearman:.2f}"
        marks.append(text("tick end", panel.across(ends[1]), panel.top - 7, order))
        words += f", {order}"
    return Drawing(f"Scores in B against A: {name}", words, charts.SMALL, panel.bottom + 36, marks)


def _noise_outline(panel: Panel, workload: ComparedWorkload) -> str:
    """Write the outline of the scores in B that the noise of a variant's two scores explains."""
    low, high = panel.x
    noise_range = SURE * workload.difference.expected
    places: list[charts.Place] = []
    for sign in (1, -1):
        slope = max(0.01, 1 + workload.difference.shift + sign * noise_range)
        # The line through 0 with this slope bends where it leaves the panel.
        bends = sorted(min(high, max(low, x)) for x in (low, low / slope, high / slope, high))
        places += [(panel.across(x), panel.up(slope * x)) for x in bends[::sign]]
    return f"{charts.outline(places)}z"


def _winners(workload: ComparedWorkload) -> Iterator[tuple[str, str, float, float]]:
    """Winners that both sides measured: their look, their label, and their scores in A and in B."""
    for look, side, step in (("last a", workload.a, 1), ("ring b", workload.b, -1)):
        winner = side.winner
        if winner is not None and winner.other_score is not None:
            a, b = (winner.score, winner.other_score)[::step]
            yield f"{look} won" if winner.chosen else look, winner.variant, a, b


def _winner_marks(panel: Panel, workload: ComparedWorkload) -> Iterator[Mark]:
    """Mark both winners; A's is smaller and on top, so that both are visible in one place."""
    for look, variant, a, b in reversed(list(_winners(workload))):
        x, y = panel.across(a), panel.up(b)
        title = f"{variant}, {WINNER_NAMES[look]}: {a:.4f} in A, {b:.4f} in B"
        is_ring = look.startswith("ring")
        yield charts.ring(look, x, y, title, 6.5) if is_ring else charts.diamond(x, y, look, title)
