"""What `policygen emit` wrote, in short: on standard error where the header is the output."""

from pathlib import Path
from typing import TYPE_CHECKING

from policygen.model.emit import EmitAction, Emitted
from policygen.report import console
from policygen.report.console import plural, print_filled, tree_line

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {"write": "green", "keep": "dim", "fallback": "dim", "reject": "red"}


def print_emitted(document: Emitted, out: str | None, *, verbose: bool) -> None:
    """A line for each workload that is written or rejected, and what was proved."""
    to = console.results() if out is not None else console.messages()
    to.print(f"{tree_line(document.cub)}, {document.toolchain}", style="dim")
    for action in document.actions:
        if action.decision == "write":
            _print(to, action, f"{action.selector}, {action.variant}")
        elif action.decision == "reject" or verbose:
            _print(to, action, action.reason)
    told = {
        "keep": ("has its values already", "have their values already"),
        "fallback": ("keeps what CUB selects", "keep what CUB selects"),
    }
    for decision, words in told.items():
        count = sum(action.decision == decision for action in document.actions)
        if count and not verbose:
            to.print(f"{plural(count, 'workload')} {words[count > 1]}", style="dim")
    if document.shared:
        to.print("not measured, and with the same template arguments:", style="yellow")
        for name in document.shared:
            print_filled(to, name.split(" "), "  ", "  ", "")
    _print_proof(to, document)
    if out is not None:
        names = ", ".join(selector.name for selector in document.selectors)
        to.print(f"written: {console.nearby(Path(out))}: {names}")


def _print(to: "Console", action: EmitAction, text: str) -> None:
    line = f"{action.decision} {action.name}: {text}"
    print_filled(to, line.split(" "), "", "  ", STYLES[action.decision])


def _print_proof(to: "Console", document: Emitted) -> None:
    proof = document.proof
    if proof is None:
        to.print("not proved: --no-prove was given", style="yellow")
        return
    same = plural(proof.compared - proof.changed, "policy", "policies")
    to.print(
        f"proved: {plural(proof.changed, 'policy', 'policies')} as tuned on {document.arch},"
        f" {same} on {plural(len(proof.archs), 'architecture')} as CUB's own",
        style="green",
    )
