"""What comes of asking a GPU: samples, and why there are none of a variant."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from policygen.errors import InputError

Kind = Literal["wrong", "crash", "hang", "memory", "error", "compile"]


class LostGpuError(InputError):
    """A GPU on which base itself fails, again and again."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a variant is not measured on a runtime workload."""

    kind: Kind
    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether variants have the results of base, by label."""

    right: tuple[str, ...]
    failed: Mapping[str, Failure]
    """The wrong ones, too."""
    elapsed: Mapping[str, float]
    """Seconds that each took of the measuring's time."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """What rounds of base and variants gave."""

    samples: Mapping[str, tuple[float, ...]]
    """Seconds by label, in the order in which they were taken; `base` is one."""
    failed: Mapping[str, Failure]
    """Those asked for of which there are no samples."""
    elapsed: Mapping[str, float]
    """Seconds that each took of the measuring's time, its check among them."""
    repeated: int = 0
    """Samples that were taken again, as the GPU was throttled."""
    throttled: int = 0
    """Samples that are throttled still, though they were repeated as often as is allowed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a step may take, in seconds; what takes longer hangs."""

    start: float = 120.0
    """Until a process has a GPU."""
    first: float = 300.0
    """Making inputs, and what base does for the first time."""
    floor: float = 10.0
    factor: float = 50.0
    """Times what base took for the same."""
    attempts: int = 3
    """Times that base may fail in a row; then the GPU is lost."""

    def seconds(self, variant: str | None, base: float | None) -> float:
        """For one run of a variant, where base took so long; for what is no run of one."""
        if variant is None or base is None:
            return self.first
        return max(self.floor, self.factor * base)


@dataclass(frozen=True, slots=True)
class Watch:
    """When samples are repeated."""

    repeats: int = 3
    """Times that the samples of one request are taken again."""
    share: float = 0.25
    """Of all requests of some rounds, how many more may be repeated: some GPUs never cool."""
    slower: float = 0.25
    """Share by which clocks may be below the highest that were seen, as NVBench has it."""
    pause: float = 1.0
    """Seconds in which the GPU cools."""
    warm: int = 10
    """Runs of base for nothing, before what counts begins."""
