"""Planned changes of a tree for the results of a database, with reasons."""

import hashlib
from typing import Literal

from pydantic import Field

from policygen.model.arch import Arch
from policygen.model.benchmarks import ParameterRange
from policygen.model.records import Document, Record
from policygen.model.results import Rules, RunKey, ScoredVariant, ScoredWorkload
from policygen.model.trees import Cub
from policygen.model.tuning import Edit, Value
from policygen.model.workload import OfBenchmark, Variant

PlanDecision = Literal["update", "add", "fallback", "keep", "reject"]
"""The decision for a workload.

`update`: its entry gets new values. `add`: it gets an entry. `fallback`: no variant is better
than base, so it is left to the fallback. `keep`: it has these values already. `reject`: nothing is
written, for the stated reason.
"""
Reach = Literal["only", "later"]
"""Whether later architectures keep their values, or inherit the new ones."""
Collisions = Literal["best-worst", "split"]
Provenance = Literal["scores", "full"]
Legacy = Literal["leave", "warn", "update"]
"""What to do with struct families beside policy selectors."""


class Target(Record):
    """The entry that decides a workload."""

    header: str
    namespace: str
    family: str
    args: tuple[str, ...]
    line: int | None = None
    """Its current line; null if it is added."""


class NextBest(Record):
    """The best variant that an entry can express, if it cannot express the best of all."""

    variant: Variant
    scores: tuple[float, ...]
    """Score, minimum, mean and maximum."""
    best: Variant
    """The variant that cannot be expressed."""
    best_score: float

    @property
    def costs(self) -> float:
        """The loss in score: 0.011 is 1.1 %."""
        return 1 - self.scores[0] / self.best_score if self.best_score > 0 else 0.0


class Action(OfBenchmark, RunKey):
    """One workload of a database."""

    decision: PlanDecision
    reason: str
    variant: Variant | None = None
    scores: tuple[float, ...] | None = None
    """Score, minimum, mean and maximum."""
    target: Target | None = None
    before: dict[str, Value] | None = None
    after: dict[str, Value] | None = None
    databases: tuple[str, ...] = ()
    next_best: NextBest | None = None
    """The alternative that is or could be written if the best variant cannot be."""
    legacy: bool = False
    """Whether it is for a struct family next to a policy selector."""

    @property
    def written(self) -> bool:
        """Whether its values change."""
        return self.decision in {"update", "add"}


class Named(OfBenchmark):
    """A workload of the tree."""


class Reached(Named):
    """A workload that the change affects although it was not measured on that architecture."""

    arch: Arch
    kept: bool
    """Whether an entry of its own keeps its values."""
    between: bool = False
    """Whether the architecture has no known GPU and represents all up to the next known one."""
    legacy: bool = False
    """Whether the change affects it through a struct family."""


class Held(Named):
    """A workload that is not written, because the compiler shows a different effect."""

    reason: str
    legacy: bool = False


class Said(Named):
    """A workload whose entry sets a value that other entries leave to the policy."""

    shown: dict[str, Value]
    """Value → the policy's value for the other entries."""


class Unsaid(Said):
    """A workload whose entry cannot express the policy's value `shown`.

    Variants with a different value are excluded.
    """

    reason: str
    legacy: bool = False


class Joint(Record):
    """The variant for several workloads that one entry decides; empty if none fits."""

    workloads: tuple[Named, ...]
    variants: tuple[ScoredVariant, ...]
    """The variant of each workload, in order."""
    reason: str


class Instead(Joint):
    """The choice among the variants that an entry can express, if it cannot express the best."""

    legacy: bool = False
    """Whether it is for struct families."""


class PlannedEdit(Edit):
    """A splice and its file, relative to the folder of tuning headers."""

    path: str


class PlannedFile(Record):
    """A header that would change."""

    path: str
    edits: int
    before: str
    """SHA-256 of the header that the plan was made for."""
    after: str


def planned_file(path: str, edits: int, before: bytes, after: bytes) -> PlannedFile:
    """Describes a changed header by its digests before and after."""
    return PlannedFile(
        path=path,
        edits=edits,
        before=hashlib.sha256(before).hexdigest(),
        after=hashlib.sha256(after).hexdigest(),
    )


class Options(Record):
    """The options of the plan."""

    arch: Arch
    reach: Reach = "only"
    reaches: tuple[Arch, ...] = ()
    """Later architectures that may inherit the new values where others keep theirs."""
    collisions: Collisions = "best-worst"
    next_best: bool = False
    """Whether the next best variant is written if the best cannot be expressed."""
    force: bool = False
    """Whether results of GPUs of other architectures are accepted."""
    provenance: Provenance = "scores"
    date: str | None = None
    """The date in full provenance comments."""
    legacy: Legacy = "leave"
    rules: Rules = Rules()

    def keeps(self, arch: str) -> bool:
        """Returns whether a later architecture keeps its values."""
        return self.reach == "only" and arch not in self.reaches


class Given(Record):
    """The inputs of a plan besides its options, so that its command can be reproduced."""

    databases: tuple[str, ...]
    benches: tuple[str, ...] = ()
    base: str | None = None
    confirm: tuple[str, ...] = ()
    regex: str = ""
    axes: tuple[str, ...] = ()
    gpus: dict[str, Arch] = Field(default_factory=dict)
    """GPUs with an architecture given by the user."""
    measured_on: str | None = None


class Way(Record):
    """An option that would accept rejected results of a benchmark, and its costs.

    `emit`: a policy selector in a user's own program.
    """

    kind: Literal["emit"] = "emit"
    workloads: tuple[Named, ...]
    """Results that it would accept, checked by the compiler if the needed tree is available."""
    what: str
    """Description with the costs."""
    command: str
    """The command, ready to be typed."""


class Plan(Document):
    """What `policygen plan --json` prints, and what `policygen apply --plan` takes.

    Decisions and the resulting edits; `apply` recomputes the edits and compares.
    """

    format: Literal["policygen/plan/2"] = "policygen/plan/2"
    cub: Cub
    toolchain: str
    options: Options
    actions: tuple[Action, ...]
    files: tuple[PlannedFile, ...]
    edits: tuple[PlannedEdit, ...] = ()
    policies: tuple[str, ...] = ()
    """Links added to policy chains."""
    reached: tuple[Reached, ...] = ()
    """Other workloads of this and later architectures that the change affects."""
    remarks: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    """What the headers that change ask of the compiler: the proof is for its answers."""
    results: tuple[ScoredWorkload, ...] = ()
    """The measurements, each with its chosen variant."""
    spaces: dict[str, tuple[ParameterRange, ...]] = Field(default_factory=dict)
    """Benchmark → its search space, if the user gave one."""
    joint: tuple[Joint, ...] = ()
    """Choices for workloads that one entry decides together."""
    instead: tuple[Instead, ...] = ()
    """Choices for workloads whose best variant cannot be expressed."""
    held: tuple[Held, ...] = ()
    said: tuple[Said, ...] = ()
    """Workloads with entries that set values otherwise left to the policy."""
    unsaid: tuple[Unsaid, ...] = ()
    """Workloads whose variant must have the policy's value."""
    bounded: tuple[Named, ...] = ()
    """Workloads with returns that end before the next architecture."""
    given: Given | None = None
    """Its inputs; None in plans of older versions."""
    ways: tuple[Way, ...] = ()
    """Options that would accept rejected results, checked by the compiler if the plan was."""

    @property
    def written(self) -> tuple[Action, ...]:
        """The actions that write values."""
        return tuple(action for action in self.actions if action.written)


class Applied(Record):
    """What the journal keeps of an apply."""

    plan: Plan
    choices: tuple[int, ...] = ()
    """Their numbers in the store, to record their outcome."""
