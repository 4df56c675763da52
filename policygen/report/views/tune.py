"""What tuning for a program came to: what was won, and the header."""

from collections.abc import Iterator
from pathlib import Path

from policygen.model.kernel import KernelHeader
from policygen.model.tune import TunedProgram
from policygen.paths import nearby
from policygen.report.blocks import BLANK, Block, Note
from policygen.report.console import printed, show
from policygen.report.views.emit import emitted
from policygen.report.views.plan import acted, effect_summary
from policygen.report.views.search import searched


def tuned(document: TunedProgram, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show the finalists of each workload, then what the header has of them."""
    yield from searched(document.searched, head=head, verbose=verbose)
    yield BLANK
    if document.kernel is not None:
        yield from _kernel(document.kernel)
        return
    if document.emitted is None:
        yield Note(
            "nothing is faster than what CUB selects, so there is no header", "yellow", folded=True
        )
        return
    yield from emitted(document.emitted, document.header, verbose=verbose)
    if document.header is not None and head:
        name = nearby(Path(document.header))
        yield Note(f'#include "{name}" and put its selectors into the environment', folded=True)
        if document.example is not None:
            program = nearby(Path(document.example))
            yield Note(f"{program} runs it with and without, and says what each takes", folded=True)


def _kernel(made: KernelHeader) -> Iterator[Block]:
    """Show what became of each class of sizes, and what the compiler says of it."""
    for action in made.actions:
        yield from acted(action, verbose=False)
    if made.has_already:
        yield Note("the header has these values already", folded=True)
        return
    if not made.changed:
        yield Note("nothing is faster than what the kernel has today", "yellow", folded=True)
        return
    if made.effect is not None:
        yield Note(f"proved: {effect_summary(made.effect)}", "green", folded=True)
    yield Note(f"written: {nearby(Path(made.path))}", folded=True)


print_tuned = printed(tuned)


def print_kernel(made: KernelHeader) -> None:
    """Print what became of a kernel's header."""
    show(_kernel(made))
