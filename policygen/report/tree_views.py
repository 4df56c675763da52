"""Benchmarks: one row each, and on request their axes."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING

from policygen.model.audits import BenchCheck, BenchDifference, Kind
from policygen.model.benchmarks import Axis, Benchmark, BenchmarkList, SubBenchmark
from policygen.model.trees import CALLED, NAMESPACES, OF_TYPES, Cub, Headers, HeadersEntry
from policygen.model.tuning import Entry, Family, PolicyChain, Scan, conjunction, spell
from policygen.report.blocks import BLANK, Block, Column, Inline, Note, Styled, Table, Words
from policygen.report.console import plural, printed, tree_line
from policygen.report.terminal import wrap

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


# How benchmark sources differ from the bindings.


def show_check(document: BenchCheck, out: "Terminal") -> None:
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


HEADERS_NONE = "—"
OTHERS = ("dialect", "version", "state")
SHOWN = 5
"""Changed files that are named."""


# The trees that can be had.


def table(headers: Headers) -> str:
    """Write one line per version, and, below, one per release that is named otherwise."""
    rows = [("CUB", "wheel", "dialect", "specializations", "state")]
    for one in headers.trees:
        if one.holds is None:
            count = HEADERS_NONE if one.specializations is None else str(one.specializations)
            rows.append((one.version, one.wheel or HEADERS_NONE, one.dialect, count, _state(one)))
    others = [
        (one.version, one.wheel or HEADERS_NONE, one.dialect, _holds(one), _state(one))
        for one in headers.trees
        if one.holds is not None
    ]
    if not others:
        return _aligned(rows)
    return _aligned(rows) + "\n" + _aligned([("release", "package", *OTHERS), *others])


def _holds(one: HeadersEntry) -> str:
    return f"{CALLED[one.library]} {one.holds}"


def _state(one: HeadersEntry) -> str:
    state = HEADERS_NONE if one.state == "absent" else one.state
    return state if one.changed is None else f"{state}, changed"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def name(cub: Cub) -> str:
    """Name a tree: `CUB 3.0.1 in FOLDER (found by: cub_headers)`."""
    changed = ", changed since it was fetched" if cub.changed else ""
    return f"{cub.called} {cub.version} in {cub.root} (found by: {cub.found}{changed})"


def changes(headers: Headers) -> str:
    """Tell what differs from what was fetched, and what helps."""
    return "".join(
        f"policygen: warning: {_called(tree)} is not as its {_source(tree)} it:"
        f" {_named(tree.changed)}\n"
        f"  policygen headers fetch {tree.version} --again gets it anew\n"
        for tree in headers.trees
        if tree.changed is not None
    )


def _called(tree: HeadersEntry) -> str:
    return f"{CALLED[tree.library]} {tree.version}" if tree.holds is None else tree.version


def _source(tree: HeadersEntry) -> str:
    return "wheel has" if tree.holds is None else "packages have"


def _named(files: tuple[str, ...]) -> str:
    if not files:
        return "some of its files differ"
    shown = ", ".join(files[:SHOWN])
    return f"{shown} and {len(files) - SHOWN:,} more" if len(files) > SHOWN else shown


OF_CONFIGS = tuple(NAMESPACES[dialect] for dialect in sorted(OF_TYPES))
"""Where configs stand."""


# A scan: a table of families, or the entries of each.


def scanned(scan: Scan, *, entries: bool, head: bool) -> Iterator[Block]:
    """Show what `policygen scan` found."""
    if head:
        yield Note(tree_line(scan.cub), "dim", folded=True)
        yield BLANK
    if entries:
        yield from _entries(scan)
    elif scan.families:
        yield _scan_table(scan)
        yield BLANK
    if head:
        yield from _summary(scan)


def _summary(scan: Scan) -> Iterator[Block]:
    if not scan.cub.has_returns:
        owners = plural(
            len({(one.header, one.name) for one in scan.families}), "family", "families"
        )
        yield Note(_scan_counts(scan.families, "config", owners), folded=True)
        return
    selectors = [family for family in scan.families if _is_selector(family)]
    families = [family for family in scan.families if not _is_selector(family)]
    told = _scan_counts(families, "specialization", plural(len(families), "family", "families"))
    yield Note(f"{told}; {plural(len(scan.chains), 'policy chain')}", folded=True)
    if selectors:
        functions = {(one.header, one.namespace, one.name) for one in selectors}
        told = _scan_counts(selectors, "guarded return", plural(len(functions), "function"))
        yield Note(told, folded=True)


def _scan_counts(families: Sequence[Family], entry: str, owners: str) -> str:
    live = sum(len(_live(family)) for family in families)
    disabled = sum(entry.disabled for family in families for entry in family.entries)
    headers = plural(len({family.header for family in families}), "header")
    return f"{plural(live, entry)} in {owners} of {headers}; {disabled:,} disabled"


def _live(family: Family) -> Sequence[Entry]:
    """List what decides: of configs also what they are without a condition."""
    if not _is_config(family):
        return family.specializations
    return [entry for entry in family.entries if not entry.disabled]


def _is_config(family: Family) -> bool:
    """Say whether it is a config for an architecture, whose conditions are types."""
    return family.namespace.startswith(OF_CONFIGS)


def _is_selector(family: Family) -> bool:
    """Say whether these are the guarded returns of a function."""
    return any(entry.kind == "branch" for entry in family.entries)


def _scan_table(scan: Scan) -> Table:
    rows: list[list[Inline | Styled]] = []
    for header, families in groupby(scan.families, key=lambda family: family.header):
        rows.append([Styled(header, "bold")])
        for family in families:
            live = _live(family)
            name = f"{family.namespace}::{family.name}".removeprefix("cub::detail::")
            name = name.removeprefix("rocprim::detail::")
            by_arch = _is_selector(family) or _is_config(family)
            name += f" {family.arch}" if by_arch else ""
            numbers = (
                len(live),
                sum(_inherits(entry, family) for entry in live),
                sum(entry.variant is not None for entry in live),
                sum(entry.disabled for entry in family.entries),
            )
            rows.append([f"  {name}", *(str(number or "·") for number in numbers)])
    titles = ("live", "inherit", "labelled", "disabled")
    first = Column("family", least=34)
    return Table((first, *(Column(title, "whole") for title in titles)), rows)


def _inherits(entry: Entry, family: Family) -> bool:
    """Say whether its values are another one's; a config inherits its own from a template."""
    return entry.inherits is not None and not (_is_config(family) and entry.values)


def _entries(scan: Scan) -> Iterator[Block]:
    """Show the families of each header, then how its policies read them."""
    for header, families in groupby(scan.families, key=lambda family: family.header):
        named = set()
        for family in families:
            named.add((family.namespace, family.name))
            yield from _family(family)
            yield BLANK
        for chain in scan.chains:
            uses = [use for policy in chain.policies for use in policy.uses]
            if chain.header == header and any((chain.namespace, u.family) in named for u in uses):
                yield from _chain(chain)
                yield BLANK


def _chain(chain: PolicyChain) -> Iterator[Block]:
    yield Words([f"{chain.header}: {chain.namespace}::{chain.hub}"], "bold")
    for policy in chain.policies:
        before = f", else {policy.predecessor}" if policy.predecessor else ""
        bases = f", is a {', '.join(policy.bases)}" if policy.bases else ""
        text = f"{policy.line}: {policy.name} for {policy.arch} and later{before}{bases}"
        yield Words(text, "cyan", "  ", "      ")
        for use in policy.uses:
            receiver = f" through {use.selection}" if use.selection else ""
            fallback = f"; without one of them: {use.fallback}" if use.fallback else ""
            reads = f"reads {use.family}{receiver}: {' '.join(use.reads)}{fallback}"
            yield Words(reads, "", "    ", "      ")


def _family(family: Family) -> Iterator[Block]:
    title = f"{family.header}: {family.namespace}::{family.name}"
    selector = _is_selector(family) or _is_config(family)
    if selector:
        yield Words([f"{title} for {family.arch}"], "bold")
    else:
        labels = "".join(f"{parameter.label}, " for parameter in family.parameters)
        words = f"{labels.removesuffix(', ')}>"
        yield Words(words, "bold", f"{title}<", "    ")
    for entry in family.entries:
        if selector or entry.kind != "primary" or entry.values or entry.inherits:
            yield from _entry(entry)


def _entry(entry: Entry) -> Iterator[Block]:
    title = f"{entry.line}: {_title(entry)}".split(" ")
    title += ["DISABLED"] if entry.disabled else []
    title += [f"#if {entry.guard}"] if entry.guard else []
    yield Words(title, "yellow" if entry.disabled else "cyan", "  ", "      ")
    if entry.inherits:
        yield Words(f": {entry.inherits}", "", "    ", "      ")
    values = [f"{name}={spell(value)}" for name, value in entry.values.items()]
    yield Words(values, "", "    ", "    ", joint="  ")
    for label in entry.labels:
        scores = ["  ".join(f"{score:.6f}" for score in label.scores)] if label.scores else []
        rejected = ["(rejected)"] if label.rejected else []
        words = [label.variant, *scores, *rejected]
        yield Words(words, "green", "    ", "      ", joint="  ")
    for remark in entry.remarks:
        yield Words(f"// {remark}", "dim", "    ", "    // ")


def _title(entry: Entry) -> str:
    if entry.kind == "branch":
        return conjunction(entry.args)
    return "primary template" if entry.kind == "primary" else f"<{', '.join(entry.args)}>"


print_scan = printed(scanned)
