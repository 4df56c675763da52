"""Measures with a simulated GPU into a database, for tests."""

import sqlite3
from contextlib import closing, contextmanager

from policygen.gpu.control import controlling
from policygen.gpu.database_writer import About, RowSpot
from policygen.gpu.device import Limits, Watch
from policygen.gpu.measured_rows import open_measurements
from policygen.gpu.rounds import RuntimeSpot, WorkloadTask, measure_noise, measure_workload
from tests.gpu.simulated import BASE, FACTS, Plan, case, variants

ALGORITHM, SUBBENCH = "cub.bench.demo", "base"
IO = "Elements{io}[pow2]"
LABELS = ("ipt_1.tpb_64", "ipt_2.tpb_64", "ipt_3.tpb_64", "ipt_4.tpb_64")
RATIOS = {"ipt_2.tpb_64": 1.25, "ipt_3.tpb_64": 0.8, "ipt_4.tpb_64": 1.05}
SIZES = (16, 18, 20)
DECLARED = {
    (ALGORITHM, SUBBENCH, "T{ct}"): ("I8", "I16"),
    (ALGORITHM, SUBBENCH, IO): tuple(map(str, SIZES)),
}
ABOUT = About(ctk="13.2.78", cccl="v3.6.0", gpu=FACTS, method="events", seed=7)
PATIENT = Limits(first=300.0, floor=300.0)
QUICK = Watch(pause=0.0, warm=1)


def spot(size, workload="I8"):
    return RowSpot(ALGORITHM, SUBBENCH, {"T{ct}": workload, IO: str(size)})


def points(*sizes, workload="I8"):
    return tuple(RuntimeSpot(spot(size, workload), case(size)) for size in sizes or SIZES)


def task(*labels, workload="I8"):
    return WorkloadTask(BASE, variants(*(labels or LABELS)), points(workload=workload), DECLARED)


@contextmanager
def measuring(db, plan, about=ABOUT):
    with (
        open_measurements(db, about) as session,
        controlling(plan.command(), limits=PATIENT, watch=QUICK, locks=plan.locks) as controller,
    ):
        yield controller, session


def measure(db, folder, wanted=None, *, rounds=4, noise=False, progress=None, **plan):
    """What was found."""
    plan.setdefault("ratios", RATIOS)
    with measuring(db, Plan(str(folder), **plan)) as (controller, session):
        wanted = wanted or task()
        if noise:
            measure_noise(controller, session, BASE, wanted.points, rounds=rounds, seed=1)
        return measure_workload(
            controller, session, wanted, rounds=rounds, seed=7, progress=progress
        )


def query(db, sql, *values):
    with closing(sqlite3.connect(db)) as connection:
        return connection.execute(sql, values).fetchall()


def rows(db):
    """Variant and size → the row's cells."""
    found = query(
        db,
        f'SELECT variant, "{IO}", elapsed, center, samples FROM "{ALGORITHM}.{SUBBENCH}"',
    )
    cells = {(variant, int(size)): rest for variant, size, *rest in found}
    assert len(cells) == len(found)
    return cells
