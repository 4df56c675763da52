"""Resolved values, and how those of two trees differ."""

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
    """Show values by benchmark and architecture; workloads with the same values together."""
    if head:
        yield Words(f"{tree_line(document.cub)}; {document.toolchain}", "dim")
        yield BLANK
    for (benchmark, arch), rows in groupby(document.rows, key=lambda r: (r.benchmark, r.arch)):
        yield Note(f"{benchmark} on {arch}", "bold", folded=True)
        for lot in ([row] for row in rows) if verbose else _lots(rows):
            yield from _lot(lot)
        yield BLANK
    if head:
        counts = {name: sum(row.status == name for row in document.rows) for name in STYLES}
        parts = ", ".join(f"{count:,} {status}" for status, count in counts.items())
        workloads = plural(len(document.rows), "workload")
        yield Note(f"{workloads} on {', '.join(document.archs)}: {parts}", folded=True)
    yield from _endings(document.remarks, document.unresolved)


def comparison(document: Comparison, *, head: bool) -> Iterator[Block]:
    """Show what differs, workload by workload."""
    if head:
        yield Words(f"before: {tree_line(document.before)}", "dim")
        yield Words(f"after:  {tree_line(document.after)}; {document.toolchain}", "dim")
        yield BLANK
    by_place = groupby(document.different, key=lambda row: (row.benchmark, row.arch))
    for (benchmark, arch), rows in by_place:
        yield Note(f"{benchmark} on {arch}", "bold", folded=True)
        lone = {"before": 0, "after": 0}
        for row in rows:
            if row.before is not None and row.after is not None:
                yield from _difference(row)
            else:
                lone["after" if row.before is None else "before"] += 1
        for when, count in lone.items():
            if count:
                yield Words(f"{plural(count, 'workload')} only {when}", "yellow", "  ")
        yield BLANK
    if head:
        differ = plural(len(document.different), "workload differs", "workloads differ")
        on = ", ".join(document.archs)
        yield Note(f"{differ} of {document.compared:,}, on {on}", folded=True)
    yield from _endings(document.remarks, document.unresolved)


def _lot(lot: list[ResolvedRow]) -> Iterator[Block]:
    """Show the workloads, then what they have in common."""
    row = lot[0]
    style = STYLES[row.status]
    for each in lot:
        yield Words(axes(each.workload), style, "  ")
    where = f", {_place(row.entry)}" if row.entry else ""
    origin = row.status if row.status != "inherited" else f"inherited from {row.since}"
    yield Words([f"{origin}{where}"], style, "      ")
    yield Words(_values(row.values), "", "      ", joint="  ")
    if row.note:
        yield Words(row.note, "red", "      ")


def _lots(rows: Iterable[ResolvedRow]) -> Iterable[list[ResolvedRow]]:
    """Collect workloads that share values and entry, where the first of them stands."""
    lots: dict[tuple[object, ...], list[ResolvedRow]] = {}
    for row in rows:
        key = (tuple(row.values.items()), row.entry, row.status, row.note)
        lots.setdefault(key, []).append(row)
    return lots.values()


def _values(values: dict[str, Value]) -> list[str]:
    return [f"{name}={spell(value)}" for name, value in values.items()]


def _place(entry: EntryPlace) -> str:
    return f"{entry.header}:{entry.line}"


def _difference(row: Differing) -> Iterator[Block]:
    yield Words(axes(row.workload), "bold", "  ")
    for word, values, entry in (
        ("before:", row.before, row.entry_before),
        ("after: ", row.after, row.entry_after),
    ):
        told = {name: value for name, value in (values or {}).items() if name in row.changed}
        shown = _values(told) + ([f"({_place(entry)})"] if entry else [])
        yield Words([f"{word} {shown[0]}", *shown[1:]], "", "      ", joint="  ")


def _endings(remarks: Iterable[str], unresolved: Iterable[Unresolved]) -> Iterator[Block]:
    for remark in remarks:
        yield Note(f"note: {remark}", "yellow", folded=True)
    for missing in unresolved:
        yield Note(f"{missing.benchmark}: {missing.reason}", "red", folded=True)


print_resolution = printed(resolution)
print_comparison = printed(comparison)


# Entries that are never selected.


def reach(document: Reach, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show each entry with its reason; entries with the same reason together."""
    if head:
        yield Note(f"{tree_line(document.cub)}; {document.toolchain}", "dim", folded=True)
        yield BLANK
    lots: dict[tuple[str, str, str], list[Unreachable]] = {}
    for found in document.unreachable:
        lots.setdefault((found.header, found.family, found.reason), []).append(found)
    for (header, family, reason), lot in lots.items():
        yield Note(f"{header}: {family}", "bold", folded=True)
        yield Words(f"{lot[0].cause}: {reason}", "red", "  ", "      ")
        for entry in lot:
            yield _entry(entry, "cyan")
            if entry.example and entry is lot[0]:
                yield Words(f"for example {entry.example}", "dim", "    ", "        ")
        yield BLANK
    if verbose and document.call_only:
        yield Note("Selected by some call, and by no benchmark:", "bold", folded=True)
        for one in document.call_only:
            yield _entry(one, "yellow")
            yield Words(f"by {one.example}", "dim", "    ", "        ")
        yield BLANK
    if head:
        yield from _summary(document)
    for remark in document.remarks:
        yield Note(f"note: {remark}", "yellow", folded=True)


def _entry(entry: Unreachable | CallOnly, style: str) -> Block:
    key = f"<{', '.join(entry.args)}>" if entry.family.startswith("sm") else conjunction(entry.args)
    return Words(f"{entry.header}:{entry.line}: {key}", style, "  ", "      ")


def _summary(document: Reach) -> Iterator[Block]:
    found = len(document.unreachable)
    parts = [
        f"{plural(document.entries, 'entry', 'entries')}, {found:,} never selected",
        f"{len(document.call_only):,} by no benchmark",
    ]
    if document.unknown:
        where = ", ".join(document.unknown)
        parts.append(f"{sum(document.unknown.values()):,} not known, in {where}")
    if document.unasked:
        parts.append(f"not asked: {', '.join(document.unasked)}")
    yield Note("; ".join(parts), folded=True)
    tried = f"{plural(document.workloads, 'workload')} tried on {', '.join(document.archs)}"
    yield Note(tried, folded=True)


print_reach = printed(reach)
LINT_STYLES = {"error": "red", "warning": "yellow", "note": "cyan"}


# What `policygen audit lint` found.


def lint(report: LintReport, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show each finding with its line and a caret, then a summary."""
    for finding in report.findings:
        error = SourceError(
            path=finding.path,
            line=finding.line,
            column=finding.column,
            message=f"[{finding.rule}] {finding.message}",
            text=finding.text,
            width=finding.width,
        )
        # What an editor or a terminal makes a link of must stay on one line.
        for row in str(error).split("\n"):
            yield Note(row, LINT_STYLES[finding.severity])
    if verbose and report.unbound:
        yield Note(f"without a binding: {', '.join(report.unbound)}", "dim", folded=True)
    if head and not report.cub.has_returns:
        asked = f"asked of {report.cub.called}'s configs: {', '.join(report.counts)}"
        yield Note(asked, "dim", folded=True)
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
"""As many kernels of a kind as are listed without -v."""
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
"""What people call the machine code of a library's kernels."""
COLOURS = {"+": "green", "-": "red", "@": "cyan"}


# Machine code before and after, and files of diffs.


def sass(document: VerifySass, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show the benchmarks on the architectures; then each kernel that is not what it was."""
    if head:
        yield Words(f"{tree_line(document.cub)}; {document.toolchain}", "dim")
        yield Words(f"compared with {document.base}", "dim")
        if document.units == "benchmarks":
            yield Note("compiled: the benchmarks' own sources", "dim", folded=True)
        yield BLANK
    if document.rows:
        yield _table(document.rows)
        yield BLANK
    yield from _different(document.different, verbose=verbose)
    yield from _lone("only before", document.only_before, verbose=verbose)
    yield from _lone("only after", document.only_after, verbose=verbose)
    for one in document.refused:
        where = " ".join([one.benchmark, *axes(one.workload), "on", one.arch])
        yield Note(f"{where} does not compile {one.side}:", "red", folded=True)
        for line in one.message.splitlines():
            yield Note(f"  {line}")
    yield from remarks(document.remarks)
    if head:
        yield Words(summary(document), "red" if document.changed or document.refused else "green")


def alike(rows: Iterable[SassRow]) -> Iterator[list[SassRow]]:
    """Join rows that tell the same of several architectures, as most changes leave them alike."""
    for _, lot in groupby(rows, key=lambda row: row.model_dump(exclude={"arch"})):
        yield list(lot)


def write_diffs(document: VerifySass, folder: Path, *, force: bool = False) -> None:
    """Write a file for each kernel that differs; what is no diff of ours stays."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, one in enumerate(document.different, 1):
            words = [f"{number:03}", one.arch, one.benchmark, *axes(one.workload), one.kernel]
            name = f"{file_name(words)[:120]}.diff"
            lines = [f"# {one.where}: {one.kernel}", f"# {one.summary}", *one.diff, ""]
            write_output(folder / name, "\n".join(lines).encode(), force=force)
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from error


def _table(rows: Sequence[SassRow]) -> Table:
    named = [name for name in COUNTS if name in COUNTS[:2] or any(getattr(r, name) for r in rows)]
    identical = any(row.identical for row in rows)
    titles = ["workloads", *(["same source"] if identical else [])]
    titles += [name.replace("_", " ") for name in named]
    shown, styles = [], []
    for row, *others in alike(rows):
        archs = f"{row.arch} to {others[-1].arch} ({len(others) + 1})" if others else row.arch
        cells = [short(row.benchmark), archs, f"{row.workloads:,}"]
        cells += [f"{row.identical:,}"] if identical else []
        cells += [f"{getattr(row, name):,}" if getattr(row, name) else "·" for name in named]
        bad = row.different or row.only_before or row.only_after or row.refused
        shown.append(cells)
        styles.append("red" if bad else "yellow" if row.moved else "")
    first = (Column("benchmark"), Column("arch"))
    columns = (*first, *(Column(title, "n") for title in titles))
    return Table(columns, shown, styles=styles)


def _different(found: Sequence[Different], *, verbose: bool) -> Iterator[Block]:
    shown = found if verbose else found[:SHOWN]
    for where, lot in groupby(shown, key=lambda one: one.where):
        yield Words(where, "bold")
        for one in lot:
            style = "green" if one.as_written else "yellow" if one.kind == "moved" else "red"
            kind = f"{one.kind}, as written:" if one.as_written else one.kind
            yield Words(f"{kind} {one.kernel}", style, "  ")
            yield Words(one.summary, "", "    ")
            for line in one.diff if verbose else ():
                yield Note(f"    {line}", COLOURS.get(line[:1], "dim"))
    if cut := len(found) - len(shown):
        text = f"and {cut:,} more (-v lists them, --diffs DIR writes their diffs)"
        yield Note(text, "dim", folded=True)
    if found:
        yield BLANK


def _lone(title: str, lot: Sequence[KernelPlace], *, verbose: bool) -> Iterator[Block]:
    if not lot:
        return
    yield Note(f"{title}:", "red")
    shown = lot if verbose else lot[:SHOWN]
    for one in shown:
        meant = " (as written)" if one.as_written else ""
        yield Words(f"{one.where}: {one.kernel}{meant}", "", "  ")
    if cut := len(lot) - len(shown):
        yield Note(f"  and {cut:,} more (-v lists them)", "dim")
    yield BLANK


def summary(document: VerifySass) -> str:
    """Say what a comparison came to: `SASS: of 4 kernels 4 equal (sm100)`."""
    archs, code = ", ".join(document.archs), CODE[document.cub.library]
    same = plural(document.identical, "workload") + " with the same source"
    failed = plural(len(document.refused), "compile") + " failed"
    if not document.kernels and document.refused:
        return f"{code}: nothing was compared; {failed} ({archs})"
    if not document.kernels and document.untouched and not document.identical:
        left = plural(document.untouched, "workload")
        return f"{code}: the change touches none of {left}; nothing was compiled ({archs})"
    if not document.kernels:
        what = same if document.identical else "nothing differs"
        return f"{code}: {what}; nothing was compiled ({archs or 'no architecture'})"
    counts = {
        "equal": document.equal,
        "renamed, with equal code": document.renamed,
        "moved": sum(one.kind == "moved" and not one.as_written for one in document.different),
        "different as written": sum(one.as_written for one in document.different),
        "different": sum(
            one.kind == "different" and not one.as_written for one in document.different
        ),
        "only before": sum(not one.as_written for one in document.only_before),
        "only after": sum(not one.as_written for one in document.only_after),
    }
    told = [", ".join(f"{count:,} {name}" for name, count in counts.items() if count)]
    told += [same] if document.identical else []
    told += [failed] if document.refused else []
    if document.untouched:
        told.append(f"{plural(document.untouched, 'workload')} that the change cannot touch")
    return f"{code}: of {plural(document.kernels, 'kernel')} {'; '.join(told)} ({archs})"


def compiles(document: SassCompiles, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show what would be compiled, and why not the rest."""
    if head:
        yield Words(f"compared with {document.base}; {document.toolchain}", "dim")
    yield Words(in_short(document))
    if head or verbose:
        yield from remarks(document.remarks)


def in_short(document: SassCompiles) -> str:
    """Tell how much is compiled, and how long that takes."""
    archs = ", ".join(document.archs) or "no architecture"
    if not document.units:
        return f"nothing is compiled ({archs})"
    first = f", {document.changed:,} with other values first" if document.changed else ""
    long = document.minutes
    about = f"{long / 60:.1f} hours" if long >= 90 else f"{max(1, round(long))} min"
    return (
        f"at most {plural(document.units, 'compile')}: {plural(document.workloads, 'workload')},"
        f" times architectures{first}; about {about} with {document.at_once} at once ({archs})"
    )


def announce(document: SassCompiles) -> None:
    """Say before it begins what takes its time."""
    messages().write([Words(in_short(document), "dim")])


print_sass = printed(sass)
print_compiles = printed(compiles)
