"""A change of a tree's headers, prepared for measuring."""

from collections.abc import Sequence
from dataclasses import dataclass

from policygen.app.base import Base, find_base, no_base
from policygen.app.changed_code import find_changed_code
from policygen.app.filters import Filter
from policygen.app.performance_claims import claims_of
from policygen.app.performance_objects import PreparedChange, Runs
from policygen.app.session import Session
from policygen.errors import InputError
from policygen.measure.compiling import Candidate, Renders, WorkloadToCompile
from policygen.measure.runs import WorkloadRun, runs_of
from policygen.measure.units import inputs_text, variants_text
from policygen.model.workload import Point, in_words
from policygen.performance.changes import AFTER
from policygen.proof.toolchain import Toolchain
from policygen.proof.unit import Workload

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
