"""Machine code of kernels, and how a change of the headers affects it."""

from collections.abc import Mapping
from math import ceil
from typing import Literal

from pydantic import Field

from policygen.errors import plural
from policygen.model.arch import Arch
from policygen.model.records import Document, Record
from policygen.model.trees import Cub, Library
from policygen.model.workload import OnArch

KernelClass = Literal["moved", "different"]
"""`moved`: the same instructions with other registers or in another order."""
Side = Literal["before", "after"]
CODE: Mapping[Library, str] = {"cub": "SASS", "rocprim": "ISA"}
"""The usual name of a library's machine code."""
Units = Literal["calls", "benchmarks"]
"""What was compiled: a device API call per workload, or CCCL's own benchmarks."""


class Kernel(Record):
    """One kernel, without addresses, encodings and padding."""

    name: str
    """The linker's name of the kernel."""
    code: tuple[str, ...]
    """Its instructions, with branch targets as distances; a digest if they need not be shown."""
    resources: dict[str, int]
    """The output of `cuobjdump -res-usage`: `REG`, `SHARED`, `STACK`."""
    max_threads: int | None = None
    """The launch bound: threads of a block."""

    @property
    def registers(self) -> int:
        """Registers per thread."""
        return self.resources.get("REG", 0)

    @property
    def resident(self) -> int | None:
        """Threads of its blocks for which a multiprocessor has registers; None if not known."""
        if not self.max_threads or not self.registers:
            return None
        of_block = 8 * ceil(self.registers / 8) * 32 * ceil(self.max_threads / 32)
        return min(2048, 65536 // of_block * self.max_threads)


class Dump(Document):
    """The kernels of one workload on one architecture."""

    format: Literal["policygen/sass-dump/1"] = "policygen/sass-dump/1"
    benchmark: str
    workload: dict[str, str]
    arch: Arch
    toolchain: str
    kernels: tuple[Kernel, ...] = Field(min_length=1)


class DumpIndex(Document):
    """The contents of a folder of reference dumps, and the tools that made them."""

    format: Literal["policygen/sass-dumps/1"] = "policygen/sass-dumps/1"
    version: str
    """The version of CUB."""
    toolchain: str
    units: Units = "calls"
    files: tuple[str, ...]


class KernelPlace(OnArch):
    """Kernel, workload and architecture."""

    kernel: str
    """The demangled name of the kernel."""
    as_written: bool = False
    """Whether new values were written for its workload, so that a difference is intended."""

    @property
    def where(self) -> str:
        """The place in words: `cub.bench.reduce.sum T=I8 OffsetT=I32 on sm90`."""
        return f"{self.name} on {self.arch}"


class Renamed(KernelPlace):
    """A kernel with equal code under another name."""

    name_before: str
    name_after: str


class Different(KernelPlace):
    """A kernel with different code or resources."""

    kind: KernelClass
    summary: str
    registers: tuple[int, int]
    """Registers before and after."""
    diff: tuple[str, ...]


class Refused(OnArch):
    """A workload that does not compile on one side."""

    side: Side
    message: str


class SassRow(Record):
    """A benchmark on an architecture, with the number of unchanged kernels."""

    benchmark: str
    arch: Arch
    workloads: int
    identical: int
    """Workloads with the same preprocessed source on both sides, which are not compiled."""
    kernels: int
    equal: int
    renamed: int
    moved: int
    different: int
    as_written: int = 0
    """The number of different kernels of workloads that new values were written for."""
    only_before: int
    only_after: int
    refused: int


class SassCompiles(Document):
    """What `policygen verify-sass --dry-run --json` prints: what would be compiled."""

    format: Literal["policygen/sass-compiles/1"] = "policygen/sass-compiles/1"
    base: str
    """Description of what it would be compared with."""
    toolchain: str
    archs: tuple[Arch, ...]
    workloads: int
    """The number of workloads times architectures."""
    changed: int
    """Those of them that get different values; they come first."""
    untouched: int
    """Others that the change cannot affect; a remark gives the reason."""
    units: int
    """Upper limit of compiles, for both sides, without cached ones."""
    at_once: int
    minutes: float
    """The estimated time in seconds."""
    remarks: tuple[str, ...] = ()


class VerifySass(Document):
    """What `policygen verify-sass --json` prints."""

    format: Literal["policygen/verify-sass/1"] = "policygen/verify-sass/1"
    cub: Cub
    content: str = ""
    """A digest of the tree's headers: the same in all documents of one tree."""
    base: str
    """Description of what it was compared with."""
    toolchain: str
    units: Units = "calls"
    remarks: tuple[str, ...] = ()
    archs: tuple[Arch, ...]
    workloads: int
    """The number of compared workloads times architectures."""
    identical: int
    """Those of them with the same preprocessed source on both sides, which are not compiled."""
    untouched: int = 0
    """Others, times architectures, that the change cannot affect; a remark gives the reason."""
    rows: tuple[SassRow, ...]
    kernels: int
    """Kernels of the compiled workloads."""
    equal: int
    renamed: int
    renamings: tuple[Renamed, ...] = ()
    different: tuple[Different, ...] = ()
    allow_moved: bool = False
    whole: bool = False
    """Whether all workloads that the change can affect were chosen, not only a part."""
    only_before: tuple[KernelPlace, ...] = ()
    only_after: tuple[KernelPlace, ...] = ()
    refused: tuple[Refused, ...] = ()

    @property
    def unmeant(self) -> tuple[Different, ...]:
        """Kernels that differ although no values were written for their workload."""
        return tuple(kernel for kernel in self.different if not kernel.as_written)

    @property
    def equal_everywhere(self) -> bool:
        """Whether all workloads of the tree were compiled and every kernel has the same code."""
        unequal = (*self.different, *self.only_before, *self.only_after, *self.refused)
        return self.whole and bool(self.workloads) and not (self.untouched or unequal)

    @property
    def changed(self) -> bool:
        """Whether anything changed that no values were written for."""
        relevant = [
            kernel
            for kernel in self.different
            if kernel.kind == "different" or not self.allow_moved
        ]
        places = (*relevant, *self.only_before, *self.only_after)
        return any(not place.as_written for place in places)

    @property
    def summary(self) -> str:
        """The outcome in a sentence: `SASS: of 4 kernels 4 equal (sm100)`."""
        archs, code = ", ".join(self.archs), CODE[self.cub.library]
        same = plural(self.identical, "workload") + " with the same source"
        failed = plural(len(self.refused), "compile") + " failed"
        if not self.kernels and self.refused:
            return f"{code}: nothing was compared; {failed} ({archs})"
        if not self.kernels and self.untouched and not self.identical:
            untouched = plural(self.untouched, "workload")
            return f"{code}: the change touches none of {untouched}; nothing was compiled ({archs})"
        if not self.kernels:
            reason = same if self.identical else "nothing differs"
            return f"{code}: {reason}; nothing was compiled ({archs or 'no architecture'})"
        kinds = ["as written" if row.as_written else row.kind for row in self.different]
        counts = {
            "equal": self.equal,
            "renamed, with equal code": self.renamed,
            "moved": kinds.count("moved"),
            "different because of written values": kinds.count("as written"),
            "different": kinds.count("different"),
            "only before": sum(not kernel.as_written for kernel in self.only_before),
            "only after": sum(not kernel.as_written for kernel in self.only_after),
        }
        parts = [", ".join(f"{count:,} {name}" for name, count in counts.items() if count)]
        parts += [same] if self.identical else []
        parts += [failed] if self.refused else []
        if self.untouched:
            parts.append(f"{plural(self.untouched, 'workload')} that the change cannot touch")
        return f"{code}: of {plural(self.kernels, 'kernel')} {'; '.join(parts)} ({archs})"
