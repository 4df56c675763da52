"""Planned changes of a tree for the results of a database, with reasons."""

from typing import Literal

from pydantic import Field

from policygen.model.arch import Arch
from policygen.model.benchmarks import ParameterRange
from policygen.model.edits import Edit
from policygen.model.records import Document, Record
from policygen.model.results import Rules, RunKey, ScoredVariant, ScoredWorkload
from policygen.model.trees import Cub
from policygen.model.tuning import Value
from policygen.model.workload import Point, Variant, point_of

PlanDecision = Literal["update", "add", "fallback", "keep", "reject"]
"""The decision for a workload.

`update`: its entry gets other values. `add`: it gets an entry. `fallback`: no variant is better
than base, so it keeps what it had. `keep`: it has these values already. `reject`: it stays as it
is, for the stated reason.
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
    """Where it stands now; none for one that is added."""


class NextBest(Record):
    """The best variant that an entry can say, where it cannot say the best one of all."""

    variant: Variant
    scores: tuple[float, ...]
    """Score, minimum, mean and maximum."""
    best: Variant
    """The one that cannot be said."""
    best_score: float

    @property
    def costs(self) -> float:
        """The loss in score: 0.011 is 1.1 %."""
        return 1 - self.scores[0] / self.best_score if self.best_score > 0 else 0.0


class Action(RunKey):
    """One workload of a database."""

    benchmark: str
    workload: dict[str, str]
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
    """What could be written, or is, where the best variant cannot be."""
    legacy: bool = False
    """Whether it is for a struct family that stands beside a policy selector."""

    @property
    def point(self) -> Point:
        """The workload as a key."""
        return point_of(self.benchmark, self.workload)

    @property
    def written(self) -> bool:
        """Whether it gets other values."""
        return self.decision in {"update", "add"}


class Named(Record):
    """A workload of the tree."""

    benchmark: str
    workload: dict[str, str]

    @property
    def point(self) -> Point:
        """The workload as a key."""
        return point_of(self.benchmark, self.workload)


class Reached(Named):
    """A workload that the change reaches, and that was not measured on that architecture."""

    arch: Arch
    kept: bool
    """Whether an entry of its own keeps what it had."""
    between: bool = False
    """Whether no GPU is known of the arch: it stands for those up to the next that is known."""
    legacy: bool = False
    """Whether it is a struct family that is reached."""


class Held(Named):
    """A workload that is not written, as the compiler says that it has another effect."""

    reason: str
    legacy: bool = False


class Said(Named):
    """A workload whose entry says more than its family's others, which leave it to the policy."""

    shown: dict[str, Value]
    """Value → what the policy gives those others."""


class Unsaid(Said):
    """A workload whose entry has no place for what its policy has: `shown`.

    It gets no variant that wants otherwise.
    """

    reason: str
    legacy: bool = False


class Joint(Record):
    """What serves several workloads that one entry decides; no variant where none does."""

    workloads: tuple[Named, ...]
    variants: tuple[ScoredVariant, ...]
    """In the order of the workloads."""
    reason: str


class Instead(Joint):
    """The same where an entry cannot say the best variant: what is best of those that it can."""

    legacy: bool = False
    """Whether it is for struct families."""


class PlannedEdit(Edit):
    """A splice, and the file that it is made in, below the folder of tuning headers."""

    path: str


class PlannedFile(Record):
    """A header that would change."""

    path: str
    edits: int
    before: str
    """SHA-256 of what the plan was made for."""
    after: str


class Options(Record):
    """How the plan was made."""

    arch: Arch
    reach: Reach = "only"
    collisions: Collisions = "best-worst"
    narrow: bool = False
    next_best: bool = False
    """Whether the next best variant is written where the best one cannot be said."""
    force: bool = False
    """The GPU was not asked to fit the architecture."""
    provenance: Provenance = "scores"
    date: str | None = None
    """The day that full provenance names."""
    legacy: Legacy = "leave"
    rules: Rules = Rules()


class Given(Record):
    """What a plan was asked for besides its options, so that the command can be told again."""

    databases: tuple[str, ...]
    benches: tuple[str, ...] = ()
    base: str | None = None
    confirm: tuple[str, ...] = ()
    regex: str = ""
    axes: tuple[str, ...] = ()
    gpus: dict[str, Arch] = Field(default_factory=dict)
    """Whose architecture the user said."""
    measured_on: str | None = None


class Way(Record):
    """What would take results of a benchmark that are rejected, and what that costs.

    `split`: an entry for each type. `emit`: a policy selector in a user's own program.
    """

    kind: Literal["split", "emit"]
    workloads: tuple[Named, ...]
    """Those that it takes: the compiler was asked, where the tree that it needs is here."""
    what: str
    """In words, with the costs."""
    command: str
    """It can be typed as it stands."""


class Plan(Document):
    """What `policygen plan --json` prints, and what `policygen apply --plan` takes.

    What was decided, and what comes of it: `apply` makes the latter again, and compares.
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
    """Workloads of this and of later architectures that the change reaches besides."""
    remarks: tuple[str, ...] = ()
    results: tuple[ScoredWorkload, ...] = ()
    """What was measured, each with the variant that was chosen."""
    spaces: dict[str, tuple[ParameterRange, ...]] = Field(default_factory=dict)
    """Benchmark → what was searched, where the user said so."""
    joint: tuple[Joint, ...] = ()
    """What was chosen for workloads that one entry decides."""
    instead: tuple[Instead, ...] = ()
    """What was chosen for workloads whose best variant cannot be said."""
    held: tuple[Held, ...] = ()
    said: tuple[Said, ...] = ()
    """Workloads whose entries say what the policy has otherwise."""
    unsaid: tuple[Unsaid, ...] = ()
    """Workloads whose variant has to be what the policy has otherwise."""
    bounded: tuple[Named, ...] = ()
    """Workloads whose returns end before the next architecture."""
    given: Given | None = None
    """What it was asked for; none in plans of before."""
    ways: tuple[Way, ...] = ()
    """What would take what is rejected; the compiler was asked, where it was of the plan."""


class Applied(Record):
    """What the journal keeps of an apply."""

    plan: Plan
    choices: tuple[int, ...] = ()
    """Their numbers in the store, for what becomes of them."""
