"""How benchmarks run on a GPU: the tables `[[run]]` of bindings."""

from typing import Literal, Self

from pydantic import Field, model_validator

from policygen.model.base import Record
from policygen.model.versions import Versioned


class BufferBinding(Record):
    """Memory of the GPU that a run reads or writes."""

    type: str
    """Of its elements, in C++ in terms of roles and of `axis::T`."""
    count: str
    """How many, in C++ in terms of runtime axes and of sizes."""
    fill: str | None = None
    """A call that makes its contents as the benchmark has them; none for what is only written."""
    exact: str | None = None
    """One that makes contents with which results are equal bit for bit, where `fill`'s are not."""
    result: Literal["equal", "close", "set"] | None = None
    """How it is compared with what base makes of it: `set` in any order."""
    tolerance: float = Field(default=0, ge=0, le=1)
    """How far from base's a result may be, as a share of it."""
    modified: bool = False
    """Whether a run changes what it reads: its contents are made anew before each."""

    @model_validator(mode="after")
    def _close_needs_a_tolerance(self) -> Self:
        if (self.result == "close") != (self.tolerance > 0):
            raise ValueError("a tolerance belongs to a result that is close")
        return self


class RunBinding(Versioned):
    """How benchmarks run on a GPU: their buffers, sizes and the call."""

    benchmarks: tuple[str, ...]
    subbench: str = "base"
    workload: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Values of compile-time axes that it holds for; all without it."""
    sizes: dict[str, str] = Field(default_factory=dict)
    """Whole number → C++ in terms of runtime axes and of earlier ones."""
    skip: str | None = None
    """When the benchmark skips a runtime workload."""
    buffers: dict[str, BufferBinding]
    includes: tuple[str, ...] = ()
    support: str = ""
    """C++ declarations before the calls: operators."""
    setup: str = ""
    """C++ statements before the call."""
    function: str
    """`cub::DeviceScan::ExclusiveSum`."""
    arguments: str
    """Between the temporary storage, or before the environment: `in, out, num_items`."""
    form: Literal["environment", "storage"] = "environment"
    """Whether an environment is behind the arguments, or a stream, and the storage before them."""
    environment: str = "env"
    """The environment that is given, in terms of `env`."""
