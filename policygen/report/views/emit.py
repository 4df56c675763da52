"""What `policygen emit` wrote, in short: on standard error where the header is the output."""

from collections.abc import Iterator
from pathlib import Path

from policygen.model.emit import Emitted
from policygen.paths import nearby
from policygen.report.blocks import Block, Note, Words, remarks
from policygen.report.console import messages, plural, results, tree_line
from policygen.report.views.plan import untouched

STYLES = {"write": "green", "keep": "dim", "fallback": "dim", "reject": "red"}


def print_emitted(document: Emitted, out: str | None, *, verbose: bool) -> None:
    """Print what was written or rejected."""
    to = messages() if out is None else results()
    to.write(emitted(document, out, verbose=verbose))


def emitted(document: Emitted, out: str | None, *, verbose: bool) -> Iterator[Block]:
    """Show a line for each workload that is written or rejected, and what was proved."""
    yield Note(f"{tree_line(document.cub)}, {document.toolchain}", "dim", folded=True)
    for action in document.actions:
        written = action.decision == "write"
        if written or action.decision == "reject" or verbose:
            text = f"{action.selector}, {action.variant}" if written else action.reason
            yield Words(f"{action.decision} {action.name}: {text}", STYLES[action.decision])
    if not verbose:
        yield from untouched((one.decision for one in document.actions), "what CUB selects")
    if document.shared:
        yield Note("not measured, and with the same template arguments:", "yellow", folded=True)
        for name in document.shared:
            yield Words(name, "", "  ")
    yield from remarks(document.remarks)
    yield _proof(document)
    if out is not None:
        names = ", ".join(selector.name for selector in document.selectors)
        yield Note(f"written: {nearby(Path(out))}: {names}", folded=True)


def _proof(document: Emitted) -> Block:
    proof = document.proof
    if proof is None:
        return Note("not proved: --no-prove was given", "yellow", folded=True)
    same = plural(proof.compared - proof.changed, "policy", "policies")
    return Note(
        f"proved: {plural(proof.changed, 'policy', 'policies')} as tuned on {document.arch},"
        f" {same} on {plural(len(proof.archs), 'architecture')} as CUB's own",
        "green",
        folded=True,
    )
