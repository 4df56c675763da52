"""What `policygen undo` took back."""

from collections.abc import Iterator
from pathlib import Path

from policygen.model.undo import Undo
from policygen.paths import nearby
from policygen.report.blocks import Block, Note
from policygen.report.console import printed


def undo(document: Undo, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show one line a file, under the title of its apply."""
    done = "restored" if document.written else "would restore"
    for apply in document.applies:
        if head:
            yield Note(f"apply {apply.apply}: {apply.title}", "bold")
            yield Note(f"  of {apply.applied_at.strftime('%Y-%m-%d %H:%M %Z')}", "dim")
        if verbose:
            yield Note(f"  to {apply.root}", "dim")
        for file in apply.files:
            yield Note(f"  {done} {nearby(Path(apply.root) / file)}")
    if head and not document.applies:
        yield Note("nothing to undo")


print_undo = printed(undo)
