"""Overlays: changed tuning headers before a tree, and what they change in a program."""

from typing import Literal

from pydantic import Field

from policygen.errors import plural
from policygen.model.arch import Arch
from policygen.model.plans import Action, Plan
from policygen.model.records import Document, Record
from policygen.model.selection import Effect
from policygen.model.trees import Cub, Dialect
from policygen.model.tuning import Value

# cub/device/dispatch/tuning/tuning_scan.cuh; a manifest may be a stranger's, and leads nowhere else
_PATH = r"^(?:cub|thrust)(?:/[A-Za-z_][\w.-]*)+$"


class OverlayHeader(Record):
    """A header of an overlay, by its path below an include folder."""

    name: str = Field(pattern=_PATH)
    original: str
    """SHA-256 of the tree's header that it replaces or stands before; empty without one."""
    written: str
    """SHA-256 of the overlay's own."""
    replaces: bool
    """Whether it replaces the tree's header; otherwise it includes it."""


class Overlay(Document):
    """The file `policygen-overlay.json` of an overlay."""

    format: Literal["policygen/overlay/1"] = "policygen/overlay/1"
    made_by: str
    """The version of policygen."""
    cub: str
    """CUB's version."""
    dialect: Dialect
    arch: Arch
    tag: str = Field(pattern=r"^policygen_[0-9a-f]{12}$")
    """The inline namespace of its symbols: `policygen_` and the digest of its contents."""
    toolchain: str
    headers: tuple[OverlayHeader, ...]
    results: tuple[Action, ...]
    """Those that are written."""
    databases: dict[str, str | None]
    """Name of a file with results → its SHA-256; None if a saved plan's file is elsewhere."""

    @property
    def replaced(self) -> tuple[str, ...]:
        """The tuning headers that it replaces."""
        return tuple(header.name for header in self.headers if header.replaces)


class OverlayMade(Document):
    """What `policygen overlay --json` prints: the plan, its proof, and the overlay if there is one.

    Without an overlay, nothing would change.
    """

    format: Literal["policygen/overlay-made/1"] = "policygen/overlay-made/1"
    folder: str
    plan: Plan
    effect: Effect | None
    overlay: Overlay | None


class OverlayCheck(Document):
    """What `policygen overlay --check` prints: whether an overlay fits a tree."""

    format: Literal["policygen/overlay-check/1"] = "policygen/overlay-check/1"
    folder: str
    cub: Cub
    overlay: Overlay
    problems: tuple[str, ...]
    """None if it fits."""


KernelOutcome = Literal["changed", "same", "added", "removed", "unexpected"]
"""`unexpected`: it differs, although the overlay has nothing for its algorithm."""


class ProgramKernel(Record):
    """A kernel of a program, with and without an overlay."""

    unit: str
    """The translation unit."""
    kernel: str
    """As a person reads it."""
    outcome: KernelOutcome
    threads: tuple[int | None, int | None]
    """The launch bounds before and after."""
    resident: tuple[int | None, int | None] = (None, None)
    """Threads for which a multiprocessor has registers, before and after."""
    summary: str = ""
    variants: tuple[str, ...] = ()
    """Of a changed kernel: the variants that the overlay has for its algorithm."""


class OverlayProof(Document):
    """What `policygen overlay DIR --prove` prints: a program's kernels before and after."""

    format: Literal["policygen/overlay-proof/1"] = "policygen/overlay-proof/1"
    folder: str
    overlay: Overlay
    toolchain: str
    arch: Arch
    units: tuple[str, ...]
    kernels: tuple[ProgramKernel, ...]
    unaffected: tuple[str, ...] = ()
    """Translation units without a kernel of CUB that was compiled with the overlay."""
    remarks: tuple[str, ...] = ()

    def count(self, *outcomes: KernelOutcome) -> int:
        """Returns the number of kernels with these outcomes."""
        return sum(kernel.outcome in outcomes for kernel in self.kernels)

    @property
    def holds(self) -> bool:
        """Whether kernels get other policies, and no kernel of another algorithm changes."""
        return self.count("changed", "added", "removed") > 0 and not self.count("unexpected")

    @property
    def summary(self) -> str:
        """The outcome in a sentence."""
        total = plural(len(self.kernels), "kernel")
        if unexpected := self.count("unexpected"):
            return f"{unexpected} of {total} differ, and the overlay has nothing for them"
        if not self.holds:
            return f"the overlay touches none of {total} of this program on {self.arch}"
        names = {"changed": "with another policy", "added": "only after", "removed": "only before"}
        names["same"] = "with the same machine code"
        counts = {name: sum(k.outcome == key for k in self.kernels) for key, name in names.items()}
        parts = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return f"of {total} {parts} ({self.arch})"


class CallKernel(Record):
    """A kernel of a call."""

    name: str
    """The function: `DeviceScanKernel`."""
    threads: int | None
    """Its launch bound: the threads of a block."""


class ProgramCall(Record):
    """Kernels of a program that share a policy."""

    algorithm: str
    selector: str
    """The policy hub or selector with the types of the call, as a person reads it."""
    cub: str | None
    """The version of CUB in the names."""
    overlay: str | None
    """The overlay that it was compiled with."""
    kernels: tuple[CallKernel, ...]
    benchmark: str | None = None
    """CUB's benchmark of the same algorithm and types, if there is one."""
    axes: dict[str, str] = Field(default_factory=dict)
    """The types as the benchmark's axes name them."""
    status: Literal["tuned", "inherited", "default", "unknown"] = "unknown"
    """Whether CUB has a tuning for it on this architecture."""
    values: dict[str, Value] = Field(default_factory=dict)
    """The policy that CUB selects for it."""
    entry: str | None = None
    why: str = ""
    """Why its policy is unknown."""
    command: str = ""
    """What finds a tuning for it."""


class ProgramCalls(Document):
    """What `policygen calls` prints: the CUB kernels of a program."""

    format: Literal["policygen/calls/1"] = "policygen/calls/1"
    files: tuple[str, ...]
    arch: Arch
    calls: tuple[ProgramCall, ...]
    untuned: tuple[str, ...] = ()
    """Kernels of CUB and Thrust whose names hold no policy: no tuning header reaches them."""
    others: int = 0
    """The number of other kernels."""
    remarks: tuple[str, ...] = ()
