"""Commits of upstream that tuned something, done again from the labels that they wrote."""

import re
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.replaying import (
    REJECTED,
    SAID_OTHERWISE,
    SAME,
    WRONG,
    Replayed,
    Rows,
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
from policygen import PolicygenError, open_session, trees
from policygen.app.session import Session
from policygen.errors import ProcessError
from policygen.git import ENVIRONMENT, INSTALL
from policygen.model.arch import arch_number
from policygen.model.selection import ResolvedRow
from policygen.model.tuning import TuningHeader
from policygen.model.workload import Point, in_words
from policygen.planning.judge import differs
from policygen.process import output
from policygen.proof.reading import read_tree
from policygen.trees.manifest import shipped

# "// ipt_20.tpb_256.ns_0": two parameters at least, or their number would be part of any name
LABEL = r"[a-z]_-?[0-9]+\.[a-z]+[0-9a-z]*_-?[0-9]+"
_LABELS = re.compile(rb"//\s*((?:[a-z]+[0-9a-z]*_-?[0-9]+\.)+[a-z]+[0-9a-z]*_-?[0-9]+)\b")
# "…: T=I8 OffsetT=I32 ipt_20.tpb_256, T=I16 …": who wants what
_WHO = re.compile(
    r" \(no variant suits all of them: [^)]*\)|: (?:(?:cub\.bench\.\S+ )?\w+=\S+|\S+ scores) .*$",
    re.DOTALL,
)
_DECIDED = re.compile(r"(?<=decides )\d+(?= workloads)")
NOTHING_NEW = "no entry of its headers says what the parent's does not say"
UNREAD = "no entry or return that is read has"
NOTHING_TUNED = "no workload changes under a label"


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as a table names it."""

    id: str
    date: str
    subject: str

    @property
    def short(self) -> str:
        """What it is called."""
        return self.id[:10]


@dataclass(frozen=True, slots=True)
class Replay:
    """A commit on an architecture; a note where nothing of it was done again."""

    commit: Commit
    arch: str = ""
    found: tuple[Replayed, ...] = ()
    note: str = ""
    left: tuple[str, ...] = ()
    """Benchmarks that one of the trees does not compile, each with the reason."""

    def count(self, kind: str) -> int:
        """The workloads that end so."""
        return sum(one.ending == kind for one in self.found)


class History:
    """A git repository with CCCL, which may have no work tree; it is only read."""

    def __init__(self, checkout: Path) -> None:
        own = checkout / ".git"
        self._folder = own if own.exists() else checkout

    def commits(self, revisions: Sequence[str]) -> list[Commit]:
        """Those that are named; else all whose change of tuning headers has a label in it."""
        if revisions:
            told = [self._ask("log", "-1", _FORMAT, revision, "--") for revision in revisions]
        else:
            (root,) = shipped().layouts.checkout
            every = ("--reverse", "--no-merges", f"-G{LABEL}", "HEAD", "--", f"{root}/{tunings()}")
            told = [self._ask("log", _FORMAT, *every)]
        lines = (line for text in told for line in text.decode("utf-8", "replace").splitlines())
        return [Commit(*line.split(" ", 2)) for line in lines]

    def fork(self, revision: str) -> str:
        """The commit of main at which a branch began."""
        return self._ask("merge-base", "HEAD", revision).decode().strip()

    def take_out(self, revision: str, folder: Path) -> Path:
        """The tree of a revision, as far as a compiler needs it."""
        layouts = shipped().layouts
        parts = (*layouts.checkout, *layouts.beside_checkout)
        with tarfile.open(fileobj=BytesIO(self._ask("archive", revision, "--", *parts))) as file:
            # Python before 3.11.4 has no filters, and git no path that leads out of a tree.
            file.extraction_filter = getattr(tarfile, "data_filter", None)
            file.extractall(folder)
        return folder

    def _ask(self, *words: str) -> bytes:
        command = ["git", f"--git-dir={self._folder}", *words]
        return output(command, more=ENVIRONMENT, install=INSTALL)


_FORMAT = "--format=%H %cs %s"


def replayed(history: History, commit: Commit) -> Iterator[Replay]:
    """A commit on each architecture that it has something new for."""
    with TemporaryDirectory() as folder:
        work = Path(folder)
        try:
            before, after = (
                open_session(str(history.take_out(revision, work / name)))
                for name, revision in (("before", f"{commit.id}^"), ("after", commit.id))
            )
            headers = changed(before, after)
            archs = new_archs(before, after, headers)
        except PolicygenError as error:
            yield Replay(commit, note=first_line(error))
            return
        if not archs:
            lost = len(unread(before, after, headers))
            yield Replay(commit, note=f"new labels that {UNREAD}: {lost}" if lost else NOTHING_NEW)
        for arch in archs:
            yield replayed_on(commit, arch, (before, after), headers, work / arch)


def replayed_on(
    commit: Commit, arch: str, sides: tuple[Session, Session], headers: Sequence[str], work: Path
) -> Replay:
    """The labels of the later tree on an architecture, given to the earlier one."""
    _, after = sides
    try:
        had, upstream = (ask(side, arch, headers) for side in sides)
        labelled = tuned(had.rows, upstream.rows, dict(labels(after, upstream.rows, arch, headers)))
    except PolicygenError as error:
        return Replay(commit, arch, note=first_line(error))
    left = tuple(dict.fromkeys((*had.left, *upstream.left)))
    if not labelled:
        return Replay(commit, arch, note=NOTHING_TUNED, left=left)
    try:
        found = _again(sides, work, arch, labelled, headers, had.rows, upstream.rows)
    except Exception as error:  # noqa: BLE001  whatever it is, it is what this looks for
        reason = f"{type(error).__name__}: {first_line(error)}"
        found = [Replayed(point, label, WRONG, reason) for point, label in labelled.items()]
    return Replay(commit, arch, tuple(found), left=left)


def _again(
    sides: tuple[Session, Session],
    work: Path,
    arch: str,
    labelled: Mapping[Point, str],
    headers: Sequence[str],
    had: Rows,
    upstream: Rows,
) -> list[Replayed]:
    """Plans the labels for the parent, writes them to a copy, and asks that."""
    before, after = sides
    for name in ("results", "meant"):
        (work / name).mkdir(parents=True)
    made = planned(before, work / "results", arch, {**stayed(labelled, had, upstream), **labelled})
    copy = work / "tree"
    shutil.copytree(before.root.parent, copy)
    written(made, copy / before.root.name)
    now = ask(open_session(str(copy)), arch, headers).rows
    means = label_means(after, work / "meant", arch, labelled)
    actions = {action.point: action for action in made.plan.actions}
    found = [
        ending(
            Wanted(point, label, means.get(point, {}), said(after, point[0])),
            upstream[point].values,
            now[point].values if point in now else None,
            actions.get(point),
        )
        for point, label in labelled.items()
    ]
    return [*found, *unasked(labelled, had, upstream, now)]


def stayed(labelled: Mapping[Point, str], had: Rows, upstream: Rows) -> dict[Point, None]:
    """The other workloads of the same benchmarks to which a commit gives what they had."""
    names = {name for name, _ in labelled}
    return {
        point: None
        for point, row in had.items()
        if point[0] in names
        and point not in labelled
        and point in upstream
        and not _unlike(row, upstream[point])
    }


def changed(before: Session, after: Session) -> tuple[str, ...]:
    """The tuning headers that both trees have, and that differ."""
    old, new = ({p.name: p for p in trees.tuning_headers(side.cub)} for side in (before, after))
    both = sorted(old.keys() & new.keys())
    return tuple(name for name in both if old[name].read_bytes() != new[name].read_bytes())


def new_archs(before: Session, after: Session, headers: Sequence[str]) -> tuple[str, ...]:
    """The architectures for which an entry with a label says what none of the parent's does."""
    if not headers:
        return ()
    old, new = (_said(read_tree(side.cub, headers).headers) for side in (before, after))
    return tuple(sorted({arch for arch, *_ in new - old}, key=arch_number))


def _said(headers: Iterable[TuningHeader]) -> set[tuple[str, ...]]:
    return {
        (family.arch, header.name, family.namespace, family.name, *entry.args, repr(entry.values))
        for header in headers
        for family in families(header)
        for entry in family.specializations
        if any(not label.rejected for label in entry.labels)
    }


def unread(before: Session, after: Session, headers: Sequence[str]) -> frozenset[str]:
    """Labels that a commit adds to headers, and that stand with nothing that is read."""
    old, new = (
        {
            label.decode()
            for path in trees.tuning_headers(side.cub)
            if path.name in headers
            for label in _LABELS.findall(path.read_bytes())
        }
        for side in (before, after)
    )
    known = {
        label.variant
        for header in (read_tree(after.cub, headers).headers if headers else ())
        for family in families(header)
        for entry in family.entries
        for label in entry.labels
    }
    return frozenset(new - old - known)


def tuned(had: Rows, upstream: Rows, labelled: Mapping[Point, str]) -> dict[Point, str]:
    """The workloads with a label to which a commit gives other values."""
    return {
        point: label
        for point, label in labelled.items()
        if point in had and _unlike(had[point], upstream[point])
    }


def unasked(
    labelled: Mapping[Point, str], had: Rows, upstream: Rows, now: Rows
) -> Iterator[Replayed]:
    """Workloads that have other values now, and for which neither we nor upstream meant any."""
    for point, row in had.items():
        if point in labelled or (point in upstream and _unlike(row, upstream[point])):
            continue
        if point not in now or _unlike(row, now[point]):
            words = differs(now[point].values, row.values) if point in now else "it is gone"
            yield Replayed(point, "", WRONG, f"changed, and was not tuned: {words}")


def _unlike(before: ResolvedRow, after: ResolvedRow) -> bool:
    """Whether a policy differs in a value that both have."""
    return any(after.values.get(name, value) != value for name, value in before.values.items())


def first_line(error: BaseException) -> str:
    """What an error says, without where and how; of a compiler what it says first."""
    if isinstance(error, ProcessError):
        lines = (line for line in error.stderr.splitlines() if "error" in line)
        return next(lines, f"status {error.status}").partition("error: ")[2] or str(error.status)
    return str(error).partition("\n")[0]


def heading() -> str:
    """The first lines of the table."""
    words = ["commit", "date", "arch", "tuned", "same", "otherwise", "rejected", "wrong", ""]
    return f"| {' | '.join(words)} |\n|{' --- |' * len(words)}"


def line(one: Replay) -> str:
    """One line of the table."""
    asked = sum(bool(found.label) for found in one.found)
    counts = [asked, *map(one.count, (SAME, SAID_OTHERWISE, REJECTED, WRONG))]
    cells = [one.commit.short, one.commit.date, one.arch, *map(str, counts), one.note]
    return f"| {' | '.join(cells)} |"


def reasons(replays: Iterable[Replay]) -> Iterator[str]:
    """Why workloads did not get what upstream gave them, how often, and one of them."""
    for one in replays:
        if not one.left and not any(found.reason for found in one.found):
            continue
        yield f"{one.commit.short} {one.arch}: {one.commit.subject}"
        yield from (f"  not checked: {text.partition(' [with')[0]}" for text in one.left)
        for count, kind, reason, first in by_reason(one.found):
            yield f"  {count} {kind}: {reason} ({first})"


def by_reason(endings: Iterable[Replayed]) -> Iterator[tuple[int, str, str, str]]:
    """How many workloads ended alike, how, why, and one of them; the most frequent first."""
    alike: dict[tuple[str, str], list[Replayed]] = {}
    for replay in endings:
        if replay.reason:
            # Without the workloads that a reason names, and their number.
            reason = _DECIDED.sub("several", _WHO.sub("", replay.reason))
            alike.setdefault((replay.ending, reason), []).append(replay)
    for (kind, reason), replays in sorted(alike.items(), key=lambda pair: -len(pair[1])):
        name, workload = replays[0].point
        first = f"{in_words(name, dict(workload))} {replays[0].label}".strip()
        yield len(replays), kind, reason, first
