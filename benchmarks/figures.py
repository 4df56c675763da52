"""Figures of benchmarks: lines over counts, drawn as policygen draws its plots."""

from collections.abc import Mapping, Sequence
from math import log10
from pathlib import Path

from policygen.report import charts
from policygen.report.blocks import Drawing
from policygen.report.plots import svg_file

Lines = Mapping[str, Mapping[int, float]]
"""Line, count → value."""


def write_lines(
    path: Path,
    title: str,
    panels: Mapping[str, Lines],
    ticks: Sequence[int],
    names: tuple[str, str],
    limits: tuple[float, float],
) -> None:
    """Panels with names for both axes; the limits are a value to compare with, and the highest."""
    lines = list(dict.fromkeys(line for panel in panels.values() for line in panel))
    drawings = [
        _panel(name, [panel[line] for line in lines], ticks, names, limits)
        for name, panel in panels.items()
    ]
    path.write_bytes(svg_file(title, "", [[charts.line_key(lines)], drawings]))


def _panel(
    name: str,
    lines: Sequence[Mapping[int, float]],
    ticks: Sequence[int],
    names: tuple[str, str],
    limits: tuple[float, float],
) -> Drawing:
    limit, highest = limits
    ends = (log10(min(ticks)), log10(max(*ticks, *lines[0])))
    panel = charts.Panel(46, 34, 340, 200, ends, (0, highest))
    y = charts.number(panel.up(limit))
    marks = [charts.head(name), *charts.y_axis(panel)]
    marks.append(charts.path("equal", f"M46 {y}h340", f"{limit:g}"))
    for tick in ticks:
        x = panel.across(log10(tick))
        marks.append(charts.path("edge", f"M{charts.number(x)} {charts.number(panel.bottom)}v4"))
        marks.append(charts.text("tick mid", x, panel.bottom + 16, f"{tick}"))
    for index, line in enumerate(lines):
        places = [(panel.across(log10(count)), panel.up(line[count])) for count in line]
        marks += charts.line(places, charts.series(index))
    marks += charts.frame(panel, *names)
    return Drawing(name, "", 400, panel.bottom + 36, marks)
