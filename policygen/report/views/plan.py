"""A plan: all of it, or what `apply` tells of it; and its effect."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from policygen.model.arch import is_amd
from policygen.model.changes import changes
from policygen.model.effect import Effect
from policygen.model.plan import Action, Plan, Reached, Target
from policygen.model.tuning import entry_name
from policygen.model.workload import axes, in_words
from policygen.report.blocks import BLANK, Block, Note, Words, remarks
from policygen.report.console import plural, printed, tree_line
from policygen.report.views.review_words import measured_with

STYLES = {
    "update": "green",
    "add": "green",
    "keep": "dim",
    "fallback": "dim",
    "reject": "yellow",
}
DONE = {
    "update": "updated",
    "add": "added",
    "keep": "kept",
    "fallback": "left to the fallback",
    "reject": "rejected",
}
SHOWN = 12
"""As many reached workloads as are listed without -v."""
ROOM = " " * 11


def planned(plan: Plan, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show workload by workload what happens, with which values, and why."""
    if head:
        yield _head(plan)
        yield BLANK
    for benchmark, actions in groupby(plan.actions, key=_heading):
        yield Note(benchmark, "bold", folded=True)
        for action in actions:
            yield from acted(action, verbose=verbose)
        yield BLANK
    yield from _reached(plan, verbose=verbose)
    if plan.policies:
        yield Words(f"new in the chain: {', '.join(plan.policies)}")
    yield from _ways(plan)
    yield from remarks(plan.remarks)
    if head:
        yield Words(_summary(plan))


def _ways(plan: Plan) -> Iterator[Block]:
    """Show what would take what is rejected; commands are not folded, so that they can be typed."""
    if plan.ways:
        yield Note("what would take what is rejected:", "yellow", folded=True)
    for benchmark, ways in groupby(plan.ways, key=lambda way: way.workloads[0].benchmark):
        for one, lot in groupby(ways, key=lambda way: way.workloads):
            names = [word for named in one[:SHOWN] for word in (*axes(named.workload), "|")][:-1]
            more = [f"and {len(one) - SHOWN} more"] if len(one) > SHOWN else []
            yield Words([benchmark, *names, *more], "", "  ", "    ")
            for way in lot:
                yield Words(f"{way.what}:", "", "    ", "    ")
                yield Note(f"      {way.command}", "bold")
    if plan.ways:
        yield BLANK


def applied(plan: Plan, *, head: bool) -> Iterator[Block]:
    """Show a line for each workload that is written; those that are rejected with their reason."""
    if head:
        yield _head(plan)
    for action in plan.actions:
        if action.written or action.decision == "reject":
            text = _variant(action) if action.written else action.reason
            where = " in struct families" if action.legacy else ""
            name = in_words(action.benchmark, action.workload)
            yield Words(f"{action.decision} {name}{where}: {text}", STYLES[action.decision])
    yield from untouched((action.decision for action in plan.actions), "what they had")
    yield from _reached(plan, verbose=False)
    yield from remarks(plan.remarks)
    if any(action.decision == "reject" and action.variant for action in plan.actions):
        told = "policygen plan says what would take what is rejected"
        yield Note(told, "dim", folded=True)


def _variant(action: Action) -> str:
    """What is written, and in place of what."""
    instead = f", next best after {action.next_best.best}" if action.next_best else ""
    return f"{action.variant or ''}{instead}"


def untouched(decisions: Iterable[str], fallback: str) -> Iterator[Block]:
    """Count the workloads that nothing is written for."""
    found = list(decisions)
    if kept := found.count("keep"):
        have, their = ("has", "its") if kept == 1 else ("have", "their")
        yield Note(f"{plural(kept, 'workload')} {have} {their} values already", "dim", folded=True)
    if left := found.count("fallback"):
        keep = "keeps" if left == 1 else "keep"
        what = fallback.replace("they", "it") if left == 1 else fallback
        yield Note(f"{plural(left, 'workload')} {keep} {what}", "dim", folded=True)


def effected(effect: Effect, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show what was compared, and what changed."""
    for wrong in effect.wrong:
        yield Words(f"{wrong.name}: {wrong.reason}", "red")
    for one in effect.changed if verbose else ():
        pairs = ", ".join(changes(one.before, one.after))
        by = ", struct families" if one.legacy else ""
        text = f"on {one.arch}: {pairs} ({one.role}{by})"
        yield Words([one.benchmark, *axes(one.workload), *text.split(" ")], "", "  ")
    if head or effect.wrong:
        yield Words(f"proof: {effect_summary(effect)}", "red" if effect.wrong else "green")
        if verbose and effect.between:
            yield Words(f"asked on {', '.join(effect.archs)}", "dim", "  ", "  ")


def effect_summary(effect: Effect) -> str:
    """Say what a change does: `1 workload changed as written, 431 as before (nvcc 13.2.86; …)`."""
    written = sum(one.role == "written" for one in effect.changed)
    parts = [f"{plural(written, 'workload')} changed as written"]
    if others := len(effect.changed) - written:
        parts.append(f"{others} that share an entry or inherit")
    if effect.wrong:
        parts.append(f"{len(effect.wrong)} wrong")
    same = effect.compared - len(effect.changed) - len(effect.wrong)
    text = ", ".join([*parts, f"{same:,} as before"])
    return f"{text} ({effect.toolchain}; {effect.covered})"


def _head(plan: Plan) -> Block:
    return Words(f"{tree_line(plan.cub)}; {plan.toolchain}; {plan.options.arch}", "dim")


def _heading(action: Action) -> str:
    return f"{action.benchmark}, struct families" if action.legacy else action.benchmark


def acted(action: Action, *, verbose: bool) -> Iterator[Block]:
    """Show a decision and its reason."""
    variant = [f" {action.variant}"] if action.variant else []
    words = [f"{action.decision:8}", *axes(action.workload), *variant]
    yield Words(words, STYLES[action.decision], "  ", ROOM)
    yield Words(action.reason, "dim", ROOM, ROOM)
    if action.target and action.decision != "fallback":
        yield Words(_target(action, action.target), "", ROOM)
    if action.after and (pairs := changes(action.before or {}, action.after)):
        yield Words(list(pairs), "", ROOM, ROOM, joint="  ")
    if verbose:
        run = f"{action.gpu}, {measured_with(action.ctk, action.cccl)}"
        yield Words(f"{run}: {' + '.join(action.databases)}", "dim", ROOM)


def _target(action: Action, target: Target) -> str:
    place = f"{target.header}:{target.line}"
    if target.line is None:
        place = f"{'new' if action.decision == 'add' else 'no entry'} in {target.header}"
    return f"{entry_name(target.family, target.args)}, {place}"


def _reached(plan: Plan, *, verbose: bool) -> Iterator[Block]:
    """Show workloads that the change reaches, and that were not measured."""
    arch = plan.options.arch
    lots: tuple[tuple[str, Callable[[Reached], bool]], ...] = (
        (f"the same entries decide, and were not measured, on {arch}", lambda r: r.arch == arch),
        (
            "later architectures keep what they had, by entries of their own",
            lambda r: r.arch != arch and r.kept,
        ),
        (
            "devices that have no target of their own get it, too"
            if is_amd(arch)
            else "later architectures inherit",
            lambda r: r.arch != arch and not r.kept and not r.between,
        ),
        ("what may come between known architectures inherits", lambda r: r.between),
    )
    for title, belongs in lots:
        if found := [one for one in plan.reached if belongs(one)]:
            yield Note(f"{title}:", "yellow", folded=True)
            yield from _workloads(found if verbose else found[:SHOWN], arch)
            if len(found) > SHOWN and not verbose:
                yield Note(f"  and {len(found) - SHOWN} more (-v lists them)", "dim", folded=True)
            yield BLANK


def _workloads(found: Sequence[Reached], arch: str) -> Iterator[Block]:
    for one in found:
        on = [] if one.arch == arch else ["on", one.arch]
        on += ["(struct", "families)"] if one.legacy else []
        yield Words([one.benchmark, *axes(one.workload), *on], "", "  ")


def _summary(plan: Plan) -> str:
    counts = {name: sum(a.decision == name for a in plan.actions) for name in STYLES}
    told = ", ".join(f"{count} {DONE[name]}" for name, count in counts.items() if count)
    edits = plural(sum(file.edits for file in plan.files), "edit")
    files = plural(len(plan.files), "header")
    return f"{plural(len(plan.actions), 'workload')}: {told}; {edits} in {files}"


print_plan = printed(planned)
print_apply = printed(applied)
print_effect = printed(effected)
