"""Plans and their effects on the terminal."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from policygen.model.changes import changes
from policygen.model.effect import Effect
from policygen.model.plan import Action, Plan, Reached, Target
from policygen.model.tuning import entry_name
from policygen.model.workload import axes
from policygen.report import console
from policygen.report.console import plural, print_filled, tree_line

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {
    "update": "green",
    "add": "green",
    "keep": "dim",
    "fallback": "dim",
    "reject": "yellow",
}
SHOWN = 12
"""As many reached workloads as are listed without -v."""


def print_plan(plan: Plan, *, head: bool, verbose: bool) -> None:
    """Workload by workload: what happens, with which values, and why."""
    out = console.results()
    if head:
        print_head(out, plan)
        out.print()
    for benchmark, actions in groupby(plan.actions, key=_heading):
        out.print(benchmark, style="bold")
        for action in actions:
            _print_action(out, action, verbose=verbose)
        out.print()
    print_reached(out, plan, verbose=verbose)
    if plan.policies:
        text = f"new in the chain: {', '.join(plan.policies)}"
        print_filled(out, text.split(" "), "", "  ", "")
    print_remarks(out, plan)
    if head:
        print_filled(out, _summary(plan).split(" "), "", "  ", "")


def print_head(out: "Console", plan: Plan) -> None:
    """Which tree, compiler and architecture."""
    where = f"{tree_line(plan.cub)}; {plan.toolchain}; {plan.options.arch}"
    print_filled(out, where.split(" "), "", "  ", "dim")


def print_remarks(out: "Console", plan: Plan) -> None:
    """What the user should know of the whole."""
    for remark in plan.remarks:
        print_filled(out, f"note: {remark}".split(" "), "", "  ", "yellow")


def print_effect(effect: Effect, *, head: bool, verbose: bool) -> None:
    """What was compared, and what changed."""
    out = console.results()
    for wrong in effect.wrong:
        text = f"{wrong.name}: {wrong.reason}"
        print_filled(out, text.split(" "), "", "  ", "red")
    written = [one for one in effect.changed if one.role == "written"]
    others = [one for one in effect.changed if one.role != "written"]
    for one in effect.changed if verbose else ():
        pairs = ", ".join(changes(one.before, one.after))
        by = ", struct families" if one.legacy else ""
        text = f"on {one.arch}: {pairs} ({one.role}{by})"
        print_filled(out, [one.benchmark, *axes(one.workload), *text.split(" ")], "  ", "  ", "")
    if head or effect.wrong:
        parts = [f"{plural(len(written), 'workload')} changed as written"]
        if others:
            parts.append(f"{len(others)} that share an entry or inherit")
        if effect.wrong:
            parts.append(f"{len(effect.wrong)} wrong")
        same = effect.compared - len(effect.changed) - len(effect.wrong)
        parts.append(f"{same:,} as before")
        archs = ", ".join(effect.archs)
        text = f"proof: {', '.join(parts)} ({effect.toolchain}; {archs})"
        print_filled(out, text.split(" "), "", "  ", "red" if effect.wrong else "green")


def _heading(action: Action) -> str:
    return f"{action.benchmark}, struct families" if action.legacy else action.benchmark


def _print_action(out: "Console", action: Action, *, verbose: bool) -> None:
    variant = [f" {action.variant}"] if action.variant else []
    words = [f"{action.decision:8}", *axes(action.workload), *variant]
    print_filled(out, words, "  ", " " * 9, STYLES[action.decision])
    print_filled(out, action.reason.split(" "), " " * 11, "", "dim")
    if action.target and action.decision != "fallback":
        print_filled(out, _target(action, action.target).split(" "), " " * 11, "  ", "")
    if action.after and (pairs := changes(action.before or {}, action.after)):
        print_filled(out, pairs, " " * 11, "", "", gap="  ")
    if verbose:
        source = (
            f"{action.gpu}, CUDA {action.ctk}, CCCL {action.cccl}: {' + '.join(action.databases)}"
        )
        print_filled(out, source.split(" "), " " * 11, "  ", "dim")


def _target(action: Action, target: Target) -> str:
    place = f"{target.header}:{target.line}"
    if target.line is None:
        place = f"{'new' if action.decision == 'add' else 'no entry'} in {target.header}"
    return f"{entry_name(target.family, target.args)}, {place}"


def print_reached(out: "Console", plan: Plan, *, verbose: bool) -> None:
    """Workloads that the change reaches, and that were not measured."""
    arch = plan.options.arch
    lots = (
        (f"the same entries decide, and were not measured, on {arch}", _of(plan, arch, kept=None)),
        (
            "later architectures keep what they had, by entries of their own",
            _of(plan, None, kept=True),
        ),
        ("later architectures inherit", _of(plan, None, kept=False)),
    )
    for title, found in lots:
        if not found:
            continue
        out.print(f"{title}:", style="yellow")
        shown = found if verbose else found[:SHOWN]
        for one in shown:
            on = [] if one.arch == arch else ["on", one.arch]
            on += ["(struct", "families)"] if one.legacy else []
            print_filled(out, [one.benchmark, *axes(one.workload), *on], "  ", "  ", "")
        if len(found) > len(shown):
            out.print(f"  and {len(found) - len(shown)} more (-v lists them)", style="dim")
        out.print()


def _of(plan: Plan, arch: str | None, *, kept: bool | None) -> Sequence[Reached]:
    return [
        one
        for one in plan.reached
        if (one.arch == arch if arch else one.arch != plan.options.arch and one.kept == kept)
    ]


def _summary(plan: Plan) -> str:
    counts = dict.fromkeys(STYLES, 0)
    for action in plan.actions:
        counts[action.decision] += 1
    words = {
        "update": "updated",
        "add": "added",
        "keep": "kept",
        "fallback": "left to the fallback",
        "reject": "rejected",
    }
    told = [f"{count} {words[name]}" for name, count in counts.items() if count]
    edits = plural(sum(file.edits for file in plan.files), "edit")
    files = plural(len(plan.files), "header")
    return f"{plural(len(plan.actions), 'workload')}: {', '.join(told)}; {edits} in {files}"
