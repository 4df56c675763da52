"""A database as `policygen measure --workload kernel.toml` leaves it, of known times."""

import sqlite3
from contextlib import closing
from dataclasses import replace

from policygen.gpu.database_writer import About, RowSpot
from policygen.gpu.device import Launch
from policygen.gpu.measured_rows import keep_rows, keep_words, open_measurements
from policygen.results.own_tables import KERNELS, PEAKS
from tests.gpu.simulated import FACTS

KERNEL = "own.axpy"
CLASSES = {"own.axpy.small": 1000, "own.axpy.large": 1_000_000}
START = "strategy_0.tpb_128"
WORDS = {"strategy": ("each", "stride", "managed")}
# By size and variant how many times as long as the best of the size.
TIMES = {
    1000: {"base": 1.0, "strategy_0.tpb_256": 1.2, "strategy_1.tpb_128": 1.5},
    1_000_000: {"base": 1.3, "strategy_1.tpb_128": 1.0, "strategy_2.tpb_128": 1.002},
}
LAUNCH = Launch(32, 8, 1024, 512, 128, 8, 8, 2048, 12_000)
PEAK = 4.0e12


def spot(name, size):
    return RowSpot(name, "base", {"Elements": str(size)})


def kernel_database(path, *, processes=3, gpu=FACTS.name, peak=PEAK, launch=LAUNCH):
    """Writes it; each process is some thousandths slower, and so are all of its variants."""
    about = About("13.2.78", "v3.6.0", replace(FACTS, name=gpu), "events", 7)
    with open_measurements(path, about) as rows:
        for name, size in CLASSES.items():
            keep_words(rows.writer, name, WORDS)
            keep_rows(rows.writer, KERNELS, [(name, KERNEL, START)])
            place = spot(name, size)
            rows.prepare(place, {(name, "base", "Elements"): (str(size),)})
            for process in range(processes):
                for at, (label, times) in enumerate(TIMES[size].items()):
                    noise = 1 + (process + at) % 3 / 1000 + process / 100
                    rows.record(place, label, [size * 1e-9 * times * noise] * 4, 0.1)
            rows.launched(place, {"base": launch, "strategy_1.tpb_128": launch})
        if peak is not None:
            keep_rows(rows.writer, PEAKS, [(rows.number, peak)])
    return path


def spoil(path, *statements):
    """Damages it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
