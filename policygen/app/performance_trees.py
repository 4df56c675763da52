"""Prepares a change of a tree's headers for measuring."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

from policygen.app.change import Base, find_base_tree
from policygen.app.comparison import ChangedCode, find_changed_code
from policygen.app.filters import Filter
from policygen.app.measured_workloads import chosen_workloads
from policygen.app.session import Session
from policygen.errors import InputError
from policygen.gpu.changes import AFTER, Claims, PreparedChange, Runs, workload_key
from policygen.gpu.compiling import (
    Candidate,
    Renders,
    WorkloadToCompile,
)
from policygen.gpu.opened import PublicWorkload, ask_public, to_compile
from policygen.gpu.statistics import CONFIDENCE
from policygen.gpu.units import WorkloadRun, inputs_text, runs_of, variants_text
from policygen.headers.selectors.functions import leaves
from policygen.headers.user.policies import as_policy, check_takes_selectors, selectors_named
from policygen.model.plans import Plan
from policygen.model.results import ScoredWorkload
from policygen.model.tuning import Policies, Question
from policygen.model.workload import Point, point_name
from policygen.opening import read_named
from policygen.proof.ask import ask_policies
from policygen.proof.probe import QueriedTree
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import Workload, overlay
from policygen.trees.manifest import shipped

Both = tuple[Workload, Workload]


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
    """Prepares the workloads whose machine code differs from the base."""
    before, _ = find_base_tree(session, base)
    code = find_changed_code(
        session, before, where, arch, toolchain, everything=everything, jobs=jobs
    )
    sides, refused = _ChangeSides(before, session, arch), dict(code.refused)
    runs: dict[Point, Runs] = {}
    for point, workloads in code.different.items():
        try:
            runs[point] = sides.runs(point, workloads)
        except InputError as error:
            refused[point] = error.in_line
    claims = claims_of(before.plan, code)
    after = session.cub.title
    return PreparedChange(
        before.label, after, runs, code.same, refused, claims, code.remarks, code.entries
    )


@dataclass(frozen=True, slots=True)
class _ChangeSides:
    """The trees before and after a change."""

    base: Base
    session: Session
    arch: str

    def runs(self, point: Point, workloads: Both) -> Runs:
        """Returns how a workload runs on each side, by sub-benchmark."""
        assert self.base.cub is not None
        sides = runs_of(self.base.cub, workloads[0]), runs_of(self.session.cub, workloads[1])
        return [
            (before, self._task(point, before, after)) for before, after in zip(*sides, strict=True)
        ]

    def _task(self, point: Point, before: WorkloadRun, after: WorkloadRun) -> WorkloadToCompile:
        return WorkloadToCompile(
            point_name(point),
            self.arch,
            self.base.includes,
            inputs_text(before),
            _renders(before, after),
            (Candidate(AFTER, None, self.session.cub.include_folders),),
        )


def _renders(before: WorkloadRun, after: WorkloadRun) -> Renders:
    def render(candidates: Sequence[Candidate]) -> str:
        run = after if candidates[0].label == AFTER else before
        return variants_text(run, [None] * len(candidates))

    return render


# The scores that a plan claims for the workloads that it changed.


def claims_of(plan: Plan | None, code: ChangedCode) -> Claims:
    """Returns the scores of what a plan writes, with a margin for the noise of the runs.

    Without a plan, uses the scores in the comments of changed entries, whose noise is unknown.
    """
    if plan is None:
        places = code.entries or {}
        return {
            workload_key(name, dict(axes)): (code.said[place], code.said[place])
            for name, axes in code.different
            if (place := places.get((name, axes))) is not None and place in code.said
        }
    chosen = {workload_key(scored.algorithm, scored.workload): scored for scored in plan.results}
    claims = {}
    for action in plan.written:
        if action.scores and not action.legacy:
            key, score = workload_key(action.benchmark, action.workload), action.scores[0]
            claims[key] = score, score - _score_uncertainty(chosen.get(key))
    return claims


def _score_uncertainty(scored: ScoredWorkload | None) -> float:
    """Returns how much a score may be too high because of the noise of its runs."""
    choice = scored.choice if scored else None
    if choice is None or choice.noise is None:
        return 0.0
    return NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * choice.noise / math.sqrt(choice.runs)


MADE = "// Made by policygen"
LARGEST = 16 << 20
"""Maximum size in bytes; a header with all the selectors of CUB is smaller."""
_NAMESPACE = re.compile(r"^namespace ([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)$", re.M)
_SELECTOR = re.compile(r"^struct ([A-Za-z_]\w*)$", re.M)
_CPP20 = re.compile(r"^// Needs CUB .* and C\+\+20\.$", re.M)


@dataclass(frozen=True, slots=True)
class EmittedSelectors:
    """What a header made by `emit` defines."""

    path: Path
    text: bytes
    namespace: str
    selectors: tuple[str, ...]
    std: int


# Comparing a tree with and without a header made by `emit`.


def read_emitted(path: Path) -> EmittedSelectors:
    """Reads a header made by `emit`. Other headers do not say what their selectors are for."""
    data = read_named(path, LARGEST)
    text = data.decode("utf-8", "replace")
    namespace, selectors = _NAMESPACE.search(text), tuple(_SELECTOR.findall(text))
    if not text.startswith(MADE) or namespace is None or not selectors:
        raise InputError(
            f"{path}: not a policy selector header written by policygen",
            "policygen emit and policygen tune write such headers.",
        )
    return EmittedSelectors(path, data, namespace[1], selectors, 20 if _CPP20.search(text) else 17)


def prepare_header(
    session: Session, path: Path, where: Filter, arch: str, toolchain: Toolchain
) -> PreparedChange:
    """Prepares the workloads for which a header selects a different policy than CUB itself."""
    check_takes_selectors(session.cub)
    header = read_emitted(path)
    workloads = {workload.point: workload for workload in chosen_workloads(session, where)}
    selectors = [
        selector
        for name in header.selectors
        for selector in selectors_named(name, session.cub.bindings)
        if any(point[0] == selector.benchmark.name for point in workloads)
    ]
    if not selectors:
        raise InputError(f"{path}: has no selector for the workloads chosen by -R and -a")
    meanings = ask_public(
        session.cub,
        [selector.benchmark for selector in selectors],
        arch,
        toolchain,
        progress=session.progress,
    )
    policies = _header_policies(session, header, meanings, arch, toolchain)
    runs: dict[Point, Runs] = {}
    unchanged, refused = [], {}
    for point, meaning in meanings.items():
        if point not in workloads:
            continue
        policy = as_policy(meaning.fields, policies[point, arch].fields)
        if policy == meaning.base:
            unchanged.append(point)
            continue
        try:
            workload_runs = runs_of(session.cub, workloads[point])
        except InputError as error:
            refused[point] = error.in_line
            continue
        candidates = (Candidate(AFTER, policy),)
        runs[point] = [(run, to_compile(meaning, run, candidates)) for run in workload_runs]
    before = f"{session.cub.title} by itself"
    return PreparedChange(before, f"with {path.name}", runs, tuple(unchanged), refused, {})


def _header_policies(
    session: Session,
    header: EmittedSelectors,
    meanings: dict[Point, PublicWorkload],
    arch: str,
    toolchain: Toolchain,
) -> Policies:
    """Asks the compiler what the header's selectors return."""
    include = f"{shipped().tree.tunings}/{header.path.name}"
    tree = QueriedTree(
        session.cub.bindings.at(session.cub.version),
        (overlay(header.path.name, header.text), *session.cub.include_folders),
        {},
    )
    questions = list(_questions(header, meanings, include))
    return ask_policies(
        questions, tree, toolchain, archs=(arch,), std=header.std, progress=session.progress
    )


def _questions(
    header: EmittedSelectors, meanings: dict[Point, PublicWorkload], include: str
) -> Iterator[Question]:
    for meaning in {
        point[0]: public_workload for point, public_workload in meanings.items()
    }.values():
        bound_selector = meaning.selector
        paths = tuple(path for path, _ in leaves(meaning.fields))
        name = bound_selector.selector.name
        selector = f"::{header.namespace}::{name}{bound_selector.instantiated}"
        yield Question(
            bound_selector.site, bound_selector.benchmark, selector, paths, includes=(include,)
        )
