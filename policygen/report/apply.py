"""A plan as `apply` tells it: what is written, and what is not; `plan` tells all."""

from typing import TYPE_CHECKING

from policygen.model.plan import Action, Plan
from policygen.report import console
from policygen.report.console import plural, print_filled, tree_line
from policygen.report.plan import STYLES, print_reached

if TYPE_CHECKING:
    from rich.console import Console


def print_apply(plan: Plan, *, head: bool) -> None:
    """A line for each workload that is written; those that are rejected with their reason."""
    out = console.results()
    if head:
        where = f"{tree_line(plan.cub)}; {plan.toolchain}; {plan.options.arch}"
        print_filled(out, where.split(" "), "", "  ", "dim")
    for action in plan.actions:
        if action.decision in {"update", "add"}:
            _print(out, action, action.variant or "")
        elif action.decision == "reject":
            _print(out, action, action.reason)
    told = {
        "keep": ("has its values already", "have their values already"),
        "fallback": ("keeps what it had", "keep what they had"),
    }
    for decision, words in told.items():
        if count := sum(action.decision == decision for action in plan.actions):
            out.print(f"{plural(count, 'workload')} {words[count > 1]}", style="dim")
    print_reached(out, plan, verbose=False)
    for remark in plan.remarks:
        print_filled(out, f"note: {remark}".split(" "), "", "  ", "yellow")


def _print(out: "Console", action: Action, text: str) -> None:
    words = " ".join(f"{axis}={value}" for axis, value in action.workload.items())
    line = f"{action.decision} {action.benchmark} {words}: {text}"
    print_filled(out, line.split(" "), "", "  ", STYLES[action.decision])
