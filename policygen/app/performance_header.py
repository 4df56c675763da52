"""A header that `emit` made, prepared for measuring: a tree with it, and without it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from policygen.app.emit import check_takes_selectors
from policygen.app.filters import Filter
from policygen.app.measuring import chosen_workloads
from policygen.app.performance_objects import PreparedChange, Runs
from policygen.app.session import Session
from policygen.dialects.selectors.aggregates import leaves
from policygen.dialects.user.overlay import as_policy
from policygen.dialects.user.public import selectors_named
from policygen.errors import InputError
from policygen.measure.compiling import Candidate, WorkloadToCompile
from policygen.measure.public import PublicWorkload, ask_public
from policygen.measure.runs import WorkloadRun, runs_of
from policygen.measure.units import PublicPolicy, inputs_text, variants_text
from policygen.model.policies import Policies, Question
from policygen.model.workload import Point, in_words
from policygen.opening import read_named
from policygen.performance.changes import AFTER
from policygen.proof.overlay import overlay
from policygen.proof.policies import ask_policies
from policygen.proof.probe import AskedTree
from policygen.proof.toolchain import Toolchain
from policygen.tree.manifest import shipped

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
