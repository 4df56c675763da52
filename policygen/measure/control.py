"""The controller of one GPU: a variant that crashes, hangs or asks for too much costs itself alone.

It holds the GPU's lock, starts the worker, and starts another one when that ends or hangs; who was
at work then is not asked again. A GPU on which base itself fails several times in a row is lost.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from policygen.measure.asking import Opened, Workers, nothing
from policygen.measure.device import Clocks, Launch, RuntimeCase, VariantFunction
from policygen.measure.line import GoneError, Told
from policygen.measure.locks import SESSION, gpu_lock
from policygen.measure.order import round_order
from policygen.measure.outcomes import Checked, Failure, Limits, Rounds, Watch
from policygen.process import module

AT_ONCE = 64
"""Runs of one request; after each the clocks are looked at."""


def worker_command(index: int, runner: Path, runtime: Path | None) -> tuple[str, ...]:
    """What starts the worker of a GPU, by its number, with the runner and the CUDA runtime."""
    paths = (str(runner.absolute()), "" if runtime is None else str(runtime.absolute()))
    return (*module("policygen.measure.worker"), str(index), *paths)


@contextmanager
def controlling(
    command: Sequence[str],
    *,
    limits: Limits | None = None,
    watch: Watch | None = None,
    more: Mapping[str, str] | None = None,
    patience: float = 0.0,
    locks: Path | None = None,
    held: bool = False,
) -> Iterator["Controller"]:
    """Starts a worker, and keeps its GPU for the block; waits so many seconds for one in use.

    `more` is added to what the worker is told of the environment. `held`: this process keeps the
    GPU already.
    """
    workers = Workers(command, more or {}, limits or Limits())
    try:
        with nullcontext() if held else gpu_lock(workers.facts.uuid, SESSION, patience, locks):
            yield Controller(workers, watch or Watch())
    finally:
        workers.close()


class Controller:
    """What is asked of one GPU; one runtime workload is open at a time."""

    def __init__(self, workers: Workers, watch: Watch) -> None:
        self.facts = workers.facts
        self._workers, self._watch = workers, watch
        self._asked = 0
        self._fastest = 0

    @property
    def restarts(self) -> int:
        """Processes that were started after the first one."""
        return self._workers.restarts

    @property
    def ended(self) -> int:
        """Processes that crashed, hung, or were of no more use."""
        return self.restarts - self._asked

    def open(
        self, case: RuntimeCase, base: VariantFunction, *, checking: bool = True
    ) -> str | None:
        """Makes the inputs and, to check variants, base's results; why not, where that cannot be.

        What is known of variants on the runtime workload that was open is forgotten.
        """
        workers, workers.opened = self._workers, None
        while True:
            opened = Opened(case, base)
            try:
                why = workers.make(opened)
                if why is None and checking:
                    why = workers.reference(opened)
            except GoneError as error:
                workers.trouble(error.words)
                workers.another()
            else:
                workers.opened = opened if why is None else None
                return why

    def check(self, variants: Sequence[VariantFunction], *, again: bool = False) -> Checked:
        """Compares results with those of base; each variant once, if not asked for `again`."""
        opened = self._begin()
        self._check(opened, variants, again=again)
        failed = failed_of(opened, variants)
        right = [one.variant for one in variants if one.variant not in failed]
        return Checked(tuple(right), failed, dict(self._workers.elapsed))

    def rounds(self, variants: Sequence[VariantFunction], count: int, seed: int) -> Rounds:
        """Rounds of base and of those variants that are right; what is not known is checked first.

        Without variants base is measured alone.
        """
        opened = self._begin()
        variants = [one for one in variants if one != opened.base]
        self._check(opened, variants, again=False)
        self._warm(opened)
        samples: dict[VariantFunction, list[float]] = {opened.base: []}
        repeated = throttled = 0
        more = self._watch.repeats + self._watch.share * count * len(variants) / AT_ONCE
        for number in range(count):
            fine = [one for one in variants if opened.verdicts[one] is None]
            order = round_order(opened.base, fine, number, seed)
            for start in range(0, len(order), AT_ONCE):
                some = order[start : start + AT_ONCE]
                taken, times, slow = self._chunk(opened, some, min(int(more), self._watch.repeats))
                more -= times
                repeated += times * len(taken)
                throttled += slow * len(taken)
                for one, seconds in taken:
                    samples.setdefault(one, []).append(seconds)
        failed = failed_of(opened, variants)
        kept = {
            one.variant: tuple(times) for one, times in samples.items() if one.variant not in failed
        }
        return Rounds(kept, failed, dict(self._workers.elapsed), repeated, throttled)

    @property
    def launches(self) -> Mapping[str, Launch]:
        """How kernels of one's own are launched that were checked on the open runtime workload."""
        opened = self._workers.opened
        return {} if opened is None else opened.launches

    def bandwidth(self) -> float | None:
        """Bytes that a copy moves in a second, measured now; nothing where it cannot be."""
        try:
            return self._workers.bandwidth()
        except GoneError as error:
            self._workers.trouble(error.words)
            self._workers.another()
            return None

    def restart(self) -> None:
        """Starts a fresh process; what was open is open in it, and what was found out stays."""
        self._asked += 1
        self._workers.another()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Ends the process for a block, in which another one of this session has the GPU."""
        self._workers.close()
        try:
            yield
        finally:
            self.restart()

    def _begin(self) -> Opened:
        opened = self._workers.opened
        if opened is None:
            raise ValueError("no runtime workload is open")
        self._workers.elapsed.clear()
        return opened

    def _check(self, opened: Opened, variants: Sequence[VariantFunction], *, again: bool) -> None:
        known = opened.verdicts
        asked = [one for one in variants if one not in known or (again and known[one] is None)]

        def take(one: VariantFunction, told: Told) -> None:
            known[one] = Failure("wrong", str(told["words"])) if "wrong" in told else None
            if "launch" in told:
                opened.launches[one.variant] = Launch(**told["launch"])

        for start in range(0, len(asked), AT_ONCE):
            self._workers.work(opened, "check", asked[start : start + AT_ONCE], take)

    def _warm(self, opened: Opened) -> None:
        """Lets base run in a process that is new, so that the clocks are up."""
        if not opened.warm:
            runs = [opened.base] * self._watch.warm
            self._is_slow(self._workers.work(opened, "sample", runs, nothing))
            opened.warm = True

    def _chunk(
        self, opened: Opened, order: Sequence[VariantFunction], most: int
    ) -> tuple[list[tuple[VariantFunction, float]], int, bool]:
        """Samples; how many times they were taken again, and whether they are throttled still."""
        for times in range(most + 1):
            taken: list[tuple[VariantFunction, float]] = []

            def take(one: VariantFunction, told: Told, to: list[Any] = taken) -> None:
                to.append((one, float(told["took"])))

            if not self._is_slow(self._workers.work(opened, "sample", order, take)):
                return taken, times, False
            if times < most:
                time.sleep(self._watch.pause)
        return taken, most, True

    def _is_slow(self, clocks: Clocks | None) -> bool:
        """Whether the GPU ran slower than it can."""
        if clocks is None:  # nobody was left to run
            return False
        self._fastest = max(self._fastest, clocks.sm)
        return bool(clocks.throttled) or clocks.sm < (1 - self._watch.slower) * self._fastest


def failed_of(opened: Opened, variants: Sequence[VariantFunction]) -> dict[str, Failure]:
    """What is known to be wrong with variants, by label."""
    found = ((one.variant, opened.verdicts.get(one)) for one in variants)
    return {label: failure for label, failure in found if failure is not None}
