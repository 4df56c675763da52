"""How benchmark sources differ from the bindings."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from policygen.model.bench_check import BenchCheck, BenchDifference, Kind
from policygen.report.blocks import Note
from policygen.report.console import plural
from policygen.report.views.bench import UNKNOWN

if TYPE_CHECKING:
    from policygen.report.terminal import Terminal

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


def show(document: BenchCheck, out: "Terminal") -> None:
    """Print what differs, then what it was compared with."""
    out.write(Note(line) for line in lines(document))


def lines(document: BenchCheck) -> Iterator[str]:
    """Tell what differs under the name of each benchmark, and what was compared."""
    places = groupby(document.differences, key=lambda one: (one.benchmark, one.source))
    for (name, source), differences in places:
        yield f"{name}  {source}"
        yield from (f"  {_describe(one)}" for one in differences)
    if document.differences:
        yield ""
    # Silence must not read as equal.
    by_axes: dict[str, list[str]] = {}
    for one in document.not_compared:
        by_axes.setdefault(one.what, []).append(one.benchmark)
    for what, names in sorted(by_axes.items()):
        part = what if what == "axes" else f"values of axis {what}"
        yield f"not compared, as the source does not tell them: {part} of {', '.join(names)}"
    yield _version(document)
    yield _counts(document)


def _describe(one: BenchDifference) -> str:
    """Tell a difference: `ipt: 7:24:1, in the binding 7:22:1`."""
    more = [value for value in one.found if value not in one.binding]
    less = [value for value in one.binding if value not in one.found]
    parts = (("not in the binding", more), ("only in the binding", less))
    return _FORMS[one.kind].format(
        what=one.what,
        found=" ".join(one.found) or UNKNOWN,
        binding=" ".join(one.binding),
        values="; ".join(f"{where}: {' '.join(values)}" for where, values in parts if values),
    )


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
    counts += [f"{document.untuned} without parameters"] if document.untuned else []
    counts += [f"{document.others} not of CUB"] if document.others else []
    return "; ".join(counts)
