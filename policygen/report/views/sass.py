"""Machine code before and after, and files of diffs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from policygen.errors import InputError
from policygen.model.cub import Library
from policygen.model.sass import Different, KernelPlace, SassCompiles, SassRow, VerifySass
from policygen.model.workload import axes
from policygen.outputs import write_output
from policygen.paths import file_name
from policygen.report.blocks import BLANK, Block, Column, Note, Table, Words, remarks
from policygen.report.console import messages, plural, printed, short, tree_line

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
