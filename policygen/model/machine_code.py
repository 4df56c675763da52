"""Machine code of kernels, and how a change of the headers affects it."""

from typing import Literal

from pydantic import Field

from policygen.model.arch import Arch
from policygen.model.records import Document, Record
from policygen.model.trees import Cub
from policygen.model.workload import in_words

KernelClass = Literal["moved", "different"]
"""`moved`: the same instructions with other registers or in another order."""


Side = Literal["before", "after"]
Units = Literal["calls", "benchmarks"]
"""What was compiled: a call of the device API for each workload, or CCCL's own benchmarks."""


class Kernel(Record):
    """One kernel, without what is no code: addresses, encodings, padding."""

    name: str
    """As the linker knows it."""
    code: tuple[str, ...]
    """Its instructions; the targets of branches are distances. A digest of them stands for them
    where nothing needs to be shown."""
    resources: dict[str, int]
    """What `cuobjdump -res-usage` tells: `REG`, `SHARED`, `STACK`."""
    max_threads: int | None = None
    """The launch bound: threads of a block."""

    @property
    def registers(self) -> int:
        """Registers per thread."""
        return self.resources.get("REG", 0)


class Dump(Document):
    """The kernels that one workload makes for one architecture."""

    format: Literal["policygen/sass-dump/1"] = "policygen/sass-dump/1"
    benchmark: str
    workload: dict[str, str]
    arch: Arch
    toolchain: str
    kernels: tuple[Kernel, ...] = Field(min_length=1)


class DumpIndex(Document):
    """What a folder of reference dumps holds, and what they were made with."""

    format: Literal["policygen/sass-dumps/1"] = "policygen/sass-dumps/1"
    version: str
    """Of CUB."""
    toolchain: str
    units: Units = "calls"
    files: tuple[str, ...]


class KernelPlace(Record):
    """Which kernel, of which workload, on which architecture."""

    benchmark: str
    workload: dict[str, str]
    arch: Arch
    kernel: str
    """As a person reads it."""
    as_written: bool = False
    """Whether other values were written for its workload: a difference is what was meant."""

    @property
    def where(self) -> str:
        """The place in words: `cub.bench.reduce.sum T=I8 OffsetT=I32 on sm90`."""
        return f"{in_words(self.benchmark, self.workload)} on {self.arch}"


class Renamed(KernelPlace):
    """A kernel with equal code under another name."""

    name_before: str
    name_after: str


class Different(KernelPlace):
    """A kernel whose code or resources are not what they were."""

    kind: KernelClass
    summary: str
    registers: tuple[int, int]
    """Before and after."""
    diff: tuple[str, ...]


class Refused(Record):
    """A workload that a side does not compile for."""

    benchmark: str
    workload: dict[str, str]
    arch: Arch
    side: Side
    message: str


class SassRow(Record):
    """A benchmark on an architecture: how many of its kernels are what they were."""

    benchmark: str
    arch: Arch
    workloads: int
    identical: int
    """Workloads whose preprocessed source is the same on both sides: they are not compiled."""
    kernels: int
    equal: int
    renamed: int
    moved: int
    different: int
    as_written: int = 0
    """Not what they were, of workloads that other values were written for."""
    only_before: int
    only_after: int
    refused: int


class SassCompiles(Document):
    """What `policygen verify-sass --dry-run --json` prints: what would be compiled."""

    format: Literal["policygen/sass-compiles/1"] = "policygen/sass-compiles/1"
    base: str
    """What it would be compared with, in words."""
    toolchain: str
    archs: tuple[Arch, ...]
    workloads: int
    """Times architectures."""
    changed: int
    """Of them those that get other values: they come first."""
    untouched: int
    """Others that the change cannot touch; a remark says how it is known."""
    units: int
    """What is compiled at most: of both sides, without what is known from before."""
    at_once: int
    minutes: float
    """How long it would take, by what a unit takes."""
    remarks: tuple[str, ...] = ()


class VerifySass(Document):
    """What `policygen verify-sass --json` prints."""

    format: Literal["policygen/verify-sass/1"] = "policygen/verify-sass/1"
    cub: Cub
    content: str = ""
    """A digest of the tree's headers: the same in all documents of one tree."""
    base: str
    """What it was compared with, in words."""
    toolchain: str
    units: Units = "calls"
    remarks: tuple[str, ...] = ()
    archs: tuple[Arch, ...]
    workloads: int
    """Compared, times architectures."""
    identical: int
    """Of them those whose preprocessed source is the same on both sides: they are not compiled."""
    untouched: int = 0
    """Others that the change cannot touch, times architectures; a remark says how it is known."""
    rows: tuple[SassRow, ...]
    kernels: int
    """Of the workloads that were compiled."""
    equal: int
    renamed: int
    renamings: tuple[Renamed, ...] = ()
    different: tuple[Different, ...] = ()
    allow_moved: bool = False
    only_before: tuple[KernelPlace, ...] = ()
    only_after: tuple[KernelPlace, ...] = ()
    refused: tuple[Refused, ...] = ()

    @property
    def unmeant(self) -> tuple[Different, ...]:
        """Kernels that differ although nothing was written for their workload."""
        return tuple(kernel for kernel in self.different if not kernel.as_written)

    @property
    def changed(self) -> bool:
        """Whether anything changed that was not written."""
        relevant = [
            kernel
            for kernel in self.different
            if kernel.kind == "different" or not self.allow_moved
        ]
        places = (*relevant, *self.only_before, *self.only_after)
        return any(not place.as_written for place in places)
