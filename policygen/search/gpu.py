"""A GPU that measures for a search: looks at base, and runs rungs; who writes is somebody else.

What is asked and what is told are plain data, so that the GPU may be in another machine.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from policygen.measure.control import Controller
from policygen.measure.device import RuntimeCase, VariantFunction
from policygen.measure.outcomes import Failure, Rounds

LOOK = 12
"""Rounds of base alone, to see how noisy it is."""
BaseCase = tuple[RuntimeCase, VariantFunction]
"""A runtime workload, and base for it."""
Functions = Mapping[str, VariantFunction]
"""By label."""
Asked = Callable[[], bool]
"""Whether somebody has asked to stop."""


class StopAskedError(Exception):
    """Somebody has asked to stop; what was measured is written."""


@dataclass(frozen=True, slots=True)
class LookedAt:
    """Base on a runtime workload: its samples, or why there are none."""

    samples: tuple[float, ...] = ()
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class RungPoint:
    """A runtime workload of a rung."""

    case: RuntimeCase
    base: VariantFunction
    functions: Functions
    """All variants of the rung."""
    rounds: int


@dataclass(frozen=True, slots=True)
class PointFound:
    """What came of it."""

    samples: Mapping[str, Sequence[float]]
    """Seconds by label, base among them; nothing where the runtime workload cannot be opened."""
    failed: Mapping[str, Failure]
    elapsed: Mapping[str, float]
    repeated: int = 0
    throttled: int = 0
    restarts: int = 0
    """Processes so far, that were started after the first one of each GPU."""
    point: int = 0
    """Which of the rung's runtime workloads it is."""
    part: int = 0
    """Which of the rung's fresh processes: base was measured in each of them."""


class MeasuresRungs(Protocol):
    """A GPU, here or elsewhere."""

    def look(self, cases: Sequence[BaseCase], seed: int) -> list[LookedAt]:
        """Runs base alone on runtime workloads, in a fresh process."""

    def rung(
        self, points: Sequence[RungPoint], seed: int, asked: Asked, *, together: bool = False
    ) -> Iterator[PointFound]:
        """Checks and measures variants in a fresh process, one runtime workload after the other.

        Who fails on one is not on the next. Several GPUs divide the variants among them, each with
        base, where these need not be measured `together`.
        """


@dataclass(frozen=True, slots=True)
class LocalGpu:
    """A GPU of this machine."""

    controller: Controller

    def look(self, cases: Sequence[BaseCase], seed: int) -> list[LookedAt]:
        """Runs base alone on runtime workloads, in a fresh process."""
        self.controller.restart()
        return [self._look(case, base, seed) for case, base in cases]

    def rung(
        self,
        points: Sequence[RungPoint],
        seed: int,
        asked: Asked,
        *,
        together: bool = False,  # noqa: ARG002  one GPU measures all of them together
    ) -> Iterator[PointFound]:
        """Checks and measures variants in a fresh process, one runtime workload after the other."""
        return rung_of(self.point, points, seed, asked)

    def point(self, point: RungPoint, seed: int, *, fresh: bool) -> PointFound:
        """Checks and measures all variants on one runtime workload; in a fresh process, or not."""
        controller = self.controller
        if fresh:
            controller.restart()
        variants = list(point.functions.values())
        why = controller.open(point.case, point.base)
        if why is not None:  # it could be opened before: the GPU has less memory now
            return PointFound({}, {one.variant: Failure("error", why) for one in variants}, {})
        checked = controller.check(variants)
        right = [one for one in variants if one.variant not in checked.failed]
        found: Rounds = controller.rounds(right, point.rounds, seed)
        return PointFound(
            samples=found.samples,
            failed={**checked.failed, **found.failed},
            elapsed={**checked.elapsed, **found.elapsed},
            repeated=found.repeated,
            throttled=found.throttled,
            restarts=controller.restarts,
        )

    def _look(self, case: RuntimeCase, base: VariantFunction, seed: int) -> LookedAt:
        why = self.controller.open(case, base)
        if why is not None:
            return LookedAt(skipped=why)
        bad = self.controller.check([base]).failed.get(base.variant)
        if bad is not None:
            wrong = f"base differs from itself: {bad.reason}"
            return LookedAt(skipped=wrong if bad.kind == "wrong" else bad.reason)
        found = self.controller.rounds([], math.ceil(LOOK / 2), seed)
        return LookedAt(found.samples[base.variant])


class MeasuresPoint(Protocol):
    """Measures a runtime workload."""

    def __call__(self, point: RungPoint, seed: int, /, *, fresh: bool) -> PointFound:
        """All variants of it; in a fresh process, or in the one that is there."""


def rung_of(
    measure: MeasuresPoint, points: Sequence[RungPoint], seed: int, asked: Asked
) -> Iterator[PointFound]:
    """One runtime workload after the other, without those who failed; the first in a fresh process.

    It stops between two of them.
    """
    failed: set[str] = set()
    for number, point in enumerate(points):
        if asked():
            raise StopAskedError
        left = {label: one for label, one in point.functions.items() if label not in failed}
        if not left:
            return
        found = measure(replace(point, functions=left), seed, fresh=not number)
        failed |= found.failed.keys()
        yield replace(found, point=number)
