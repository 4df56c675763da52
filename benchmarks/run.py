"""`make bench`: prints what was measured and keeps it, with what it was measured on."""

import json
import platform
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import apply, databases, probe, review, sass, scan
from benchmarks.measure import ROUNDS, measure, show
from policygen import __version__
from policygen.paths import cache_folder, write_atomically
from policygen.process import cores
from policygen.trees import fetch

HERE = Path(__file__).resolve().parent


def main() -> None:
    """All groups, one after the other."""
    root = Path(fetch(scan.VERSION, cache_folder() / "test-trees", progress=print).root)
    with tempfile.TemporaryDirectory() as folder:
        scans = measure(scan.commands(root, Path(folder)))
        show("tuning headers, whole process", scans)
        print("ratio: to the floor's median in this run; a cold scan's is to be at most 4\n")
        tops = measure(databases.commands(Path(folder)))
        show("tuning databases, whole process", tops)
        print(databases.rates(tops))
        tree = Path(fetch(probe.VERSION, cache_folder() / "test-trees", progress=print).root)
        probes = measure(probe.commands(tree, Path(folder)), probe.ROUNDS)
        show("asking the compiler, whole process", probes)
        print(probe.rates(probes, len(probe.sections())))
        print("ratio: policygen's on the same units is to be at most 1.1\n")
        audits = measure(probe.once(tree, Path(folder)), rounds=1, warming=0)
        show("audits, whole process", audits)
        applies = measure(apply.commands(tree, Path(folder)), apply.ROUNDS)
        show("ten workloads in three headers, whole process", applies)
        print(apply.rates(applies))
        print(apply.share(tree, Path(folder)))
        compared = measure(sass.commands(tree, Path(folder)), sass.ROUNDS)
        show("machine code of both sides, whole process", compared)
        print(sass.rates(compared))
        print(sass.listings(Path(folder)))
        reviews = measure(review.commands(tree, Path(folder)), review.ROUNDS)
        show("reading a change and a tree, from the cache, whole process", reviews)
    document = {
        "policygen": __version__,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "cores": cores(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": ROUNDS,
        "scan": [asdict(figure) for figure in scans],
        "databases": [asdict(figure) for figure in tops],
        "probe": [asdict(figure) for figure in (*probes, *audits)],
        "apply": [asdict(figure) for figure in applies],
        "sass": [asdict(figure) for figure in compared],
        "review": [asdict(figure) for figure in reviews],
    }
    path = HERE / "results" / "figures.json"
    write_atomically(path, (json.dumps(document, indent=1) + "\n").encode())
    print(f"\nwritten to {path.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
