"""What `policygen db import` brought in of a library's benchmarks, algorithm by algorithm."""

from collections.abc import Iterator, Sequence

from policygen.model.db_import import DbImport, ImportedFailure, ImportedLeftOut, ImportedWorkload
from policygen.model.labels import BASE
from policygen.report.blocks import Block, Note
from policygen.report.console import plural
from policygen.report.views import db_words
from policygen.report.views.db_import_words import (
    SHOWN,
    counts,
    hidden_reasons,
    numbered,
    without_samples,
)

FROM = {"default": "default_config", "tree": "what the tree has", "option": "what --base says"}


def suite(document: DbImport, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show how much there is of each algorithm, what base is, and what is left out, and why."""
    told = db_words.versions_of(document.ctk or "", document.cccl or "")
    library = db_words.CALLED.get(document.library, document.library)
    where = dict.fromkeys([document.gpu, document.arch])
    yield db_words.heading([library], [*where, *told])
    algorithms: dict[str, list[ImportedWorkload]] = {}
    for one in document.workloads:
        algorithms.setdefault(one.algorithm, []).append(one)
    many = (
        f"{plural(len(document.workloads), 'workload')} of {plural(len(algorithms), 'algorithm')}"
    )
    yield db_words.prose(", ".join([many, *counts(document)]), "  ")
    if quiet:
        return
    for file in document.files:
        if verbose:
            yield Note(f"  {file.path}: {plural(file.configurations, 'configuration')}")
        for text in file.notes:
            yield db_words.prose(f"{file.path}: {text}", "  ", "yellow")
    shown = list(algorithms) if verbose else list(algorithms)[:SHOWN]
    for name in shown:
        yield from _algorithm(document, algorithms[name], verbose=verbose)
    if hidden := len(algorithms) - len(shown):
        yield Note(f"  and {plural(hidden, 'more algorithm')}, see them with -v")
    if document.without_samples:
        yield db_words.prose(without_samples(document), "  ", "yellow")
    yield from _left_out(document.left_out, verbose=verbose)
    failures = document.failures if verbose else document.failures[:SHOWN]
    for failure in failures:
        yield db_words.prose(_failure(failure), "  ", "yellow")
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
    yield db_words.prose(f"{name}: {plural(len(workloads), 'workload')}, {variants}, {base}", "  ")
    for one in workloads if verbose else ():
        parts = db_words.workload_name("", one.workload)
        label = "" if one.base == BASE else f", base is {one.base}"
        yield db_words.prose(f"{', '.join(parts)} {plural(one.variants, 'variant')}{label}", "    ")
    for parameter in document.parameters:
        if parameter.algorithm == name and parameter.numbered:
            yield numbered(parameter, "    ", verbose=verbose)


def _left_out(found: Sequence[ImportedLeftOut], *, verbose: bool) -> Iterator[Block]:
    shown = found if verbose else found[:SHOWN]
    for one in shown:
        such = ", ".join(db_words.workload_name(one.algorithm, one.workload))
        size = f" Elements={one.size}" if one.size else ""
        what = "size" if one.size else "workload"
        more = f" and {plural(one.count - 1, f'more {what}')}" if one.count > 1 else ""
        yield db_words.prose(f"left out: {such}{size}{more}: {one.reason}", "  ", "yellow")
    if hidden := sum(one.count for one in found[len(shown) :]):
        yield Note(f"  and {hidden:,} more left out, see why with -v")


def _failure(failure: ImportedFailure) -> str:
    where = f" ({failure.places[0]})" if failure.places else ""
    such = f", such as {failure.variants[0]}{where}"
    return f"{failure.count:,} {failure.kind}: {failure.reason}{such}"
