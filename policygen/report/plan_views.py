"""Terminal views of a plan, its application, and its effect."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path

from policygen.model.arch import is_amd
from policygen.model.edits import changes
from policygen.model.emitted import Emitted, KernelHeader, TunedProgram
from policygen.model.machine import AppliedState, Check, Doctor, ProofState, Status, Undo
from policygen.model.plans import Action, Plan, Reached, Target
from policygen.model.selection import Effect
from policygen.model.trees import FOUND_BY_STORE
from policygen.model.tuning import entry_name
from policygen.model.workload import axes, in_words
from policygen.paths import nearby
from policygen.report.blocks import BLANK, Block, Note, Words, remarks
from policygen.report.console import messages, plural, printed, results, show, tree_line
from policygen.report.review_facts import measured_with
from policygen.report.search_views import searched

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
"""Reached workloads listed without -v."""
ROOM = " " * 11


def planned(plan: Plan, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show the decision for each workload, with its values and the reason."""
    if head:
        yield _plan_line(plan)
        yield BLANK
    for benchmark, actions in groupby(plan.actions, key=_heading):
        yield Note(benchmark, "bold", folded=True)
        for action in actions:
            yield from acted(action, verbose=verbose)
        yield BLANK
    yield from _reached(plan, verbose=verbose)
    if plan.policies:
        yield Words(f"new in the chain: {', '.join(plan.policies)}")
    yield from _remedies(plan)
    yield from remarks(plan.remarks)
    if head:
        yield Words(_summary(plan))


def _remedies(plan: Plan) -> Iterator[Block]:
    """Show commands that would accept rejected variants, unwrapped so that they can be copied."""
    if plan.ways:
        yield Note("what would take what is rejected:", "yellow", folded=True)
    for benchmark, ways in groupby(plan.ways, key=lambda way: way.workloads[0].benchmark):
        for workloads, alternatives in groupby(ways, key=lambda way: way.workloads):
            names = [
                word for workload in workloads[:SHOWN] for word in (*axes(workload.workload), "|")
            ][:-1]
            hidden = [f"and {len(workloads) - SHOWN} more"] if len(workloads) > SHOWN else []
            yield Words([benchmark, *names, *hidden], "", "  ", "    ")
            for way in alternatives:
                yield Words(f"{way.what}:", "", "    ", "    ")
                yield Note(f"      {way.command}", "bold")
    if plan.ways:
        yield BLANK


def applied(plan: Plan, *, head: bool) -> Iterator[Block]:
    """Show a line per written workload, and rejected ones with the reason."""
    if head:
        yield _plan_line(plan)
    for action in plan.actions:
        if action.written or action.decision == "reject":
            text = _variant(action) if action.written else action.reason
            suffix = " in struct families" if action.legacy else ""
            name = in_words(action.benchmark, action.workload)
            yield Words(f"{action.decision} {name}{suffix}: {text}", STYLES[action.decision])
    yield from untouched((action.decision for action in plan.actions), "what they had")
    yield from _reached(plan, verbose=False)
    yield from remarks(plan.remarks)
    if any(action.decision == "reject" and action.variant for action in plan.actions):
        hint = "policygen plan says what would take what is rejected"
        yield Note(hint, "dim", folded=True)


def _variant(action: Action) -> str:
    """Name the written variant, and the variant that it replaces as next best."""
    replacement = f", next best after {action.next_best.best}" if action.next_best else ""
    return f"{action.variant or ''}{replacement}"


def untouched(decisions: Iterable[str], fallback: str) -> Iterator[Block]:
    """Count workloads for which nothing is written."""
    decision_list = list(decisions)
    if kept := decision_list.count("keep"):
        verb_have, their = ("has", "its") if kept == 1 else ("have", "their")
        yield Note(
            f"{plural(kept, 'workload')} {verb_have} {their} values already", "dim", folded=True
        )
    if fallback_count := decision_list.count("fallback"):
        verb = "keeps" if fallback_count == 1 else "keep"
        description = fallback.replace("they", "it") if fallback_count == 1 else fallback
        yield Note(f"{plural(fallback_count, 'workload')} {verb} {description}", "dim", folded=True)


def effected(effect: Effect, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show what was compared and what changed."""
    for wrong in effect.wrong:
        yield Words(f"{wrong.name}: {wrong.reason}", "red")
    for workload in effect.changed if verbose else ():
        pairs = ", ".join(changes(workload.before, workload.after))
        suffix = ", struct families" if workload.legacy else ""
        text = f"on {workload.arch}: {pairs} ({workload.role}{suffix})"
        yield Words([workload.benchmark, *axes(workload.workload), *text.split(" ")], "", "  ")
    if head or effect.wrong:
        yield Words(f"proof: {effect_summary(effect)}", "red" if effect.wrong else "green")
        if verbose and effect.between:
            yield Words(f"asked on {', '.join(effect.archs)}", "dim", "  ", "  ")


def effect_summary(effect: Effect) -> str:
    """Summarize an effect: `1 workload changed as written, 431 as before (nvcc 13.2.86; …)`."""
    written = sum(workload.role == "written" for workload in effect.changed)
    parts = [f"{plural(written, 'workload')} changed as written"]
    if other_count := len(effect.changed) - written:
        parts.append(f"{other_count} that share an entry or inherit")
    if effect.wrong:
        parts.append(f"{len(effect.wrong)} wrong")
    same = effect.compared - len(effect.changed) - len(effect.wrong)
    text = ", ".join([*parts, f"{same:,} as before"])
    return f"{text} ({effect.toolchain}; {effect.covered})"


def _plan_line(plan: Plan) -> Block:
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
    location = f"{target.header}:{target.line}"
    if target.line is None:
        location = f"{'new' if action.decision == 'add' else 'no entry'} in {target.header}"
    return f"{entry_name(target.family, target.args)}, {location}"


def _reached(plan: Plan, *, verbose: bool) -> Iterator[Block]:
    """Show workloads that the change affects although they were not measured."""
    arch = plan.options.arch
    groups: tuple[tuple[str, Callable[[Reached], bool]], ...] = (
        (
            f"the same entries decide, and were not measured, on {arch}",
            lambda workload: workload.arch == arch,
        ),
        (
            "later architectures keep what they had, by entries of their own",
            lambda workload: workload.arch != arch and workload.kept,
        ),
        (
            "devices that have no target of their own get it, too"
            if is_amd(arch)
            else "later architectures inherit",
            lambda workload: workload.arch != arch and not workload.kept and not workload.between,
        ),
        ("what may come between known architectures inherits", lambda workload: workload.between),
    )
    for title, predicate in groups:
        if matching := [workload for workload in plan.reached if predicate(workload)]:
            yield Note(f"{title}:", "yellow", folded=True)
            yield from _workloads(matching if verbose else matching[:SHOWN], arch)
            if len(matching) > SHOWN and not verbose:
                yield Note(
                    f"  and {len(matching) - SHOWN} more (-v lists them)", "dim", folded=True
                )
            yield BLANK


def _workloads(workloads: Sequence[Reached], arch: str) -> Iterator[Block]:
    for workload in workloads:
        location = [] if workload.arch == arch else ["on", workload.arch]
        location += ["(struct", "families)"] if workload.legacy else []
        yield Words([workload.benchmark, *axes(workload.workload), *location], "", "  ")


def _summary(plan: Plan) -> str:
    counts = {name: sum(action.decision == name for action in plan.actions) for name in STYLES}
    decisions = ", ".join(f"{count} {DONE[name]}" for name, count in counts.items() if count)
    edits = plural(sum(file.edits for file in plan.files), "edit")
    files = plural(len(plan.files), "header")
    return f"{plural(len(plan.actions), 'workload')}: {decisions}; {edits} in {files}"


print_plan = printed(planned)
print_apply = printed(applied)
print_effect = printed(effected)


# `policygen undo`


def undo(document: Undo, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show one line per file, grouped by apply."""
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
STATUS_ROOM = 13
LATER = " " * STATUS_ROOM


# State of a tree


def status(document: Status, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show the tree, applied changes, uncommitted headers, proofs, and the next commands."""
    yield _row("tree", tree_line(document.cub))
    if head:
        yield _row("", _write_access(document), "dim")
    yield from _applies(document, verbose=verbose)
    if document.interrupted:
        yield _row("interrupted", document.interrupted, "red")
    yield from _uncommitted(document.uncommitted)
    yield from _proofs(document.proofs)
    if head and document.next:
        yield BLANK
        yield Note("next", "bold")
        for step in document.next:
            yield Note((("  ", ""), (f"{step.purpose}: ", "dim"), (step.command, "")))


def _row(name: str, words: str, style: str = "") -> Block:
    return Words(words, style, first=f"{name:{STATUS_ROOM}}", later=LATER, even=True, mark="bold")


def _write_access(document: Status) -> str:
    if document.named:
        return "apply writes to it"
    if document.cub.found == FOUND_BY_STORE:
        reason = f"no tree is named, and {document.store} has changed no other"
        return f"it is used as {reason}; apply writes to it only with --cub"
    return "apply does not write to it: it was found, and is not named with --cub"


def _applies(document: Status, *, verbose: bool) -> Iterator[Block]:
    if document.store is None:
        yield _row("applied", "nothing is recorded here: there is no store", "dim")
        return
    undone = f", {document.undone:,} taken back" if document.undone else ""
    if not document.applies:
        yield _row("applied", f"nothing of {document.store} is in this tree{undone}")
        return
    count = plural(len(document.applies), "apply", "applies")
    yield _row("applied", f"{count} of {document.store}{undone}")
    for apply in document.applies:
        yield from _applied(apply, verbose=verbose)


def _applied(apply: AppliedState, *, verbose: bool) -> Iterator[Block]:
    state = f"{plural(len(apply.edited), 'file')} edited since" if apply.edited else "as written"
    style = "yellow" if apply.edited else ""
    yield Words(
        f"{apply.apply}: {apply.title}; {_format_time(apply.applied_at)}, {state}",
        style,
        LATER,
        even=True,
    )
    for name in apply.files if verbose else apply.edited:
        mark = "edited" if name in apply.edited else "written"
        yield Note(f"{LATER}  {mark} {name}", "dim")


def _uncommitted(names: tuple[str, ...] | None) -> Iterator[Block]:
    if names is None:
        yield _row("uncommitted", "not known: no git repository is around the tree", "dim")
    elif not names:
        yield _row("uncommitted", "no tuning header")
    else:
        yield _row("uncommitted", plural(len(names), "tuning header"), "yellow")
        for name in names:
            yield Note(f"{LATER}{name}")


def _proofs(proofs: tuple[ProofState, ...]) -> Iterator[Block]:
    if not proofs:
        yield _row("proofs", "none is recorded", "dim")
    for index, proof in enumerate(proofs):
        outcome = "passed" if proof.passed else "failed"
        scope = "" if proof.whole else " for a part"
        headers_state = (
            "of the headers as they are" if proof.current else "before the headers changed"
        )
        style = "green" if proof.passed and proof.current else "yellow" if proof.passed else "red"
        words = (
            f"{proof.command} {outcome}{scope}, {_format_time(proof.proved_at)}, {headers_state}"
        )
        yield _row("" if index else "proofs", words, style)
        yield Words(proof.words, "dim", f"{LATER}  ", even=True)


def _format_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M %Z")


print_status = printed(status)
EMIT_STYLES = {"write": "green", "keep": "dim", "fallback": "dim", "reject": "red"}


# `policygen emit`, on standard error if the header itself goes to standard output


def print_emitted(document: Emitted, out: str | None, *, verbose: bool) -> None:
    """Print what was written or rejected."""
    terminal = messages() if out is None else results()
    terminal.write(emitted(document, out, verbose=verbose))


def emitted(document: Emitted, out: str | None, *, verbose: bool) -> Iterator[Block]:
    """Show a line per written or rejected workload, and what was proved."""
    yield Note(f"{tree_line(document.cub)}, {document.toolchain}", "dim", folded=True)
    for action in document.actions:
        written = action.decision == "write"
        if written or action.decision == "reject" or verbose:
            text = f"{action.selector}, {action.variant}" if written else action.reason
            yield Words(f"{action.decision} {action.name}: {text}", EMIT_STYLES[action.decision])
    if not verbose:
        yield from untouched((action.decision for action in document.actions), "what CUB selects")
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


# Tuning for a program: the gains and the header


def tuned(document: TunedProgram, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show the finalists of each workload, then what the header contains."""
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


def _kernel(header: KernelHeader) -> Iterator[Block]:
    """Show the outcome for each size class, and the proof."""
    for action in header.actions:
        yield from acted(action, verbose=False)
    if header.has_already:
        yield Note("the header has these values already", folded=True)
        return
    if not header.changed:
        yield Note("nothing is faster than what the kernel has today", "yellow", folded=True)
        return
    if header.effect is not None:
        yield Note(f"proved: {effect_summary(header.effect)}", "green", folded=True)
    yield Note(f"written: {nearby(Path(header.path))}", folded=True)


print_tuned = printed(tuned)


def print_kernel(header: KernelHeader) -> None:
    """Print the outcome for the header of a kernel."""
    show(_kernel(header))


MARKS = {"fine": ("ok", "green"), "optional": ("-", "dim")}
"""Mark and style of each state; other states are marked by their name."""
DOCTOR_ROOM = 7
MENDS = {"missing": "install it", "broken": "mend it", "optional": "to have it", "fine": ""}


# `policygen doctor`


def doctor(document: Doctor, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show a line per check; for a missing tool, what needs it and how to install it."""
    if head:
        installation = "from a clone" if document.installed == "clone" else "installed as a package"
        yield Note(f"policygen {document.version}, {installation}", "bold")
        yield BLANK
    checks = document.checks if head else document.problems
    name_width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        yield from _check(check, name_width, verbose=verbose)
    if head:
        yield BLANK
        yield _doctor_summary(document)


def _check(check: Check, name_width: int, *, verbose: bool) -> Iterator[Block]:
    mark, style = MARKS.get(check.state, (check.state, "red"))
    prefix = f"{mark:{DOCTOR_ROOM}}  {check.name:{name_width}}  "
    later = " " * len(prefix)
    yield Words(check.found, first=prefix, later=later, mark=style, even=True)
    if check.needed_by and (verbose or check.state != "fine"):
        parts = [f"{command}," for command in check.needed_by[:-1]] + [check.needed_by[-1]]
        yield Words(parts, "dim", first=f"{later}needed by: ", later=f"{later}  ")
    if check.remedy:
        yield Note(f"{later}{MENDS[check.state]}: {check.remedy}", "dim" * (not check.is_problem))


def _doctor_summary(document: Doctor) -> Block:
    if not document.problems:
        return Note("everything required is here; lines with - are optional", "green")
    count, names = len(document.problems), ", ".join(problem.name for problem in document.problems)
    return Words(f"{plural(count, 'thing')} to mend: {names}", "red")


print_doctor = printed(doctor)
