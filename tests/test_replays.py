"""What upstream wrote is written again from its own labels."""

import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks import replays
from benchmarks.commits import (
    NOTHING_NEW,
    UNREAD,
    Commit,
    History,
    Replay,
    line,
    reasons,
    replayed,
    stayed,
    tuned,
    unasked,
)
from benchmarks.replaying import REJECTED, SAID_OTHERWISE, SAME, WRONG, Replayed, Wanted, ending
from benchmarks.replays import deleted
from policygen.headers.spelling import edit_at, splice
from policygen.model.plans import Action
from policygen.model.selection import ResolvedRow
from policygen.proof.reading import read_tree
from policygen.trees import open_tree
from tests.headers.headers import MINI
from tests.probing import TUNINGS, root
from tests.tiers import slow, thorough

POINT = ("cub.bench.reduce.sum", (("T", "I8"),))
OTHER = ("cub.bench.reduce.sum", (("T", "I16"),))
LABEL = "ipt_20.tpb_256.ipv_2"


@thorough
@pytest.mark.trees
@pytest.mark.nvcc
def test_entries_that_were_taken_out_come_back():
    """Also the first of a family, and with members that no entry has; none is refused."""
    found = deleted(root("3.0.1"), "sm100")
    assert {one.ending for one in found} == {SAME, SAID_OTHERWISE}
    otherwise = [one for one in found if one.ending == SAID_OTHERWISE]
    # Upstream's labels and values differ there: counts that were scaled, exponents, delays.
    assert {one.reason.partition(" ")[0] for one in otherwise} <= {
        "items",
        "items_per_vec_load",
        "delay_constructor",
    }
    assert len(otherwise) < len(found) / 4


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(folder), *who, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path, subject: str) -> str:
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--message", subject)
    return git(folder, "rev-parse", "HEAD")


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A bare repository: a first commit, one that writes a label, one that does not."""
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "--quiet", "--initial-branch=main")
    for name in ("thrust/thrust/version.h", "libcudacxx/include/cuda/version", "docs/index.md"):
        write(work, name, "\n")
    write(work, f"cub/{TUNINGS}/tuning_reduce.cuh", "\n")
    commit(work, "first")
    write(work, f"cub/{TUNINGS}/tuning_reduce.cuh", f"// {LABEL} 1.1\n")
    commit(work, "a tuning | of reduce")
    write(work, f"cub/{TUNINGS}/tuning_scan.cuh", "int sm_100;\n")
    commit(work, "no label")
    git(tmp_path, "clone", "--quiet", "--bare", "work", "bare.git")
    return tmp_path / "bare.git"


def test_commits_that_change_a_label_are_found_and_taken_out(small: Path, tmp_path: Path):
    (one,) = History(small).commits([])
    assert (one.short, one.subject) == (one.id[:10], "a tuning | of reduce")
    named = History(small).commits(["main", "main^"])
    assert [other.subject for other in named] == ["no label", one.subject]
    assert History(small.parent / "work").commits([]) == [one]
    tree = History(small).take_out(f"{one.id}^", tmp_path / "tree")
    assert sorted(path.name for path in tree.iterdir()) == ["cub", "libcudacxx", "thrust"]
    assert (tree / "cub" / TUNINGS / "tuning_reduce.cuh").read_text() == "\n"


def test_a_commit_whose_tree_cannot_be_opened_is_a_row_with_its_reason(
    small: Path, capsys: pytest.CaptureFixture[str]
):
    assert replays.main(["commits", str(small)]) == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert "| 0 | 0 | 0 | 0 | 0 | no CUB or rocPRIM tree at " in last


def test_a_revision_that_there_is_not_is_an_error(small: Path, capsys: pytest.CaptureFixture[str]):
    assert replays.main(["commits", str(small), "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err


def row(items: int, **more: int) -> ResolvedRow:
    return ResolvedRow(
        benchmark=POINT[0],
        workload=dict(POINT[1]),
        arch="sm100",
        values={"threads": 256, "items": items, **more},
        entry=None,
        status="default",
    )


def action(decision: str, variant: str | None = LABEL) -> Action:
    return Action(
        benchmark=POINT[0],
        workload=dict(POINT[1]),
        gpu="B200",
        ctk="13.0",
        cccl="v3.0.1",
        decision=decision,
        reason="it is why",
        variant=variant,
    )


@pytest.mark.parametrize(
    ("items", "made", "expected"),
    [
        (20, action("add"), (SAME, "")),
        (20, action("keep"), (SAME, "")),
        (22, action("update"), (SAID_OTHERWISE, "items 22, not 20")),
        (21, action("update"), (WRONG, "neither label nor upstream: items 21, not 22")),
        (16, action("reject"), (REJECTED, "it is why")),
        (20, action("reject"), (SAME, "by entries that other workloads' labels wrote")),
        (16, action("fallback"), (WRONG, "its winner is rejected: it is why")),
        (
            20,
            action("add", "ipt_1.tpb_256.ipv_2"),
            (WRONG, "ipt_1.tpb_256.ipv_2 is written, and not its label"),
        ),
        (20, None, (WRONG, "the plan does not have it")),
        (None, action("add"), (WRONG, "the tree that was written does not have it")),
    ],
)
def test_a_workload_ends_as_upstream_or_its_label_have_it(
    items: int | None, made: Action | None, expected: tuple[str, str]
):
    wanted = Wanted(POINT, LABEL, {"items": 22, "threads": 256}, frozenset({"items"}))
    now = None if items is None else row(items).values
    found = ending(wanted, row(20).values, now, made)
    assert (found.ending, found.reason) == expected


def test_what_no_label_says_is_the_commits_policy_and_no_fault():
    wanted = Wanted(POINT, LABEL, {"items": 20, "vec": 4}, frozenset({"items"}))
    found = ending(wanted, row(20, vec=4).values, row(20, vec=1).values, action("add"))
    assert (found.ending, found.reason) == (SAID_OTHERWISE, "vec 1, not 4")


def test_a_commit_tunes_what_gets_other_values_under_a_label():
    had, upstream = {POINT: row(16), OTHER: row(16)}, {POINT: row(20), OTHER: row(16)}
    labelled = tuned(had, upstream, {POINT: LABEL, OTHER: LABEL})
    assert labelled == {POINT: LABEL}
    assert stayed(labelled, had, upstream) == {OTHER: None}
    assert list(unasked(labelled, had, upstream, {POINT: row(20), OTHER: row(16)})) == []
    (wrong,) = unasked(labelled, had, upstream, {POINT: row(20), OTHER: row(20)})
    assert (wrong.ending, wrong.reason) == (
        WRONG,
        "changed, and was not tuned: items 20, not 16",
    )
    (gone,) = unasked(labelled, had, upstream, {POINT: row(20)})
    assert gone.reason == "changed, and was not tuned: it is gone"


def test_the_table_has_counts_and_below_it_the_reasons():
    one = Commit("0123456789abcdef", "2025-01-30", "Tune")
    found = (
        Replayed(POINT, LABEL, SAME),
        Replayed(OTHER, LABEL, REJECTED, "it is why: T=I8 a, T=I16 b"),
        Replayed(POINT, LABEL, REJECTED, "it is why: T=I32 c"),
        Replayed(OTHER, "", WRONG, "changed"),
    )
    replay = Replay(one, "sm100", found, left=("cub.bench.x: it does not compile: a [with b]",))
    assert line(replay) == "| 0123456789 | 2025-01-30 | sm100 | 3 | 1 | 0 | 2 | 1 |  |"
    assert list(reasons([replay, Replay(one, note=NOTHING_NEW)])) == [
        "0123456789 sm100: Tune",
        "  not checked: cub.bench.x: it does not compile: a",
        f"  2 rejected: it is why (cub.bench.reduce.sum T=I16 {LABEL})",
        "  1 tool wrong: changed (cub.bench.reduce.sum T=I16)",
    ]


def test_labels_that_stand_with_no_entry_are_told(small: Path, tmp_path: Path):
    """The miniature tree has another header with one that nothing reads."""
    work = small.parent / "work"
    shutil.copytree(MINI.parents[4], work, dirs_exist_ok=True)
    commit(work, "a tree")
    header = work / "cub" / TUNINGS / "tuning_sift.cuh"
    header.write_text(f"{header.read_text()}// {LABEL}, and nothing of it\n")
    commit(work, "a remark")
    history = History(work)
    (one,) = history.commits(["HEAD"])
    (found,) = replayed(history, one)
    assert found == Replay(one, note=f"new labels that {UNREAD}: 1")


@slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_a_commit_that_writes_the_entries_of_a_header_is_done_again(tmp_path: Path):
    """The parent is a real tree without them; the commit has them all."""
    name, work = "tuning_reduce_by_key.cuh", tmp_path / "work"
    real = root("3.0.1")
    places = {"cub": "cub/cub", "thrust": "thrust/thrust"}
    places |= {part: f"libcudacxx/include/{part}" for part in ("cuda", "nv")}
    for part, place in places.items():
        shutil.copytree(real / part, work / place)
    header = work / "cub" / TUNINGS / name
    data = header.read_bytes()
    (read,) = read_tree(open_tree(work), [name]).headers
    spans = [e.span for f in read.families if f.arch == "sm100" for e in f.specializations]
    header.write_bytes(splice(name, data, [edit_at(data, span, "", "out") for span in spans]))
    git(work, "init", "--quiet", "--initial-branch=main")
    commit(work, "without")
    header.write_bytes(data)
    commit(work, "with")
    history = History(work)
    (one,) = history.commits([])[-1:]
    (found,) = replayed(history, one)
    assert (found.arch, found.note, found.left) == ("sm100", "", ())
    assert len(found.found) == found.count(SAME) > 10
