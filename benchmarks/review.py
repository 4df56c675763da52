"""What is read: a review of a change in three headers, and the coverage of a tree."""

import subprocess
import sys
from pathlib import Path

from benchmarks.apply import WON, own_tree, write
from benchmarks.measure import Commands, run

ROUNDS = 5
ARCHS = ("sm80", "sm86", "sm90", "sm100", "sm120")


def commands(root: Path, work: Path) -> Commands:
    """All from cached compiles."""
    tree, store, cache = own_tree(root, work / "review-tree"), work / "review.db", work / "read"
    python = [sys.executable, "-m", "policygen"]
    apply = [*python, "apply", "-q", "--arch", "sm90", "--cub", str(tree)]
    databases = [word for name in WON for word in ("--db", str(write(name, work)))]
    subprocess.run(
        [*apply, "--store", str(store), *databases], check=True, stdout=subprocess.DEVNULL
    )
    review = [*python, "review", "-q", "--cub", str(tree), "--store", str(store)]
    coverage = [*python, "audit", "coverage", "-q", "--cub", str(root)]
    coverage += [word for arch in ARCHS for word in ("--arch", arch)]
    page = [*coverage, "--format", "html", "-o", str(work / "coverage.html")]
    return {
        "policygen review, ten workloads": (lambda: run(review, cache), 2.0),
        "policygen audit coverage, five archs": (lambda: run(coverage, cache), 2.0),
        "policygen audit coverage --format html": (lambda: run(page, cache), 2.0),
    }
