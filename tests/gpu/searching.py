"""A search without a tree, a compiler or a GPU: what each variant is worth is given."""

import sqlite3
from contextlib import closing, contextmanager
from random import Random

from policygen.gpu.candidates import (
    CompiledBatch,
    SearchBench,
    SearchEffort,
    SearchNotes,
    WorkloadSearch,
)
from policygen.gpu.control import PointResult
from policygen.gpu.device import Failure, VariantFunction
from policygen.gpu.driver import SearchDriver
from policygen.gpu.measured_rows import open_measurements
from policygen.gpu.pool import BaselineSamples, StopAskedError
from policygen.gpu.rounds import RuntimeSpot
from policygen.gpu.rungs import Budget
from policygen.gpu.space import Classifier
from policygen.gpu.strategies import make_strategy
from policygen.model.workload import parse_label
from tests.gpu.measuring import ABOUT, ALGORITHM, DECLARED, SIZES, spot
from tests.gpu.pretended import PretendedMeaning, space
from tests.gpu.simulated import case

SECONDS = {16: 1e-5, 18: 4e-5, 20: 1.6e-4}
BASE = VariantFunction("base", "unit.so", "policygen_run_0")
POINT = (ALGORITHM, (("T", "I8"),))
NAME = f"{ALGORITHM} T=I8"


def worth(label):
    """The best is ipt_8.tpb_32; `ipt` and `ipt + 1` come to the same."""
    values = parse_label(label)
    return 1.1 - 0.02 * abs(values["ipt"] // 2 - 4) - 0.0005 * abs(values["tpb"] - 32)


class TwoParameters(PretendedMeaning):
    """Nothing but the items and threads of the other."""

    def groups(self):
        return super().groups()[:1]


class PretendedGpu:
    """Samples around what variants are worth; remembers what it was asked."""

    def __init__(self, noise=0.002, does=None, skips=(), stops=None):
        self.noise, self.does, self.skips = noise, does or {}, skips
        self.stops = stops
        """Asked to stop after so many rungs on runtime workloads."""
        self.asked = []
        """Rungs: labels, runtime workload, rounds."""
        self.draw = Random(3)

    def worth(self, label):
        """How many times as fast as base."""
        return worth(label)

    def at(self, label, size):
        """The same on a runtime workload."""
        return self.worth(label)

    def _samples(self, size, ratio, count, noise=None):
        noise = self.noise if noise is None else noise
        return tuple(SECONDS[size] / ratio * (1 + self.draw.gauss(0, noise)) for _ in range(count))

    def look(self, points, seed):
        found = []
        for point in points:
            (size,) = point.case.axes
            skipped = "the benchmark skips it" if size in self.skips else None
            found.append(BaselineSamples(() if skipped else self._samples(size, 1.0, 12), skipped))
        return found

    def rung(self, points, seed, asked, *, together=False, fresh=True):
        failed = set()
        for number, point in enumerate(points):
            if asked() or (self.stops is not None and len(self.asked) >= self.stops):
                raise StopAskedError
            (size,) = point.case.axes
            left = [label for label in point.functions if label not in failed]
            self.asked.append((left, size, point.rounds))
            bad = {
                one: Failure(self.does[one], "so it is")
                for one in left
                if one in self.does and (point.checks or self.does[one] != "wrong")
            }
            samples = {"base": self._samples(size, 1.0, 2 * point.rounds, 0.0)}
            for label in left:
                if label not in bad:
                    samples[label] = self._samples(size, self.at(label, size), point.rounds)
            result = PointResult(samples, bad, dict.fromkeys(left, 0.01), restarts=1, point=number)
            failed |= bad.keys() | result.below(point.least)
            yield result


def compiling(refused=(), problem=None):
    """What compiles units; some variants are refused."""

    def compiles(search, labels):
        if not labels:
            kind = dict(search.point[1])["T"] if search is not None else "I8"
            runtimes = tuple(RuntimeSpot(spot(size, kind), case(size)) for size in SIZES)
            return CompiledBatch((BASE,), runtimes=(runtimes,), problem=problem)
        functions = {
            label: (VariantFunction(label, "unit.so", f"policygen_run_{number}"),)
            for number, label in enumerate(labels, 1)
            if label not in refused
        }
        failed = {label: ("compile", "refused") for label in labels if label in refused}
        return CompiledBatch(functions=functions, failed=failed)

    return compiles


def workload(strategy="local", seed=1, kind="I8", **ranges):
    classifier = Classifier(
        space(**(ranges or {"ipt": "2:15:1", "tpb": "32:64:16"})), TwoParameters()
    )
    return WorkloadSearch(
        point=(ALGORITHM, (("T", kind),)),
        opened=None,
        space=classifier.space,
        counts=classifier.counts(),
        strategy=make_strategy(strategy, classifier.domain, seed),
        name=strategy,
        declared=DECLARED,
        spots=[spot(size, kind) for size in SIZES],
        base=None,
    )


@contextmanager
def driving(
    db, gpu=None, *, compiles=None, one=None, more=(), budget=None, clock=None, told=None, **effort
):
    """A driver over a database; with `more` workloads, of a campaign."""
    searches = (one or workload(), *more)
    with open_measurements(db, ABOUT) as rows:
        notes = SearchNotes(rows)
        for search in searches:
            for at in search.spots:
                rows.prepare(at, DECLARED)
            notes.begin(search, 1, budget)
        bench = SearchBench(
            gpu or PretendedGpu(),
            rows,
            compiles or compiling(),
            SearchEffort(**{"slots": 2, "processes": 3, "rounds": 6, **effort}),
            lambda: False,
        )
        ticking = {} if clock is None else {"clock": clock}
        watch = Budget(budget, notes.before([search.point for search in searches]), **ticking)

        def observe(event, search, rung, left):
            if told is not None:
                told.append((event, rung, search.leading, left))

        by_title = {search.title: search for search in searches}
        yield SearchDriver(bench, notes, by_title, watch, observe, is_campaign=bool(more))


def query(db, text, *values):
    with closing(sqlite3.connect(db)) as connection:
        return connection.execute(text, values).fetchall()
