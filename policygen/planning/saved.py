"""Remakes a plan's edits from its decisions: no edit in a plan file is applied as it stands."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress

from policygen.bindings.recorded import benchmark_of, version_of
from policygen.bindings.words import archs
from policygen.errors import InputError, PolicygenError, together
from policygen.headers.spelling import splice
from policygen.model.arch import arch_number
from policygen.model.plans import Plan
from policygen.model.tuning import TuningHeader
from policygen.model.workload import in_words, parse_label

REMEDY = "The plan was edited, or comes from another version of policygen; make it again."
_PROVENANCE_FIELDS = {"reason", "databases"}
"""Fields that describe the origin of an action; they name files that are not available here."""


def check_decisions(plan: Plan) -> None:
    """Raises if a variant has parameters that its benchmark lacks."""
    parameters_by_benchmark: dict[str, set[str]] = {}
    for workload in plan.results:
        for release in (workload.cccl, plan.cub.release):
            with suppress(InputError):  # the workload is rejected for this, and nothing is written
                version = plan.cub.bindings.at(version_of(release))
                names = benchmark_of(workload.algorithm, version).parameters
                parameters_by_benchmark.setdefault(workload.algorithm, set()).update(names)
    rejected = {action.variant for action in plan.actions if action.decision == "reject"}
    for benchmark, label in _labels(plan):
        values = parse_label(label)
        if values is not None and label in rejected:
            continue  # this may be why it was rejected
        if values is None or not values.keys() <= parameters_by_benchmark.get(
            benchmark, values.keys()
        ):
            raise InputError(
                f"the plan chooses {label!r} for {benchmark}, which has no such variant", REMEDY
            )


def check_same(plan: Plan, remade: Plan) -> None:
    """Raises if a plan differs from what its decisions give."""
    for path in sorted({edit.path for edit in (*plan.edits, *remade.edits)}):
        edits, remade_edits = (
            [edit for edit in of.edits if edit.path == path] for of in (plan, remade)
        )
        if edits != remade_edits:
            raise InputError(f"{path}: the plan's edits do not match its decisions", REMEDY)
    for actions in zip(plan.actions, remade.actions, strict=False):
        saved, again = (action.model_dump(exclude=_PROVENANCE_FIELDS) for action in actions)
        if saved != again:
            name = in_words(actions[0].benchmark, actions[0].workload)
            raise InputError(f"{name}: the plan does not match its own decisions", REMEDY)
    if len(plan.actions) != len(remade.actions) or any(
        getattr(plan, name) != getattr(remade, name) for name in ("files", "policies")
    ):
        raise InputError("the plan does not match its own decisions", REMEDY)


def _labels(plan: Plan) -> Iterator[tuple[str, str]]:
    for workload in plan.results:
        yield from ((workload.algorithm, variant.variant) for variant in workload.variants)
    for joint in (*plan.joint, *plan.instead):
        pairs = zip(joint.workloads, joint.variants, strict=False)
        yield from ((named.benchmark, variant.variant) for named, variant in pairs)


# The headers that a plan changes, before and after.


def check_tree(plan: Plan, data: Mapping[str, bytes]) -> None:
    """Raises if headers are not those that the plan was made for."""
    errors: list[PolicygenError] = []
    for file in plan.files:
        before = data.get(file.path)
        if before is None:
            words = f"the plan changes {file.path}, but has no results for it"
            errors.append(InputError(words, "The plan was changed; make it again."))
        elif hashlib.sha256(before).hexdigest() != file.before:
            words = f"{file.path} is not the file that the plan was made for"
            remedy = "Make the plan again, or name its tree with --cub."
            errors.append(InputError(words, remedy))
    if errors:
        raise together(errors)


def changed_headers(plan: Plan, data: Mapping[str, bytes]) -> dict[str, bytes]:
    """Applies a plan to the headers it was made for."""
    return {
        file.path: splice(
            file.path, data[file.path], [edit for edit in plan.edits if edit.path == file.path]
        )
        for file in plan.files
    }


# Later architectures that share a changed policy.


def served(plan: Plan, headers: Mapping[str, TuningHeader]) -> dict[str, tuple[str, ...]]:
    """Returns remarks on policies that serve later architectures, too, with these."""
    target = arch_number(plan.options.arch)
    written = {
        (action.target.header, action.target.namespace)
        for action in plan.actions
        if action.target and action.after and (action.legacy or not plan.cub.has_selectors)
    }
    paths_by_policy: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for file in plan.files if not plan.policies else ():
        header = headers[file.path]
        for chain in header.chains:
            policy_by_number = {arch_number(policy.arch): policy.name for policy in chain.policies}
            if target not in policy_by_number or (file.path, chain.namespace) not in written:
                continue
            end = min((number for number in policy_by_number if number > target), default=1 << 16)
            later = tuple(arch for arch in archs() if target < arch_number(arch) < end)
            if later:
                key = policy_by_number[target], later
                paths_by_policy.setdefault(key, []).append(file.path)
    return {
        f"{policy} also serves {', '.join(later)} ({', '.join(dict.fromkeys(names))}): they get"
        " the written values": later
        for (policy, later), names in paths_by_policy.items()
    }
