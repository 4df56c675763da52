"""Benchmarks, one row each, with their axes on request."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest

from policygen.errors import plural
from policygen.model.audits import BenchCheck, BenchDifference, Kind, Scan
from policygen.model.benchmarks import Axis, Benchmark, BenchmarkList, SubBenchmark
from policygen.model.records import grouped
from policygen.model.trees import CALLED, OF_TYPES, OTHERS, Cub, Headers, tree_line
from policygen.model.tuning import Entry, Family, PolicyChain, conjunction, spell
from policygen.report.blocks import BLANK, Block, Cell, Column, Note, Styled, Table, Words
from policygen.report.terminal import wrap

NONE = "-"
MORE = "+"
UNKNOWN = "?"
NOTE = f"{MORE} {UNKNOWN}: the source alone does not show all values of an axis"
GAP = 2
ROOM = 40
"""Minimum width of a separate column for parameters."""
EXACT = 10**12
HEAD = ("benchmark", "parameters", "variants", "workloads", "runtime")


def benchmarks(document: BenchmarkList, width: int, *, verbose: bool) -> Iterator[Block]:
    """Show a table that fits; nothing is truncated, long cells are wrapped."""
    rows = [_row(benchmark) for benchmark in document.benchmarks]
    yield _table(rows, width)
    if any(cell.endswith((MORE, UNKNOWN)) for row in rows for cell in row[3:]):
        yield Note(NOTE, folded=True)
    for benchmark in document.benchmarks if verbose else ():
        yield BLANK
        yield Note(f"{benchmark.name}  {benchmark.source}")
        for sub in benchmark.subbenches:
            yield from _sub_benchmark(sub)


def _row(benchmark: Benchmark) -> tuple[str, ...]:
    parameters = ", ".join(
        f"{parameter.label} {parameter.start}:{parameter.end}:{parameter.step}"
        for parameter in benchmark.parameters
    )
    workloads = runtime = NONE
    if benchmark.subbenches:
        axes = [axis for sub in benchmark.subbenches for axis in sub.axes]
        workloads = _total(benchmark.workloads, (axis for axis in axes if axis.compile_time))
        runtime_axes = (axis for axis in axes if not axis.compile_time)
        runtime = _total(benchmark.runtime_workloads, runtime_axes)
    return benchmark.name, parameters or NONE, _count(benchmark.variants), workloads, runtime


def _count(number: int) -> str:
    digits = str(number)
    return f"{number:,}" if number < EXACT else f"{digits[0]}.{digits[1:3]}e+{len(digits) - 1}"


def _total(number: int, axes: Iterable[Axis]) -> str:
    incomplete = [axis for axis in axes if not axis.complete]
    if any(not axis.values for axis in incomplete):
        return UNKNOWN
    return _count(number) + MORE * bool(incomplete)


def _table(rows: Sequence[tuple[str, ...]], width: int) -> Table:
    """Put names and parameters side by side if they fit, else one below the other."""
    longest, widest, *numbers = (max(map(len, column)) for column in zip(HEAD, *rows, strict=True))
    available = max(30, width - sum(numbers) - GAP * len(numbers))
    parameter_width = available - GAP - min(longest, available // 2)
    beside = parameter_width >= min(widest, ROOM)
    shown: list[list[str]] = []
    for name, parameters, *counts in rows:
        name_lines = wrap(name.split("."), ".", available // 2 if beside else available)
        values = [] if parameters == NONE and not beside else parameters.split(", ")
        parameter_lines = wrap(values, ", ", parameter_width if beside else available - GAP)
        cells = [[line] for line in (*name_lines, *(f"  {line}" for line in parameter_lines))]
        if beside:
            cells = [[*pair] for pair in zip_longest(name_lines, parameter_lines, fillvalue="")]
        blank = [""] * len(counts)
        shown += [[*row, *(blank if index else counts)] for index, row in enumerate(cells)]
    titles = HEAD[:2] if beside else (" / ".join(HEAD[:2]),)
    columns = [*map(Column, titles), *(Column(title, "whole") for title in HEAD[2:])]
    return Table(columns, shown, "plain")


def _sub_benchmark(sub: SubBenchmark) -> Iterator[Block]:
    yield Note(f"  {sub.name}  {sub.source}:{sub.line}")
    for condition in sub.conditions:
        yield Note(f"    if {condition}")
    name_width = max((len(axis.name) for axis in sub.axes), default=0)
    indent = " " * (name_width + 6)
    for axis in sub.axes:
        values = [*axis.values, *([] if axis.complete else [f"{MORE} {axis.spelling}"])]
        yield Words(values or [NONE], "", f"    {axis.name:<{name_width}}  ", indent, even=True)
        for condition in axis.conditions:
            yield Note(f"{indent}if {condition}")


_DIFFERENCE_FORMATS: Mapping[Kind, str] = {
    "unbound benchmark": "no binding: {found}",
    "unbound parameter": "{what}: not in the binding: {found}",
    "missing parameter": "{what}: only in the binding: {binding}",
    "range": "{what}: {found}, in the binding {binding}",
    "order": "order: {found}, in the binding {binding}",
    "unbound axis": "axis {what}: not in the binding: {found}",
    "missing axis": "axis {what}: only in the binding: {binding}",
    "axis values": "axis {what}: {values}",
}


# Differences between benchmark sources and bindings


def check_lines(document: BenchCheck) -> Iterator[Block]:
    """List the differences of each benchmark, then what the sources were compared with."""
    groups = groupby(
        document.differences, key=lambda difference: (difference.benchmark, difference.source)
    )
    for (name, source), differences in groups:
        yield Note(f"{name}  {source}")
        yield from (Note(f"  {_describe(difference)}") for difference in differences)
    if document.differences:
        yield BLANK
    # Without this line, benchmarks that were not compared would look equal.
    for axis, rows in sorted(grouped(document.not_compared, lambda row: row.what).items()):
        names = ", ".join(row.benchmark for row in rows)
        what = f"{axis if axis == 'axes' else f'values of axis {axis}'} of {names}"
        yield Note(f"not compared, because the source does not show them: {what}")
    yield Note(_version(document))
    yield Note(_counts(document))


def _describe(difference: BenchDifference) -> str:
    """Describe a difference: `ipt: 7:24:1, in the binding 7:22:1`."""
    only_source = [value for value in difference.found if value not in difference.binding]
    only_binding = [value for value in difference.binding if value not in difference.found]
    parts = (("not in the binding", only_source), ("only in the binding", only_binding))
    return _DIFFERENCE_FORMATS[difference.kind].format(
        what=difference.what,
        found=" ".join(difference.found) or UNKNOWN,
        binding=" ".join(difference.binding),
        values="; ".join(f"{side}: {' '.join(values)}" for side, values in parts if values),
    )


def _version(document: BenchCheck) -> str:
    if document.cub is None:
        return f"the version of CUB is unknown: compared with the newest, {document.version}"
    if not document.tested:
        nearest = f"compared with the nearest, {document.version}"
        return f"the bindings were not tried with CUB {document.cub}: {nearest}"
    return f"compared with the bindings for CUB {document.version}"


def _counts(document: BenchCheck) -> str:
    words = (
        f"{plural(document.compared, 'benchmark')} compared:"
        f" {document.compared - document.differing} match their binding,"
        f" {document.differing - document.unbound} differ, {document.unbound} have none"
    )
    words += f"; {document.untuned} without parameters" if document.untuned else ""
    return f"{words}; {document.others} not of CUB" if document.others else words


HEADERS_NONE = "—"
SHOWN = 5
"""Changed files listed by name."""


# Available trees


def table(headers: Headers) -> str:
    """Write one line per version, followed by one per release with a different name."""
    trees = [("CUB", "wheel", "dialect", "specializations", "state")]
    releases = [("release", "package", "dialect", "version", "state")]
    for tree in headers.trees:
        state = HEADERS_NONE if tree.state == "absent" else tree.state
        state = state if tree.changed is None else f"{state}, changed"
        content = HEADERS_NONE if tree.specializations is None else str(tree.specializations)
        if tree.holds is not None:
            content = f"{CALLED[tree.library]} {tree.holds}"
        row = (tree.version, tree.wheel or HEADERS_NONE, tree.dialect, content, state)
        (trees if tree.holds is None else releases).append(row)
    return "\n".join(_aligned(rows) for rows in (trees, releases) if len(rows) > 1 or rows is trees)


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def tree_name(cub: Cub) -> str:
    """Name a tree: `CUB 3.0.1 in FOLDER (found by: cub_headers)`."""
    changed = ", changed since it was fetched" if cub.changed else ""
    return f"{cub.called} {cub.version} in {cub.root} (found by: {cub.found}{changed})"


def changes(headers: Headers) -> str:
    """List trees that differ from what was fetched, and how to restore them."""
    lines = []
    for tree in headers.trees:
        if tree.changed is not None:
            name, source = tree.version, "packages"
            if tree.holds is None:
                name, source = f"{CALLED[tree.library]} {tree.version}", "wheel"
            lines += [
                f"policygen: warning: {name} differs from its {source}:"
                f" {_changed_files(tree.changed)}\n  policygen headers fetch {tree.version}"
                " --again fetches it again\n"
            ]
    return "".join(lines)


def _changed_files(files: tuple[str, ...]) -> str:
    if not files:
        return "some of its files differ"
    shown = ", ".join(files[:SHOWN])
    return f"{shown} and {len(files) - SHOWN:,} more" if len(files) > SHOWN else shown


OF_CONFIGS = tuple(OTHERS[dialect] for dialect in sorted(OF_TYPES))
"""Namespace prefixes of configs."""


# Scans: a table of families, or the entries of each


def scanned(scan: Scan, *, entries: bool, head: bool, verbose: bool) -> Iterator[Block]:
    """Show what `policygen scan` found: with `entries` or `verbose`, each entry."""
    if head:
        yield Note(tree_line(scan.cub), "dim", folded=True)
        yield BLANK
    if entries or verbose:
        yield from _entries(scan)
    elif scan.families:
        yield _scan_table(scan)
        yield BLANK
    if head:
        yield from _summary(scan)


def _summary(scan: Scan) -> Iterator[Block]:
    if not scan.cub.has_returns:
        names = {(family.header, family.name) for family in scan.families}
        owners = plural(len(names), "family", "families")
        yield Note(_scan_counts(scan.families, "config", owners), folded=True)
        return
    selectors = [family for family in scan.families if _is_selector(family)]
    families = [family for family in scan.families if not _is_selector(family)]
    text = _scan_counts(families, "specialization", plural(len(families), "family", "families"))
    yield Note(f"{text}; {plural(len(scan.chains), 'policy chain')}", folded=True)
    if selectors:
        functions = {(family.header, family.namespace, family.name) for family in selectors}
        text = _scan_counts(selectors, "guarded return", plural(len(functions), "function"))
        yield Note(text, folded=True)


def _scan_counts(families: Sequence[Family], entry: str, owners: str) -> str:
    live = sum(len(_live(family)) for family in families)
    disabled = sum(entry.disabled for family in families for entry in family.entries)
    headers = plural(len({family.header for family in families}), "header")
    return f"{plural(live, entry)} in {owners} of {headers}; {disabled:,} disabled"


def _live(family: Family) -> Sequence[Entry]:
    """List entries that take effect; those of configs include unconditional ones."""
    if not _is_config(family):
        return family.specializations
    return [entry for entry in family.entries if not entry.disabled]


def _is_config(family: Family) -> bool:
    """Whether the family is the config of an architecture, whose conditions are types."""
    return family.namespace.startswith(OF_CONFIGS)


def _is_selector(family: Family) -> bool:
    """Whether the entries are the guarded returns of a function."""
    return any(entry.kind == "branch" for entry in family.entries)


def _scan_table(scan: Scan) -> Table:
    rows: list[list[Cell]] = []
    for header, families in groupby(scan.families, key=lambda family: family.header):
        rows.append([Styled(header, "bold")])
        for family in families:
            live = _live(family)
            name = f"{family.namespace}::{family.name}".removeprefix("cub::detail::")
            name = name.removeprefix("rocprim::detail::")
            by_arch = _is_selector(family) or _is_config(family)
            name += f" {family.arch}" if by_arch else ""
            # Configs always derive from a template, and inherit only what states no values.
            inheriting = [
                entry
                for entry in live
                if entry.inherits is not None and not (_is_config(family) and entry.values)
            ]
            numbers = (
                len(live),
                len(inheriting),
                sum(entry.variant is not None for entry in live),
                sum(entry.disabled for entry in family.entries),
            )
            rows.append([f"  {name}", *(str(number or "·") for number in numbers)])
    titles = ("live", "inherit", "labelled", "disabled")
    first = Column("family", least=34)
    return Table((first, *(Column(title, "whole") for title in titles)), rows)


def _entries(scan: Scan) -> Iterator[Block]:
    """Show the families of each header, then how its policies read them."""
    for header, families in groupby(scan.families, key=lambda family: family.header):
        names = set()
        for family in families:
            names.add((family.namespace, family.name))
            yield from _family(family)
            yield BLANK
        for chain in scan.chains:
            uses = {
                (chain.namespace, use.family) for policy in chain.policies for use in policy.uses
            }
            if chain.header == header and uses & names:
                yield from _chain(chain)
                yield BLANK


def _chain(chain: PolicyChain) -> Iterator[Block]:
    yield Words([f"{chain.header}: {chain.namespace}::{chain.hub}"], "bold")
    for policy in chain.policies:
        predecessor = f", else {policy.predecessor}" if policy.predecessor else ""
        bases = f", derives from {', '.join(policy.bases)}" if policy.bases else ""
        text = f"{policy.line}: {policy.name} for {policy.arch} and later{predecessor}{bases}"
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
        labels = ", ".join(parameter.label for parameter in family.parameters)
        yield Words(f"{labels}>", "bold", f"{title}<", "    ")
    for entry in family.entries:
        if selector or entry.kind != "primary" or entry.values or entry.inherits:
            yield from _entry(entry)


def _entry(entry: Entry) -> Iterator[Block]:
    name = "primary template" if entry.kind == "primary" else f"<{', '.join(entry.args)}>"
    name = conjunction(entry.args) if entry.kind == "branch" else name
    title = f"{entry.line}: {name}".split(" ")
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
