"""How benchmarks run on a GPU: the tables `[[run]]` of bindings."""

from typing import Literal, Self

from pydantic import Field, model_validator

from policygen.model.base import Record
from policygen.model.versions import Versioned, numbers

Form = Literal["environment", "storage", "stream"]
"""What a call takes besides its arguments."""


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
    same: str | None = None
    """A functor of two elements that says whether they are equal, in place of their bytes."""
    group: str | None = None
    """How many elements that stand together are a set; all without it."""
    beside: str | None = None
    """The buffer whose elements belong to those of a set, one to each."""
    modified: bool = False
    """Whether a run changes what it reads: its contents are made anew before each."""

    @model_validator(mode="after")
    def _fits_its_result(self) -> Self:
        if (self.result == "close") != (self.tolerance > 0):
            raise ValueError("a tolerance belongs to a result that is close")
        if (self.group or self.beside) and self.result != "set":
            raise ValueError("group and beside belong to a result that is a set")
        return self


class RunBinding(Versioned):
    """How benchmarks run on a GPU: their buffers, sizes and the call."""

    benchmarks: tuple[str, ...]
    subbench: str = "base"
    subbenches: tuple[str, ...] = ()
    """Several that run so, in its place."""
    variations: dict[str, str] = Field(default_factory=dict)
    """Sub-benchmark → what it has in front of `support`; they are all then."""
    workload: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Values of compile-time axes that it holds for; all without it."""
    words: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Runtime axis → its words, which units take as 0, 1, …"""
    sizes: dict[str, str] = Field(default_factory=dict)
    """Whole number → C++ in terms of runtime axes and of earlier ones."""
    axes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Runtime axis → its values, where they are not declared for the benchmark by `axes.toml`."""
    weights: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    """Of those values, where they are not as CCCL weighs them."""
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
    form: Form = "environment"
    """An environment behind the arguments, a stream, or a stream and the storage before them."""
    storage_below: str | None = None
    """Versions before this one take storage and a stream, and the same arguments otherwise."""
    stream_below: str | None = None
    """Versions before this one take a stream alone, and the same arguments otherwise."""
    environment: str = "env"
    """The environment that is given, in terms of `env`; else the stream, in terms of `stream`."""

    def form_in(self, version: str) -> Form:
        """What a version's call takes besides its arguments."""
        if self.storage_below and numbers(version) < numbers(self.storage_below):
            return "storage"
        if self.stream_below and numbers(version) < numbers(self.stream_below):
            return "stream"
        return self.form

    @property
    def every_subbench(self) -> tuple[str, ...]:
        """The sub-benchmarks that run so."""
        return tuple(self.variations) or self.subbenches or (self.subbench,)

    def of(self, subbench: str) -> Self:
        """Say how one of its sub-benchmarks runs."""
        own = self.variations.get(subbench, "")
        support = "\n".join(filter(None, [own.strip(), self.support.strip()]))
        alone = {"subbench": subbench, "subbenches": (), "variations": {}}
        return self.model_copy(update={**alone, "support": support})
