"""A plan as `apply` tells it: what is written, and what is not; `plan` tells all."""

from typing import TYPE_CHECKING

from policygen.model.plan import Action, Plan
from policygen.model.workload import in_words
from policygen.report import console
from policygen.report.console import plural, print_filled
from policygen.report.plan import STYLES, print_head, print_reached, print_remarks

if TYPE_CHECKING:
    from rich.console import Console


def print_apply(plan: Plan, *, head: bool) -> None:
    """A line for each workload that is written; those that are rejected with their reason."""
    out = console.results()
    if head:
        print_head(out, plan)
    for action in plan.actions:
        if action.written:
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
    print_remarks(out, plan)


def _print(out: "Console", action: Action, text: str) -> None:
    where = " in struct families" if action.legacy else ""
    line = f"{action.decision} {in_words(action.benchmark, action.workload)}{where}: {text}"
    print_filled(out, line.split(" "), "", "  ", STYLES[action.decision])
