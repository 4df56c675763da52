"""Replays of upstream's own tuning history: is written again what upstream wrote?

python -m benchmarks.replays deleted TREE --arch sm100
python -m benchmarks.replays commits CHECKOUT [REVISION...]

`deleted` takes all entries of an architecture out of a copy of a tree, gives their labels as the
winners of the workloads that select them, and tells which of those have their values again.
`commits` gives the labels of a commit to its parent, for each of some commits of a git repository
with CCCL (by default all that change a label), and tells which workloads get the commit's values.
"""

import argparse
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.commits import History, heading, line, reasons, replayed
from benchmarks.replaying import (
    WRONG,
    Replayed,
    Wanted,
    ask,
    ending,
    label_means,
    labels,
    planned,
    said,
    tunings,
    written,
)
from policygen import open_session
from policygen.app.reading import read_tree
from policygen.app.session import Session
from policygen.errors import InputError, PolicygenError
from policygen.headers.spelling import edit_at, splice
from policygen.model.records import Span


def deleted(tree: Path, arch: str) -> list[Replayed]:
    """Takes out all entries of an architecture, and has them written again from their labels."""
    with TemporaryDirectory() as folder:
        work = Path(folder)
        session = open_session(str(tree))
        if session.cub.has_selectors:
            raise InputError(f"CUB {session.cub.version} has returns, which are not taken out")
        before = ask(session, arch).rows
        labelled = dict(labels(session, before, arch))
        copy = work / "tree"
        shutil.copytree(session.root, copy)
        _take_out(session, copy, arch)
        made = planned(open_session(str(copy)), work, arch, labelled)
        written(made, copy)
        after = ask(open_session(str(copy)), arch).rows
        actions = {action.point: action for action in made.plan.actions}
        (work / "meant").mkdir()
        means = label_means(session, work / "meant", arch, labelled)
        return [
            ending(
                Wanted(point, label, means[point], said(session, point[0])),
                before[point].values,
                after[point].values if point in after else None,
                actions.get(point),
            )
            for point, label in labelled.items()
        ]


def _take_out(session: Session, copy: Path, arch: str) -> None:
    """Takes the specializations of an architecture out of all headers, with their comments."""
    for header in read_tree(session.cub, ()).headers:
        path = copy / tunings() / header.name
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


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    one = kinds.add_parser("deleted")
    one.add_argument("tree", type=Path)
    one.add_argument("--arch", default="sm100")
    many = kinds.add_parser("commits")
    many.add_argument("checkout", type=Path)
    many.add_argument("revisions", nargs="*")
    asked = parser.parse_args(arguments)
    try:
        if asked.kind == "commits":
            return _show_commits(asked.checkout, asked.revisions)
        return _show_deleted(asked.tree, asked.arch)
    except PolicygenError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def _show_deleted(tree: Path, arch: str) -> int:
    """Prints what became of each benchmark's workloads."""
    found = deleted(tree, arch)
    for name in dict.fromkeys(one.point[0] for one in found):
        mine = [one for one in found if one.point[0] == name]
        counted = Counter(one.ending for one in mine)
        print(f"{name}: {', '.join(f'{n} {kind}' for kind, n in counted.items())}")
        for (kind, reason), n in Counter((o.ending, o.reason) for o in mine if o.reason).items():
            print(f"  {n} {kind}: {reason}")
    counted = Counter(one.ending for one in found)
    print(f"{len(found)} workloads: {', '.join(f'{n} {e}' for e, n in counted.items())}")
    return 0


def _show_commits(checkout: Path, revisions: Sequence[str]) -> int:
    """Prints the table as it grows, and the reasons below it; 1 where the tool was wrong."""
    history = History(checkout)
    print(heading(), flush=True)
    found = []
    for commit in history.commits(revisions):
        for one in replayed(history, commit):
            print(line(one), flush=True)
            found.append(one)
    for text in ("", *reasons(found)):
        print(text)
    return 1 if any(one.count(WRONG) for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
