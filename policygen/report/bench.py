"""Benchmarks on the console: one row each, and on request their axes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from policygen.model.bench import Axis, Benchmark, BenchmarkList, SubBenchmark
from policygen.untrusted import visible

if TYPE_CHECKING:
    from rich.console import Console

NONE = "-"
MORE = "+"
UNKNOWN = "?"
NOTE = f"{MORE} {UNKNOWN}: the source alone does not tell all values of an axis"
GAP = 2
ROOM = 40
"""The least width for parameters in a column of their own."""
EXACT = 10**12

Row = tuple[str, str, str, str, str]
HEAD: Row = ("benchmark", "parameters", "variants", "workloads", "runtime")


def show(document: BenchmarkList, console: "Console", *, verbose: bool = False) -> None:
    """Prints a table that fits the console; nothing is cut, long cells take more lines."""
    from rich.table import Table
    from rich.text import Text

    rows = [row(one) for one in document.benchmarks]
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold")
    head, lines = _lay_out(rows, console.width)
    for title in head:
        table.add_column(title, overflow="fold")
    for title in HEAD[2:]:
        table.add_column(title, justify="right", no_wrap=True)
    for cells, numbers in zip(lines, rows, strict=True):
        table.add_row(*(Text("\n".join(map(visible, cell))) for cell in cells), *numbers[2:])
    console.print(table)
    if any(cell.endswith((MORE, UNKNOWN)) for numbers in rows for cell in numbers[3:]):
        console.print(NOTE, markup=False)
    if verbose:
        for one in document.benchmarks:
            for line in details(one, console.width):
                console.print(line, markup=False, soft_wrap=True)


def row(one: Benchmark) -> Row:
    """The cells of a benchmark."""
    parameters = ", ".join(f"{p.label} {p.start}:{p.end}:{p.step}" for p in one.parameters)
    return (one.name, parameters or NONE, _count(one.variants), *_workloads(one))


def _count(number: int) -> str:
    digits = str(number)
    return f"{number:,}" if number < EXACT else f"{digits[0]}.{digits[1:3]}e+{len(digits) - 1}"


def _workloads(one: Benchmark) -> tuple[str, str]:
    if not one.subbenches:
        return NONE, NONE
    axes = [axis for sub in one.subbenches for axis in sub.axes]
    return (
        _total(one.workloads, [axis for axis in axes if axis.compile_time]),
        _total(one.runtime_workloads, [axis for axis in axes if not axis.compile_time]),
    )


def _total(number: int, axes: list[Axis]) -> str:
    if any(not axis.complete and not axis.values for axis in axes):
        return UNKNOWN
    return _count(number) + MORE * any(not axis.complete for axis in axes)


def _lay_out(rows: list[Row], width: int) -> tuple[list[str], list[list[list[str]]]]:
    """Names and parameters as two columns where there is room, else as one below the other."""
    cells = [HEAD, *rows]
    numbers = sum(max(len(cell[i]) for cell in cells) for i in (2, 3, 4))
    left = max(30, width - numbers - GAP * len(HEAD[2:]))
    longest, widest = (max(len(cell[i]) for cell in cells) for i in (0, 1))
    room = left - GAP - min(longest, left // 2)
    if room >= min(widest, ROOM):
        named = [wrap(one[0].split("."), ".", left // 2) for one in rows]
        return list(HEAD[:2]), [
            [name, wrap(one[1].split(", "), ", ", room)]
            for name, one in zip(named, rows, strict=True)
        ]
    stacked = [wrap(one[0].split("."), ".", left) for one in rows]
    for lines, one in zip(stacked, rows, strict=True):
        parameters = one[1].split(", ") if one[1] != NONE else []
        lines += [f"  {line}" for line in wrap(parameters, ", ", left - 2)]
    return [" / ".join(HEAD[:2])], [[lines] for lines in stacked]


def wrap(parts: Iterable[str], joint: str, width: int) -> list[str]:
    """Lines of whole parts; a part that is longer than a line has one of its own."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(joint) + len(part) + len(joint.rstrip()) <= width:
            lines[-1] += joint + part
        elif lines:
            lines[-1] += joint.rstrip()
            lines.append(part)
        else:
            lines.append(part)
    return lines


def details(one: Benchmark, width: int) -> list[str]:
    """The sub-benchmarks and axes of a benchmark."""
    lines = ["", f"{one.name}  {one.source}"]
    for sub in one.subbenches:
        lines += _sub_lines(sub, width)
    return lines


def _sub_lines(sub: SubBenchmark, width: int) -> list[str]:
    lines = [f"  {sub.name}  {sub.source}:{sub.line}"]
    lines += [f"    if {condition}" for condition in sub.conditions]
    indent = max((len(axis.name) for axis in sub.axes), default=0) + 6
    for axis in sub.axes:
        values = [*axis.values, *([] if axis.complete else [f"{MORE} {axis.spelling}"])]
        first, *rest = wrap(values, " ", max(20, width - indent)) or [NONE]
        lines.append(f"    {axis.name:<{indent - 6}}  {first}")
        lines += [" " * indent + line for line in rest]
        lines += [f"{' ' * indent}if {condition}" for condition in axis.conditions]
    return lines
