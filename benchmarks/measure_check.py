"""Measures on a GPU, twice, and compares: `python -m benchmarks.measure_check TREE [CHECKOUT]`.

Each workload is measured by two runs with other seeds, which draw the same variants. Their
intervals must meet, no result may differ from base's, and a run that is killed must go on without
a row that is lost or doubled. With a checkout of CCCL, variants are measured by events and by its
own benchmarks, too: both must agree.
"""

import signal
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen import Effort, PolicygenError, VariantsWanted, measure_variants, open_session
from policygen.app.filters import Filter
from policygen.app.measure import measure_checkout
from policygen.app.session import Session
from policygen.gpu.machine import find_gpu
from policygen.model.measured import MeasuredVariant, MeasuredVariants
from policygen.process import Child, module

WORKLOADS = (
    ("cub.bench.reduce.sum$", ("T=F32", "OffsetT=I32")),
    ("cub.bench.scan.exclusive.sum$", ("T=I8", "OffsetT=I32")),
    ("cub.bench.radix_sort.keys$", ("T=I16", "OffsetT=I32")),
    ("cub.bench.select.if$", ("T=I32", "InPlace=false")),
)
COUNT = 5
SEEDS = (1, 2)
KILLED_AFTER = (4.0, 9.0, 14.0)
"""Seconds; all is compiled by then, as the runs before have done it."""


WAYS = (
    (*WORKLOADS[0], ("ipt_7.tpb_128.ipv_1", "ipt_16.tpb_512.ipv_1")),
    (
        *WORKLOADS[1],
        (
            "ipt_22.tpb_256.ns_200.dcid_1.l2w_600.trp_1.ld_0",
            "ipt_10.tpb_512.ns_200.dcid_0.l2w_200.trp_1.ld_0",
        ),
    ),
    ("cub.bench.radix_sort.keys$", ("T=I8", "OffsetT=I32"), ("ipt_11.tpb_800", "ipt_9.tpb_320")),
    (
        "cub.bench.select.unique_by_key$",
        ("KeyT=I8", "ValueT=I8"),
        (
            "ipt_9.tpb_576.trp_1.ld_1.ns_1508.dcid_2.l2w_280",
            "ipt_12.tpb_256.trp_1.ld_0.ns_200.dcid_0.l2w_200",
        ),
    ),
)
"""Workloads and variants that are measured by both ways."""
BY_EVENTS, BY_NVBENCH = Effort(processes=3, rounds=10), Effort(rounds=2)


def where(regex: str, axes: Sequence[str]) -> Filter:
    """One workload."""
    return Filter((), regex, tuple(axes), ())


def disagreements(first: MeasuredVariants, second: MeasuredVariants) -> Iterator[str]:
    """What two runs of the same variants say that cannot both be."""
    for one, other in zip(first.workloads, second.workloads, strict=True):
        if problem := one.problem or other.problem:
            yield f"{one.benchmark}: {problem}"
        pairs = zip(one.variants, other.variants, strict=True)
        yield from (f"{one.benchmark}: {words}" for a, b in pairs for words in _apart(a, b))


def _apart(one: MeasuredVariant, other: MeasuredVariant) -> Iterator[str]:
    for side in (one, other):
        if side.failed is not None and side.failed.kind == "wrong":
            yield f"{side.variant} is wrong: {side.failed.reason}"
    if bool(one.failed) != bool(other.failed):
        yield f"{one.variant} fails in one run alone"
    if one.interval and other.interval:
        low = max(one.interval.low, other.interval.low)
        high = min(one.interval.high, other.interval.high)
        if low > high:
            yield f"{one.variant}: {one.score:.4f} and {other.score:.4f}, whose intervals are apart"


def compare(session: Session) -> Iterator[str]:
    """Measures each workload twice; prints both scores of each variant."""
    for regex, axes in WORKLOADS:
        labels: tuple[str, ...] = ()
        runs = []
        for seed in SEEDS:
            wanted = VariantsWanted(labels, None if labels else COUNT)
            runs.append(
                measure_variants(session, where(regex, axes), wanted, effort=Effort(seed=seed))
            )
            labels = tuple(one.variant for one in runs[0].workloads[0].variants)
        first, second = runs
        print(f"{regex} {' '.join(axes)}: {first.seconds:.0f} s and {second.seconds:.0f} s")
        for a, b in zip(first.workloads[0].variants, second.workloads[0].variants, strict=True):
            print(f"  {a.variant}: {_told(a)}, {_told(b)}")
        yield from disagreements(first, second)


def compare_ways(checkout: Path) -> Iterator[str]:
    """Measures a checkout's variants by events, and by its own benchmarks with NVBench."""
    session = open_session(str(checkout))
    for regex, axes, labels in WAYS:
        one = measure_variants(
            session, where(regex, axes), VariantsWanted(labels), effort=BY_EVENTS
        )
        other = measure_checkout(checkout, where(regex, axes), labels, effort=BY_NVBENCH)
        print(f"{regex} {' '.join(axes)}: by events and by NVBench")
        for a, b in zip(one.workloads[0].variants, other.workloads[0].variants, strict=True):
            print(f"  {a.variant}: {_told(a)}, {_told(b)}")
        yield from disagreements(one, other)


def _told(one: MeasuredVariant) -> str:
    return f"{one.score:.4f}" if one.score else one.failed.kind if one.failed else "nothing"


def kill(tree: str, folder: Path) -> Iterator[str]:
    """Kills runs and lets one end; its rows are each there once, with all of their samples."""
    db = folder / "run.db"
    regex, axes = WORKLOADS[0]
    command = [
        *module("policygen"), "measure", "-q", "--cub", tree, "-R", regex, "--db", str(db),
        *(word for axis in axes for word in ("-a", axis)), "--count", str(COUNT), "--wait", "60",
    ]  # fmt: skip
    for seconds in KILLED_AFTER:
        child = Child(command, install="", folder=folder)
        if child.wait(seconds) is None:
            child.signal(signal.SIGKILL)
        child.kill()
        print(f"  killed after {seconds:g} s: {_rows(db)} rows")
    child = Child(command, install="", folder=folder)
    status = child.wait()
    child.kill()
    print(f"  let run to its end: status {status}, {_rows(db)} rows")
    if status not in (0, 1):
        yield f"after it was killed the run ends with {status}"
    yield from lost(db)


def lost(db: Path) -> Iterator[str]:
    """Rows whose samples are not those that the sessions say they added."""
    with closing(sqlite3.connect(db)) as connection:
        runs = dict(connection.execute("SELECT code, count(*) FROM runs GROUP BY 1")).get("0", 0)
        told = connection.execute("SELECT count(*) FROM policygen_rows").fetchone()[0]
        rows = connection.execute(
            "SELECT variant, workload, count(DISTINCT session) FROM policygen_rows GROUP BY 1, 2"
        ).fetchall()
    if told != runs:
        yield f"{told} rows were written, and {runs} runs are told"
    if len(rows) != _rows(db):
        yield f"{_rows(db)} rows are there, and {len(rows)} were written"


def _rows(db: Path) -> int:
    if not db.exists():
        return 0
    with closing(sqlite3.connect(db)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'cub.bench.%'")
        return sum(
            connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
            for (name,) in names.fetchall()
        )


def main(tree: str, checkout: str | None = None) -> int:
    """Prints what was compared; 1 when something does not agree."""
    begun = time.monotonic()
    gpu = find_gpu()
    print(f"{gpu.name}, driver {gpu.driver}, CUB {tree}")
    found = list(compare(open_session(tree)))
    if checkout is not None:
        found += compare_ways(Path(checkout))
    with TemporaryDirectory() as folder:
        found += kill(tree, Path(folder))
    for one in found:
        print(f"DISAGREES: {one}")
    print(f"{len(found)} disagreements, {time.monotonic() - begun:.0f} s")
    return int(bool(found))


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except PolicygenError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
