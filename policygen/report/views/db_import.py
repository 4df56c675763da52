"""What `policygen db import` brought in."""

from collections.abc import Iterator

from policygen.model.db_import import DbImport, ImportedParameter
from policygen.report.blocks import Block, Note, Words
from policygen.report.console import plural, printed
from policygen.report.views import db_words

SHOWN = 8
"""Reasons and numbered values as many as are listed without -v."""


def imported(document: DbImport, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show what the kernel is called, what base is, what labels mean, and what failed."""
    versions = (("ctk", document.ctk), ("cccl", document.cccl))
    told = [f"{name} {text}" for name, text in versions if text]
    name = db_words.workload_name(document.algorithm, document.workload)
    yield db_words.heading(name, [document.gpu, document.arch, *told])
    yield Words(["base is", *_sentence(document)], "", "  ", "    ", even=True)
    if quiet:
        return
    yield Note(f"  {', '.join(_counts(document))}")
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
        yield db_words.prose(_without(document), "  ", "yellow")
    for parameter in document.parameters:
        if parameter.numbered:
            yield _numbered(parameter, verbose=verbose)
    shown = document.failures if verbose else document.failures[:SHOWN]
    for failure in shown:
        such = f", such as {failure.variants[0]}"
        yield db_words.prose(f"{failure.count:,} {failure.kind}: {failure.reason}{such}", "  ")
    if hidden := len(document.failures) - len(shown) + document.other_failures:
        yield Note(f"  and {plural(hidden, 'more reason')}")
    yield Note(f"written to {document.out}")


def _sentence(document: DbImport) -> list[str]:
    told = [f"{name}={text}" for name, text in document.base_values.items()]
    numbered = any(one.numbered for one in document.parameters)
    return [document.base, *([f"({', '.join(told)})"] if numbered else [])]


def _counts(document: DbImport) -> list[str]:
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


def _warmup(document: DbImport) -> str:
    several = f"{document.warmup} launches warm up and count"
    launches = "launch warms up and counts" if document.warmup == 1 else several
    return f"the first {launches} for nothing; with --warmup 0 all count"


def _without(document: DbImport) -> str:
    return (
        f"{plural(document.without_samples, 'row')} without samples: how sure their scores are is"
        " not known, and `db choose` takes them with --without-samples alone"
    )


def _numbered(parameter: ImportedParameter, *, verbose: bool) -> Block:
    values = list(parameter.values.items())
    shown = [f"{number} is {text}" for number, text in (values if verbose else values[:SHOWN])]
    if hidden := len(values) - len(shown):
        shown.append(f"… {hidden:,} more, see them with -v")
    return Words(shown, "", f"  {parameter.name}: ", "    ", ", ", even=True)


print_import = printed(imported)
