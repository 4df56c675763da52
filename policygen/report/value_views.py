"""Resolved values, differences between two trees, and verification of machine code."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from policygen.errors import InputError, SourceError, plural
from policygen.model.audits import CallOnly, LintReport, Reach, Unreachable
from policygen.model.machine_code import Different, KernelPlace, SassCompiles, SassRow, VerifySass
from policygen.model.records import grouped
from policygen.model.selection import (
    Comparison,
    Differing,
    Resolution,
    ResolvedRow,
    Unresolved,
    asked_of,
)
from policygen.model.trees import tree_line
from policygen.model.tuning import Value, conjunction, spell
from policygen.model.workload import axes
from policygen.outputs import write_output
from policygen.paths import file_name
from policygen.report.blocks import (
    BLANK,
    Block,
    Note,
    Table,
    TableRows,
    Words,
    cut,
    remarks,
    shortened,
)
from policygen.report.console import messages, short

STYLES = {"tuned": "green", "inherited": "yellow", "default": "dim", "unknown": "red"}


def resolution(document: Resolution, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show values by benchmark and architecture; workloads with equal values are grouped."""
    if head:
        yield Words(f"{tree_line(document.cub)}; {document.toolchain}", "dim")
        yield BLANK
    for (benchmark, arch), rows in groupby(
        document.rows, key=lambda row: (row.benchmark, row.arch)
    ):
        yield Note(f"{benchmark} on {arch}", "bold", folded=True)
        for group in [[row] for row in rows] if verbose else grouped(rows, _shared).values():
            yield from _rows_alike(group)
        yield BLANK
    if head:
        counts = {name: sum(row.status == name for row in document.rows) for name in STYLES}
        shown = (name for name in counts if counts[name] or name != "unknown")
        parts = ", ".join(f"{counts[name]:,} {name}" for name in shown)
        workloads = plural(len(document.rows), "workload")
        yield Note(f"{workloads} on {', '.join(document.archs)}: {parts}", folded=True)
    yield from remarks(asked_of(document.toolchain, document.conditions))
    yield from remarks(document.remarks)
    yield from map(_failure, document.unresolved)


def comparison(document: Comparison, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show the differences of each workload."""
    del verbose
    if head:
        yield Words(f"before: {tree_line(document.before)}", "dim")
        yield Words(f"after:  {tree_line(document.after)}; {document.toolchain}", "dim")
        yield BLANK
    by_place = groupby(document.different, key=lambda row: (row.benchmark, row.arch))
    for (benchmark, arch), rows in by_place:
        yield Note(f"{benchmark} on {arch}", "bold", folded=True)
        only_before = only_after = 0
        for row in rows:
            if row.before is None:
                only_after += 1
            elif row.after is None:
                only_before += 1
            else:
                yield from _difference(row)
        for side, count in (("before", only_before), ("after", only_after)):
            if count:
                yield Words(f"{plural(count, 'workload')} only {side}", "yellow", "  ")
        yield BLANK
    if head:
        different = plural(len(document.different), "workload differs", "workloads differ")
        archs = ", ".join(document.archs)
        yield Note(f"{different} of {document.compared:,}, on {archs}", folded=True)
    yield from remarks(document.remarks)
    yield from map(_failure, document.unresolved)


def _rows_alike(rows: list[ResolvedRow]) -> Iterator[Block]:
    row = rows[0]
    style = STYLES[row.status]
    for each_row in rows:
        yield Words(axes(each_row.workload), style, "  ")
    location = f", {row.entry.where}" if row.entry else ""
    origin = row.status if row.status != "inherited" else f"inherited from {row.since}"
    yield Words([f"{origin}{location}"], style, "      ")
    yield Words(_values(row.values), "", "      ", joint="  ")
    if row.note:
        yield Words(row.note, "red", "      ")


def _shared(row: ResolvedRow) -> tuple[object, ...]:
    """What grouped workloads have in common."""
    return tuple(row.values.items()), row.entry, row.status, row.note


def _values(values: dict[str, Value]) -> list[str]:
    return [f"{name}={spell(value)}" for name, value in values.items()]


def _difference(row: Differing) -> Iterator[Block]:
    yield Words(axes(row.workload), "bold", "  ")
    for label, values, entry in (
        ("before:", row.before or {}, row.entry_before),
        ("after: ", row.after or {}, row.entry_after),
    ):
        shown = _values({name: value for name, value in values.items() if name in row.changed})
        shown += [f"({entry.where})"] if entry else []
        yield Words([f"{label} {shown[0]}", *shown[1:]], "", "      ", joint="  ")


def _failure(unresolved: Unresolved) -> Block:
    return Note(f"{unresolved.benchmark}: {unresolved.reason}", "red", folded=True)


# Entries that are never selected


def reach(document: Reach, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show each entry with its reason; entries with the same reason are grouped."""
    if head:
        yield Note(f"{tree_line(document.cub)}; {document.toolchain}", "dim", folded=True)
        yield BLANK
    groups = grouped(document.unreachable, attrgetter("header", "family", "reason"))
    for (header, family, reason), group in groups.items():
        yield Note(f"{header}: {family}", "bold", folded=True)
        yield Words(f"{group[0].cause}: {reason}", "red", "  ", "      ")
        for entry in group:
            yield _entry(entry, "cyan")
            if entry.example and entry is group[0]:
                yield Words(f"for example {entry.example}", "dim", "    ", "        ")
        yield BLANK
    if verbose and document.call_only:
        yield Note("Selected by some calls, but by no benchmark:", "bold", folded=True)
        for selected in document.call_only:
            yield _entry(selected, "yellow")
            yield Words(f"by {selected.example}", "dim", "    ", "        ")
        yield BLANK
    if head:
        yield from _summary(document)
    yield from remarks(document.remarks)


def _entry(entry: Unreachable | CallOnly, style: str) -> Block:
    key = f"<{', '.join(entry.args)}>" if entry.family.startswith("sm") else conjunction(entry.args)
    return Words(f"{entry.where}: {key}", style, "  ", "      ")


def _summary(document: Reach) -> Iterator[Block]:
    entries = plural(document.entries, "entry", "entries")
    parts = [f"{entries}, {len(document.unreachable):,} never selected"]
    parts += [f"{len(document.call_only):,} by no benchmark"]
    if document.unknown:
        headers = ", ".join(document.unknown)
        parts.append(f"{sum(document.unknown.values()):,} unknown, in {headers}")
    if document.unasked:
        parts.append(f"not checked: {', '.join(document.unasked)}")
    yield Note("; ".join(parts), folded=True)
    workloads = plural(document.workloads, "workload")
    yield Note(f"{workloads} tried on {', '.join(document.archs)}", folded=True)


LINT_STYLES = {"error": "red", "warning": "yellow", "note": "cyan"}


def lint(report: LintReport, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show each finding with its source line and a caret, then a summary."""
    for finding in report.findings:
        error = SourceError(
            path=finding.path,
            line=finding.line,
            column=finding.column,
            message=f"[{finding.rule}] {finding.message}",
            text=finding.text,
            width=finding.width,
        )
        # The location must stay on one line, so that editors and terminals can link it.
        for row in str(error).split("\n"):
            yield Note(row, LINT_STYLES[finding.severity])
    if verbose and report.unbound:
        yield Note(f"without a binding: {', '.join(report.unbound)}", "dim", folded=True)
    if head and not report.cub.has_returns:
        rules = f"rules that apply to {report.cub.called}'s configs: {', '.join(report.counts)}"
        yield Note(rules, "dim", folded=True)
    if head:
        yield Note(_lint_summary(report), folded=True)


def _lint_summary(report: LintReport) -> str:
    entries = plural(report.entries, "entry", "entries")
    families = plural(report.families, "family", "families")
    parts = [f"{plural(len(report.findings), 'finding')} in {entries} of {families}"]
    parts += [f"{name} {count}" for name, count in report.counts.items() if count]
    parts += [f"{plural(len(report.off), 'rule')} off"] if report.off else []
    if report.unbound:
        parts.append(f"{plural(len(report.unbound), 'family', 'families')} without a binding")
    return "; ".join(parts)


SHOWN = 12
"""Kernels of each kind listed without -v."""
COUNTS = ("renamed", "as_written", "moved", "different", "only_before", "only_after")
"""Counts of kernels that are shown where they are not zero."""
COLOURS = {"+": "green", "-": "red", "@": "cyan"}


# Machine code before and after, and files of diffs


def sass(document: VerifySass, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show a row per benchmark and architecture, then each kernel that changed."""
    if head:
        yield Words(f"{tree_line(document.cub)}; {document.toolchain}", "dim")
        yield Words(f"compared with {document.base}", "dim")
        if document.units == "benchmarks":
            yield Note("compiled: the benchmarks' own sources", "dim", folded=True)
        yield BLANK
    if document.rows:
        yield _table(document.rows)
        yield BLANK
    yield from _different_kernels(document.different, verbose=verbose)
    yield from _kernels_on_one_side("only before", document.only_before, verbose=verbose)
    yield from _kernels_on_one_side("only after", document.only_after, verbose=verbose)
    for refusal in document.refused:
        location = " ".join([refusal.benchmark, *axes(refusal.workload), "on", refusal.arch])
        yield Note(f"{location} does not compile {refusal.side}:", "red", folded=True)
        for line in refusal.message.splitlines():
            yield Note(f"  {line}")
    yield from remarks(document.remarks)
    if head:
        yield Words(document.summary, "red" if document.changed or document.refused else "green")


def alike(rows: Iterable[SassRow]) -> Iterator[list[SassRow]]:
    """Join rows that differ only in architecture, because most changes affect all alike."""
    for _, group in groupby(rows, key=lambda row: row.model_dump(exclude={"arch"})):
        yield list(group)


def write_diffs(document: VerifySass, folder: Path) -> None:
    """Write one file per kernel that differs; refuse to overwrite files policygen did not write."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, kernel in enumerate(document.different, 1):
            words = [f"{number:03}", kernel.arch, kernel.benchmark, *axes(kernel.workload)]
            name = f"{file_name([*words, kernel.kernel])[:120]}.diff"
            lines = [f"# {kernel.where}: {kernel.kernel}", f"# {kernel.summary}", *kernel.diff, ""]
            write_output(folder / name, "\n".join(lines).encode())
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from error


def _table(rows: Sequence[SassRow]) -> Table:
    counts = ["kernels", "equal", *(name for name in COUNTS if any(getattr(r, name) for r in rows))]
    is_identical = any(row.identical for row in rows)
    return TableRows(list(alike(rows))).table(
        ("benchmark", "", lambda group: short(group[0].benchmark)),
        ("arch", "", _archs),
        ("workloads", "n", lambda group: f"{group[0].workloads:,}"),
        ("same source", "n", lambda group: f"{group[0].identical:,}") if is_identical else None,
        *((name.replace("_", " "), "n", partial(_count, name)) for name in counts),
        look=_look,
    )


def _archs(group: Sequence[SassRow]) -> str:
    first, last = group[0].arch, group[-1].arch
    return f"{first} to {last} ({len(group)})" if len(group) > 1 else first


def _count(name: str, group: Sequence[SassRow]) -> str:
    count = getattr(group[0], name)
    return f"{count:,}" if count else "·"


def _look(group: Sequence[SassRow]) -> str:
    row = group[0]
    is_failure = row.different or row.only_before or row.only_after or row.refused
    return "red" if is_failure else "yellow" if row.moved else ""


def _different_kernels(kernels: Sequence[Different], *, verbose: bool) -> Iterator[Block]:
    shown, hidden = cut(kernels, SHOWN, verbose=verbose)
    for location, group in groupby(shown, key=lambda kernel: kernel.where):
        yield Words(location, "bold")
        for kernel in group:
            style = "green" if kernel.as_written else "yellow" if kernel.kind == "moved" else "red"
            kind = f"{kernel.kind}, with the written values:" if kernel.as_written else kernel.kind
            yield Words(f"{kind} {kernel.kernel}", style, "  ")
            yield Words(kernel.summary, "", "    ")
            for line in kernel.diff if verbose else ():
                yield Note(f"    {line}", COLOURS.get(line[:1], "dim"))
    if hidden:
        text = f"and {hidden:,} more (-v lists them, --diffs DIR writes their diffs)"
        yield Note(text, "dim", folded=True)
    if kernels:
        yield BLANK


def _kernels_on_one_side(
    title: str, kernels: Sequence[KernelPlace], *, verbose: bool
) -> Iterator[Block]:
    if not kernels:
        return

    def show(kernel: KernelPlace) -> Iterator[Block]:
        suffix = " (as written)" if kernel.as_written else ""
        yield Words(f"{kernel.where}: {kernel.kernel}{suffix}", "", "  ")

    yield Note(f"{title}:", "red")
    yield from shortened(kernels, SHOWN, show, verbose=verbose)
    yield BLANK


def compiles(document: SassCompiles, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show what would be compiled, and why the rest would not."""
    if head:
        yield Words(f"compared with {document.base}; {document.toolchain}", "dim")
    yield Words(in_short(document))
    if head or verbose:
        yield from remarks(document.remarks)


def in_short(document: SassCompiles) -> str:
    """State the number of compiles and the estimated time."""
    archs = ", ".join(document.archs) or "no architecture"
    if not document.units:
        return f"nothing is compiled ({archs})"
    compiles = f"{plural(document.units, 'compile')}: {plural(document.workloads, 'workload')}"
    first_words = f", {document.changed:,} changed ones first" if document.changed else ""
    minutes = document.minutes
    estimate = f"{minutes / 60:.1f} hours" if minutes >= 90 else f"{max(1, round(minutes))} min"
    return (
        f"at most {compiles}, times architectures{first_words};"
        f" about {estimate} with {document.at_once} at once ({archs})"
    )


def announce(document: SassCompiles) -> None:
    """Announce a long compilation before it starts."""
    messages().write([Words(in_short(document), "dim")])
