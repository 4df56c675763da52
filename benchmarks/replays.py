"""Replays of upstream's own tuning history: is written again what upstream wrote?

python -m benchmarks.replays deleted TREE --arch sm100

`deleted` takes all entries of an architecture out of a copy of a tree, gives their labels as the
winners of the workloads that select them, and tells which of those have their values again.
"""

import argparse
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fixtures.databases.every import GPUS, Workload, benchmark_database, benchmark_of, is_variant
from policygen import Filter, Options, ResultFiles, open_session, plan_tunings, resolve_workloads
from policygen.app.reading import read_tree
from policygen.app.session import Session
from policygen.errors import PolicygenError
from policygen.model.base import Span
from policygen.model.plan import Plan
from policygen.model.resolve import ResolvedRow
from policygen.model.tuning import Entry, TuningHeader
from policygen.model.workload import Point
from policygen.source.splice import edit_at, splice

TUNINGS = "cub/device/dispatch/tuning"
SAME, SAID_OTHERWISE, REJECTED = "same", "label says otherwise", "rejected"


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of one workload."""

    point: Point
    label: str
    ending: str
    """As upstream had it, as its label says in place of that, or not written."""
    reason: str = ""


def deleted(tree: Path, arch: str) -> list[Replayed]:
    """Takes out all entries of an architecture, and has them written again from their labels."""
    with TemporaryDirectory() as folder:
        work = Path(folder)
        session = open_session(str(tree))
        before = _rows(session, arch)
        labels = dict(_labels(session, before, arch))
        copy = work / "tree"
        shutil.copytree(session.root, copy)
        _take_out(session, copy, arch)
        files = list(_databases(work, session.cub.version, arch, labels))
        options = Options(arch=arch, narrow=True)
        made = plan_tunings(open_session(str(copy)), ResultFiles([*map(str, files)]), options)
        for name, data in made.changed.items():
            (copy / TUNINGS / name).write_bytes(data)
        after = _rows(open_session(str(copy)), arch)
        return list(_compared(labels, before, after, made.plan))


def _rows(session: Session, arch: str) -> dict[Point, ResolvedRow]:
    document, errors = resolve_workloads(session, Filter(archs=(arch,)))
    if errors:
        raise errors[0]
    return {row.point: row for row in document.rows}


def _labels(
    session: Session, rows: Mapping[Point, ResolvedRow], arch: str
) -> Iterator[tuple[Point, str]]:
    """The label of the entry that each workload selects, where its benchmark has that variant."""
    headers = {header.name: header for header in read_tree(session.cub, ()).headers}
    for point, row in rows.items():
        entry = _entry(headers, row, arch)
        label = (
            next((one.variant for one in entry.labels if not one.rejected), None) if entry else None
        )
        if label and is_variant(benchmark_of(point[0], session.cub.version), label):
            yield point, label


def _entry(headers: Mapping[str, TuningHeader], row: ResolvedRow, arch: str) -> Entry | None:
    if row.entry is None:
        return None
    header = headers[row.entry.header]
    for family in header.families:
        if family.arch == arch:
            for entry in family.specializations:
                if entry.line == row.entry.line:
                    return entry
    return None


def _take_out(session: Session, copy: Path, arch: str) -> None:
    """Takes the specializations of an architecture out of all headers, with their comments."""
    for header in read_tree(session.cub, ()).headers:
        path = copy / TUNINGS / header.name
        data = path.read_bytes()
        spans = [
            Span(
                entry.comment_span.start if entry.comment_span else entry.span.start, entry.span.end
            )
            for family in header.families
            if family.arch == arch
            for entry in family.specializations
        ]
        if spans:
            edits = [edit_at(data, span, "", "taken out") for span in spans]
            path.unlink()
            path.write_bytes(splice(header.name, data, edits))


def _databases(
    folder: Path, version: str, arch: str, labels: Mapping[Point, str]
) -> Iterator[Path]:
    """A database for each benchmark."""
    for name in dict.fromkeys(name for name, _ in labels):
        won: dict[Workload | None, str | None] = {
            tuple(value for _, value in workload): label
            for (benchmark, workload), label in labels.items()
            if benchmark == name
        }
        path = folder / f"{name}.db"
        benchmark_database(path, name, version, GPUS[arch], won)
        yield path


def _compared(
    labels: Mapping[Point, str],
    before: Mapping[Point, ResolvedRow],
    after: Mapping[Point, ResolvedRow],
    plan: Plan,
) -> Iterator[Replayed]:
    actions = {action.point: action for action in plan.actions}
    for point, label in labels.items():
        was, now = before[point].values, after[point].values
        other = [f"{n} {now.get(n)} and not {v}" for n, v in was.items() if now.get(n) != v]
        action = actions[point]
        if not other:
            yield Replayed(point, label, SAME)
        elif action.written:
            # The proof has shown that it gets what its label means.
            yield Replayed(point, label, SAID_OTHERWISE, ", ".join(other))
        else:
            yield Replayed(point, label, REJECTED, action.reason)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints what became of each benchmark's workloads."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("kind", choices=["deleted"])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--arch", default="sm100")
    asked = parser.parse_args(arguments)
    try:
        found = deleted(asked.tree, asked.arch)
    except PolicygenError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for name in dict.fromkeys(one.point[0] for one in found):
        mine = [one for one in found if one.point[0] == name]
        counted = Counter(one.ending for one in mine)
        print(f"{name}: {', '.join(f'{n} {ending}' for ending, n in counted.items())}")
        for (ending, reason), n in Counter((o.ending, o.reason) for o in mine if o.reason).items():
            print(f"  {n} {ending}: {reason}")
    counted = Counter(one.ending for one in found)
    print(f"{len(found)} workloads: {', '.join(f'{n} {e}' for e, n in counted.items())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
