"""What `policygen db import` brought in."""

from collections.abc import Iterator, Sequence

from policygen.model.databases import (
    DbImport,
    ImportedFailure,
    ImportedLeftOut,
    ImportedParameter,
    ImportedWorkload,
)
from policygen.model.results import DbExport, DbPlot, MergeReport
from policygen.model.workload import BASE
from policygen.report import ranking_views
from policygen.report.blocks import Block, Note, Words
from policygen.report.console import plural, printed


def imported(document: DbImport, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show what the kernel is called, what base is, what labels mean, and what failed."""
    if document.library:
        yield from suite(document, verbose=verbose, quiet=quiet)
        return
    versions = (("ctk", document.ctk), ("cccl", document.cccl))
    told = [f"{name} {text}" for name, text in versions if text]
    name = ranking_views.workload_name(document.algorithm, document.workload)
    yield ranking_views.heading(name, [document.gpu, document.arch, *told])
    yield Words(["base is", *_sentence(document)], "", "  ", "    ", even=True)
    if quiet:
        return
    yield Note(f"  {', '.join(counts(document))}")
    for size in document.sizes if verbose else ():
        yield Note(f"  Elements={size}")
    for one in document.files:
        if verbose:
            yield Note(f"  {one.path}: {plural(one.configurations, 'configuration')}")
        for text in one.notes:
            yield ranking_views.prose(f"{one.path}: {text}", "  ", "yellow")
    if document.warmup and document.without_samples < document.rows:
        yield ranking_views.prose(_warmup(document), "  ")
    if document.without_samples:
        yield ranking_views.prose(without_samples(document), "  ", "yellow")
    for parameter in document.parameters:
        if parameter.numbered:
            yield numbered(parameter, "  ", verbose=verbose)
    shown = document.failures if verbose else document.failures[:SHOWN]
    for failure in shown:
        such = f", such as {failure.variants[0]}"
        yield ranking_views.prose(f"{failure.count:,} {failure.kind}: {failure.reason}{such}", "  ")
    yield from hidden_reasons(document, len(shown))
    yield Note(f"written to {document.out}")


def _sentence(document: DbImport) -> list[str]:
    told = [f"{name}={text}" for name, text in document.base_values.items()]
    is_numbered = any(one.numbered for one in document.parameters)
    return [document.base, *([f"({', '.join(told)})"] if is_numbered else [])]


def _warmup(document: DbImport) -> str:
    several = f"{document.warmup} launches warm up and count"
    launches = "launch warms up and counts" if document.warmup == 1 else several
    return f"the first {launches} for nothing; with --warmup 0 all count"


# What views of imports have in common: counts, what numbers stand for, what is not listed.


def counts(document: DbImport) -> list[str]:
    """Count what is in the database, and what was joined or is a copy."""
    found = [
        plural(document.rows, "row"),
        plural(document.variants, "variant"),
        plural(len(document.sizes), "size"),
    ]
    if document.joined:
        found.append(f"{plural(document.joined, 'measurement')} joined to earlier ones")
    if document.copies:
        found.append(f"{plural(document.copies, 'copy', 'copies')} of measurements left out")
    return found


def without_samples(document: DbImport) -> str:
    """Say what rows without samples are worth."""
    return (
        f"{plural(document.without_samples, 'row')} without samples: how sure their scores are is"
        " not known, and `db choose` takes them with --without-samples alone"
    )


# What `policygen db import` brought in of a library's benchmarks, algorithm by algorithm.


def suite(document: DbImport, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show how much there is of each algorithm, what base is, and what is left out, and why."""
    told = ranking_views.versions_of(document.ctk or "", document.cccl or "")
    library = ranking_views.CALLED.get(document.library, document.library)
    where = dict.fromkeys([document.gpu, document.arch])
    yield ranking_views.heading([library], [*where, *told])
    algorithms: dict[str, list[ImportedWorkload]] = {}
    for one in document.workloads:
        algorithms.setdefault(one.algorithm, []).append(one)
    many = (
        f"{plural(len(document.workloads), 'workload')} of {plural(len(algorithms), 'algorithm')}"
    )
    yield ranking_views.prose(", ".join([many, *counts(document)]), "  ")
    if quiet:
        return
    for file in document.files:
        if verbose:
            yield Note(f"  {file.path}: {plural(file.configurations, 'configuration')}")
        for text in file.notes:
            yield ranking_views.prose(f"{file.path}: {text}", "  ", "yellow")
    shown = list(algorithms) if verbose else list(algorithms)[:SHOWN]
    for name in shown:
        yield from _algorithm(document, algorithms[name], verbose=verbose)
    if hidden := len(algorithms) - len(shown):
        yield Note(f"  and {plural(hidden, 'more algorithm')}, see them with -v")
    if document.without_samples:
        yield ranking_views.prose(without_samples(document), "  ", "yellow")
    yield from _left_out(document.left_out, verbose=verbose)
    failures = document.failures if verbose else document.failures[:SHOWN]
    for failure in failures:
        yield ranking_views.prose(_failure(failure), "  ", "yellow")
    yield from hidden_reasons(document, len(failures))
    yield Note(f"written to {document.out}")


def _algorithm(
    document: DbImport, workloads: Sequence[ImportedWorkload], *, verbose: bool
) -> Iterator[Block]:
    """Show one algorithm: its workloads, or how many there are, and what numbers stand for."""
    name = workloads[0].algorithm
    variants = plural(sum(one.variants for one in workloads), "variant")
    origins = dict.fromkeys(FROM[one.base_from] for one in workloads)
    base = f"base is {' or '.join(origins)}"
    yield ranking_views.prose(
        f"{name}: {plural(len(workloads), 'workload')}, {variants}, {base}", "  "
    )
    for one in workloads if verbose else ():
        parts = ranking_views.workload_name("", one.workload)
        label = "" if one.base == BASE else f", base is {one.base}"
        yield ranking_views.prose(
            f"{', '.join(parts)} {plural(one.variants, 'variant')}{label}", "    "
        )
    for parameter in document.parameters:
        if parameter.algorithm == name and parameter.numbered:
            yield numbered(parameter, "    ", verbose=verbose)


FROM = {"default": "default_config", "tree": "what the tree has", "option": "what --base says"}


def numbered(parameter: ImportedParameter, indent: str, *, verbose: bool) -> Block:
    """Say what numbers in labels stand for."""
    values = list(parameter.values.items())
    shown = [f"{number} is {text}" for number, text in (values if verbose else values[:SHOWN])]
    if hidden := len(values) - len(shown):
        shown.append(f"… {hidden:,} more, see them with -v")
    return Words(shown, "", f"{indent}{parameter.name}: ", f"{indent}  ", ", ", even=True)


SHOWN = 8
"""Reasons and numbered values as many as are listed without -v."""


def _left_out(found: Sequence[ImportedLeftOut], *, verbose: bool) -> Iterator[Block]:
    shown = found if verbose else found[:SHOWN]
    for one in shown:
        such = ", ".join(ranking_views.workload_name(one.algorithm, one.workload))
        size = f" Elements={one.size}" if one.size else ""
        what = "size" if one.size else "workload"
        more = f" and {plural(one.count - 1, f'more {what}')}" if one.count > 1 else ""
        yield ranking_views.prose(f"left out: {such}{size}{more}: {one.reason}", "  ", "yellow")
    if hidden := sum(one.count for one in found[len(shown) :]):
        yield Note(f"  and {hidden:,} more left out, see why with -v")


def _failure(failure: ImportedFailure) -> str:
    where = f" ({failure.places[0]})" if failure.places else ""
    such = f", such as {failure.variants[0]}{where}"
    return f"{failure.count:,} {failure.kind}: {failure.reason}{such}"


def hidden_reasons(document: DbImport, shown: int) -> Iterator[Block]:
    """Count reasons that are not listed."""
    if hidden := len(document.failures) - shown + document.other_failures:
        yield Note(f"  and {plural(hidden, 'more reason')}")


print_import = printed(imported)
MERGE_SHOWN = 10
"""As many conflicts as are listed without -v."""


# What `policygen db merge` did.


def merged(report: MergeReport, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show one line a table, then the conflicts."""
    for table in () if quiet else report.tables:
        counts = {
            "duplicate": table.duplicates,
            "in conflict": table.conflicts,
            "unusable": table.unusable,
        }
        told = ", ".join(f"{number:,} {what}" for what, number in counts.items() if number)
        yield Note(f"{table.table}: {plural(table.rows, 'row')}{told and f' ({told})'}")
    shown = report.conflicts if verbose else report.conflicts[:MERGE_SHOWN]
    for conflict in shown:
        yield Note(f"conflict in {conflict.table}: {conflict.what}")
        yield Note(f"  kept {conflict.kept}, refused {conflict.refused} of {conflict.path}")
    if hidden := len(report.conflicts) - len(shown) + report.unlisted:
        yield Note(f"and {plural(hidden, 'more conflict')}")
    if not quiet:
        yield Note(f"{plural(len(report.databases), 'database')} merged into {report.out}")


print_merge = printed(merged)


# What `policygen db export` and `policygen db plot` wrote.


def exported(document: DbExport, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show how many rows, and of which files."""
    if not quiet:
        yield Note(f"{document.rows:,} rows written to {document.out}")
    yield from (Note(f"  {name}") for name in (document.databases if verbose else ()))


def plotted(document: DbPlot, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show where the plot is, and what it shows."""
    if verbose:
        where = ranking_views.key_parts(document.measured_on, " + ".join(document.databases))
        yield ranking_views.heading(
            ranking_views.workload_name(document.algorithm, document.workload), where
        )
        if document.parameters is None:
            what = f"{', '.join(document.variants)} on "
            yield Words(f"{what}{plural(document.panels, 'runtime workload')}", "", "  ")
        else:
            what = " and ".join(document.parameters)
            yield Words(f"{plural(document.panels, 'score')} over {what}", "", "  ")
    if not quiet:
        yield Note(f"written to {document.out}")


print_export = printed(exported)
print_plot = printed(plotted)
