"""What `policygen undo` took back, on the terminal."""

from pathlib import Path

from policygen.model.undo import Undo
from policygen.report import console
from policygen.report.console import nearby


def print_undo(document: Undo, *, head: bool, verbose: bool) -> None:
    """One line a file, under the title of its apply."""
    out = console.results()
    done = "restored" if document.written else "would restore"
    for apply in document.applies:
        if head:
            when = apply.applied_at.strftime("%Y-%m-%d %H:%M %Z")
            out.print(f"apply {apply.apply}: {apply.title}", style="bold", soft_wrap=True)
            out.print(f"  of {when}", style="dim")
        if verbose:
            out.print(f"  to {apply.root}", style="dim", soft_wrap=True)
        for file in apply.files:
            out.print(f"  {done} {nearby(Path(apply.root) / file)}", soft_wrap=True)
    if head and not document.applies:
        out.print("nothing to undo")
