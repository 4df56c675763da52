"""Rounds in which NVBench measures: each place of the order gives all the samples it takes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from policygen.measure.control import Controller, controlling, failed_of
from policygen.measure.device import VariantFunction
from policygen.measure.line import Told
from policygen.measure.nvbench_program import NvbenchSettings
from policygen.measure.order import round_order
from policygen.measure.outcomes import Limits, Rounds, Watch


def nvbench_options(settings: NvbenchSettings) -> tuple[str, ...]:
    """What stands behind a worker's command for samples that are NVBench's own."""
    return ("nvbench", *settings.arguments)


@contextmanager
def controlling_nvbench(
    command: Sequence[str],
    *,
    limits: Limits | None = None,
    watch: Watch | None = None,
    more: Mapping[str, str] | None = None,
    patience: float = 0.0,
    locks: Path | None = None,
) -> Iterator["NvbenchController"]:
    """Starts a worker of such a command, and keeps its GPU for the block."""
    with controlling(
        command, limits=limits, watch=watch, more=more, patience=patience, locks=locks
    ) as controller:
        yield NvbenchController(controller)


class NvbenchController(Controller):
    """What is asked of one GPU; NVBench runs once in a process, so that each has its own."""

    def __init__(self, controller: Controller) -> None:
        super().__init__(controller._workers, controller._watch)
        self._spent: int | None = None
        """The process in which NVBench has run."""

    def rounds(self, variants: Sequence[VariantFunction], count: int, seed: int) -> Rounds:
        """Rounds of base and of those variants that are right, all in one process of NVBench.

        NVBench itself leaves out samples of a GPU that is throttled.
        """
        opened = self._begin()
        variants = [one for one in variants if one != opened.base]
        if self._spent == self.restarts:
            self.restart()
        self._check(opened, variants, again=False)
        fine = [one for one in variants if opened.verdicts[one] is None]
        order = [
            one for number in range(count) for one in round_order(opened.base, fine, number, seed)
        ]
        samples: dict[VariantFunction, list[float]] = {opened.base: []}

        def take(one: VariantFunction, told: Told) -> None:
            samples.setdefault(one, []).extend(map(float, told["samples"]))

        self._workers.work(opened, "nvbench", order, take)
        self._spent = self.restarts
        failed = failed_of(opened, variants)
        kept = {
            one.variant: tuple(times) for one, times in samples.items() if one.variant not in failed
        }
        return Rounds(kept, failed, dict(self._workers.elapsed))
