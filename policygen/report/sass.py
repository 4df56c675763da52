"""Machine code before and after, on the terminal and as files of diffs."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from policygen.errors import InputError
from policygen.model.sass import Different, KernelPlace, SassRow, VerifySass
from policygen.model.workload import axes
from policygen.paths import file_name, write_atomically
from policygen.report import console
from policygen.report.console import plural, print_filled, short, tree_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SHOWN = 12
"""As many kernels of a kind as are listed without -v."""
COUNTS = ("kernels", "equal", "renamed", "moved", "different", "only_before", "only_after")


def print_sass(document: VerifySass, *, head: bool, verbose: bool) -> None:
    """The benchmarks on the architectures; then each kernel that is not what it was."""
    out = console.results()
    if head:
        where = f"{tree_line(document.cub)}; {document.toolchain}"
        print_filled(out, where.split(" "), "", "  ", "dim")
        print_filled(out, f"compared with {document.base}".split(" "), "", "  ", "dim")
        if document.units == "benchmarks":
            out.print("compiled: the benchmarks' own sources", style="dim")
        out.print()
    if document.rows:
        out.print(_table(document.rows))
        out.print()
    _print_different(out, document, verbose=verbose)
    for title, lot in (("only before", document.only_before), ("only after", document.only_after)):
        _print_lone(out, title, lot, verbose=verbose)
    for one in document.refused:
        where = " ".join([one.benchmark, *axes(one.workload), "on", one.arch])
        out.print(f"{where} does not compile {one.side}:", style="red")
        for line in one.message.splitlines():
            out.print(f"  {line}", soft_wrap=True)
    for remark in document.remarks:
        print_filled(out, f"note: {remark}".split(" "), "", "  ", "yellow")
    if head:
        style = "red" if document.changed or document.refused else "green"
        print_filled(out, _summary(document).split(" "), "", "  ", style)


def alike(rows: Iterable[SassRow]) -> Iterator[list[SassRow]]:
    """Rows that tell the same of several architectures, as a change leaves most of them alike."""
    for _, lot in groupby(rows, key=lambda row: row.model_dump(exclude={"arch"})):
        yield list(lot)


def write_diffs(document: VerifySass, folder: Path) -> None:
    """A file for each kernel that differs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, one in enumerate(document.different, 1):
            words = [f"{number:03}", one.arch, one.benchmark, *axes(one.workload), one.kernel]
            name = f"{file_name(words)[:120]}.diff"
            lines = [f"# {one.where}: {one.kernel}", f"# {one.summary}", *one.diff, ""]
            write_atomically(folder / name, "\n".join(lines).encode())
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from error


def _table(rows: tuple[SassRow, ...]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("benchmark", overflow="fold")
    table.add_column("arch")
    named = [name for name in COUNTS if name in COUNTS[:2] or any(getattr(r, name) for r in rows)]
    identical = any(row.identical for row in rows)
    table.add_column("workloads", justify="right")
    if identical:
        table.add_column("same source", justify="right")
    for name in named:
        table.add_column(name.replace("_", " "), justify="right")
    for row, *others in alike(rows):
        archs = f"{row.arch} to {others[-1].arch} ({len(others) + 1})" if others else row.arch
        cells = [short(row.benchmark), archs, f"{row.workloads:,}"]
        cells += [f"{row.identical:,}"] if identical else []
        cells += [f"{getattr(row, name):,}" if getattr(row, name) else "·" for name in named]
        bad = row.different or row.only_before or row.only_after or row.refused
        table.add_row(*cells, style="red" if bad else "yellow" if row.moved else "")
    return table


def _print_different(out: "Console", document: VerifySass, *, verbose: bool) -> None:
    shown = document.different if verbose else document.different[:SHOWN]
    for where, lot in groupby(shown, key=lambda one: one.where):
        print_filled(out, where.split(" "), "", "  ", "bold")
        for one in lot:
            _print_kernel(out, one, verbose=verbose)
    if cut := len(document.different) - len(shown):
        out.print(f"and {cut:,} more (-v lists them, --out writes their diffs)", style="dim")
    if document.different:
        out.print()


def _print_kernel(out: "Console", one: Different, *, verbose: bool) -> None:
    style = "yellow" if one.kind == "moved" else "red"
    print_filled(out, [one.kind, *one.kernel.split(" ")], "  ", "  ", style)
    print_filled(out, one.summary.split(" "), "    ", "  ", "")
    for line in one.diff if verbose else ():
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
        out.print(f"    {line}", style=colour, soft_wrap=True)


def _print_lone(out: "Console", title: str, lot: tuple[KernelPlace, ...], *, verbose: bool) -> None:
    if not lot:
        return
    out.print(f"{title}:", style="red")
    shown = lot if verbose else lot[:SHOWN]
    for one in shown:
        print_filled(out, f"{one.where}: {one.kernel}".split(" "), "  ", "  ", "")
    if cut := len(lot) - len(shown):
        out.print(f"  and {cut:,} more (-v lists them)", style="dim")
    out.print()


def _summary(document: VerifySass) -> str:
    archs = ", ".join(document.archs)
    same = plural(document.identical, "workload") + " with the same source"
    if not document.kernels and document.refused:
        failed = plural(len(document.refused), "compile")
        return f"SASS: nothing was compared; {failed} failed ({archs})"
    if not document.kernels:
        what = same if document.identical else "nothing differs"
        return f"SASS: {what}; nothing was compiled ({archs or 'no architecture'})"
    counts = {
        "equal": document.equal,
        "renamed, with equal code": document.renamed,
        "moved": sum(one.kind == "moved" for one in document.different),
        "different": sum(one.kind == "different" for one in document.different),
        "only before": len(document.only_before),
        "only after": len(document.only_after),
    }
    told = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    refused = f"; {plural(len(document.refused), 'compile')} failed" if document.refused else ""
    rest = f"; {same}" if document.identical else ""
    kernels = plural(document.kernels, "kernel")
    return f"SASS: of {kernels} {told}{rest}{refused} ({archs})"
