"""Benchmarks: one row each, and on request their axes."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from policygen.model.bench import Axis, Benchmark, BenchmarkList, SubBenchmark
from policygen.report.blocks import BLANK, Block, Column, Note, Table, Words
from policygen.report.layout import wrap

if TYPE_CHECKING:
    from policygen.report.terminal import Terminal

NONE = "-"
MORE = "+"
UNKNOWN = "?"
NOTE = f"{MORE} {UNKNOWN}: the source alone does not tell all values of an axis"
GAP = 2
ROOM = 40
"""The least width for parameters in a column of their own."""
EXACT = 10**12
HEAD = ("benchmark", "parameters", "variants", "workloads", "runtime")


def show(document: BenchmarkList, out: "Terminal", *, verbose: bool = False) -> None:
    """Print benchmarks."""
    out.write(benchmarks(document, out.width, verbose=verbose))


def benchmarks(document: BenchmarkList, width: int, *, verbose: bool) -> Iterator[Block]:
    """Show a table that fits; nothing is cut, long cells take more lines."""
    rows = [_row(one) for one in document.benchmarks]
    yield _table(rows, width)
    if any(cell.endswith((MORE, UNKNOWN)) for row in rows for cell in row[3:]):
        yield Note(NOTE, folded=True)
    for one in document.benchmarks if verbose else ():
        yield BLANK
        yield Note(f"{one.name}  {one.source}")
        for sub in one.subbenches:
            yield from _sub_benchmark(sub)


def _row(one: Benchmark) -> tuple[str, ...]:
    parameters = ", ".join(f"{p.label} {p.start}:{p.end}:{p.step}" for p in one.parameters)
    workloads = runtime = NONE
    if one.subbenches:
        axes = [axis for sub in one.subbenches for axis in sub.axes]
        workloads = _total(one.workloads, [axis for axis in axes if axis.compile_time])
        runtime = _total(one.runtime_workloads, [axis for axis in axes if not axis.compile_time])
    return one.name, parameters or NONE, _count(one.variants), workloads, runtime


def _count(number: int) -> str:
    digits = str(number)
    return f"{number:,}" if number < EXACT else f"{digits[0]}.{digits[1:3]}e+{len(digits) - 1}"


def _total(number: int, axes: Sequence[Axis]) -> str:
    if any(not axis.complete and not axis.values for axis in axes):
        return UNKNOWN
    return _count(number) + MORE * any(not axis.complete for axis in axes)


def _table(rows: Sequence[tuple[str, ...]], width: int) -> Table:
    """Set names and parameters side by side where there is room, else one below the other."""
    longest, widest, *numbers = (max(map(len, column)) for column in zip(HEAD, *rows, strict=True))
    left = max(30, width - sum(numbers) - GAP * len(numbers))
    room = left - GAP - min(longest, left // 2)
    beside = room >= min(widest, ROOM)
    shown: list[list[str]] = []
    for name, parameters, *counts in rows:
        named = wrap(name.split("."), ".", left // 2 if beside else left)
        values = [] if parameters == NONE and not beside else parameters.split(", ")
        told = wrap(values, ", ", room if beside else left - GAP)
        cells = [[line] for line in (*named, *(f"  {line}" for line in told))]
        if beside:
            cells = [[*one] for one in zip_longest(named, told, fillvalue="")]
        blank = [""] * len(counts)
        shown += [[*one, *(blank if index else counts)] for index, one in enumerate(cells)]
    titles = HEAD[:2] if beside else (" / ".join(HEAD[:2]),)
    columns = [*map(Column, titles), *(Column(title, "whole") for title in HEAD[2:])]
    return Table(columns, shown, "plain")


def _sub_benchmark(sub: SubBenchmark) -> Iterator[Block]:
    yield Note(f"  {sub.name}  {sub.source}:{sub.line}")
    for condition in sub.conditions:
        yield Note(f"    if {condition}")
    names = max((len(axis.name) for axis in sub.axes), default=0)
    room = " " * (names + 6)
    for axis in sub.axes:
        values = [*axis.values, *([] if axis.complete else [f"{MORE} {axis.spelling}"])]
        yield Words(values or [NONE], "", f"    {axis.name:<{names}}  ", room, even=True)
        for condition in axis.conditions:
            yield Note(f"{room}if {condition}")
