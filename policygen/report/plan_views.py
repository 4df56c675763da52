"""Terminal views of a plan, its application, and its effect."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from policygen.errors import noun, plural
from policygen.model.arch import is_amd
from policygen.model.emitted import Emitted, KernelHeader
from policygen.model.machine import Check, Doctor, ProofState, Status, Undo
from policygen.model.overlays import OverlayCheck, OverlayMade, OverlayProof, ProgramCalls
from policygen.model.plans import Action, Plan, Reached, Target
from policygen.model.selection import Effect, asked_of
from policygen.model.trees import CALLED, FOUND_BY_STORE, tree_line
from policygen.model.tuning import changes, entry_name
from policygen.model.workload import axes, in_words
from policygen.portable import nearby
from policygen.report.blocks import BLANK, Block, Note, Words, cut, remarks, shortened

STYLES = {"update": "green", "add": "green", "keep": "dim", "fallback": "dim", "reject": "yellow"}
SHOWN = 12
"""Reached workloads listed without -v."""
ROOM = " " * 11


def done(decision: str, count: int) -> str:
    """Name what a decision does to workloads; every view uses these words."""
    if decision == "keep":
        return f"{noun(count, 'has', 'have')} these values already"
    return {"update": "updated", "add": "added", "reject": "rejected"}.get(
        decision, "left to the fallback"
    )


def planned(plan: Plan, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show the decision for each workload, with its values and the reason."""
    if head:
        yield _plan_line(plan)
        yield BLANK
    for (name, legacy), actions in groupby(plan.actions, key=attrgetter("benchmark", "legacy")):
        yield Note(f"{name}, struct families" if legacy else name, "bold", folded=True)
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
        yield Note("options that would accept rejected results:", "yellow", folded=True)
    for benchmark, ways in groupby(plan.ways, key=lambda way: way.workloads[0].benchmark):
        for workloads, alternatives in groupby(ways, key=lambda way: way.workloads):
            shown, hidden = cut(workloads, SHOWN, verbose=False)
            names = [word for workload in shown for word in (*axes(workload.workload), "|")][:-1]
            more = [f"and {hidden} more"] if hidden else []
            yield Words([benchmark, *names, *more], "", "  ", "    ")
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
            text = action.reason
            if action.written:
                best = f", next best after {action.next_best.best}" if action.next_best else ""
                text = f"{action.variant or ''}{best}"
            suffix = " in struct families" if action.legacy else ""
            name = in_words(action.benchmark, action.workload)
            yield Words(f"{action.decision} {name}{suffix}: {text}", STYLES[action.decision])
    yield from untouched(action.decision for action in plan.actions)
    yield from _reached(plan, verbose=False)
    yield from remarks(plan.remarks)
    if any(action.decision == "reject" and action.variant for action in plan.actions):
        hint = "policygen plan lists options that would accept rejected results"
        yield Note(hint, "dim", folded=True)


def untouched(decisions: Iterable[str]) -> Iterator[Block]:
    """Count workloads for which nothing is written."""
    counts = Counter(decisions)
    for decision in ("keep", "fallback"):
        if count := counts[decision]:
            words = f"{plural(count, 'workload')} {done(decision, count)}"
            yield Note(words, "dim", folded=True)


def effected(effect: Effect, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show what was compared and what changed."""
    for failure in effect.failures:
        yield Words(failure, "red")
    for workload in effect.changed if verbose else ():
        pairs = ", ".join(changes(workload.before, workload.after))
        suffix = ", struct families" if workload.legacy else ""
        text = f"on {workload.arch}: {pairs} ({workload.role}{suffix})"
        yield Words([workload.benchmark, *axes(workload.workload), *text.split(" ")], "", "  ")
    for change in effect.inputs if verbose else ():
        yield Words(f"measured by {change.measured_by}: {change.text}", "", "", "  ")
    for reason in effect.unknown:
        yield Words(f"not compared for all inputs: {reason}", "yellow")
    if head or effect.failures:
        yield Words(f"proof: {effect.summary}", "red" if effect.failures else "green")
        if verbose and effect.between:
            yield Words(f"checked on {', '.join(effect.archs)}", "dim", "  ", "  ")
        yield from remarks(asked_of(effect.toolchain, effect.conditions))


def _plan_line(plan: Plan) -> Block:
    return Words(f"{tree_line(plan.cub)}; {plan.toolchain}; {plan.options.arch}", "dim")


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


def measured_with(ctk: str, release: str) -> str:
    """Name the versions: `CUDA 13.1, CCCL 3.2.0`, or `rocPRIM 4.2.0` for other libraries."""
    names = {str(name): text for name, text in CALLED.items()}
    library, _, version = release.rpartition("@")
    library_version = f"{names.get(library, library)} {version}" if library else f"CCCL {release}"
    return f"CUDA {ctk}, {library_version}" if ctk or not library else library_version


def _target(action: Action, target: Target) -> str:
    location = f"{target.header}:{target.line}"
    if target.line is None:
        location = f"{'new' if action.decision == 'add' else 'no entry'} in {target.header}"
    return f"{entry_name(target.family, target.args)}, {location}"


def _reached(plan: Plan, *, verbose: bool) -> Iterator[Block]:
    """Show workloads that the change affects although they were not measured."""
    arch = plan.options.arch
    later = [workload for workload in plan.reached if workload.arch != arch]
    inherit = "later architectures inherit"
    if is_amd(arch):
        inherit = "devices without a target of their own also get it"

    def show(workload: Reached) -> Iterator[Block]:
        location = [] if workload.arch == arch else ["on", workload.arch]
        location += ["(struct", "families)"] if workload.legacy else []
        yield Words([workload.benchmark, *axes(workload.workload), *location], "", "  ")

    for title, workloads in {
        f"the same entries also decide, unmeasured, on {arch}": [
            workload for workload in plan.reached if workload.arch == arch
        ],
        "later architectures keep their values through entries of their own": [
            workload for workload in later if workload.kept
        ],
        inherit: [row for row in later if not row.kept and not row.between],
        "future architectures between known ones inherit": [
            workload for workload in plan.reached if workload.between
        ],
    }.items():
        if workloads:
            yield Note(f"{title}:", "yellow", folded=True)
            yield from shortened(workloads, SHOWN, show, verbose=verbose)
            yield BLANK


def _summary(plan: Plan) -> str:
    decisions = Counter[str](action.decision for action in plan.actions)
    counts = [f"{count} {done(name, count)}" for name in STYLES if (count := decisions[name])]
    edits = plural(sum(file.edits for file in plan.files), "edit")
    files = plural(len(plan.files), "header")
    return f"{plural(decisions.total(), 'workload')}: {', '.join(counts)}; {edits} in {files}"


def undo(document: Undo, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show one line per file, grouped by apply."""
    done = "restored" if document.written else "would restore"
    for apply in document.applies:
        if head:
            yield Note(f"apply {apply.apply}: {apply.title}", "bold")
            yield Note(f"  of {_format_time(apply.applied_at)}", "dim")
        if verbose:
            yield Note(f"  to {apply.root}", "dim")
        for file in apply.files:
            yield Note(f"  {done} {nearby(Path(apply.root) / file)}")
    if head and not document.applies:
        yield Note("nothing to undo")


STATUS_ROOM = 13
LATER = " " * STATUS_ROOM


def status(document: Status, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show the tree, applied changes, uncommitted headers, proofs, and the next commands."""
    yield _row("tree", tree_line(document.cub))
    if head:
        yield _row("", _write_access(document), "dim")
    yield from _applies(document, verbose=verbose)
    if document.interrupted:
        yield _row("interrupted", document.interrupted, "red")
    if document.uncommitted is None:
        yield _row("uncommitted", "unknown: the tree is not in a git repository", "dim")
    elif not document.uncommitted:
        yield _row("uncommitted", "no tuning header")
    else:
        headers = plural(len(document.uncommitted), "tuning header")
        yield _row("uncommitted", headers, "yellow")
        yield from (Note(f"{LATER}{name}") for name in document.uncommitted)
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
        return f"it is used as {reason}; apply writes to it only if --cub names it"
    return "apply does not write to it, because it was found automatically; name it with --cub"


def _applies(document: Status, *, verbose: bool) -> Iterator[Block]:
    if document.store is None:
        yield _row("applied", "nothing is recorded here: no store exists", "dim")
        return
    undone = f", {document.undone:,} undone" if document.undone else ""
    if not document.applies:
        yield _row("applied", f"nothing of {document.store} is in this tree{undone}")
        return
    count = plural(len(document.applies), "apply", "applies")
    yield _row("applied", f"{count} of {document.store}{undone}")
    for apply in document.applies:
        edited = plural(len(apply.edited), "file")
        state = f"{edited} edited since" if apply.edited else "as written"
        words = f"{apply.apply}: {apply.title}; {_format_time(apply.applied_at)}, {state}"
        yield Words(words, "yellow" if apply.edited else "", LATER, even=True)
        for name in apply.files if verbose else apply.edited:
            mark = "edited" if name in apply.edited else "written"
            yield Note(f"{LATER}  {mark} {name}", "dim")


def _proofs(proofs: tuple[ProofState, ...]) -> Iterator[Block]:
    if not proofs:
        yield _row("proofs", "none recorded", "dim")
    for index, proof in enumerate(proofs):
        outcome = "passed" if proof.passed else "failed"
        scope = "" if proof.whole else " for a part"
        state = "of the headers as they are" if proof.current else "before the headers changed"
        style = "green" if proof.passed and proof.current else "yellow" if proof.passed else "red"
        words = f"{proof.command} {outcome}{scope}, {_format_time(proof.proved_at)}, {state}"
        yield _row("" if index else "proofs", words, style)
        yield Words(proof.words, "dim", f"{LATER}  ", even=True)


def _format_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M %Z")


EMIT_STYLES = {"write": "green", "keep": "dim", "fallback": "dim", "reject": "red"}


# `policygen emit`


def emitted(document: Emitted, out: str | None, *, verbose: bool) -> Iterator[Block]:
    """Show a line per written or rejected workload, and what was proved."""
    yield Note(f"{tree_line(document.cub)}, {document.toolchain}", "dim", folded=True)
    for action in document.actions:
        written = action.decision == "write"
        if written or action.decision == "reject" or verbose:
            text = f"{action.selector}, {action.variant}" if written else action.reason
            yield Words(f"{action.decision} {action.name}: {text}", EMIT_STYLES[action.decision])
    if not verbose:
        yield from untouched(action.decision for action in document.actions)
    if document.shared:
        yield Note("not measured, but with the same template arguments:", "yellow", folded=True)
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
        return Note("not proven, because of --no-prove", "yellow", folded=True)
    changed = plural(proof.changed, "policy", "policies")
    same = plural(proof.compared - proof.changed, "policy", "policies")
    archs = plural(len(proof.archs), "architecture")
    words = f"proved: {changed} as tuned on {document.arch}, {same} on {archs} as CUB's own"
    return Note(words, "green", folded=True)


def kernel_outcome(header: KernelHeader) -> Iterator[Block]:
    """Show the outcome for each size class, and the proof."""
    for action in header.actions:
        yield from acted(action, verbose=False)
    if header.has_already:
        yield Note("the header has these values already", folded=True)
        return
    if not header.changed:
        yield Note("no variant beats the kernel's current values", "yellow", folded=True)
        return
    if header.effect is not None:
        yield Note(f"proved: {header.effect.summary}", "green", folded=True)
    yield Note(f"written: {nearby(Path(header.path))}", folded=True)


MARKS = {"fine": ("ok", "green"), "optional": ("-", "dim")}
"""Mark and style of each state; other states are marked by their name."""
DOCTOR_ROOM = 7
MENDS = {"missing": "install it", "broken": "mend it", "optional": "to have it", "fine": ""}


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
        names = ", ".join(problem.name for problem in document.problems)
        if names:
            yield Words(f"{plural(len(document.problems), 'thing')} to fix: {names}", "red")
        else:
            yield Note("everything required is present; lines with - are optional", "green")


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


# `policygen overlay` and `policygen calls`

OUTCOME_STYLES = {"same": "dim", "unexpected": "red"}


def made(document: OverlayMade, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show what was planned and proved, and the folder."""
    yield from applied(document.plan, head=head)
    if document.effect is not None:
        yield from effected(document.effect, head=head, verbose=verbose)
    if document.overlay is None:
        yield Note("nothing would change, so no overlay was written", "yellow", folded=True)
        return
    folder = nearby(Path(document.folder))
    names = ", ".join(Path(name).name for name in document.overlay.replaced)
    yield Note(f"written: {folder}: {names}", folded=True)
    yield Note(f"put it before CUB: -I {folder}; see {folder}/README.md", folded=True)


def checked(document: OverlayCheck, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show whether an overlay fits a tree."""
    del verbose
    if head:
        yield Words(tree_line(document.cub), "dim")
    folder = nearby(Path(document.folder))
    for problem in document.problems:
        yield Words(problem, "red")
    if document.problems:
        yield Words(f"{folder} does not fit: make it again with policygen overlay", "red")
    else:
        yield Words(f"{folder} fits {document.cub.title}", "green")


def proved(document: OverlayProof, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show the kernels that an overlay changes; with `verbose`, the others, too."""
    if head:
        yield Words(f"{document.toolchain}; CUB {document.overlay.cub}; {document.arch}", "dim")
    for kernel in document.kernels:
        if kernel.outcome == "same" and not verbose:
            continue
        before, after = (threads or "any" for threads in kernel.threads)
        style = OUTCOME_STYLES.get(kernel.outcome, "green")
        yield Note(f"{kernel.outcome:10} {kernel.kernel}", style)
        threads = f"threads {before} → {after}" if before != after else f"threads {after}"
        yield Words(f"{threads}; {kernel.summary}".removesuffix("; "), "", "  ", "  ")
        for variant in kernel.variants:
            yield Words(variant, "dim", "  ", "    ")
    for unit in document.unaffected:
        yield Words(
            f"{unit}: no kernel of CUB in it was compiled with the overlay: it has none, or a"
            " folder with CUB comes before the overlay on its include path",
            "yellow",
        )
    yield from remarks(document.remarks)
    yield Words(document.summary, "green" if document.holds else "red")


def listed(document: ProgramCalls, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show each policy with its kernels, and the command that looks for a tuning."""
    if head:
        yield Words(f"{', '.join(document.files)} on {document.arch}", "dim")
    for call in document.calls:
        yield BLANK
        yield Words(f"{call.algorithm}: {call.selector}", "bold")
        kernels = (f"{kernel.name} ({kernel.threads or 'any'} threads)" for kernel in call.kernels)
        yield Words(", ".join(kernels), "", "  ", "    ")
        origin = f"CUB {call.cub or 'of unknown version'}"
        origin += f" with overlay {call.overlay}; without it" if call.overlay else ""
        entry = f" ({call.entry})" if call.entry else ""
        status = f"{call.status}{entry}" if not call.why else f"unknown: {call.why}"
        yield Words(f"{origin}: {status}", "", "  ", "    ")
        if call.values:
            values = [f"{name} {value}" for name, value in call.values.items()]
            yield Words(", ".join(values), "dim", "  ", "    ")
        if call.command:
            yield Note(f"  {call.command}", "bold")
    if document.untuned:
        yield BLANK
        names = plural(len(document.untuned), "kernel")
        yield Words(
            f"{names} of CUB and Thrust without a policy in the name; no overlay tunes them"
        )
        for name in document.untuned if verbose else ():
            yield Words(name, "dim", "  ", "    ")
    yield from remarks(document.remarks)
    if not document.calls:
        yield Words("no kernel with a policy of CUB was recognized", "yellow")
