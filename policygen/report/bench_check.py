"""How benchmark sources differ from the bindings, on the console."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from policygen.model.bench_check import BenchCheck, BenchDifference, Kind
from policygen.report.bench import UNKNOWN
from policygen.report.console import plural

if TYPE_CHECKING:
    from rich.console import Console


_FORMS: Mapping[Kind, str] = {
    "unbound benchmark": "no binding: {found}",
    "unbound parameter": "{what}: not in the binding: {found}",
    "missing parameter": "{what}: only in the binding: {binding}",
    "range": "{what}: {found}, in the binding {binding}",
    "order": "order: {found}, in the binding {binding}",
    "unbound axis": "axis {what}: not in the binding: {found}",
    "missing axis": "axis {what}: only in the binding: {binding}",
    "axis values": "axis {what}: {values}",
}


def show(document: BenchCheck, console: "Console") -> None:
    """Prints what differs, then what it was compared with; lines are not cut."""
    for line in lines(document):
        console.print(line, markup=False, soft_wrap=True)


def lines(document: BenchCheck) -> Iterator[str]:
    """A heading for each benchmark, a line for each difference, and the summary."""
    places = groupby(document.differences, key=lambda one: (one.benchmark, one.source))
    for (name, source), differences in places:
        yield f"{name}  {source}"
        yield from (f"  {describe(one)}" for one in differences)
    if document.differences:
        yield ""
    yield from _left_open(document)
    yield _version(document)
    yield _counts(document)


def describe(one: BenchDifference) -> str:
    """`ipt: 7:24:1, in the binding 7:22:1`."""
    return _FORMS[one.kind].format(
        what=one.what,
        found=" ".join(one.found) or UNKNOWN,
        binding=" ".join(one.binding),
        values=_values(one),
    )


def _values(one: BenchDifference) -> str:
    more = [value for value in one.found if value not in one.binding]
    less = [value for value in one.binding if value not in one.found]
    parts = (("not in the binding", more), ("only in the binding", less))
    return "; ".join(f"{where}: {' '.join(values)}" for where, values in parts if values)


def _left_open(document: BenchCheck) -> Iterator[str]:
    """Silence must not read as equal: the axes that were not compared."""
    by_axes: dict[str, list[str]] = {}
    for one in document.not_compared:
        by_axes.setdefault(one.what, []).append(one.benchmark)
    for what, names in sorted(by_axes.items()):
        part = what if what == "axes" else f"values of axis {what}"
        yield f"not compared, as the source does not tell them: {part} of {', '.join(names)}"


def _version(document: BenchCheck) -> str:
    if document.cub is None:
        return f"nothing tells the version of CUB: compared with the newest, {document.version}"
    if not document.tested:
        nearest = f"compared with the nearest, {document.version}"
        return f"the bindings were not tried with CUB {document.cub}: {nearest}"
    return f"compared with the bindings for CUB {document.version}"


def _counts(document: BenchCheck) -> str:
    otherwise = document.differing - document.unbound
    counts = [
        f"{plural(document.compared, 'benchmark')} compared:"
        f" {document.compared - document.differing} as in their binding,"
        f" {otherwise} otherwise, {document.unbound} without one"
    ]
    if document.untuned:
        counts.append(f"{document.untuned} without parameters")
    if document.others:
        counts.append(f"{document.others} not of CUB")
    return "; ".join(counts)
