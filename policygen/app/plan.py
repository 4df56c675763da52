"""Turns databases into a plan: which values to change in a tree, and why."""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from policygen import trees
from policygen.app.effect import Planned, prove_plan
from policygen.app.emit import taken_by_selectors
from policygen.app.filters import check_archs
from policygen.app.inputs import (
    Ranked,
    ResultFiles,
    choose_rules,
    ranked,
    rule_option,
    shipped_name,
)
from policygen.app.resolve import measured_trees, with_measured_bases
from policygen.app.session import STORE, Session, other_tree, with_detected_bindings
from policygen.bindings.recorded import benchmark_of
from policygen.errors import InputError, PolicygenError, plural
from policygen.headers.user.policies import SINCE, selector_for, takes_selectors
from policygen.model.plans import Action, Given, Named, Options, Plan, Way
from policygen.model.records import grouped
from policygen.model.results import Rules, ScoredWorkload
from policygen.model.selection import InputChange
from policygen.model.trees import FOUND_BY_STORE, Cub, numbers
from policygen.model.workload import Point, axes, axis_name, in_words, point_of
from policygen.opening import load_document
from policygen.planning import legacy
from policygen.planning.decide import remembered
from policygen.planning.judge import judge_inputs
from policygen.planning.measured import (
    RUN,
    base_remarks,
    check_gpus,
    measurements,
    mixed_version_remarks,
    related,
)
from policygen.planning.places import PlacedResult
from policygen.planning.plan import Planner, remake_plan
from policygen.planning.saved import check_decisions, check_same, check_tree, served
from policygen.proof.oracle import Compiler, open_compiler
from policygen.proof.sites import headers_of_benchmarks
from policygen.results.cases import NOT_ASKED, split
from policygen.results.choice import IsWritable
from policygen.results.together import Together
from policygen.trees.manifest import shipped

__all__ = ["Options", "plan_ranked", "plan_tunings", "read_plan"]


def plan_tunings(
    session: Session,
    results: ResultFiles,
    options: Options,
    *,
    measured_on: str | None = None,
    prove: bool = True,
    ways: bool = False,
) -> Planned:
    """Plans what results would change in a tree. Writes nothing to the tree.

    With `ways`, the compiler is also asked what would accept the rejected results.
    """
    check_archs(session.cub, [options.arch])
    if measured_on is not None:
        other_tree(session, measured_on)  # raises before a compiler runs
    given = given_of(results, measured_on)
    with ranked(results, options.rules, session.note) as ranking:
        planned = plan_ranked(
            session,
            ranking,
            options,
            measured_on=measured_on,
            prove=prove,
            ways=given if ways and prove else None,
        )
        return replace(planned, plan=planned.plan.model_copy(update={"given": given}))


def plan_ranked(
    session: Session,
    results: Ranked,
    options: Options,
    *,
    measured_on: str | None = None,
    prove: bool = True,
    ways: Given | None = None,
) -> Planned:
    """Makes a plan for one architecture from open databases.

    If `ways` is given, the plan also says what would accept the rejected results.
    """
    if options.provenance == "full" and options.date is None:
        today = datetime.now(UTC).date().isoformat()
        options = options.model_copy(update={"date": today})
    version = session.cub.bindings.release
    workloads = results.workloads(version)
    if not options.force:
        check_gpus(workloads, [options.arch])
    names = headers_of_benchmarks({row.algorithm for row in workloads}, session.cub.bindings)
    compiler = open_compiler(session.cub, names, progress=session.progress)
    workloads = with_measured_bases(session, workloads, compiler, options.arch, measured_on)

    def choose_together(cases: Sequence[PlacedResult]) -> Together:
        return results.choose([case.measurement.scored for case in cases])

    def next_best(cases: Sequence[PlacedResult], can: IsWritable) -> Together:
        return results.next_best([case.measurement.scored for case in cases], can)

    sources, spaces = compiler.sources, results.files.spaces
    planner = Planner(
        *(sources, options, compiler, choose_together, prove),
        compares_inputs=True,
        next_best=next_best,
        spaces=spaces,
    )
    plan = planner.plan(workloads)
    replaced_versions = {action.cccl for action in plan.actions if action.before is not None}
    remarks = base_remarks(plan, version, measured_trees(session, measured_on, replaced_versions))
    remarks += mixed_version_remarks(
        (in_words(action.benchmark, action.workload), action.cccl) for action in plan.written
    )
    remarks += served(plan, sources.headers)
    draft = Planned(plan, compiler)
    plan = completed(draft, planner, workloads)
    if not prove and plan.edits:
        unproven = "what the change does and what later architectures inherit"
        remarks.append(f"--no-prove: the compiler did not check {unproven}")
    if ways is not None:
        measured, _ = measurements(
            workloads, session.cub.bindings, options.arch, force=options.force
        )
        scored = {measurement.point: measurement.scored for measurement in measured}
        rejecting = Rejecting(session, results, planner, workloads, plan, ways, scored)
        alternatives, more_remarks = find_ways(rejecting)
        plan = plan.model_copy(update={"ways": alternatives})
        remarks += more_remarks
    update = {
        "actions": tuple(map(results.files.named, _asked_actions(plan))),
        "results": tuple(map(results.files.named, plan.results)),
        "remarks": (*remarks, *plan.remarks),
        "conditions": compiler.tree.conditions(file.path for file in plan.files),
    }
    return replace(draft, plan=plan.model_copy(update=update))


def _asked_actions(plan: Plan) -> tuple[Action, ...]:
    """Returns the actions that a plan reports: those on results that passed the filters."""
    return tuple(action for action in plan.actions if action.reason != NOT_ASKED)


def read_plan(session: Session, path: Path) -> Planned:
    """Reads a saved plan, recomputes its edits, and verifies that they are the same."""
    remedy = "Make it with: policygen plan --db DB --arch ARCH -o FILE"
    plan, cub = load_document(path, Plan, "plan of this version of policygen", remedy), session.cub
    if cub.version != plan.cub.version:
        raise InputError(
            f"the plan is for {plan.cub.title}, but the tree is {cub.title}",
            "Make the plan again, or name its tree with --cub.",
        )
    check_decisions(plan)
    names = headers_of_benchmarks({row.algorithm for row in plan.results}, cub.bindings)
    compiler = open_compiler(cub, names, progress=session.progress)
    sources, joint = compiler.sources, remembered(plan.joint)
    check_tree(plan, sources.data)
    planner = Planner(sources, plan.options, compiler, joint, prove=False, spaces=plan.spaces)
    replanned = remake_plan(planner, legacy.part(plan, legacy=False), plan.results)
    draft = Planned(replanned, compiler)
    if plan.options.legacy == "update" and sources.cub.has_selectors:
        replanned = families_again(draft, planner, plan)
    replanned = replanned.model_copy(update={"actions": _asked_actions(replanned)})
    check_same(plan, replanned)
    # File names and reasons stay as they were where the plan was made.
    names = ("actions", "remarks", "conditions", "given", "ways")
    saved_fields = {name: getattr(plan, name) for name in names}
    return replace(draft, plan=replanned.model_copy(update=saved_fields))


OWN = "my_tunings.cuh"
LIMIT = 3
"""Maximum number of benchmarks to examine: more would take longer than the plan itself."""
SELECTOR = "a policy selector in your own program's calls, with CUB unchanged"


@dataclass(frozen=True, slots=True)
class Rejecting:
    """A plan that rejects results, and what it was made from."""

    session: Session
    results: Ranked
    planner: Planner
    workloads: Sequence[ScoredWorkload]
    plan: Plan
    given: Given
    known: Mapping[Point, ScoredWorkload]
    """The scored results that count: those for the architecture's GPU, once per workload."""

    def counts(self, action: Action) -> bool:
        """Returns whether an action is about the result that counts, not about another run."""
        scored = self.known.get(action.point)
        return scored is not None and all(
            getattr(scored, name) == getattr(action, name) for name in RUN
        )

    def of(self, name: str) -> tuple[ScoredWorkload, ...]:
        """Returns the results of a benchmark, and those that may share an entry with it."""
        matching, rest = split(self.workloads, re.compile(f"{re.escape(name)}$"), {})
        return (*matching, *related(matching, rest, self.session.cub.bindings))


# Alternatives that accept rejected results, with their commands, as confirmed by the compiler.


def find_ways(rejecting: Rejecting) -> tuple[tuple[Way, ...], tuple[str, ...]]:
    """Finds alternatives for rejected results by benchmark, and remarks on what is skipped.

    Only the benchmarks with the best scores are examined, because each takes some compiles. What
    cannot be resolved is omitted.
    """
    useful = (
        action
        for action in rejecting.plan.actions
        if action.decision == "reject" and action.variant and not action.legacy
    )
    rejected = grouped(filter(rejecting.counts, useful), lambda action: action.benchmark)
    best = {
        name: max(action.scores[0] if action.scores else 0.0 for action in actions)
        for name, actions in rejected.items()
    }
    ordered = sorted(rejected, key=lambda name: -best[name])
    chosen, remaining = {*ordered[:LIMIT]}, ordered[LIMIT:]
    ways: list[Way] = []
    for name, actions in rejected.items():
        if name not in chosen:
            continue
        with suppress(PolicygenError):
            ways += _emit_alternatives(rejecting, name, actions)
    if not remaining:
        return tuple(ways), ()
    summary = (
        f"options that would accept rejected results were tried for {LIMIT} of {len(rejected)}"
        f" benchmarks; -R '{remaining[0]}$' tries another"
    )
    return tuple(ways), (summary,)


def _emit_alternatives(
    rejecting: Rejecting, name: str, rejected: Sequence[Action]
) -> Iterator[Way]:
    """Proposes a custom selector, which can express what no entry of the headers can."""
    session, newest = rejecting.session, max((wheel.cub for wheel in shipped().wheels), key=numbers)
    supported = takes_selectors(session.cub.version)
    cub = session.cub if supported else _fetched_tree(newest)
    taken = list(rejected)
    if cub is None:
        version = session.cub.bindings.at(newest)
        selector_for(benchmark_of(name, version), version)  # raises if no selector is public
    elif not (taken := _taken_by_selector(rejecting, name, rejected, cub)):
        return
    words = choosing(rejecting.given, rejecting.plan.options, f"{name}$", _axes(rejecting, taken))
    words += ["-o", OWN]
    if supported:
        command, description = command_line(session, "emit", *words), SELECTOR
    else:
        prefix = "" if cub else f"policygen headers fetch {newest} && "
        command = prefix + shlex.join(["policygen", "emit", *words, "--cub", newest])
        description = f"{SELECTOR}; for CUB {'.'.join(map(str, SINCE))} and later"
        description += "" if cub else ", where emit reports whether this is possible"
    named = tuple(Named(benchmark=action.benchmark, workload=action.workload) for action in taken)
    yield Way(workloads=named, what=description, command=command)


def _taken_by_selector(
    rejecting: Rejecting, name: str, rejected: Sequence[Action], cub: Cub
) -> list[Action]:
    """Returns the rejected results that a generated header has policies for."""
    taken = taken_by_selectors(
        cub,
        rejecting.results,
        rejecting.of(name),
        rejecting.plan.options.arch,
        force=rejecting.plan.options.force,
        progress=rejecting.session.progress,
    )
    points = {point_of(result.benchmark, result.workload) for result in taken}
    return [action for action in rejected if action.point in points]


def _fetched_tree(version: str) -> Cub | None:
    """Returns a version's tree if it was fetched."""
    with suppress(InputError):
        return with_detected_bindings(trees.find(version, Path.cwd()))
    return None


def _axes(rejecting: Rejecting, taken: Sequence[Action]) -> Sequence[str]:
    """Returns the axes of a single workload as its database names them, or else the given axes."""
    if len(taken) > 1:
        return rejecting.given.axes
    workload = rejecting.known[taken[0].point].workload
    return axes({axis_name(axis): value for axis, value in workload.items()})


# Command lines that repeat what was done.

Words = list[str]
_NUMBERS = ("least_score", "worst_allowed", "confidence")
_FLAGS = ("without_samples", "accept_unconfirmed")
_CHOICES = ("reach", "collisions", "provenance", "legacy")


def command_line(session: Session, *words: str, store: bool = False, writes: bool = False) -> str:
    """Returns a command for a session's tree and store. Commands that write must name the tree."""
    cub, store_path = session.cub, session.store
    origin = cub.found
    options = ["--cub", cub.root] if origin in {"--cub", FOUND_BY_STORE} else []
    if writes and not cub.is_named:
        options = ["--cub", cub.version if origin == "cub_headers" else cub.root]
    options += ["--store", str(store_path)] if store and str(store_path) != STORE else []
    return shlex.join(["policygen", *words, *options])


def given_of(results: ResultFiles, measured_on: str | None) -> Given:
    """Returns the inputs of a plan as they were named."""
    return Given(
        databases=tuple(results.files),
        benches=tuple(results.benches),
        base=results.base,
        confirm=tuple(results.confirm),
        regex=results.where.regex,
        axes=results.where.axes,
        gpus=dict(results.gpus),
        measured_on=measured_on,
    )


def given_or_told(plan: Plan) -> Given:
    """Returns the recorded inputs of a plan, or else the databases of its actions."""
    databases = dict.fromkeys(name for action in plan.actions for name in action.databases)
    return plan.given or Given(databases=tuple(databases))


def planning(given: Given, options: Options) -> Words:
    """Returns all options that affect a plan."""
    plain = Options(arch=options.arch)
    words = choosing(given, options)
    for name in _CHOICES:
        if (value := getattr(options, name)) != getattr(plain, name):
            words += [f"--{name}", value]
    words += ["--reaches", ",".join(options.reaches)] if options.reaches else []
    words += ["--next-best"] if options.next_best else []
    return words + (["--measured-on", given.measured_on] if given.measured_on else [])


def choosing(
    given: Given, options: Options, regex: str | None = None, axes: Sequence[str] | None = None
) -> Words:
    """Returns options for inputs and rules; `regex` and `axes` override the workloads."""
    shipped = shipped_name(given.databases)
    words = ["--from", shipped] if shipped else _repeat_option("--db", given.databases)
    words += _repeat_option("--bench", given.benches)
    words += ["--base", given.base] if given.base else []
    words += _repeat_option("--confirm", given.confirm)
    words += [] if shipped else ["--arch", options.arch]
    pattern = given.regex if regex is None else regex
    words += ["-R", pattern] if pattern else []
    words += _repeat_option("-a", given.axes if axes is None else axes)
    words += _repeat_option("--gpu-arch", [f"{name}={arch}" for name, arch in given.gpus.items()])
    words += ["--any-gpu"] if options.force else []
    return words + _rule_options(options.rules)


def _rule_options(rules: Rules) -> Words:
    """Returns options for rules that differ from the defaults."""
    plain, configured = Rules(), choose_rules(prefer_simple=False)
    words = []
    for name in _NUMBERS:
        value = getattr(rules, name)
        if value != getattr(plain, name) or value != getattr(configured, name):
            words += [rule_option(name), str(value)]
    return words + [rule_option(name) for name in _FLAGS if getattr(rules, name)]


def _repeat_option(option: str, values: Sequence[str]) -> Words:
    return [word for value in values for word in (option, value)]


# Struct families beside policy selectors: left alone, or planned and proved with the returns.


def completed(planned: Planned, planner: Planner, scored: Sequence[ScoredWorkload]) -> Plan:
    """Completes a plan with the families beside the returns, and with what no benchmark shows."""
    plan = with_families(planned, planner, scored)
    planned = replace(planned, plan=plan)
    if not (planner.prove and planned.changed):
        return plan
    changes = planned.compiler.compare_inputs(planned.changed).changes
    judged = judge_inputs(plan.options, changes)
    return _with_remarks(plan, [*_unmeasured(judged, planned.changed)])


MOST = 2
"""Remarks on inputs of a selector that no benchmark measures; the others are counted."""


def _unmeasured(changes: Iterable[InputChange], headers: Collection[str]) -> Iterator[str]:
    """Reports inputs that change and that the results do not measure."""
    counts: Counter[str] = Counter()
    unmeasured = (change for change in changes if not change.is_measured(headers))
    for change in sorted(unmeasured, key=lambda change: not change.leaks):
        counts[change.selector] += not change.leaks
        if counts[change.selector] <= MOST:
            remedy = f" (--reaches {','.join(change.leaks)} allows it)" if change.leaks else ""
            yield f"it changes what the results do not measure{remedy}: {change.text}"
    for selector, count in counts.items():
        if count > MOST:
            yield f"it changes {plural(count - MOST, 'more kind')} of unmeasured {selector} inputs"


def with_families(planned: Planned, planner: Planner, scored: Sequence[ScoredWorkload]) -> Plan:
    """Completes a plan with the treatment of the families beside the returns."""
    plan, headers = planned.plan, planned.compiler.sources.headers
    mode = plan.options.legacy
    if not plan.cub.has_selectors:
        legacy_remarks = [f"the tree has no policy selectors, so --legacy {mode} has no effect"]
        return _with_remarks(plan, legacy_remarks if mode != "leave" else [])
    if mode == "update":
        return _update_families(planned, planner, scored)
    written = (action.benchmark for action in plan.written)
    remarks = legacy.report_unchanged_families(legacy.headers_beside(written, plan.cub, headers))
    if mode == "warn":
        remarks += unlike(plan, planned.compiler)
    return _with_remarks(plan, remarks)


def _update_families(planned: Planned, planner: Planner, scored: Sequence[ScoredWorkload]) -> Plan:
    """Plans the same results in the families, by the rules of their own entries."""
    plan_of_returns, headers = planned.plan, planned.compiler.sources.headers
    results, held = legacy.results_for(plan_of_returns, scored, headers)
    families = _older_planner(planned, planner, held).plan(results)
    plan = legacy.joined(plan_of_returns, families, held, planned.before)
    if planner.prove and plan_of_returns.edits and families.edits:
        prove_plan(replace(planned, plan=plan))
    shown_values = {a.point: legacy.given(a) for a in families.actions if a.point not in held}
    remarks = [*served(families, headers), *legacy.unread(plan, headers)]
    remarks += legacy.unlike(legacy.returned(plan, headers), shown_values)
    return _with_remarks(plan, remarks)


def families_again(planned: Planned, planner: Planner, plan: Plan) -> Plan:
    """Recomputes the families of a saved plan; `planned` has the plan without them."""
    headers = planned.compiler.sources.headers
    results, held = legacy.results_for(planned.plan, plan.results, headers)
    older = _older_planner(planned, planner, held)
    families = remake_plan(older, legacy.part(plan, legacy=True), results)
    return legacy.joined(planned.plan, families, held, planned.before)


def _older_planner(planned: Planned, planner: Planner, held: Mapping[Point, str]) -> Planner:
    """Returns the planner for the older dispatchers; `held` workloads stay unchanged."""
    compiler = planned.compiler.older
    return replace(
        planner, sources=compiler.sources, oracle=compiler, held=held, compares_inputs=False
    )


def _with_remarks(plan: Plan, remarks: Sequence[str]) -> Plan:
    return plan.model_copy(update={"remarks": (*plan.remarks, *remarks)})


def unlike(plan: Plan, compiler: Compiler) -> list[str]:
    """Lists the entries of families that differ from what the returns say after a plan."""
    headers = compiler.sources.headers
    actions = legacy.returned(plan, headers)
    points = [action.point for action in actions]
    resolved = compiler.older.tell(points, plan.options.arch) if actions else {}
    shown_values = {point: legacy.shown(values) for point, values in resolved.items()}
    return [*legacy.unlike(actions, shown_values), *legacy.unread(plan, headers)]
