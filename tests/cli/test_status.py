"""Where a tree stands, and what to type next."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import jsonschema
import pytest

from policygen.app.status import tree_status
from policygen.cli.main import main
from policygen.model.machine import Status
from policygen.store.journal import ProofRecord, keep_proof
from policygen.store.replacement import Change
from policygen.trees.layout import tree_content
from tests.cli.tuned import committed_tree, database, run, tuned
from tests.store.killing import killed_at
from tests.store.trees import WHEN, Tree
from tests.tiers import sampled
from tests.trees.places import empty_machine
from tests.trees.toys import make_root

THREE = ("-R", "cub.bench.partition.three_way$", "-a", "T=I32", "-a", "OffsetT=I32")


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A tree of a few files with two applies; the second one changes a file of the first."""
    tree = Tree(tmp_path)
    make_root(tree.root)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    tree.apply(title="scan on sm100")
    tree.apply(tree.further()[1:2], title="reduce on sm90 [beta]")
    return tree


def status(capsys, *more):
    """The document of the command."""
    found, out, err = run(capsys, "status", "--json", *more)
    assert (found, err) == (0, "")
    document = Status.model_validate_json(out)
    jsonschema.validate(json.loads(out), Status.model_json_schema(mode="serialization"))
    return document


def commands(document):
    return [step.command.split()[1] for step in document.next]


def proved(tree, command, *, passed=True, whole=True, store=None):
    content = tree_content(tree_status(str(tree.root)).cub)
    one = ProofRecord(
        content=content, command=command, passed=passed, whole=whole, words="said", proved_at=WHEN
    )
    keep_proof(store or tree.store, tree.root, one)


def test_applies_are_told_newest_first(tree, capsys):
    assert run(capsys, "status", "--cub", "tree") == (
        0,
        "tree         CUB 3.0.1 (specializations), tree [--cub]\n"
        "             apply writes to it\n"
        "applied      2 applies of policygen.db\n"
        "             2: reduce on sm90 [beta]; 2026-09-01 12:00 UTC, as written\n"
        "             1: scan on sm100; 2026-09-01 12:00 UTC, as written\n"
        "uncommitted  unknown: the tree is not in a git repository\n"
        "proofs       none recorded\n"
        "\n"
        "next\n"
        "  prove its effect: policygen verify-effect --cub tree\n"
        "  compare all other machine code: policygen verify-sass --cub tree\n"
        "  share it for review: policygen review --cub tree -o review.md\n"
        "  undo the last apply: policygen undo --cub tree\n",
        "",
    )
    _, out, _ = run(capsys, "status", "--cub", "tree", "-v")
    assert out.count("\n               written cub/f") == 4


def test_an_edit_since_is_told_by_the_apply_that_wrote_the_file_last(tree, capsys):
    tree.paths[1].write_bytes(b"edited")
    tree.paths[2].unlink()
    document = status(capsys, "--cub", "tree")
    assert [one.edited for one in document.applies] == [
        ("cub/f1/tuning_1.cuh",), ("cub/f0/tuning_2.cuh",)
    ]  # fmt: skip
    assert "undo" not in commands(document)
    _, out, _ = run(capsys, "status", "--cub", "tree")
    assert " 1 file edited since edited cub/f1/tuning_1.cuh " in " ".join(out.split())


def test_what_was_taken_back_is_counted(tree, capsys):
    assert main(["undo", "-q", "--steps", "2"]) == 0
    capsys.readouterr()
    document = status(capsys, "--cub", "tree")
    assert (document.applies, document.undone) == ((), 2)
    assert commands(document) == ["plan", "audit"]
    _, out, _ = run(capsys, "status", "--cub", "tree")
    assert "applied      nothing of policygen.db is in this tree, 2 undone\n" in out


def test_what_was_interrupted_comes_first_and_how_it_is_ended(tree, capsys):
    changes = [Change(p, now, b"last") for p, now in zip(tree.paths, tree.now, strict=True)]
    assert killed_at(12, lambda: tree.apply(changes, title="last"))
    document = status(capsys, "--cub", "tree")
    assert document.interrupted.startswith("an apply was interrupted: ")
    steps = {step.command for step in document.next}
    assert steps == {"policygen undo", "policygen apply --finish"}
    status_, out, err = run(capsys, "status", "--cub", "tree")
    assert (status_, err) == (0, "")
    assert "\ninterrupted  an apply was interrupted: " in out
    assert main(["undo", "-q"]) == 0
    capsys.readouterr()
    assert status(capsys, "--cub", "tree").interrupted is None


def test_a_proof_counts_as_long_as_the_headers_are_what_they_were(tree, capsys):
    proved(tree, "apply")
    proved(tree, "verify-sass", passed=False)
    document = status(capsys, "--cub", "tree")
    told = [(one.command, one.passed, one.current) for one in document.proofs]
    assert sorted(told) == [("apply", True, True), ("verify-sass", False, True)]
    assert commands(document) == ["verify-sass", "review", "undo"]
    proved(tree, "verify-sass", whole=False)
    assert commands(status(capsys, "--cub", "tree")) == ["verify-sass", "review", "undo"]
    proved(tree, "verify-sass")
    assert commands(status(capsys, "--cub", "tree")) == ["review", "undo"]
    version = tree.root / "cub/version.cuh"
    version.write_bytes(version.read_bytes() + b"\n")
    document = status(capsys, "--cub", "tree")
    assert {one.current for one in document.proofs} == {False}
    assert commands(document) == ["verify-effect", "verify-sass", "review", "undo"]
    _, out, _ = run(capsys, "status", "--cub", "tree")
    assert re.search(r"apply passed, 2026-09-01 12:00\s+UTC, before the headers changed\n", out)


def test_the_store_and_the_tree_that_were_named_are_named_again(tree, capsys):
    tree.store.rename("other.db")
    document = status(capsys, "--cub", "tree", "--store", "other.db")
    assert document.store == "other.db"
    for step in document.next:
        assert "--cub tree" in step.command
        assert "--store other.db" in step.command
    assert status(capsys, "--cub", "tree").store is None


def test_a_store_that_may_be_a_strangers_is_not_read(tree, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "another"))
    found, _, err = run(capsys, "status", "--cub", "tree")
    assert found == 2
    assert "may not be your store" in err


def test_a_tree_that_was_found_is_only_read(tmp_path, monkeypatch, capsys):
    places = empty_machine(tmp_path, monkeypatch)
    make_root(places.site / "nvidia/cu13/include/cccl")
    document = status(capsys)
    assert (document.named, document.store, document.uncommitted) == (False, None, None)
    assert commands(document) == ["plan", "audit", "status"]
    _, out, _ = run(capsys, "status")
    assert "apply does not write to it, because it was found automatically;\n" in out
    assert "applied      nothing is recorded here: no store exists\n" in out


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder whose store has changed a tree, on a machine with an installed CUB."""
    places = empty_machine(tmp_path, monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    make_root(places.site / "nvidia/cu13/include/cccl")
    tree = Tree(places.work)
    make_root(tree.root)
    tree.apply()
    return tree


def test_the_only_tree_that_the_store_has_changed_is_used_without_its_name(elsewhere, capsys):
    _, out, err = run(capsys, "status")
    assert (out.splitlines()[0], err) == (
        "tree         CUB 3.0.1 (specializations), tree [store]",
        "",
    )
    assert "no tree is named, and policygen.db has changed no other; apply writes" in " ".join(
        out.split()
    )
    assert [one.title for one in status(capsys).applies] == ["scan on sm100"]
    _, _, err = run(capsys, "verify-effect")
    assert err.startswith(
        "policygen: warning: no tree given: using tree, the only one that policygen.db has"
        " changed\n"
    )
    given = ("--db", database(Path("three.db")), "--arch", "sm90")
    _, _, err = run(capsys, "apply", *given)
    assert "it was found automatically (by: store), not named with --cub\n" in err
    assert run(capsys, "undo", "-q")[0] == 0
    assert status(capsys).cub.found == "wheel"


@pytest.mark.parametrize("command", ["status", "verify-effect"])
def test_several_trees_that_the_store_has_changed_are_listed(elsewhere, capsys, command):
    another = Tree(elsewhere.root.parent / "b")
    make_root(another.root)
    another.apply(store=elsewhere.store)
    assert run(capsys, command) == (
        2,
        "",
        "policygen: error: no tree given, and policygen.db has changed 2:\n"
        "    tree\n"
        "    b/tree\n"
        "  Name one of them: --cub PATH\n",
    )
    untouched = make_root(elsewhere.root.parent / "c")
    _, _, err = run(capsys, "verify-effect", "--cub", untouched)
    assert err == (
        f"policygen: error: policygen.db: nothing was applied to {untouched}\n"
        "  It has changed tree, b/tree: choose one with --cub PATH\n"
    )
    elsewhere.root.rename(elsewhere.root.parent / "gone")
    assert run(capsys, "status")[1].startswith("tree         CUB 3.0.1 (specializations), b/tree")


COMMANDS = ("status", "status --json", "doctor", "doctor --json")


@pytest.mark.parametrize("command", sampled(COMMANDS, *COMMANDS[:3]))
def test_what_was_written_to_a_file_is_written_again(tree, capsys, command):
    for _ in range(2):
        assert run(capsys, *command.split(), "--cub", "tree", "-o", "out")[1:] == ("", "")
    assert Path("out").stat().st_size > 100


def test_no_tree_is_an_error_with_the_way_to_one(tmp_path, monkeypatch, capsys):
    empty_machine(tmp_path, monkeypatch)
    found, _, err = run(capsys, "status")
    assert found == 2
    assert "policygen headers fetch" in err


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_a_change_is_followed_from_the_apply_to_the_proofs(workplace, tree_of_cub, capsys):
    """And what is to be typed next can be typed."""
    data = database(workplace / "three.db")
    given = ("--cub", "tree", "--db", data, "--arch", "sm90")
    assert run(capsys, "apply", *given, "-q")[0] == 0
    document = status(capsys, "--cub", "tree")
    (applied,) = document.applies
    assert (applied.edited, len(applied.files)) == ((), 1)
    (proof,) = document.proofs
    assert (proof.command, proof.passed, proof.current) == ("apply", True, True)
    assert proof.words.startswith("1 workload changed as written, ")
    assert run(capsys, "verify-effect", "--cub", "tree", "-q")[0] == 0
    assert run(capsys, "verify-sass", "--cub", "tree", "--arch", "sm80", *THREE, "-q")[0] == 0
    proofs = {one.command: one for one in status(capsys, "--cub", "tree").proofs}
    assert set(proofs) == {"apply", "verify-effect", "verify-sass"}
    assert not proofs["verify-sass"].whole
    assert "compared with before the apply for sm90" in proofs["verify-sass"].words
    (undo,) = [s.command for s in document.next if s.command.startswith("policygen undo")]
    assert main(shlex.split(undo)[1:]) == 0
    capsys.readouterr()
    assert status(capsys, "--cub", "tree").undone == 1


@pytest.fixture
def tree_of_cub(workplace):
    return tuned(workplace / "tree")


@pytest.mark.slow
@pytest.mark.trees
def test_uncommitted_headers_of_a_checkout_are_named(tmp_path, capsys, monkeypatch):
    tree = committed_tree(tmp_path / "tree")
    monkeypatch.chdir(tmp_path)
    assert status(capsys, "--cub", "tree").uncommitted == ()
    header = tuned(tree)
    header.write_bytes(header.read_bytes() + b"\n")
    document = status(capsys, "--cub", "tree")
    assert document.uncommitted == (header.relative_to(tmp_path).as_posix(),)
    assert commands(document) == ["verify-sass", "review"]
    _, out, _ = run(capsys, "status", "--cub", "tree")
    assert f"uncommitted  1 tuning header\n             {document.uncommitted[0]}\n" in out
    monkeypatch.setenv("PATH", str(tmp_path))  # without git nobody knows
    assert status(capsys, "--cub", "tree").uncommitted is None
    subprocess.run(["/bin/rm", "-rf", Path(tree, ".git")], check=True)
