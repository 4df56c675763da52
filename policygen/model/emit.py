"""Policy selectors of a user's own, and what became of each workload of the databases."""

from typing import Literal

from policygen.model.arch import Arch
from policygen.model.base import Document, Record
from policygen.model.cub import Cub
from policygen.model.labels import Variant
from policygen.model.results import RunKey
from policygen.model.workload import in_words

EmitDecision = Literal["write", "keep", "fallback", "reject"]
"""What happens to a workload.

`write`: the selector returns a policy for it. `keep`: CUB's own has these values already.
`fallback`: no variant is better than base. `reject`: it cannot be expressed, for the reason told.
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
        """In words."""
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
