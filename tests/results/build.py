"""Small databases, row by row, for tests about one thing."""

import sqlite3
from contextlib import closing

import numpy as np

from policygen.results.samples import encode

ALGORITHM = "cub.bench.demo"
IO = "Elements{io}[pow2]"


def quote(name):
    return '"' + name.replace('"', '""') + '"'


class Builder:
    """Writes CCCL's layout, or a variation of it."""

    def __init__(self, path, *, version="cccl", bw=True, samples=True, axes=("T{ct}", IO)):
        self.path = path
        self.version = version
        self.bw, self.samples = bw, samples
        self.axes = axes
        with self.connect() as db:
            db.execute("CREATE TABLE IF NOT EXISTS subbenches (algorithm TEXT, bench TEXT)")

    def connect(self):
        return _Connection(self.path)

    def table(self, bench="base", algorithm=ALGORITHM, axes=None):
        axes = axes or self.axes
        columns = ["ctk TEXT", f"{self.version} TEXT", "gpu TEXT", "variant TEXT", "elapsed REAL"]
        columns += ["center"]
        columns += ["bw REAL"] if self.bw else []
        columns += ["samples BLOB"] if self.samples else []
        columns += [f"{quote(axis)} TEXT" for axis in axes]
        with self.connect() as db:
            db.execute("INSERT INTO subbenches VALUES (?, ?)", (algorithm, bench))
            db.execute(f"CREATE TABLE {quote(f'{algorithm}.{bench}')} ({', '.join(columns)})")
        return self

    def row(
        self,
        variant,
        center,
        *point,
        bench="base",
        algorithm=ALGORITHM,
        gpu="G (1, 2, eccon)",
        ctk="13.0",
        cccl="v3.0",
        blob=None,
        spread=0.01,
        count=101,
    ):
        values = [ctk, cccl, gpu, variant, 1.0, center]
        values += [0.5] if self.bw else []
        if self.samples:
            if blob is None and isinstance(center, float) and np.isfinite(center) and center > 0:
                blob = encode(center * np.linspace(1 - spread, 1 + spread, count))
            values.append(blob)
        values += point
        marks = ", ".join("?" * len(values))
        with self.connect() as db:
            db.execute(f"INSERT INTO {quote(f'{algorithm}.{bench}')} VALUES ({marks})", values)
        return self

    def rows(self, variant, centers, *before, **more):
        """One row for each value of the last axis."""
        for value, center in centers.items():
            self.row(variant, center, *before, value, **more)
        return self

    def execute(self, sql, *rows):
        with self.connect() as db:
            if rows:
                db.executemany(sql, rows)
            else:
                db.execute(sql)
        return self


class _Connection:
    def __init__(self, path):
        self._path = path

    def __enter__(self):
        self._db = sqlite3.connect(self._path)
        self._db.execute("PRAGMA synchronous = OFF")  # a row at a time, and nothing to lose
        return self._db

    def __exit__(self, *_):
        with closing(self._db):
            self._db.commit()


def simple(path, **variants):
    """One table with one workload: `simple(path, base={"16": 2.0}, ipt_1={"16": 1.0})`."""
    built = Builder(path).table()
    for variant, centers in variants.items():
        built.rows(variant, centers, "I32")
    return path
