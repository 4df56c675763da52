"""Results that come with policygen, as a series of patches for a checkout of CCCL.

    python -m benchmarks.upstream CHECKOUT OUT [--from h100] [--only REGEX] [--archs sm80,sm100]

One commit for each algorithm, on a copy of the checkout's HEAD: OUT gets `git format-patch`'s file
and the review page of each, with the machine code of the architectures that it should not reach
(all, which takes hours, or those of `--archs`), and `index.md`, which says how each ended. Exit
status 1 means that a review forbids a merge. `verify-performance` needs the GPU: run it on the
branch `tuned` of OUT/cccl.
"""

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from policygen.app.comparison import EARLIER
from policygen.cli.main import main as policygen
from policygen.git import INSTALL
from policygen.model.plans import Action, Plan
from policygen.model.reviews import Review
from policygen.model.workload import in_words
from policygen.process import output


@dataclass(frozen=True, slots=True)
class Series:
    """The copy that commits are made in, and where they are described."""

    out: Path
    shipped: str
    archs: str

    @property
    def tree(self) -> Path:
        return self.out / "cccl"

    def git(self, *words: str) -> str:
        return output(["git", "-C", str(self.tree), *words], install=INSTALL).decode()

    def policygen(self, command: str, *words: str) -> int:
        store = ("--store", str(self.out / "policygen.db"))
        more = () if command == "plan" else store
        with redirect_stdout(StringIO()):
            return policygen([command, "--cub", str(self.tree), *words, *more, "-q"])

    def plan(self, only: str) -> Plan:
        file = self.out / "plan.json"
        status = self.policygen(
            "plan", "--from", self.shipped, "-R", only, "-o", str(file), "--force"
        )
        if status not in {0, 1}:
            raise SystemExit(status)
        return Plan.model_validate_json(file.read_bytes())


@dataclass(frozen=True, slots=True)
class Row:
    """A commit of the series."""

    title: str
    actions: Sequence[Action]
    lines: str
    review: Review
    status: int

    def __str__(self) -> str:
        changed = {(row.point, row.arch) for entry in self.review.entries for row in entry.reached}
        sass = self.review.sass
        scores = ", ".join(f"{action.scores[0]:.3f}" for action in self.actions if action.scores)
        cells = (
            self.title,
            scores,
            self.lines,
            str(len(changed) - len(self.actions)),
            sass.summary.partition(": ")[2] if sass else "not compared",
            "yes" if self.status == 0 else "; ".join(self.review.failures) or "no",
        )
        return f"| {' | '.join(cells)} |"


HEAD = (
    "| commit | scores | lines | other workloads that change | machine code of other"
    " architectures | may be merged |\n| --- | --- | --- | --- | --- | --- |"
)


def commit(series: Series, number: int, title: str, stem: str, actions: Sequence[Action]) -> Row:
    """Applies the results of a header, commits the change, and reviews the commit."""
    names = "|".join(sorted({re.escape(action.benchmark) for action in actions}))
    if status := series.policygen(
        "apply",
        "--from",
        series.shipped,
        "-R",
        f"({names})$",
        "-o",
        str(series.out / "apply.txt"),
        "--force",
    ):
        raise SystemExit(status)
    rows = [
        f"- {in_words(action.benchmark, action.workload)}: {action.scores[0]:.3f}"
        for action in actions
        if action.scores
    ]
    series.git(
        "commit",
        "-q",
        "-a",
        "-m",
        f"{title}\n\nSpeedup over the current values:\n" + "\n".join(rows),
    )
    base, written = ("--base", "HEAD~1"), ("--force", "-o")
    saved, sass = series.out / f"{stem}.json", series.out / f"{stem}-sass.json"
    series.policygen("verify-sass", *base, "--arch", series.archs, "--json", *written, str(sass))
    status = series.policygen("review", *base, "--sass", str(sass), "--json", *written, str(saved))
    series.policygen("review", "--from", str(saved), *written, str(series.out / f"{stem}.md"))
    review = Review.model_validate_json(saved.read_bytes())
    saved.unlink()
    sass.unlink()
    series.git(
        "format-patch", "-q", "-1", "--start-number", str(number), "-o", str(series.out.resolve())
    )
    lines = series.git("show", "--shortstat", "--format=").strip().partition(", ")[2]
    return Row(title, actions, lines, review, status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes the series, and prints its index as it grows."""
    parser = argparse.ArgumentParser(description="Shipped results as patches for CCCL.")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--from", dest="shipped", default="h100")
    parser.add_argument("--only", default="", help="benchmarks whose names match, as -R")
    parser.add_argument("--archs", default=EARLIER, help="whose machine code is compared")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True)
    series = Series(given.out, given.shipped, given.archs)
    source = str(given.checkout.resolve())
    output(
        ["git", "clone", "-q", "--shared", source, str(series.tree)],
        install=INSTALL,
    )
    series.git("switch", "-q", "-c", "tuned")
    by_header: dict[str, list[Action]] = defaultdict(list)
    plan = series.plan(given.only)
    for action in plan.written:
        assert action.target
        by_header[action.target.header].append(action)
    index = series.out / "index.md"
    lines = [HEAD]
    failed = False
    print(HEAD)
    for number, (header, actions) in enumerate(sorted(by_header.items()), 1):
        algorithm = header.removeprefix("tuning_").removesuffix(".cuh")
        title = f"Tune {algorithm} for {plan.options.arch}"
        row = commit(series, number, title, f"{number:04}-{algorithm}", actions)
        failed |= row.status != 0
        lines.append(str(row))
        print(row, flush=True)
        index.write_text("\n".join(lines) + "\n", "utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
