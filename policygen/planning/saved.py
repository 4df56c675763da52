"""A plan's edits, made again from what it decided: nothing that a file says is written as it is."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from policygen.bindings.recorded import benchmark_of, version_of
from policygen.bindings.words import archs
from policygen.errors import InputError
from policygen.headers.protocol import NotKeptError
from policygen.model.arch import arch_number
from policygen.model.plans import Action, Plan, Reached
from policygen.model.results import ScoredWorkload
from policygen.model.selection import DeltaRow, Values
from policygen.model.tuning import TuningHeader
from policygen.model.workload import in_words, parse_label
from policygen.planning.memory import remembered_next
from policygen.planning.places import Left, PlacedResult, bounded, leaving, said_in_full
from policygen.planning.plan import NotWritableError, Planner, Settled

REMEDY = "The plan was changed, or is of another policygen; make it again."
_HOW = {"reason", "databases"}
"""What an action says of how it came to be: it names files that are not here."""


def again(planner: Planner, plan: Plan, scored: Sequence[ScoredWorkload]) -> Plan:
    """What the decisions of a plan come to in a tree; the compiler is asked what is there."""
    planner = replace(planner, next_best=remembered_next(plan.instead))

    def settle(cases: Sequence[PlacedResult]) -> Settled:
        ends = {one.point: "" for one in plan.bounded}
        moved, _ = bounded(cases, ends, planner.dialect)
        shown = {one.point: one.shown for one in plan.said}
        moved, said = said_in_full(moved, shown)
        left = {one.point: Left(one.shown, one.reason) for one in plan.unsaid}
        moved = leaving(moved, left)
        held = {**planner.held, **{one.point: one.reason for one in plan.held}}
        outcome = planner.decided(moved, held)
        if later := [_change(one) for one in plan.reached if one.kept]:
            pins = planner.dialect.keep(later, planner.oracle.tell)
            outcome = replace(outcome, writes=[*outcome.writes, *pins])
        draft = planner.drafted(outcome.writes)
        return Settled(outcome, draft, plan.reached, held, ends, said, left)

    try:
        return planner.settled(scored, settle)
    except (NotWritableError, NotKeptError) as error:
        raise InputError(f"the plan cannot be made again: {error}", REMEDY) from error


def check_decisions(plan: Plan) -> None:
    """An error where a variant has parameters that its benchmark has not."""
    known: dict[str, set[str]] = {}
    for one in plan.results:
        for version in (one.cccl, plan.cub.release):
            with suppress(InputError):  # it is rejected for that, and nothing is written
                names = benchmark_of(one.algorithm, version_of(version)).parameters
                known.setdefault(one.algorithm, set()).update(names)
    rejected = {action.variant for action in plan.actions if action.decision == "reject"}
    for benchmark, label in _labels(plan):
        values = parse_label(label)
        if values is not None and label in rejected:
            continue  # for just that, it may be
        if values is None or not values.keys() <= known.get(benchmark, values.keys()):
            raise InputError(
                f"the plan decides {label!r} for {benchmark}, which is no variant of it", REMEDY
            )


def check_same(plan: Plan, made: Plan) -> None:
    """An error where a plan says something else than what its decisions come to."""
    for path in sorted({edit.path for edit in (*plan.edits, *made.edits)}):
        if _edits(plan, path) != _edits(made, path):
            raise InputError(f"{path}: the plan's edits are not what its decisions give", REMEDY)
    for told, own in zip(plan.actions, made.actions, strict=False):
        if _what(told) != _what(own):
            name = in_words(told.benchmark, told.workload)
            raise InputError(f"{name}: the plan says something else than it decides", REMEDY)
    if (len(plan.actions), plan.files, plan.policies) != (
        len(made.actions),
        made.files,
        made.policies,
    ):
        raise InputError("the plan says something else than its decisions give", REMEDY)


def _labels(plan: Plan) -> Iterator[tuple[str, str]]:
    for one in plan.results:
        yield from ((one.algorithm, variant.variant) for variant in one.variants)
    for joint in (*plan.joint, *plan.instead):
        pairs = zip(joint.workloads, joint.variants, strict=False)
        yield from ((named.benchmark, variant.variant) for named, variant in pairs)


def _change(one: Reached) -> DeltaRow[Values]:
    """What would change, were it not kept; what it has is asked."""
    return DeltaRow(one.benchmark, tuple(one.workload.items()), one.arch, {}, {})


def _edits(plan: Plan, path: str) -> list[object]:
    return [edit for edit in plan.edits if edit.path == path]


def _what(action: Action) -> dict[str, object]:
    return action.model_dump(exclude=_HOW)


# Later architectures that a change serves, too.


def served(plan: Plan, headers: Mapping[str, TuningHeader]) -> list[str]:
    """Later architectures that have no policy in a chain: they get what is written, too."""
    target = arch_number(plan.options.arch)
    written = {(a.target.header, a.target.namespace) for a in plan.actions if a.target and a.after}
    found: dict[tuple[str, str], list[str]] = {}
    for file in plan.files if not plan.policies else ():
        header = headers[file.path]
        for chain in header.chains:
            numbers = [arch_number(policy.arch) for policy in chain.policies]
            if target not in numbers or (file.path, chain.namespace) not in written:
                continue
            end = min((n for n in numbers if n > target), default=1 << 16)
            later = [a for a in archs() if target < arch_number(a) < end]
            if later:
                policy = next(p.name for p in chain.policies if arch_number(p.arch) == target)
                found.setdefault((policy, ", ".join(later)), []).append(file.path)
    return [
        f"{policy} serves {later}, too ({', '.join(dict.fromkeys(names))}): they get what is"
        " written"
        for (policy, later), names in found.items()
    ]
