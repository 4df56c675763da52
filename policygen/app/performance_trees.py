"""A change of a tree's headers, prepared for measuring."""

import math
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

from policygen.app.change import Base, find_base, no_base
from policygen.app.comparison import ChangedCode, find_changed_code
from policygen.app.emit import check_takes_selectors
from policygen.app.filters import Filter
from policygen.app.measure import is_meant
from policygen.app.measured_workloads import chosen_workloads
from policygen.app.session import Session
from policygen.errors import InputError, PolicygenError
from policygen.gpu.changes import AFTER, COPY, ChangedWorkload, ChangePart
from policygen.gpu.compiling import (
    Candidate,
    CompiledWorkload,
    MakesObjects,
    Renders,
    WorkloadToCompile,
    compile_workloads,
)
from policygen.gpu.device import Failure, VariantFunction
from policygen.gpu.opened import PublicWorkload, ask_public
from policygen.gpu.rounds import declared_axes, runtime_spots
from policygen.gpu.statistics import CONFIDENCE
from policygen.gpu.units import (
    PublicPolicy,
    WorkloadRun,
    inputs_text,
    runner_text,
    runs_of,
    variants_text,
)
from policygen.headers.selectors.functions import leaves
from policygen.headers.user.policies import as_policy, selectors_named
from policygen.model.plans import Plan
from policygen.model.results import ScoredWorkload
from policygen.model.selection import EntryPlace
from policygen.model.tuning import Policies, Question
from policygen.model.workload import Point, axis_name, in_words
from policygen.opening import read_named
from policygen.proof.ask import ask_policies
from policygen.proof.probe import AskedTree
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import Workload, overlay
from policygen.steps import Progress
from policygen.trees.manifest import shipped

Both = tuple[Workload, Workload]
WorkloadKey = tuple[str, frozenset[tuple[str, str]]]
"""A workload, however its axes are ordered and decorated."""
Claims = Mapping[WorkloadKey, tuple[float, float]]
"""By workload: the score, and what it must be at least."""
Runs = Sequence[tuple[WorkloadRun, WorkloadToCompile]]
"""A workload by sub-benchmark: how it runs, and both sides of it."""


@dataclass(frozen=True, slots=True)
class PreparedChange:
    """What is measured of a change, and what is known of the rest."""

    before: str
    after: str
    """Both sides in words."""
    runs: Mapping[Point, Runs]
    same: tuple[Point, ...]
    """Those with the same machine code."""
    refused: Mapping[Point, str]
    """Those that cannot be measured."""
    claims: Claims
    remarks: tuple[str, ...] = ()
    entries: Mapping[Point, EntryPlace | None] | None = None
    """What decides after the change; none where it is not known."""


def prepare_trees(
    session: Session,
    base: str | None,
    where: Filter,
    arch: str,
    toolchain: Toolchain,
    *,
    everything: bool = False,
    jobs: int | None = None,
) -> PreparedChange:
    """The workloads whose machine code is another one than that of the base."""
    before = find_base(session, base)
    if before is None:
        raise no_base(session.store)
    if before.cub is None:
        raise InputError(
            f"{before.label}: there are no headers to measure",
            "Name a revision, a folder or a version: --base.",
        )
    code = find_changed_code(
        session, before, where, arch, toolchain, everything=everything, jobs=jobs
    )
    sides, refused = _ChangeSides(before, session, arch), dict(code.refused)
    runs: dict[Point, Runs] = {}
    for point, both in code.different.items():
        try:
            runs[point] = sides.runs(point, both)
        except InputError as error:
            refused[point] = error.in_line
    claims = claims_of(before.plan, code)
    after = session.cub.title
    return PreparedChange(
        before.label, after, runs, code.same, refused, claims, code.remarks, code.entries
    )


@dataclass(frozen=True, slots=True)
class _ChangeSides:
    """The tree before, and the tree after."""

    base: Base
    session: Session
    arch: str

    def runs(self, point: Point, both: Both) -> Runs:
        """How a workload runs on each side, by sub-benchmark."""
        assert self.base.cub is not None
        sides = runs_of(self.base.cub, both[0]), runs_of(self.session.cub, both[1])
        return [(one, self._task(point, one, after)) for one, after in zip(*sides, strict=True)]

    def _task(self, point: Point, before: WorkloadRun, after: WorkloadRun) -> WorkloadToCompile:
        benchmark, axes = point
        return WorkloadToCompile(
            in_words(benchmark, dict(axes)),
            self.arch,
            self.base.includes,
            inputs_text(before),
            _renders(before, after),
            (Candidate(AFTER, None, self.session.cub.include_folders),),
        )


def _renders(before: WorkloadRun, after: WorkloadRun) -> Renders:
    def render(lot: Sequence[Candidate]) -> str:
        run = after if lot[0].label == AFTER else before
        return variants_text(run, [None] * len(lot))

    return render


# What a plan claims: the scores for which workloads were given other values.


def workload_key(benchmark: str, workload: Mapping[str, str]) -> WorkloadKey:
    """A workload of a plan, a database or a tree: `T{ct}` is `T`."""
    return benchmark, frozenset((axis_name(axis), value) for axis, value in workload.items())


def claims_of(plan: Plan | None, code: ChangedCode) -> Claims:
    """Scores of what a plan writes, as sure as the runs were by which it was chosen.

    Without a plan those that the comments of changed entries say; of these nothing else is known.
    """
    if plan is None:
        decided = {point: code.said.get(place) for point, place in _decided(code)}
        return {
            workload_key(name, dict(axes)): (score, score)
            for (name, axes), score in decided.items()
            if score is not None
        }
    chosen = {workload_key(one.algorithm, one.workload): one for one in plan.results}
    found = {}
    for action in plan.actions:
        if action.written and action.scores and not action.legacy:
            key, score = workload_key(action.benchmark, action.workload), action.scores[0]
            found[key] = score, score - _unsure(chosen.get(key))
    return found


def _decided(code: ChangedCode) -> Iterator[tuple[Point, EntryPlace]]:
    for point in code.different:
        place = (code.entries or {}).get(point)
        if place is not None:
            yield point, place


def _unsure(scored: ScoredWorkload | None) -> float:
    """By how much a score may be too high by the noise of its runs."""
    choice = scored.choice if scored else None
    if choice is None or choice.noise is None:
        return 0.0
    return NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * choice.noise / math.sqrt(choice.runs)


MADE = "// Made by policygen"
LARGEST = 16 << 20
"""Bytes; a header with all that CUB can be told is smaller."""
_NAMESPACE = re.compile(r"^namespace ([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)$", re.M)
_SELECTOR = re.compile(r"^struct ([A-Za-z_]\w*)$", re.M)
_CPP20 = re.compile(r"^// Needs CUB .* and C\+\+20\.$", re.M)


@dataclass(frozen=True, slots=True)
class EmittedSelectors:
    """What a header that `emit` made defines."""

    path: Path
    text: bytes
    namespace: str
    selectors: tuple[str, ...]
    std: int


# A header that `emit` made, prepared for measuring: a tree with it, and without it.


def read_emitted(path: Path) -> EmittedSelectors:
    """Reads such a header; others do not say what their selectors are for."""
    try:
        data = read_named(path, LARGEST)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    text = data.decode("utf-8", "replace")
    namespace, selectors = _NAMESPACE.search(text), tuple(_SELECTOR.findall(text))
    if not text.startswith(MADE) or namespace is None or not selectors:
        raise InputError(
            f"{path}: is no header of policy selectors that policygen made",
            "policygen emit and policygen tune make such headers.",
        )
    return EmittedSelectors(path, data, namespace[1], selectors, 20 if _CPP20.search(text) else 17)


def prepare_header(
    session: Session, path: Path, where: Filter, arch: str, toolchain: Toolchain
) -> PreparedChange:
    """The workloads that get another policy from a header than CUB selects by itself."""
    check_takes_selectors(session.cub)
    header = read_emitted(path)
    wanted = {one.point: one for one in chosen_workloads(session, where)}
    serves = [
        one
        for name in header.selectors
        for one in selectors_named(name, session.cub.bindings)
        if any(point[0] == one.benchmark.name for point in wanted)
    ]
    if not serves:
        raise InputError(f"{path}: has no selector for what -R and -a leave")
    own = ask_public(
        session.cub, [one.benchmark for one in serves], arch, toolchain, progress=session.progress
    )
    told = _asked(session, header, own, arch, toolchain)
    runs: dict[Point, Runs] = {}
    same, refused = [], {}
    for point, meaning in own.items():
        if point not in wanted:
            continue
        policy = as_policy(meaning.fields, told[point, arch].fields)
        if policy == meaning.base:
            same.append(point)
            continue
        try:
            found = runs_of(session.cub, wanted[point])
        except InputError as error:
            refused[point] = error.in_line
            continue
        candidate = Candidate(AFTER, policy)
        runs[point] = [(run, _task(point, run, meaning, candidate)) for run in found]
    before = f"{session.cub.title} by itself"
    return PreparedChange(before, f"with {path.name}", runs, tuple(same), refused, {})


def _asked(
    session: Session,
    header: EmittedSelectors,
    own: dict[Point, PublicWorkload],
    arch: str,
    toolchain: Toolchain,
) -> Policies:
    """What the header's selectors return, as the compiler says."""
    include = f"{shipped().tree.tunings}/{header.path.name}"
    tree = AskedTree(
        session.cub.version,
        (overlay(header.path.name, header.text), *session.cub.include_folders),
        {},
    )
    questions = list(_questions(header, own, include))
    return ask_policies(
        questions, tree, toolchain, archs=(arch,), std=header.std, progress=session.progress
    )


def _questions(
    header: EmittedSelectors, own: dict[Point, PublicWorkload], include: str
) -> Iterator[Question]:
    for meaning in {point[0]: one for point, one in own.items()}.values():
        one = meaning.selector
        arguments = f"<{', '.join(one.roles)}>" if one.roles else ""
        paths = tuple(path for path, _ in leaves(meaning.fields))
        selector = f"::{header.namespace}::{one.selector.name}{arguments}"
        yield Question(one.site, one.benchmark, selector, paths, includes=(include,))


def _task(
    point: Point, run: WorkloadRun, meaning: PublicWorkload, candidate: Candidate
) -> WorkloadToCompile:
    benchmark, axes = point
    policy = PublicPolicy(meaning.selector.selector.policy, meaning.fields)
    return WorkloadToCompile(
        in_words(benchmark, dict(axes)),
        meaning.arch,
        run.cub.include_folders,
        inputs_text(run),
        lambda lot: variants_text(run, [one.policy for one in lot], policy),
        (candidate,),
    )


@dataclass(frozen=True, slots=True)
class CompiledChanges:
    """Workloads that can be measured, and those that cannot."""

    changes: tuple[ChangedWorkload, ...]
    refused: Mapping[Point, str]
    runner: Path | None
    """What times calls; none where nothing can be measured."""


# Compiles both sides of changed workloads, for measuring.


def compile_changes(
    prepared: PreparedChange,
    where: Filter,
    compiler: MakesObjects,
    folder: Path,
    *,
    slots: int | None = None,
    progress: Progress | None = None,
) -> CompiledChanges:
    """Compiles each workload twice; a side that is refused costs its workload alone."""
    tasks = [(point, *run) for point, runs in prepared.runs.items() for run in runs]
    made = compile_workloads(
        [task for _, _, task in tasks], runner_text(), compiler, slots=slots, progress=progress
    )
    refused = dict(prepared.refused)
    found: dict[Point, ChangedWorkload] = {}
    runner = None
    for (point, run, _), one in zip(tasks, made, strict=True):
        if isinstance(one, PolicygenError):
            refused[point] = one.in_line
            continue
        runner = one.runner
        change = found.setdefault(point, ChangedWorkload(point, ()))
        if AFTER in one.failed:
            change.failed = Failure("compile", one.failed[AFTER])
        else:
            change.parts += (_part(run, one, where, folder),)
    for point, change in found.items():
        if change.failed is None and not any(part.points for part in change.parts):
            refused.setdefault(point, "-a leaves none of its runtime workloads")
    kept = tuple(one for point, one in found.items() if point not in refused)
    return CompiledChanges(kept, refused, runner)


def _part(run: WorkloadRun, made: CompiledWorkload, where: Filter, folder: Path) -> ChangePart:
    before, after = made.functions
    library = Path(before.library)
    again = folder / f"{library.stem}-again{library.suffix}"
    shutil.copyfile(library, again)
    return ChangePart(
        before,
        after,
        VariantFunction(COPY, str(again), before.function),
        tuple(runtime_spots(run, made.inputs, lambda values: is_meant(values, where))),
        declared_axes(run),
    )
