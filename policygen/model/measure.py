"""What `policygen measure --compile-only` prints: which variants there are, and which compile."""

from typing import Literal

from pydantic import Field

from policygen.model.arch import Arch
from policygen.model.base import Document, Record
from policygen.model.cub import Cub
from policygen.model.labels import Variant
from policygen.model.workload import OnArch

How = Literal["policies", "headers"]
"""What a variant is: a policy that the algorithm is given, or a change of CUB's own header."""


class FailedVariant(Record):
    """A variant that cannot be measured."""

    variant: Variant
    reason: str
    """What policygen says of it, or the compiler."""


class CompiledSpace(OnArch):
    """The variants of a workload."""

    how: How
    variants: int
    """Those of the search space, or those that were named."""
    valid: int
    """Those that CUB's limits and the shared memory of the architecture allow."""
    distinct: int
    """Those of them whose policies differ."""
    asked: int
    """The distinct ones that were compiled, or were to be."""
    compiled: int
    base: tuple[Variant, ...] = ()
    """Those that are what CUB selects by itself; they need no compile."""
    failed: tuple[FailedVariant, ...] = ()
    dropped: dict[str, int] = Field(default_factory=dict)
    """Rule → how many variants it forbids, of those that were looked at one by one."""


class Unmeasured(OnArch):
    """A workload that cannot be measured."""

    reason: str


class MeasureCompile(Document):
    """The document."""

    format: Literal["policygen/measure-compile/1"] = "policygen/measure-compile/1"
    cub: Cub
    toolchain: str
    arch: Arch
    seed: int | None = None
    """By which variants were drawn, where not all distinct ones were compiled."""
    workloads: tuple[CompiledSpace, ...]
    unmeasured: tuple[Unmeasured, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Whether all that was asked for compiles."""
        return not self.unmeasured and not any(one.failed for one in self.workloads)
