"""Generates a header of policy selectors for CUB's public API from results."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from policygen import trees
from policygen.app.filters import check_archs, parse_target
from policygen.app.inputs import Ranked, ResultFiles, ranked
from policygen.app.resolve import with_base_checks
from policygen.app.session import Session, check_serves
from policygen.bindings.load import bound
from policygen.bindings.recorded import version_of
from policygen.bindings.words import next_arch
from policygen.errors import EffectError, InputError, Problems
from policygen.headers.selectors.functions import Struct, leaves, policy_structs, read_aggregate
from policygen.headers.user.header import HeaderTarget, render, selector_of
from policygen.headers.user.policies import (
    PublicSelector,
    TunedReturn,
    TunedSelector,
    UserReturn,
    arguments,
    as_policy,
    check_takes_selectors,
    question,
    selector_for,
    selectors_named,
    with_arguments,
)
from policygen.model.arch import arch_number
from policygen.model.emitted import EmitAction, EmitProof, Emitted
from policygen.model.plans import Action, Options
from policygen.model.results import Rules, ScoredWorkload
from policygen.model.selection import Policies, Question, Selected
from policygen.model.trees import BoundVersion, Cub
from policygen.model.workload import point_name
from policygen.planning.decide import decide
from policygen.planning.measured import (
    Measurement,
    Spaces,
    check_gpus,
    measurements,
    mixed_version_remarks,
)
from policygen.planning.measured import action as make_action
from policygen.planning.places import PlacedResult, by_entry
from policygen.proof.ask import ask_policies
from policygen.proof.probe import QueriedTree
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.proof.units import overlay
from policygen.results.cases import NOT_ASKED
from policygen.results.together import Together
from policygen.steps import Progress
from policygen.trees.manifest import shipped

DEFAULT_NAMESPACE = "tunings"
LISTED = 10
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")


def emit_selectors(
    session: Session,
    results: ResultFiles,
    arch: str | None,
    rules: Rules,
    *,
    algorithms: Sequence[str] = (),
    std: Literal[17, 20] = 20,
    namespace: str | None = None,
    out: str | None = None,
    force: bool = False,
    prove: bool = True,
) -> Emitted:
    """Generates the text of a header and proves what it does. `out` is the name of the header."""
    check_serves("emit", session.cub)
    target, cub = parse_target([] if arch is None else [arch]), session.cub
    check_archs(cub, [target])
    namespace_name = _namespace(namespace, out)
    check_takes_selectors(cub)
    compiler = _Compiler(cub, session.progress)
    with ranked(results, rules, session.note) as ranking:
        emitter = _emitter(ranking, compiler, target, force=force)
        structs = emitter.structs
        selected = _selected_workloads(
            ranking.workloads(compiler.version), algorithms, compiler.version
        )
        if not force:
            check_gpus(selected, [target])
        judged = with_base_checks(session, selected, target)
        tuned = emitter.emit([ranking.files.named(workload) for workload in judged])
    all_actions = [
        *(a for selector in tuned for p in selector.parts for a in p.actions),
        *emitter.refused,
    ]
    actions = [action for action in all_actions if action.reason != NOT_ASKED]
    written = [selector for selector in tuned if selector.written]
    if not written:
        raise _nothing_to_emit(actions)
    file = Path(out).name if out else f"{namespace_name.replace('::', '_')}.cuh"
    header_target = HeaderTarget(
        compiler.version, target, next_arch(target), std, namespace_name, file
    )
    selectors = tuple(selector_of(selector) for selector in written)
    text = render(written, selectors, header_target, structs)
    proof = None
    if prove:
        proof = _prove(written, header_target, text, lambda q, first: compiler(q, first, std))
    return Emitted(
        cub=cub,
        toolchain=f"nvcc {compiler.toolchain.version}",
        arch=target,
        std=std,
        namespace=namespace_name,
        selectors=selectors,
        actions=tuple(actions),
        remarks=tuple(_remarks(actions, cub.version)),
        shared=tuple(name for selector in written for name in selector.shared),
        proof=proof,
        text=text,
    )


def taken_by_selectors(
    cub: Cub,
    results: Ranked,
    workloads: Sequence[ScoredWorkload],
    target: str,
    *,
    force: bool,
    progress: Progress | None,
) -> tuple[EmitAction, ...]:
    """Returns the workloads for which a generated header would return policies."""
    check_takes_selectors(cub)
    tuned = _emitter(results, _Compiler(cub, progress), target, force=force).emit(workloads)
    actions = (action for selector in tuned for part in selector.parts for action in part.actions)
    return tuple(action for action in actions if action.decision == "write")


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Queries what selectors of a tree return."""

    cub: Cub
    progress: Progress | None
    toolchain: Toolchain = field(default_factory=find_toolchain)

    @property
    def version(self) -> BoundVersion:
        """The tree's own version, without rows that override its bindings."""
        return self.cub.bindings.at(self.cub.version)

    def __call__(
        self, questions: Sequence[Question], first: tuple[str, ...] = (), language: int = 17
    ) -> Policies:
        tree = QueriedTree(self.version, (*first, *self.cub.include_folders), {})
        return ask_policies(questions, tree, self.toolchain, std=language, progress=self.progress)


def _emitter(ranking: Ranked, compiler: _Compiler, target: str, *, force: bool) -> "Emitter":
    folder = trees.tuning_headers(compiler.cub)[0].parent
    return Emitter(
        compiler.version,
        target,
        folder,
        policy_structs(folder),
        compiler,
        ranking.choose,
        force,
        spaces=ranking.files.spaces,
    )


def _namespace(given: str | None, out: str | None) -> str:
    """Returns the given namespace, or the file name as an identifier."""
    if given is not None:
        if not _IDENTIFIER.fullmatch(given):
            raise InputError(
                f"--namespace {given!r} is not a C++ namespace", "Write it like my::tunings."
            )
        return given
    stem = re.sub(r"\W", "_", Path(out).name.partition(".")[0], flags=re.ASCII) if out else ""
    return stem if _IDENTIFIER.fullmatch(stem) else DEFAULT_NAMESPACE


def _selected_workloads(
    workloads: Sequence[ScoredWorkload], names: Sequence[str], version: BoundVersion
) -> list[ScoredWorkload]:
    """Returns the workloads of algorithms named as in bindings or selectors."""
    requested = {part.strip() for name in names for part in name.split(",") if part.strip()}
    if not requested:
        return list(workloads)
    benchmarks_by_name: dict[str, set[str]] = {}
    for algorithm in bound(version):
        for benchmark in algorithm.benchmarks:
            selector_names = {s.name for s in algorithm.selectors if s.site == benchmark.site}
            for name in {algorithm.algorithm, *selector_names}:
                benchmarks_by_name.setdefault(name, set()).add(benchmark.name)
    if unknown := sorted(requested - benchmarks_by_name.keys()):
        raise InputError(
            f"unknown algorithm {', '.join(unknown)}",
            f"Available: {', '.join(sorted(benchmarks_by_name))}",
        )
    matching = [
        workload
        for workload in workloads
        if any(workload.algorithm in benchmarks_by_name[name] for name in requested)
    ]
    if not matching:
        available = ", ".join(sorted({workload.algorithm for workload in workloads}))
        raise InputError(
            f"the databases have no results for {', '.join(sorted(requested))}",
            f"They have: {available}",
        )
    return matching


def _prove(
    tuned: Sequence[TunedSelector],
    target: HeaderTarget,
    text: str,
    ask: Callable[[Sequence[Question], tuple[str, ...]], Policies],
) -> EmitProof:
    """Proves what the header does. Raises an error if it does anything else."""
    folder = overlay(target.file, text.encode())
    include = f"{shipped().tree.tunings}/{target.file}"
    try:
        policies = ask(questions(tuned, target.namespace, include), (folder,))
    except Problems as error:
        raise EffectError(
            [f"the header does not compile: {message}" for message in error.errors]
        ) from error
    proof, wrong = judge(tuned, policies, target.arch)
    if wrong:
        raise EffectError(wrong)
    return proof


def _remarks(actions: Sequence[EmitAction], version: str) -> Iterator[str]:
    """Yields remarks about results that were measured on a different version of CUB."""
    written = [action for action in actions if action.decision == "write"]
    for measured in sorted({version_of(action.cccl) for action in written} - {version}):
        yield (
            f"measured on CCCL {measured}, but the header is for CUB {version}, where kernels and"
            " policies may differ: what was faster there can be slower here, so measure again"
        )
    yield from mixed_version_remarks((action.name, action.cccl) for action in written)


def _nothing_to_emit(actions: Sequence[EmitAction]) -> InputError:
    """Builds the error that explains why there is no selector to write."""
    reasons = dict.fromkeys(f"{action.name}: {action.reason}" for action in actions)
    shown = [*list(reasons)[:LISTED]]
    if len(reasons) > len(shown):
        shown.append(f"and {len(reasons) - len(shown)} more")
    return InputError("nothing to emit", "\n  ".join(shown))


# Makes selectors from results: asks the compiler for CUB's own policies, and changes those.

ChooseForAll = Callable[[Sequence[ScoredWorkload]], Together]
"""Chooses one variant for several workloads."""
PolicyOracle = Callable[[Sequence[Question]], Policies]
"""Asks the compiler for the policies of selectors on all architectures."""


@dataclass(frozen=True, slots=True)
class Emitter:
    """Makes tuned selectors for one version of a tree."""

    version: BoundVersion
    arch: str
    tunings: Path
    """The folder of the tree's tuning headers."""
    structs: Mapping[str, Struct]
    ask: PolicyOracle
    together: ChooseForAll
    force: bool = False
    spaces: Spaces = field(default_factory=dict)
    refused: list[EmitAction] = field(default_factory=list)
    """Workloads that were decided before anything was compiled."""

    def emit(self, scored: Sequence[ScoredWorkload]) -> list[TunedSelector]:
        """Makes the selectors for all results."""
        measured, refused = measurements(
            scored, self.version, self.arch, force=self.force, spaces=self.spaces
        )
        self.refused.extend(_emitted(action) for _, action in refused)
        by_name: dict[str, list[tuple[PublicSelector, Measurement]]] = {}
        for measurement in measured:
            try:
                selector = selector_for(measurement.benchmark, self.version)
            except InputError as error:
                self.refused.append(_emitted(measurement.rejected(error.in_line)))
                continue
            by_name.setdefault(selector.selector.name, []).append((selector, measurement))
        chosen = [measurement for group in by_name.values() for _, measurement in group]
        if not any(measurement.scored.is_used for measurement in chosen):
            self.refused.extend(
                _emitted(
                    make_action(measurement, decision="fallback", reason=measurement.choice.reason)
                )
                for measurement in chosen
            )
            return []
        served_by_name = {
            name: tuple(
                with_arguments(selector, self.tunings)
                for selector in selectors_named(name, self.version)
            )
            for name in by_name
        }
        policies = self.ask(
            [
                question(served, self.structs)
                for group in served_by_name.values()
                for served in group
            ]
        )
        return [
            self._tuned(served_by_name[name], results, policies)
            for name, results in by_name.items()
        ]

    def _tuned(
        self,
        serves: tuple[PublicSelector, ...],
        results: Sequence[tuple[PublicSelector, Measurement]],
        all_policies: Policies,
    ) -> TunedSelector:
        fields = read_aggregate(self.structs, serves[0].selector.policy)
        by_benchmark = {selector.benchmark.name: selector for selector in serves}
        policies = {
            place: policy for place, policy in all_policies.items() if place[0][0] in by_benchmark
        }
        arguments_by_point = {
            point: arguments(by_benchmark[point[0]], dict(point[1]), policy, self.version)
            for (point, arch), policy in policies.items()
            if arch == self.arch
        }
        cases: list[PlacedResult] = []
        options = Options(arch=self.arch)
        for selector, measurement in results:
            template_arguments = arguments_by_point[measurement.point]
            if not template_arguments.nameable:
                reason = "it was measured with types or an operator that a header cannot name"
                self.refused.append(_emitted(measurement.rejected(reason)))
                continue
            base = policies[measurement.point, self.arch]
            current = Selected(as_policy(fields, base.fields), None, {}, base.sizes)
            served = by_benchmark[selector.benchmark.name]
            cases.append(
                PlacedResult(
                    UserReturn(current, served, fields, base, template_arguments), measurement
                )
            )
        parts = tuple(part_of(group, self.together, options) for group in by_entry(cases))
        return TunedSelector(serves, fields, parts, policies, arguments_by_point)


def part_of(cases: Sequence[PlacedResult], choose: ChooseForAll, options: Options) -> TunedReturn:
    """Decides the policy of workloads with the same template arguments."""

    def together(subset: Sequence[PlacedResult]) -> Together:
        joint = choose([case.measurement.scored for case in subset])
        names = ", ".join(
            f"{case.measurement.name} {case.choice.variant or 'base'}" for case in subset
        )
        reason = f"these have the same template arguments, but {joint.reason}: {names}"
        return joint if joint.variants else Together((), reason)

    outcome = decide(cases, options, together)
    spots = tuple(case.spot for case in cases if isinstance(case.spot, UserReturn))
    values = outcome.writes[0].content.values if outcome.writes else None
    return TunedReturn(spots, tuple(_emitted(action) for action in outcome.actions), values)


def _emitted(action: Action) -> EmitAction:
    """Converts an action; a workload that the selector does not tune keeps CUB's policy."""
    action_fields = action.model_dump(include=set(EmitAction.model_fields))
    return EmitAction.model_validate(
        {
            **action_fields,
            "decision": "write" if action.written else action.decision,
            "selector": action.target and action.target.family,
            "after": action.after or action.before,
        }
    )


# Checks that tuned workloads get their policy, and that all others get CUB's.


def questions(tuned: Sequence[TunedSelector], namespace: str, include: str) -> list[Question]:
    """Asks about the same workloads, through the header's selectors."""
    return [
        Question(
            selector.site,
            selector.benchmark,
            f"::{namespace}::{tuned_selector.name}{selector.instantiated}",
            tuple(path for path, _ in leaves(tuned_selector.fields)),
            includes=(include,),
        )
        for tuned_selector in tuned
        for selector in tuned_selector.serves
    ]


def judge(
    tuned: Sequence[TunedSelector], selected_policies: Policies, arch: str
) -> tuple[EmitProof, list[str]]:
    """Compares what the header's selectors return with what they should return."""
    wrong: list[str] = []
    changed, compared = 0, 0
    archs: set[str] = set()
    for selector in tuned:
        expected_by_key = selector.wanted
        for (point, row_arch), policy in selector.policies.items():
            default = as_policy(selector.fields, policy.fields)
            key = selector.arguments[point].key
            expected = expected_by_key.get(key, default) if row_arch == arch else default
            selected = selected_policies[point, row_arch].fields
            compared += 1
            archs.add(row_arch)
            changed += selected != default
            if selected != expected:
                wrong.append(f"{point_name(point)} on {row_arch}: {_differs(selected, expected)}")
    ordered = tuple(sorted(archs, key=arch_number))
    return EmitProof(archs=ordered, compared=compared, changed=changed), wrong


def _differs(selected: Mapping[str, str], expected: Mapping[str, str]) -> str:
    return ", ".join(
        f"{path} is {selected.get(path)}, not {value}"
        for path, value in expected.items()
        if selected.get(path) != value
    )
