"""A plan: all of it, or what `apply` tells of it; and its effect."""

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


# What `policygen undo` took back.


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
STATUS_ROOM = 13
LATER = " " * STATUS_ROOM


# Where a tree stands.


def status(document: Status, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show the tree, what was written, what is left open, what was proved, what to type next."""
    yield _row("tree", tree_line(document.cub))
    if head:
        yield _row("", _writing(document), "dim")
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


def _writing(document: Status) -> str:
    if document.named:
        return "apply writes to it"
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
    for one in document.applies:
        yield from _applied(one, verbose=verbose)


def _applied(one: AppliedState, *, verbose: bool) -> Iterator[Block]:
    how = f"{plural(len(one.edited), 'file')} edited since" if one.edited else "as written"
    style = "yellow" if one.edited else ""
    yield Words(
        f"{one.apply}: {one.title}; {_when(one.applied_at)}, {how}", style, LATER, even=True
    )
    for name in one.files if verbose else one.edited:
        mark = "edited" if name in one.edited else "written"
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
    for index, one in enumerate(proofs):
        outcome = "passed" if one.passed else "failed"
        of = "" if one.whole else " for a part"
        when = "of the headers as they are" if one.current else "before the headers changed"
        style = "green" if one.passed and one.current else "yellow" if one.passed else "red"
        words = f"{one.command} {outcome}{of}, {_when(one.proved_at)}, {when}"
        yield _row("" if index else "proofs", words, style)
        yield Words(one.words, "dim", f"{LATER}  ", even=True)


def _when(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M %Z")


print_status = printed(status)
EMIT_STYLES = {"write": "green", "keep": "dim", "fallback": "dim", "reject": "red"}


# What `policygen emit` wrote, in short: on standard error where the header is the output.


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
            yield Words(f"{action.decision} {action.name}: {text}", EMIT_STYLES[action.decision])
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


# What tuning for a program came to: what was won, and the header.


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


MARKS = {"fine": ("ok", "green"), "optional": ("-", "dim")}
"""State → how it is marked; what is missing or broken says so."""
DOCTOR_ROOM = 7
MENDS = {"missing": "install it", "broken": "mend it", "optional": "to have it", "fine": ""}


# What is here, and what is not.


def doctor(document: Doctor, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show a line for each thing; under what is not there, who needs it and what mends it."""
    if head:
        how = "from a clone" if document.installed == "clone" else "installed as a package"
        yield Note(f"policygen {document.version}, {how}", "bold")
        yield BLANK
    checks = document.checks if head else document.problems
    room = max((len(check.name) for check in checks), default=0)
    for check in checks:
        yield from _check(check, room, verbose=verbose)
    if head:
        yield BLANK
        yield _doctor_summary(document)


def _check(check: Check, room: int, *, verbose: bool) -> Iterator[Block]:
    mark, style = MARKS.get(check.state, (check.state, "red"))
    begin = f"{mark:{DOCTOR_ROOM}}  {check.name:{room}}  "
    later = " " * len(begin)
    yield Words(check.found, first=begin, later=later, mark=style, even=True)
    if check.needed_by and (verbose or check.state != "fine"):
        parts = [f"{one}," for one in check.needed_by[:-1]] + [check.needed_by[-1]]
        yield Words(parts, "dim", first=f"{later}needed by: ", later=f"{later}  ")
    if check.remedy:
        yield Note(f"{later}{MENDS[check.state]}: {check.remedy}", "dim" * (not check.is_problem))


def _doctor_summary(document: Doctor) -> Block:
    if not document.problems:
        return Note("everything is here that commands need", "green")
    count, names = len(document.problems), ", ".join(one.name for one in document.problems)
    return Words(f"{plural(count, 'thing')} to mend: {names}", "red")


print_doctor = printed(doctor)
