"""How many variants of workloads there are, can be and differ, and which do not compile."""

from collections.abc import Iterator

from policygen.model.measure import CompiledSpace, MeasureCompile
from policygen.model.workload import in_words
from policygen.report.blocks import BLANK, Block, Note, Table, Words
from policygen.report.console import plural, printed, tree_line

SHOWN = 10
"""Failures of a workload that are shown without -v."""


def compiled_spaces(document: MeasureCompile, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show a line for each workload; below it what fails."""
    if head:
        words = f"{tree_line(document.cub)}, {document.toolchain}, for {document.arch}"
        yield Note(words, "dim", folded=True)
        yield BLANK
    if document.workloads:
        yield Table(
            ("workload", "variants", "valid", "distinct", "compiled", "failed"),
            [_row(one) for one in document.workloads],
            label="variants of workloads",
        )
    for one in document.workloads:
        if one.failed:
            yield BLANK
            yield Note(in_words(one.benchmark, one.workload), folded=True)
            yield from _failures(one, verbose=verbose)
    for other in document.unmeasured:
        name = in_words(other.benchmark, other.workload)
        yield Words(f"{name}: {other.reason}", "yellow")


def _row(one: CompiledSpace) -> list[str | float]:
    counts = (one.variants, one.valid, one.distinct, one.compiled, len(one.failed))
    return [in_words(one.benchmark, one.workload), *(f"{count:,}" for count in counts)]


def _failures(one: CompiledSpace, *, verbose: bool) -> Iterator[Block]:
    shown = one.failed if verbose else one.failed[:SHOWN]
    for failed in shown:
        yield Words(f"{failed.variant}: {failed.reason}", "yellow", "  ")
    if len(one.failed) > len(shown):
        yield Note(f"  and {plural(len(one.failed) - len(shown), 'more')}: -v", "dim")


print_compiled = printed(compiled_spaces)
