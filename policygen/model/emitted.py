"""A user's own policy selectors, and the decision for each workload of the databases."""

from typing import Literal

from policygen.model.arch import Arch
from policygen.model.overlays import OverlayMade
from policygen.model.plans import Action
from policygen.model.records import Document, Record
from policygen.model.results import Interval, RunKey
from policygen.model.searches import Searched
from policygen.model.selection import Effect
from policygen.model.trees import Cub
from policygen.model.workload import OfBenchmark, Variant

EmitDecision = Literal["write", "keep", "fallback", "reject"]
"""The decision for a workload.

`write`: the selector returns a policy for it. `keep`: CUB's own policy has these values already.
`fallback`: no variant is better than base. `reject`: it cannot be expressed, for the stated reason.
"""


class EmitAction(OfBenchmark, RunKey):
    """One workload of a database."""

    decision: EmitDecision
    reason: str
    variant: Variant | None = None
    scores: tuple[float, ...] | None = None
    """Score, minimum, mean and maximum."""
    selector: str | None = None
    before: dict[str, str] | None = None
    """The fields of CUB's own policy, spelled as in C++."""
    after: dict[str, str] | None = None
    databases: tuple[str, ...] = ()


class EmitReturn(Record):
    """One policy that a selector returns, with the matching template arguments."""

    when: tuple[dict[str, str], ...]
    """Template parameter → its type, value or size in bytes."""
    labels: tuple[str, ...]
    """`ipt_16.tpb_512.ipv_2 1.061295  1.000000  1.065478  1.167139`."""
    values: dict[str, str]
    guard: str | None = None
    """The preprocessor condition under which these types exist."""


class EmitSelector(Record):
    """One policy selector of the header."""

    name: str
    policy: str
    default: str
    """CUB's own selector, which handles everything else."""
    parameters: tuple[str, ...]
    """`typename AccumT`, `int NumChannels`."""
    returns: tuple[EmitReturn, ...]


class EmitProof(Record):
    """The compiler's answers about the header."""

    archs: tuple[Arch, ...]
    compared: int
    """Workloads times architectures."""
    changed: int
    """Those that get a policy other than CUB's own."""


class Emitted(Document):
    """What `policygen emit --json` prints."""

    format: Literal["policygen/emit/1"] = "policygen/emit/1"
    cub: Cub
    toolchain: str
    arch: Arch
    std: Literal[17, 20]
    namespace: str
    selectors: tuple[EmitSelector, ...]
    actions: tuple[EmitAction, ...]
    shared: tuple[str, ...] = ()
    """Workloads that were not measured but have the same template arguments as measured ones."""
    proof: EmitProof | None = None
    remarks: tuple[str, ...] = ()
    text: str = ""
    """The text of the header."""


# The policy header of a user's kernel


class KernelHeader(Record):
    """A policy header, its decisions, and the compiler's proof."""

    path: str
    arch: Arch
    is_new: bool
    """Whether the header is new."""
    actions: tuple[Action, ...]
    """The decisions by size class."""
    effect: Effect | None
    """Null if nothing changes."""
    diff: str
    text: str
    """The text of the complete header."""

    @property
    def changed(self) -> bool:
        """Whether anything is written."""
        return bool(self.diff) and any(action.written for action in self.actions)

    @property
    def has_already(self) -> bool:
        """Whether it already has the faster values, so that nothing is written."""
        is_kept = any(action.decision == "keep" and action.variant for action in self.actions)
        return not self.is_new and not self.changed and is_kept


# The result of tuning a program: the search, and the header made from it


class TuneOutcome(OfBenchmark):
    """What the rules decide for a workload."""

    variant: Variant | None
    """The variant in the header; null where base stays."""
    best: Variant | None = None
    """The finalist with the highest score."""
    score: float | None = None
    """Its score."""
    interval: Interval | None = None
    least: float | None = None
    """Its ratio on its worst runtime workload."""
    least_score: float
    """What a tuning must gain."""
    reason: str
    """Why it was chosen, or why base stays."""
    passed_over: str | None = None
    """Why the best finalist is not in the header."""


class TunedProgram(Document):
    """What `policygen tune --json` prints at the end."""

    format: Literal["policygen/tune/1"] = "policygen/tune/1"
    searched: Searched
    emitted: Emitted | None
    """Null if no variant beats CUB's own choice."""
    kernel: KernelHeader | None = None
    """The policy header of your own kernel."""
    outcomes: tuple[TuneOutcome, ...] = ()
    """What was decided for each workload; empty for your own kernel."""
    overlay: OverlayMade | None = None
    """With `--overlay`, the folder of changed tuning headers."""
    header: str | None
    """The path of the written header."""
    example: str | None = None
    """For your own workload: a program that calls the algorithm with and without the header."""
