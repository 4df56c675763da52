"""A user's own policy selectors, and the decision for each workload of the databases."""

from typing import Literal

from policygen.model.arch import Arch
from policygen.model.plans import Action
from policygen.model.records import Document, Record
from policygen.model.results import RunKey
from policygen.model.searches import Searched
from policygen.model.selection import Effect
from policygen.model.trees import Cub
from policygen.model.workload import Variant, in_words

EmitDecision = Literal["write", "keep", "fallback", "reject"]
"""The decision for a workload.

`write`: the selector returns a policy for it. `keep`: CUB's own policy has these values already.
`fallback`: no variant is better than base. `reject`: it cannot be expressed, for the stated reason.
"""


class EmitAction(RunKey):
    """One workload of a database."""

    benchmark: str
    workload: dict[str, str]
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

    @property
    def name(self) -> str:
        """The workload in words."""
        return in_words(self.benchmark, self.workload)


class EmitReturn(Record):
    """One policy that a selector returns, and for which arguments."""

    when: tuple[dict[str, str], ...]
    """Template parameter → the type, value or size in bytes; one of these."""
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
    """CUB's own selector, which answers for all else."""
    parameters: tuple[str, ...]
    """`typename AccumT`, `int NumChannels`."""
    returns: tuple[EmitReturn, ...]


class EmitProof(Record):
    """What the compiler said of the header."""

    archs: tuple[Arch, ...]
    compared: int
    """Workloads times architectures."""
    changed: int
    """Those that get another policy than CUB's own."""


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
    """Workloads that were not measured, and have the same template arguments as ones that were."""
    proof: EmitProof | None = None
    remarks: tuple[str, ...] = ()
    text: str = ""
    """The header."""


# The policy header of a user's kernel


class KernelHeader(Record):
    """A policy header, what was decided for it, and what the compiler says of that."""

    path: str
    arch: Arch
    is_new: bool
    """Whether there was none."""
    actions: tuple[Action, ...]
    """By class of sizes."""
    effect: Effect | None
    """None where nothing changes."""
    diff: str
    text: str
    """The whole header."""

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


class TunedProgram(Document):
    """What `policygen tune --json` prints at last."""

    format: Literal["policygen/tune/1"] = "policygen/tune/1"
    searched: Searched
    emitted: Emitted | None
    """Nothing where no variant is better than what CUB selects."""
    kernel: KernelHeader | None = None
    """Of a kernel of one's own, its policy header."""
    header: str | None
    """Where it was written."""
    example: str | None = None
    """A program that calls the algorithm with and without it, of a workload of one's own."""
