"""Replays of upstream's own tuning history: is written again what upstream wrote?

python -m benchmarks.replays deleted TREE --arch sm100
python -m benchmarks.replays commits CHECKOUT [REVISION...]
python -m benchmarks.replays campaign BEFORE AFTER --arch sm107
python -m benchmarks.replays reviews CHECKOUT REVISION...
python -m benchmarks.replays all CHECKOUT --page docs/findings.md [--only REGEX]

`deleted` takes all entries of an architecture out of a copy of a tree, gives their labels as the
winners of the workloads that select them, and counts which of those have their values again.
`commits` gives the labels of a commit to its parent, for each of some commits of a git repository
with CCCL (by default all that change a label), and counts which workloads get the commit's values.
`campaign` does the same between two trees, for one architecture. `reviews` reviews what commits
change since they left main, and prints the exit status with the findings. `all` runs everything, or
what `--only` matches, and writes each part into a page when it is done, between two marks.
"""

import argparse
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.commits import (
    Commit,
    History,
    Replay,
    by_reason,
    changed,
    heading,
    line,
    reasons,
    replayed,
    replayed_on,
)
from benchmarks.replaying import (
    REJECTED,
    SAID_OTHERWISE,
    SAME,
    WRONG,
    Replayed,
    Wanted,
    ask,
    ending,
    families,
    label_means,
    labels,
    planned,
    said,
    tunings,
    written,
)
from policygen import open_session
from policygen.app.review import review_change
from policygen.app.session import Session
from policygen.errors import InputError, PolicygenError
from policygen.headers.spelling import edit_at, splice
from policygen.model.records import Span
from policygen.model.reviews import Review
from policygen.model.tuning import Entry
from policygen.proof.reading import read_tree


def deleted(tree: Path, arch: str) -> list[Replayed]:
    """Takes out all entries of an architecture, and has them written again from their labels."""
    with TemporaryDirectory() as folder:
        work = Path(folder)
        session = open_session(str(tree))
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
    """Takes the labeled entries of an architecture out of all headers, with their comments.

    A specialization and an `if` with its return go as they are; a bare return becomes what lets the
    code after it decide.
    """
    for header in read_tree(session.cub, ()).headers:
        path = copy / tunings() / header.name
        data = path.read_bytes()
        edits = [
            edit_at(data, span, text, "taken out")
            for family in families(header)
            if family.arch == arch
            for entry in family.specializations
            for span, text in _removal(data, entry)
        ]
        if edits:
            path.unlink()
            path.write_bytes(splice(header.name, data, edits))


# "case 4: // ipt_20.tpb_224" before a return
_CASE = re.compile(rb"(?:\bcase\b[^;{}:]*|\bdefault\s*):(?!:)(?:\s|//[^\n]*\n)*\Z")


def _removal(data: bytes, entry: Entry) -> Iterator[tuple[Span, str]]:
    start = entry.comment_span.start if entry.comment_span else entry.span.start
    if entry.kind != "branch":
        yield Span(start, entry.span.end), ""
    elif any(not label.rejected for label in entry.labels):
        bare = data[entry.span.start :].startswith(b"return")
        last = "break;" if _CASE.search(data[: entry.span.start]) else ""
        yield Span(start, entry.span.end), last if bare else ""


def campaign(before: Session, after: Session, arch: str) -> Replay:
    """The labels that one tree has for an architecture, given to another tree."""
    with TemporaryDirectory() as folder:
        name = Commit(after.cub.version, "", f"{before.cub.version} to {after.cub.version}")
        headers = changed(before, after)
        return replayed_on(name, arch, (before, after), headers, Path(folder))


def reviewed(history: History, revision: str) -> Review:
    """The review of what a branch changed since it left main."""
    with TemporaryDirectory() as folder:
        base, head = (
            history.take_out(commit, Path(folder) / name)
            for name, commit in (("base", history.fork(revision)), ("head", revision))
        )
        return review_change(open_session(str(head)), str(base))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    by_kind = {name: kinds.add_parser(name) for name in COMMANDS}
    by_kind["deleted"].add_argument("tree", type=Path)
    by_kind["deleted"].add_argument("--arch", default="sm100")
    by_kind["commits"].add_argument("checkout", type=Path)
    by_kind["commits"].add_argument("revisions", nargs="*")
    by_kind["campaign"].add_argument("before")
    by_kind["campaign"].add_argument("after")
    by_kind["campaign"].add_argument("--arch", default="sm107")
    by_kind["reviews"].add_argument("checkout", type=Path)
    by_kind["reviews"].add_argument("revisions", nargs="+")
    by_kind["all"].add_argument("checkout", type=Path)
    by_kind["all"].add_argument("--page", type=Path)
    by_kind["all"].add_argument("--only", default="", help="parts whose names match")
    options = parser.parse_args(arguments)
    try:
        return COMMANDS[options.kind](options)
    except PolicygenError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def _show_deleted(options: argparse.Namespace) -> int:
    """Prints what became of each benchmark's workloads."""
    endings = deleted(options.tree, options.arch)
    for name in dict.fromkeys(replay.point[0] for replay in endings):
        of_name = [replay for replay in endings if replay.point[0] == name]
        counts = Counter(replay.ending for replay in of_name)
        print(f"{name}: {', '.join(f'{n} {kind}' for kind, n in counts.items())}")
        alike = Counter((row.ending, row.reason) for row in of_name if row.reason)
        for (kind, reason), n in alike.items():
            print(f"  {n} {kind}: {reason}")
    counts = Counter(replay.ending for replay in endings)
    print(f"{len(endings)} workloads: {', '.join(f'{n} {kind}' for kind, n in counts.items())}")
    return 1 if counts[WRONG] else 0


def _show_commits(options: argparse.Namespace) -> int:
    """Prints the table as it grows, and the reasons below it; 1 where the tool was wrong."""
    history = History(options.checkout)
    replays = (
        replay
        for commit in history.commits(options.revisions)
        for replay in replayed(history, commit)
    )
    return _show(replays)


def _show(replays: Iterable[Replay]) -> int:
    print(heading(), flush=True)
    shown = []
    for replay in replays:
        print(line(replay), flush=True)
        shown.append(replay)
    for text in ("", *reasons(shown)):
        print(text)
    return 1 if any(replay.count(WRONG) for replay in shown) else 0


def _show_campaign(options: argparse.Namespace) -> int:
    sides = (open_session(options.before), open_session(options.after))
    return _show([campaign(*sides, options.arch)])


def _show_reviews(options: argparse.Namespace) -> int:
    history = History(options.checkout)
    for revision in options.revisions:
        failures = reviewed(history, revision).failures
        print(f"{revision}: exit status {1 if failures else 0}", flush=True)
        for failure in failures:
            print(f"  {failure}")
    return 0


BEGIN, END = "<!-- replay: {} -->\n", "<!-- end -->"
CAMPAIGN = ("3.6.0", "sm107")
"""NVIDIA's tunings for R200, which came between a checkout of August 2026 and the release."""
DELETED = (("3.0.1", "sm100"), ("3.2.0", "sm100"), ("3.6.0", "sm100"))
REVIEWS = ("pull-request/10751", "pull-request/10752")
COUNTED = (SAME, SAID_OTHERWISE, REJECTED, WRONG)


def _parts(history: History) -> Iterator[tuple[str, Callable[[], tuple[int, str]]]]:
    """The parts of the page: a name, and what makes its text and counts what is wrong."""
    release, arch = CAMPAIGN
    yield "commits", partial(_commits_part, history)
    yield f"{arch} of {release}", partial(_campaign_part, history, release, arch)
    for release, arch in DELETED:
        yield f"{arch} taken out of {release}", partial(_deleted_part, release, arch)
    yield "reviews", partial(_reviews_part, history)


def _commits_part(history: History) -> tuple[int, str]:
    replays = [replay for commit in history.commits(()) for replay in replayed(history, commit)]
    table = [heading(), *(line(replay) for replay in replays)]
    wrong, text = _counted([ending for replay in replays for ending in replay.found])
    return wrong, "\n".join(table) + f"\n\n{text}"


def _campaign_part(history: History, release: str, arch: str) -> tuple[int, str]:
    with TemporaryDirectory() as folder:
        before = open_session(str(history.take_out("HEAD", Path(folder) / "before")))
        replay = campaign(before, open_session(release), arch)
    return _counted(replay.found)


def _deleted_part(release: str, arch: str) -> tuple[int, str]:
    return _counted(deleted(open_session(release).root, arch))


def _reviews_part(history: History) -> tuple[int, str]:
    rows = ["| review of | exit status | not to be merged |\n| --- | --- | --- |"]
    for revision in REVIEWS:
        failures = reviewed(history, revision).failures
        words = "<br>".join(map(_cell, failures))
        rows.append(f"| {revision} | {1 if failures else 0} | {words} |")
    return 0, "\n".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _counted(endings: Sequence[Replayed]) -> tuple[int, str]:
    """How many are wrong; how many ended how, and a table of the reasons with an example."""
    counts = Counter(replay.ending for replay in endings)
    numbers = ", ".join(f"{counts[kind]} {kind}" for kind in COUNTED)
    rows = [f"{len(endings)} workloads: {numbers}."]
    table = [
        f"| {count} {kind} | {_cell(reason)} | `{first}` |"
        for count, kind, reason, first in by_reason(endings)
    ]
    if table:
        rows += ["\n| workloads | reason | for example |\n| --- | --- | --- |", *table]
    return counts[WRONG], "\n".join(rows)


def _show_all(options: argparse.Namespace) -> int:
    """Makes the parts of the page; each is written when it is done."""
    wrong = 0
    for name, make in _parts(History(options.checkout)):
        if not re.search(options.only, name):
            continue
        wrong_here, text = make()
        wrong += wrong_here
        print(f"{name}\n\n{text}\n", flush=True)
        if options.page:
            page = options.page.read_text(encoding="utf-8")
            before, mark, rest = page.partition(BEGIN.format(name))
            if not rest:
                raise InputError(f"{options.page} has no line {BEGIN.format(name).strip()}")
            page = f"{before}{mark}\n{text}\n\n{END}{rest.partition(END)[2]}"
            options.page.write_text(page, encoding="utf-8")
    return 1 if wrong else 0


COMMANDS = {
    "deleted": _show_deleted,
    "commits": _show_commits,
    "campaign": _show_campaign,
    "reviews": _show_reviews,
    "all": _show_all,
}

if __name__ == "__main__":
    sys.exit(main())
