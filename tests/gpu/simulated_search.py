"""`policygen search` with simulated GPUs, and a compiler that makes names alone."""

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from policygen.cli.main import main
from policygen.gpu import search_places
from tests.gpu.simulated import Plan
from tests.real_trees import tree

WHICH = ("-R", "cub.bench.reduce.sum$", "-a", "T=F32", "-a", "OffsetT=I32")
QUICK = ("--variants", "24", "--jobs", "2", "--processes", "2", "--rounds", "4")
ON_ALL = 4
"""Runtime workloads."""
IPT, TPB, IPV = range(7, 25), range(128, 1025, 32), (1, 2)
RATIOS = {
    f"ipt_{ipt}.tpb_{tpb}.ipv_{ipv}": 1.08
    - 0.002 * abs(ipt - 18)
    - 0.0002 * abs(tpb - 384)
    - 0.01 * (ipv - 1)
    for ipt in IPT
    for tpb in TPB
    for ipv in IPV
}


@dataclass(frozen=True)
class NamingCompiler:
    """Makes each unit a file that holds its text: no GPU of ours loads it."""

    _toolchain: object
    folder: Path
    _there: object

    def make(self, source):
        path = self.folder / f"{abs(hash(source.text))}.so"
        path.write_text(source.text)
        return path


def driver(folder, monkeypatch, *rows):
    """A driver's program that tells of GPUs."""
    place = folder / "bin"
    place.mkdir(exist_ok=True)
    program = place / "nvidia-smi"
    program.write_text("#!/bin/sh\n" + "".join(f"echo '{row}'\n" for row in rows))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")


def plans(folder, *given):
    """A plan of each GPU, whose lock is no other test's."""
    made = []
    for number, plan in enumerate(given):
        own = folder / f"gpu{number}"
        own.mkdir(exist_ok=True)
        uuid = f"GPU-{abs(hash(str(own)))}"
        made.append(Plan(str(own), others=[uuid], **{"ratios": RATIOS, **plan}))
    return made


def simulated(folder, monkeypatch, *given):
    """Lets the command have these GPUs."""
    made = plans(folder, *given)
    rows = (f"{plan.model}, {plan.others[0]}, 9.0, 580.82.07" for plan in made)
    driver(folder, monkeypatch, *rows)
    monkeypatch.setattr(search_places, "worker_command", lambda number, *_: made[number].command())
    monkeypatch.setattr(search_places, "ObjectCompiler", NamingCompiler)
    return made


def run(folder, *arguments):
    """The exit status."""
    where = ("search", "--cub", str(tree("3.6.0")), "--db", str(folder / "run.db"))
    return main([*where, *WHICH, *QUICK, *arguments])


def query(folder, text):
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        return connection.execute(text).fetchall()


def rungs(folder):
    """Variant, runtime workload, rung, session and process of each row."""
    return query(folder, "SELECT variant, workload, rung, session, process FROM policygen_rungs")


def screened(folder):
    """Variants that have a score of the first rung: how often each was on each workload.

    The first sample of each, on the largest runtime workload alone, does not count.
    """
    found = {}
    for variant, workload, rung, _, _ in rungs(folder):
        if rung == 1 and variant != "base":
            found.setdefault(variant, []).append(workload)
    return {variant: points[1:] for variant, points in found.items()}


def once_each(folder, variants=24):
    """Each variant was screened once on each runtime workload, or dropped, beside base."""
    found = screened(folder)
    assert len(found) == variants
    counts = {(len(points), len(set(points))) for points in found.values()}
    assert counts <= {(ON_ALL, ON_ALL), (0, 0)}
    assert (ON_ALL, ON_ALL) in counts
    rows = rungs(folder)
    assert len(set(rows)) == len(rows)
    bases = {tuple(where) for variant, *where in rows if variant == "base"}
    assert {tuple(where) for _, *where in rows} == bases


def processes(folder, rung):
    """How many GPUs measured beside each other, by the rows of base."""
    return {
        process for label, _, its, _, process in rungs(folder) if label == "base" and its == rung
    }


def document(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])
