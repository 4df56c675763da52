"""What `policygen db import` brought in."""

from collections.abc import Iterator

from policygen.model.db_import import DbImport
from policygen.report.blocks import Block, Note, Words
from policygen.report.console import plural, printed
from policygen.report.views import db_words
from policygen.report.views.db_import_suite import suite
from policygen.report.views.db_import_words import (
    SHOWN,
    counts,
    hidden_reasons,
    numbered,
    without_samples,
)


def imported(document: DbImport, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show what the kernel is called, what base is, what labels mean, and what failed."""
    if document.library:
        yield from suite(document, verbose=verbose, quiet=quiet)
        return
    versions = (("ctk", document.ctk), ("cccl", document.cccl))
    told = [f"{name} {text}" for name, text in versions if text]
    name = db_words.workload_name(document.algorithm, document.workload)
    yield db_words.heading(name, [document.gpu, document.arch, *told])
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
            yield db_words.prose(f"{one.path}: {text}", "  ", "yellow")
    if document.warmup and document.without_samples < document.rows:
        yield db_words.prose(_warmup(document), "  ")
    if document.without_samples:
        yield db_words.prose(without_samples(document), "  ", "yellow")
    for parameter in document.parameters:
        if parameter.numbered:
            yield numbered(parameter, "  ", verbose=verbose)
    shown = document.failures if verbose else document.failures[:SHOWN]
    for failure in shown:
        such = f", such as {failure.variants[0]}"
        yield db_words.prose(f"{failure.count:,} {failure.kind}: {failure.reason}{such}", "  ")
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


print_import = printed(imported)
