"""Terminal views of `policygen db import`, `merge`, `export`, and `plot`."""

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
    """Show the name of the kernel, its base, the meaning of labels, and failures."""
    if document.library:
        yield from suite(document, verbose=verbose, quiet=quiet)
        return
    versions = (("ctk", document.ctk), ("cccl", document.cccl))
    known_versions = [f"{name} {text}" for name, text in versions if text]
    name = ranking_views.workload_name(document.algorithm, document.workload)
    yield ranking_views.heading(name, [document.gpu, document.arch, *known_versions])
    yield Words(["base is", *_base_words(document)], "", "  ", "    ", even=True)
    if quiet:
        return
    yield Note(f"  {', '.join(counts(document))}")
    for size in document.sizes if verbose else ():
        yield Note(f"  Elements={size}")
    for file in document.files:
        if verbose:
            yield Note(f"  {file.path}: {plural(file.configurations, 'configuration')}")
        for text in file.notes:
            yield ranking_views.prose(f"{file.path}: {text}", "  ", "yellow")
    if document.warmup and document.without_samples < document.rows:
        yield ranking_views.prose(_warmup(document), "  ")
    if document.without_samples:
        yield ranking_views.prose(without_samples(document), "  ", "yellow")
    for parameter in document.parameters:
        if parameter.numbered:
            yield numbered(parameter, "  ", verbose=verbose)
    shown = document.failures if verbose else document.failures[:SHOWN]
    for failure in shown:
        example = f", such as {failure.variants[0]}"
        yield ranking_views.prose(
            f"{failure.count:,} {failure.kind}: {failure.reason}{example}", "  "
        )
    yield from hidden_reasons(document, len(shown))
    yield Note(f"written to {document.out}")


def _base_words(document: DbImport) -> list[str]:
    values = [f"{name}={text}" for name, text in document.base_values.items()]
    is_numbered = any(parameter.numbered for parameter in document.parameters)
    return [document.base, *([f"({', '.join(values)})"] if is_numbered else [])]


def _warmup(document: DbImport) -> str:
    plural_form = f"{document.warmup} launches warm up and count"
    launches = "launch warms up and counts" if document.warmup == 1 else plural_form
    return f"the first {launches} for nothing; with --warmup 0 all count"


# Shared by views of imports: counts, meanings of numbers, and hidden items


def counts(document: DbImport) -> list[str]:
    """Count rows, variants, and sizes, and what was joined or is a copy."""
    parts = [
        plural(document.rows, "row"),
        plural(document.variants, "variant"),
        plural(len(document.sizes), "size"),
    ]
    if document.joined:
        parts.append(f"{plural(document.joined, 'measurement')} joined to earlier ones")
    if document.copies:
        parts.append(f"{plural(document.copies, 'copy', 'copies')} of measurements left out")
    return parts


def without_samples(document: DbImport) -> str:
    """Explain the limitations of rows without samples."""
    return (
        f"{plural(document.without_samples, 'row')} without samples: how sure their scores are is"
        " not known, and `db choose` takes them with --without-samples alone"
    )


# Imports of a library's benchmarks, by algorithm


def suite(document: DbImport, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show the workloads of each algorithm, its base, and what was left out and why."""
    known_versions = ranking_views.versions_of(document.ctk or "", document.cccl or "")
    library = ranking_views.CALLED.get(document.library, document.library)
    location = dict.fromkeys([document.gpu, document.arch])
    yield ranking_views.heading([library], [*location, *known_versions])
    algorithms: dict[str, list[ImportedWorkload]] = {}
    for workload in document.workloads:
        algorithms.setdefault(workload.algorithm, []).append(workload)
    summary = (
        f"{plural(len(document.workloads), 'workload')} of {plural(len(algorithms), 'algorithm')}"
    )
    yield ranking_views.prose(", ".join([summary, *counts(document)]), "  ")
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
    """Show the workloads of an algorithm, or their count, and the meaning of numbers."""
    name = workloads[0].algorithm
    variants = plural(sum(workload.variants for workload in workloads), "variant")
    origins = dict.fromkeys(FROM[workload.base_from] for workload in workloads)
    base = f"base is {' or '.join(origins)}"
    yield ranking_views.prose(
        f"{name}: {plural(len(workloads), 'workload')}, {variants}, {base}", "  "
    )
    for workload in workloads if verbose else ():
        parts = ranking_views.workload_name("", workload.workload)
        label = "" if workload.base == BASE else f", base is {workload.base}"
        yield ranking_views.prose(
            f"{', '.join(parts)} {plural(workload.variants, 'variant')}{label}", "    "
        )
    for parameter in document.parameters:
        if parameter.algorithm == name and parameter.numbered:
            yield numbered(parameter, "    ", verbose=verbose)


FROM = {"default": "default_config", "tree": "what the tree has", "option": "what --base says"}


def numbered(parameter: ImportedParameter, indent: str, *, verbose: bool) -> Block:
    """Explain the numbers used in labels."""
    values = list(parameter.values.items())
    shown = [f"{number} is {text}" for number, text in (values if verbose else values[:SHOWN])]
    if hidden := len(values) - len(shown):
        shown.append(f"… {hidden:,} more, see them with -v")
    return Words(shown, "", f"{indent}{parameter.name}: ", f"{indent}  ", ", ", even=True)


SHOWN = 8
"""Reasons and numbered values listed without -v."""


def _left_out(left_out: Sequence[ImportedLeftOut], *, verbose: bool) -> Iterator[Block]:
    shown = left_out if verbose else left_out[:SHOWN]
    for entry in shown:
        workload = ", ".join(ranking_views.workload_name(entry.algorithm, entry.workload))
        size = f" Elements={entry.size}" if entry.size else ""
        noun = "size" if entry.size else "workload"
        suffix = f" and {plural(entry.count - 1, f'more {noun}')}" if entry.count > 1 else ""
        yield ranking_views.prose(
            f"left out: {workload}{size}{suffix}: {entry.reason}", "  ", "yellow"
        )
    if hidden := sum(entry.count for entry in left_out[len(shown) :]):
        yield Note(f"  and {hidden:,} more left out, see why with -v")


def _failure(failure: ImportedFailure) -> str:
    location = f" ({failure.places[0]})" if failure.places else ""
    example = f", such as {failure.variants[0]}{location}"
    return f"{failure.count:,} {failure.kind}: {failure.reason}{example}"


def hidden_reasons(document: DbImport, shown: int) -> Iterator[Block]:
    """Count reasons that are not listed."""
    if hidden := len(document.failures) - shown + document.other_failures:
        yield Note(f"  and {plural(hidden, 'more reason')}")


print_import = printed(imported)
MERGE_SHOWN = 10
"""Conflicts listed without -v."""


# `policygen db merge`


def merged(report: MergeReport, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show one line per table, then the conflicts."""
    for table in () if quiet else report.tables:
        counts = {
            "duplicate": table.duplicates,
            "in conflict": table.conflicts,
            "unusable": table.unusable,
        }
        details = ", ".join(f"{number:,} {label}" for label, number in counts.items() if number)
        yield Note(f"{table.table}: {plural(table.rows, 'row')}{details and f' ({details})'}")
    shown = report.conflicts if verbose else report.conflicts[:MERGE_SHOWN]
    for conflict in shown:
        yield Note(f"conflict in {conflict.table}: {conflict.what}")
        yield Note(f"  kept {conflict.kept}, refused {conflict.refused} of {conflict.path}")
    if hidden := len(report.conflicts) - len(shown) + report.unlisted:
        yield Note(f"and {plural(hidden, 'more conflict')}")
    if not quiet:
        yield Note(f"{plural(len(report.databases), 'database')} merged into {report.out}")


print_merge = printed(merged)


# `policygen db export` and `policygen db plot`


def exported(document: DbExport, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show the number of rows written, and the source databases."""
    if not quiet:
        yield Note(f"{document.rows:,} rows written to {document.out}")
    yield from (Note(f"  {name}") for name in (document.databases if verbose else ()))


def plotted(document: DbPlot, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show where the plot is, and what it shows."""
    if verbose:
        location = ranking_views.key_parts(document.measured_on, " + ".join(document.databases))
        yield ranking_views.heading(
            ranking_views.workload_name(document.algorithm, document.workload), location
        )
        if document.parameters is None:
            subject = f"{', '.join(document.variants)} on "
            yield Words(f"{subject}{plural(document.panels, 'runtime workload')}", "", "  ")
        else:
            subject = " and ".join(document.parameters)
            yield Words(f"{plural(document.panels, 'score')} over {subject}", "", "  ")
    if not quiet:
        yield Note(f"written to {document.out}")


print_export = printed(exported)
print_plot = printed(plotted)
