"""A database as a search leaves it, of a made-up space whose best variant is known."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import numpy as np

from policygen.results.merge import create_log, create_results, declare
from policygen.results.own_tables import (
    FAILURES,
    NOISE,
    ROWS,
    RUNGS,
    SEARCH_TABLES,
    SEARCHES,
    SESSIONS,
    TIMES,
    create_own,
)
from policygen.results.samples import encode

ALGORITHM = "cub.bench.scan.exclusive.sum"
GPU, CTK, CCCL = "H200 (6144, 132, eccon)", "13.0.88", "v3.6.0"
CT, IO = "T{ct}", "Elements{io}[pow2]"
SIZES = ("16", "20", "24", "28")
SECONDS = {"16": 8e-6, "20": 1.2e-5, "24": 1.5e-4, "28": 2.4e-3}
BEGUN = datetime(2026, 11, 23, 7, 0, tzinfo=UTC)
SPACE = {
    "ipt": range(7, 25),
    "tpb": range(64, 1025, 32),
    "ns": range(0, 2049, 4),
    "trp": range(2),
}
"""Its best is near 16 items, 384 threads and a delay of 600, transposed."""
FAILED = {
    "compile": "ptxas: uses too much shared data (0x12000 bytes, 0xc000 max)",
    "memory": "asks for 68 GiB, and the GPU has 61",
    "wrong": "Elements=24: 3 of 16777216 results differ from base's, the first at 12288",
    "hang": "ran for more than 10 seconds",
}


def gain(values, workload):
    """How much faster than base a variant really is."""
    best = {"I8": (16, 384, 600, 0.08), "I32": (11, 512, 300, 0.01)}[workload]
    away = (
        ((values["ipt"] - best[0]) / 6) ** 2
        + ((values["tpb"] - best[1]) / 400) ** 2
        + ((values["ns"] - best[2]) / 1500) ** 2
        + (0.15 if not values["trp"] else 0.0)
    )
    return 1 + best[3] - 0.12 * min(away, 5.0)


def label_of(values):
    return ".".join(f"{name}_{value}" for name, value in values.items())


class Searched:
    """Writes what a search writes, in its order."""

    def __init__(self, path, seed=1):
        self.path, self.rng = path, np.random.default_rng(seed)
        self.now, self.session = BEGUN, 0
        self.process = 0

    def __enter__(self):
        self.db = sqlite3.connect(self.path)
        if not self.db.execute("SELECT 1 FROM sqlite_master").fetchone():
            create_results(self.db, ALGORITHM, "base", [CT, IO])
            create_log(self.db, "builds")
            create_log(self.db, "runs")
            declare(self.db, {(ALGORITHM, "base", IO): SIZES})
            create_own(self.db)
            for statement in SEARCH_TABLES:
                self.db.execute(statement)
        return self

    def __exit__(self, *_):
        with closing(self.db):
            self.db.commit()

    def at(self, seconds=0.0):
        self.now += timedelta(seconds=seconds)
        return self.now.isoformat()

    def begin(self, ended=None, **more):
        cells = {
            "started": self.at(), "ended": ended, "policygen": "0.1.0", "ctk": CTK, "cccl": CCCL,
            "gpu": GPU, "card": "ecac1a7f872c", "arch": "sm90", "driver": "580.159.04",
            "nvcc": "13.0.88", "method": "events", "seed": 1, "sm_clock": 1980,
            "memory_clock": 3201, "power_limit": 700.0, "repeated": 3, "restarts": 2, **more,
        }  # fmt: skip
        marks = ", ".join("?" * len(cells))
        self.session = self.db.execute(
            f"INSERT INTO {SESSIONS} ({', '.join(cells)}) VALUES ({marks})", list(cells.values())
        ).lastrowid
        self.db.execute(f"INSERT INTO {TIMES} VALUES (?, 'compiling', 61.5)", (self.session,))
        self.at(62)

    def search(self, workload, base=None, ended="count", variants=18 * 31 * 513 * 2, **more):
        cells = {
            "session": self.session, "algorithm": ALGORITHM, "workload": json.dumps({CT: workload}),
            "strategy": "hill", "seed": 1, "variants": str(variants), "valid": str(variants // 2),
            "distinct_": str(variants // 3), "base": base, "budget": 1200.0, "spent": 400.0,
            "ended": ended, **more,
        }  # fmt: skip
        marks = ", ".join("?" * len(cells))
        names = ", ".join(cells)
        self.db.execute(f"INSERT INTO {SEARCHES} ({names}) VALUES ({marks})", list(cells.values()))

    def rung(self, workload, variants, rung, *, count, noise, sizes=SIZES):
        """One process: base and variants side by side on each runtime workload."""
        self.process += 1
        drift = self.rng.normal(1, 0.01)
        for size in sizes:
            place = json.dumps({CT: workload, IO: size})
            base = self.samples(SECONDS[size] * drift, 4 * count, noise)
            for values in (None, *variants):
                if values is None:
                    own = base
                else:
                    slower = 1 / gain(values, workload) * self.rng.normal(1, noise / 4)
                    own = self.samples(SECONDS[size] * drift * slower, count, noise)
                name = "base" if values is None else label_of(values)
                self.row(place, name, rung, own, base)
                self.result(workload, size, name, own)
            self.db.execute(
                f"INSERT INTO {NOISE} VALUES (?, ?, 'base', ?, ?, ?, ?, ?)",
                (self.session, ALGORITHM, place, self.process, len(base), float(np.median(base)),
                 float(np.median(base[::2]) / np.median(base[1::2]))),
            )  # fmt: skip

    def samples(self, seconds, count, noise):
        return (seconds * self.rng.lognormal(0, noise, count)).astype("<f4")

    def row(self, place, name, rung, own, base):
        self.db.execute(
            f"INSERT INTO {RUNGS} VALUES (?, ?, 'base', ?, ?, ?, ?, ?, ?, ?, ?)",
            (self.session, ALGORITHM, place, name, rung, self.process, float(np.median(own)),
             float(np.median(base)), own.tobytes(), self.at(0.02 * len(own) / 10)),
        )  # fmt: skip

    def result(self, workload, size, name, own):
        self.db.execute(
            f'INSERT OR REPLACE INTO "{ALGORITHM}.base"'
            f' (ctk, cccl, gpu, variant, elapsed, center, samples, "{CT}", "{IO}")'
            " VALUES (?, ?, ?, ?, 0.01, ?, ?, ?, ?)",
            (CTK, CCCL, GPU, name, float(np.median(own)), encode(own), workload, size),
        )
        self.db.execute(
            f"INSERT INTO {ROWS} VALUES (?, ?, 'base', ?, ?, ?, ?, 0.01, ?)",
            (self.session, ALGORITHM, json.dumps({CT: workload, IO: size}), name, len(own),
             float(np.median(own)), self.at()),
        )  # fmt: skip

    def fail(self, workload, name, kind, reason):
        self.db.execute(
            f"INSERT INTO {FAILURES} VALUES (?, ?, 'base', ?, ?, ?, ?, ?)",
            (self.session, ALGORITHM, json.dumps({CT: workload, IO: "24"}), name, kind, reason,
             self.at()),
        )  # fmt: skip

    def draw(self, count):
        """Different variants, as `Searched` draws them."""
        found = {}
        while len(found) < count:
            values = {name: int(self.rng.choice(lot)) for name, lot in SPACE.items()}
            found[label_of(values)] = values
        return list(found.values())

    def whole(self, workload, count, *, finalists=8, processes=5, last=True):
        """Screening in batches, more samples of the best, the last rung; failures among them."""
        drawn = self.draw(count + count // 10)
        failed, drawn = drawn[: count // 10], drawn[count // 10 :]
        kinds = list(FAILED.items())
        for place, values in enumerate(failed):
            # Wrong ones are rare.
            kind, reason = kinds[place % 16 % len(kinds)] if place % 16 < 4 else kinds[0]
            self.fail(workload, label_of(values), kind, reason)
        for start in range(0, count, 32):
            self.rung(workload, drawn[start : start + 32], 1, count=10, noise=0.02)
        seen = self.best(workload, 1)
        best = sorted(drawn, key=lambda values: -seen[label_of(values)])[: 3 * finalists]
        self.rung(workload, best, 2, count=40, noise=0.015)
        seen = self.best(workload, 2)
        best = sorted(best, key=lambda values: -seen[label_of(values)])[:finalists]
        for _ in range(processes if last else 0):
            self.rung(workload, best, 3, count=40, noise=0.01)
        return [label_of(values) for values in best]

    def best(self, workload, rung):
        rows = self.db.execute(
            f"SELECT variant, avg(base / center) FROM {RUNGS} WHERE rung = ? AND variant != 'base'"
            " AND workload LIKE ? GROUP BY variant",
            (rung, f'%"{CT}": "{workload}"%'),
        )
        return dict(rows)


def searched(path, count=300, **more):
    """Two workloads: one with a winner, one where base is as good as any."""
    with Searched(path) as made:
        made.begin()
        made.search("I8", base="ipt_15.tpb_256.ns_500.trp_1")
        made.whole("I8", count, **more)
        made.search("I32", ended="budget")
        made.whole("I32", count // 2, **more)
        made.db.execute(f"UPDATE {SESSIONS} SET ended = ?", (made.at(),))
    return path
