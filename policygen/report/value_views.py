"""Resolved values, differences between two trees, and verification of machine code."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from policygen.errors import InputError, SourceError
from policygen.model.audits import CallOnly, LintReport, Reach, Unreachable
from policygen.model.machine_code import Different, KernelPlace, SassCompiles, SassRow, VerifySass
from policygen.model.selection import (
    Comparison,
    Differing,
    EntryPlace,
    Resolution,
    ResolvedRow,
    Unresolved,
)
from policygen.model.trees import Library
from policygen.model.tuning import Value, conjunction, spell
from policygen.model.workload import axes
from policygen.outputs import write_output
from policygen.paths import file_name
from policygen.report.blocks import BLANK, Block, Column, Note, Table, Words, remarks
from policygen.report.console import messages, plural, printed, short, tree_line

STYLES = {"tuned": "green", "inherited": "yellow", "default": "dim"}


def resolution(document: Resolution, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show values by benchmark and architecture; workloads with equal values are grouped."""
    if head:
        yield Words(f"{tree_line(document.cub)}; {document.toolchain}", "dim")
        yield BLANK
    for (benchmark, arch), rows in groupby(
        document.rows, key=lambda row: (row.benchmark, row.arch)
    ):
        yield Note(f"{benchmark} on {arch}", "bold", folded=True)
        for group in ([row] for row in rows) if verbose else _group_by_values(rows):
            yield from _rows_alike(group)
        yield BLANK
    if head:
        counts = {name: sum(row.status == name for row in document.rows) for name in STYLES}
        parts = ", ".join(f"{count:,} {status}" for status, count in counts.items())
        workloads = plural(len(document.rows), "workload")
        yield Note(f"{workloads} on {', '.join(document.archs)}: {parts}", folded=True)
    yield from _remarks_and_failures(document.remarks, document.unresolved)


def comparison(document: Comparison, *, head: bool) -> Iterator[Block]:
    """Show the differences of each workload."""
    if head:
        yield Words(f"before: {tree_line(document.before)}", "dim")
        yield Words(f"after:  {tree_line(document.after)}; {document.toolchain}", "dim")
        yield BLANK
    by_place = groupby(document.different, key=lambda row: (row.benchmark, row.arch))
    for (benchmark, arch), rows in by_place:
        yield Note(f"{benchmark} on {arch}", "bold", folded=True)
        lone_counts = {"before": 0, "after": 0}
        for row in rows:
            if row.before is not None and row.after is not None:
                yield from _difference(row)
            else:
                lone_counts["after" if row.before is None else "before"] += 1
        for side, count in lone_counts.items():
            if count:
                yield Words(f"{plural(count, 'workload')} only {side}", "yellow", "  ")
        yield BLANK
    if head:
        different = plural(len(document.different), "workload differs", "workloads differ")
        archs = ", ".join(document.archs)
        yield Note(f"{different} of {document.compared:,}, on {archs}", folded=True)
    yield from _remarks_and_failures(document.remarks, document.unresolved)


def _rows_alike(rows: list[ResolvedRow]) -> Iterator[Block]:
    """Show the workloads, followed by what they have in common."""
    row = rows[0]
    style = STYLES[row.status]
    for each_row in rows:
        yield Words(axes(each_row.workload), style, "  ")
    location = f", {_place(row.entry)}" if row.entry else ""
    origin = row.status if row.status != "inherited" else f"inherited from {row.since}"
    yield Words([f"{origin}{location}"], style, "      ")
    yield Words(_values(row.values), "", "      ", joint="  ")
    if row.note:
        yield Words(row.note, "red", "      ")


def _group_by_values(rows: Iterable[ResolvedRow]) -> Iterable[list[ResolvedRow]]:
    """Group workloads that share values and entry, in order of first appearance."""
    groups: dict[tuple[object, ...], list[ResolvedRow]] = {}
    for row in rows:
        key = (tuple(row.values.items()), row.entry, row.status, row.note)
        groups.setdefault(key, []).append(row)
    return groups.values()


def _values(values: dict[str, Value]) -> list[str]:
    return [f"{name}={spell(value)}" for name, value in values.items()]


def _place(entry: EntryPlace) -> str:
    return f"{entry.header}:{entry.line}"


def _difference(row: Differing) -> Iterator[Block]:
    yield Words(axes(row.workload), "bold", "  ")
    for label, values, entry in (
        ("before:", row.before, row.entry_before),
        ("after: ", row.after, row.entry_after),
    ):
        changed_values = {
            name: value for name, value in (values or {}).items() if name in row.changed
        }
        shown = _values(changed_values) + ([f"({_place(entry)})"] if entry else [])
        yield Words([f"{label} {shown[0]}", *shown[1:]], "", "      ", joint="  ")


def _remarks_and_failures(
    remarks: Iterable[str], unresolved: Iterable[Unresolved]
) -> Iterator[Block]:
    for remark in remarks:
        yield Note(f"note: {remark}", "yellow", folded=True)
    for unresolved_benchmark in unresolved:
        yield Note(
            f"{unresolved_benchmark.benchmark}: {unresolved_benchmark.reason}", "red", folded=True
        )


print_resolution = printed(resolution)
print_comparison = printed(comparison)


# Entries that are never selected


def reach(document: Reach, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show each entry with its reason; entries with the same reason are grouped."""
    if head:
        yield Note(f"{tree_line(document.cub)}; {document.toolchain}", "dim", folded=True)
        yield BLANK
    groups: dict[tuple[str, str, str], list[Unreachable]] = {}
    for entry_found in document.unreachable:
        groups.setdefault((entry_found.header, entry_found.family, entry_found.reason), []).append(
            entry_found
        )
    for (header, family, reason), group in groups.items():
        yield Note(f"{header}: {family}", "bold", folded=True)
        yield Words(f"{group[0].cause}: {reason}", "red", "  ", "      ")
        for entry in group:
            yield _entry(entry, "cyan")
            if entry.example and entry is group[0]:
                yield Words(f"for example {entry.example}", "dim", "    ", "        ")
        yield BLANK
    if verbose and document.call_only:
        yield Note("Selected by some call, and by no benchmark:", "bold", folded=True)
        for entry_by_call in document.call_only:
            yield _entry(entry_by_call, "yellow")
            yield Words(f"by {entry_by_call.example}", "dim", "    ", "        ")
        yield BLANK
    if head:
        yield from _summary(document)
    for remark in document.remarks:
        yield Note(f"note: {remark}", "yellow", folded=True)


def _entry(entry: Unreachable | CallOnly, style: str) -> Block:
    key = f"<{', '.join(entry.args)}>" if entry.family.startswith("sm") else conjunction(entry.args)
    return Words(f"{entry.header}:{entry.line}: {key}", style, "  ", "      ")


def _summary(document: Reach) -> Iterator[Block]:
    unreachable_count = len(document.unreachable)
    parts = [
        f"{plural(document.entries, 'entry', 'entries')}, {unreachable_count:,} never selected",
        f"{len(document.call_only):,} by no benchmark",
    ]
    if document.unknown:
        headers = ", ".join(document.unknown)
        parts.append(f"{sum(document.unknown.values()):,} not known, in {headers}")
    if document.unasked:
        parts.append(f"not asked: {', '.join(document.unasked)}")
    yield Note("; ".join(parts), folded=True)
    workloads_tried = (
        f"{plural(document.workloads, 'workload')} tried on {', '.join(document.archs)}"
    )
    yield Note(workloads_tried, folded=True)


print_reach = printed(reach)
LINT_STYLES = {"error": "red", "warning": "yellow", "note": "cyan"}


# Findings of `policygen audit lint`


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
        rules = f"asked of {report.cub.called}'s configs: {', '.join(report.counts)}"
        yield Note(rules, "dim", folded=True)
    if head:
        yield Note(_lint_summary(report), folded=True)


def _lint_summary(report: LintReport) -> str:
    parts = [
        f"{plural(len(report.findings), 'finding')} in {plural(report.entries, 'entry', 'entries')}"
        f" of {plural(report.families, 'family', 'families')}"
    ]
    parts += [f"{name} {count}" for name, count in report.counts.items() if count]
    parts += [f"{plural(len(report.off), 'rule')} off"] if report.off else []
    if report.unbound:
        parts.append(f"{plural(len(report.unbound), 'family', 'families')} without a binding")
    return "; ".join(parts)


print_lint = printed(lint)
SHOWN = 12
"""Kernels of each kind listed without -v."""
COUNTS = (
    "kernels",
    "equal",
    "renamed",
    "as_written",
    "moved",
    "different",
    "only_before",
    "only_after",
)
CODE: Mapping[Library, str] = {"cub": "SASS", "rocprim": "ISA"}
"""Name of the machine code of a library's kernels."""
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
        yield Words(summary(document), "red" if document.changed or document.refused else "green")


def alike(rows: Iterable[SassRow]) -> Iterator[list[SassRow]]:
    """Join rows that differ only in architecture, because most changes affect all alike."""
    for _, group in groupby(rows, key=lambda row: row.model_dump(exclude={"arch"})):
        yield list(group)


def write_diffs(document: VerifySass, folder: Path, *, force: bool = False) -> None:
    """Write one file per kernel that differs; refuse to overwrite files policygen did not write."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, kernel in enumerate(document.different, 1):
            words = [
                f"{number:03}",
                kernel.arch,
                kernel.benchmark,
                *axes(kernel.workload),
                kernel.kernel,
            ]
            name = f"{file_name(words)[:120]}.diff"
            lines = [f"# {kernel.where}: {kernel.kernel}", f"# {kernel.summary}", *kernel.diff, ""]
            write_output(folder / name, "\n".join(lines).encode(), force=force)
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from error


def _table(rows: Sequence[SassRow]) -> Table:
    columns_shown = [
        name for name in COUNTS if name in COUNTS[:2] or any(getattr(row, name) for row in rows)
    ]
    identical = any(row.identical for row in rows)
    titles = ["workloads", *(["same source"] if identical else [])]
    titles += [name.replace("_", " ") for name in columns_shown]
    shown, styles = [], []
    for row, *other_rows in alike(rows):
        archs = (
            f"{row.arch} to {other_rows[-1].arch} ({len(other_rows) + 1})"
            if other_rows
            else row.arch
        )
        cells = [short(row.benchmark), archs, f"{row.workloads:,}"]
        cells += [f"{row.identical:,}"] if identical else []
        cells += [
            f"{getattr(row, name):,}" if getattr(row, name) else "·" for name in columns_shown
        ]
        is_failure = row.different or row.only_before or row.only_after or row.refused
        shown.append(cells)
        styles.append("red" if is_failure else "yellow" if row.moved else "")
    first = (Column("benchmark"), Column("arch"))
    columns = (*first, *(Column(title, "n") for title in titles))
    return Table(columns, shown, styles=styles)


def _different_kernels(kernels: Sequence[Different], *, verbose: bool) -> Iterator[Block]:
    shown = kernels if verbose else kernels[:SHOWN]
    for location, group in groupby(shown, key=lambda kernel: kernel.where):
        yield Words(location, "bold")
        for kernel in group:
            style = "green" if kernel.as_written else "yellow" if kernel.kind == "moved" else "red"
            kind = f"{kernel.kind}, as written:" if kernel.as_written else kernel.kind
            yield Words(f"{kind} {kernel.kernel}", style, "  ")
            yield Words(kernel.summary, "", "    ")
            for line in kernel.diff if verbose else ():
                yield Note(f"    {line}", COLOURS.get(line[:1], "dim"))
    if hidden := len(kernels) - len(shown):
        text = f"and {hidden:,} more (-v lists them, --diffs DIR writes their diffs)"
        yield Note(text, "dim", folded=True)
    if kernels:
        yield BLANK


def _kernels_on_one_side(
    title: str, kernels: Sequence[KernelPlace], *, verbose: bool
) -> Iterator[Block]:
    if not kernels:
        return
    yield Note(f"{title}:", "red")
    shown = kernels if verbose else kernels[:SHOWN]
    for kernel in shown:
        suffix = " (as written)" if kernel.as_written else ""
        yield Words(f"{kernel.where}: {kernel.kernel}{suffix}", "", "  ")
    if hidden := len(kernels) - len(shown):
        yield Note(f"  and {hidden:,} more (-v lists them)", "dim")
    yield BLANK


def summary(document: VerifySass) -> str:
    """Summarize a comparison: `SASS: of 4 kernels 4 equal (sm100)`."""
    archs, code = ", ".join(document.archs), CODE[document.cub.library]
    same = plural(document.identical, "workload") + " with the same source"
    failed = plural(len(document.refused), "compile") + " failed"
    if not document.kernels and document.refused:
        return f"{code}: nothing was compared; {failed} ({archs})"
    if not document.kernels and document.untouched and not document.identical:
        untouched = plural(document.untouched, "workload")
        return f"{code}: the change touches none of {untouched}; nothing was compiled ({archs})"
    if not document.kernels:
        reason = same if document.identical else "nothing differs"
        return f"{code}: {reason}; nothing was compiled ({archs or 'no architecture'})"
    counts = {
        "equal": document.equal,
        "renamed, with equal code": document.renamed,
        "moved": sum(
            kernel.kind == "moved" and not kernel.as_written for kernel in document.different
        ),
        "different as written": sum(kernel.as_written for kernel in document.different),
        "different": sum(
            kernel.kind == "different" and not kernel.as_written for kernel in document.different
        ),
        "only before": sum(not kernel.as_written for kernel in document.only_before),
        "only after": sum(not kernel.as_written for kernel in document.only_after),
    }
    parts = [", ".join(f"{count:,} {name}" for name, count in counts.items() if count)]
    parts += [same] if document.identical else []
    parts += [failed] if document.refused else []
    if document.untouched:
        parts.append(f"{plural(document.untouched, 'workload')} that the change cannot touch")
    return f"{code}: of {plural(document.kernels, 'kernel')} {'; '.join(parts)} ({archs})"


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
    first_words = f", {document.changed:,} with other values first" if document.changed else ""
    minutes = document.minutes
    estimate = f"{minutes / 60:.1f} hours" if minutes >= 90 else f"{max(1, round(minutes))} min"
    return (
        f"at most {plural(document.units, 'compile')}: {plural(document.workloads, 'workload')},"
        f" times architectures{first_words}; about {estimate} with {document.at_once} at once"
        f" ({archs})"
    )


def announce(document: SassCompiles) -> None:
    """Announce a long compilation before it starts."""
    messages().write([Words(in_short(document), "dim")])


print_sass = printed(sass)
print_compiles = printed(compiles)
