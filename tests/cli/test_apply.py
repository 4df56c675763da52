import errno
import hashlib
import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import jsonschema
import pytest

from policygen.app import apply as writing
from policygen.headers.spelling import splice
from policygen.model.plans import Plan
from policygen.model.records import Span
from policygen.model.tuning import Edit
from policygen.proof import toolchain
from policygen.store import applies as edit_module
from policygen.store import replacement
from tests.cli.tuned import HEADER, LABEL, OTHER, THREE, database, others, run, tuned
from tests.probing import TUNINGS, header, replaced, root
from tests.store.test_worktree import git
from tests.tiers import sampled, slow

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

BEFORE = """\
  static constexpr int threads                       = 320;
  static constexpr int items                         = 12;
  static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_DIRECT;
  using delay_constructor                            = no_delay_constructor_t<1105>;
"""
AFTER = f"""\
  // {LABEL} 1.097247  1.098460  1.100194  1.101042
  static constexpr int threads                       = 512;
  static constexpr int items                         = 10;
  static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_WARP_TRANSPOSE;
  using delay_constructor                            = fixed_delay_constructor_t<404, 710>;
"""


def written() -> bytes:
    """The header as it is to be."""
    return replaced(header("3.0.1", HEADER), (BEFORE, AFTER))


def apply(capsys, tree, db, *more):
    return run(capsys, "apply", "--cub", tree, "--db", db, "--arch", "sm90", *more)


def planned(capsys, tree, db, *more):
    """A plan in a file, as `plan -o` writes it."""
    arguments = ("--cub", tree, "--db", db, "--arch", "sm90", "-q", "-o", "plan.json", *more)
    assert run(capsys, "plan", *arguments)[0] == 0
    return Path("plan.json")


def apply_plan(capsys, tree, plan, *more):
    return run(capsys, "apply", "--cub", tree, "--plan", plan, *more)


def snapshot(tree):
    """Everything that a command may have touched."""
    return {path.name: path.read_bytes() for path in (tree / TUNINGS).iterdir()}


def test_a_tuning_is_written_proved_and_told(capsys, tree, three):
    before = snapshot(tree)
    status, out, err = apply(capsys, tree, three)
    assert status == 0
    assert tuned(tree).read_bytes() == written()
    assert snapshot(tree) == before | {HEADER: written()}
    assert f"update {THREE} T=I32 OffsetT=I32:\n  {LABEL}\n" in out
    assert f"\n-{BEFORE.splitlines()[0]}\n" in out
    assert f"\n+{AFTER.splitlines()[1]}\n" in out
    assert "proof: 1 workload changed as written, 3 that share an entry or inherit, 66 as\n" in out
    assert out.endswith(f"\nwritten: {HEADER}; to undo it: policygen undo\n")
    assert others(err) == []


@pytest.mark.slow
def test_what_is_there_already_is_not_written_again(capsys, tree, three):
    assert apply(capsys, tree, three, "--check")[0] == 1
    assert tuned(tree).read_bytes() == header("3.0.1", HEADER)
    assert apply(capsys, tree, three, "-q")[0] == 0
    number = tuned(tree).stat().st_ino
    status, out, _ = apply(capsys, tree, three)
    assert status == 0
    assert out.endswith("\nnothing to write\n")
    assert apply(capsys, tree, three, "--check")[0] == 0
    assert apply(capsys, tree, three, "--diff", "-q")[1] == ""
    assert tuned(tree).read_bytes() == written()
    assert tuned(tree).stat().st_ino == number
    assert run(capsys, "undo")[0] == 0
    assert run(capsys, "undo")[0] == 2  # the second apply left nothing to take back


def test_undo_restores_every_byte(capsys, tree, three):
    before = snapshot(tree)
    apply(capsys, tree, three, "--store", "here.db")
    status, out, _ = run(capsys, "undo", "--store", "here.db")
    assert status == 0
    assert out.endswith(f"  restored tree/{TUNINGS}/{HEADER}\n")
    assert snapshot(tree) == before


def test_another_store_is_named_in_the_way_back(capsys, tree, three):
    _, out, _ = apply(capsys, tree, three, "--store", "here.db")
    assert out.endswith("; to undo it: policygen undo --store here.db\n")


def test_a_plan_gives_what_its_database_gives(capsys, tree, three):
    plan = planned(capsys, tree, three)
    status, out, _ = apply_plan(capsys, tree, plan)
    assert status == 0
    assert "proof: 1 workload changed as written" in out
    assert tuned(tree).read_bytes() == written()


@pytest.mark.parametrize("asked", ["I8", "I32"])
def test_a_plan_of_some_workloads_gives_what_it_says(capsys, tree, three, asked):
    plan = planned(capsys, tree, three, "-a", f"T{{ct}}={asked}")
    assert [a["workload"]["T"] for a in json.loads(plan.read_text())["actions"]] == [asked]
    status, out, _ = apply_plan(capsys, tree, plan, "--json")
    assert (status, out) == (0, plan.read_text())
    assert (tuned(tree).read_bytes() == written()) == (asked == "I32")


@pytest.mark.parametrize("repository", [True, False])
def test_the_diff_is_what_git_applies(capsys, tree, three, workplace, monkeypatch, repository):
    top = workplace if repository else tree
    if repository:
        git(workplace, "init", "-q")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(workplace.parent))
    status, diff, _ = apply(capsys, tree, three, "--diff", "-q")
    assert status == 0
    name = f"{'tree/' if repository else ''}{TUNINGS}/{HEADER}"
    assert diff.startswith(f"diff --git a/{name} b/{name}\n")
    status, out, _ = apply(capsys, tree, three, "--patch", "change.patch")
    assert status == 0
    assert out.endswith("\nwritten to change.patch; the tree is unchanged\n")
    assert Path("change.patch").read_text() == diff
    assert tuned(tree).read_bytes() == header("3.0.1", HEADER)
    subprocess.run(["git", "apply", str(workplace / "change.patch")], cwd=top, check=True)
    assert tuned(tree).read_bytes() == written()
    assert not Path("policygen.db").exists()


def test_json_is_the_plan(capsys, tree, three):
    status, out, _ = apply(capsys, tree, three, "--json")
    assert status == 0
    jsonschema.validate(json.loads(out), Plan.model_json_schema(mode="serialization"))
    assert tuned(tree).read_bytes() == written()
    assert apply(capsys, tree, three, "--json", "--diff")[0] == 2


def test_what_is_not_proved_says_so(capsys, tree, three):
    status, out, _ = apply(capsys, tree, three, "--no-prove")
    assert status == 0
    assert "proof:" not in out
    assert "not proven, because of --no-prove\n" in out
    assert tuned(tree).read_bytes() == written()


@pytest.mark.parametrize("columns", sampled([80, 160], 80))
def test_nothing_is_cut_and_no_line_of_prose_is_wider(capsys, monkeypatch, tree, three, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    for more in (("--check",), ("--check", "-v")):
        _, out, _ = apply(capsys, tree, three, *more)
        head, _, rest = out.partition("diff --git ")
        prose = [*head.splitlines(), *rest[rest.index("\nproof: ") :].splitlines()]
        assert [row for row in prose if len(row.rstrip()) > columns] == []
        assert LABEL in head


@pytest.mark.slow
def test_an_uncommitted_change_of_a_written_file_is_named_and_stays(capsys, tree, three, workplace):
    mine = header("3.0.1", HEADER) + b"// mine\n"
    git(workplace, "init", "-q")
    git(workplace, "add", f"tree/{TUNINGS}/{HEADER}")
    git(workplace, "commit", "-qm", "CUB")
    tuned(tree).write_bytes(mine)
    status, _, err = apply(capsys, tree, three, "-q")
    assert status == 0
    assert err == (
        f"policygen: warning: tree/{TUNINGS}/{HEADER} has uncommitted changes; they are kept\n"
    )
    assert tuned(tree).read_bytes() == written() + b"// mine\n"


@pytest.mark.slow
def test_a_link_inside_of_the_tree_stays_a_link(capsys, tree, three):
    elsewhere = tree / "elsewhere.cuh"
    shutil.move(tuned(tree), elsewhere)
    tuned(tree).symlink_to(elsewhere)
    _, diff, _ = apply(capsys, tree, three, "--diff", "-q")
    assert diff.startswith(f"diff --git a/{TUNINGS}/{HEADER} ")
    status, _, _ = apply(capsys, tree, three, "-q")
    assert status == 0
    assert tuned(tree).is_symlink()
    assert elsewhere.read_bytes() == written()
    assert run(capsys, "verify-effect", "-q", "--cub", tree)[0] == 0
    assert run(capsys, "undo", "-q")[0] == 0
    assert tuned(tree).is_symlink()
    assert elsewhere.read_bytes() == header("3.0.1", HEADER)


@pytest.mark.slow
def test_a_header_with_carriage_returns_keeps_them(capsys, tree, three):
    tuned(tree).write_bytes(header("3.0.1", HEADER).replace(b"\n", b"\r\n"))
    _, diff, _ = apply(capsys, tree, three, "--diff", "-q")
    _, _, *rows = diff.removesuffix("\n").split("\n")
    assert all(row.endswith("\r") for row in rows if row[0] in " +-" and row[:3] != "+++")
    status, out, _ = apply(capsys, tree, three)
    assert status == 0
    assert "proof: 1 workload changed as written" in out
    assert tuned(tree).read_bytes() == written().replace(b"\n", b"\r\n")


@pytest.mark.slow
def test_a_header_without_a_last_line_end_gets_none(capsys, tree, three):
    tuned(tree).write_bytes(header("3.0.1", HEADER).rstrip())
    assert apply(capsys, tree, three, "-q")[0] == 0
    assert tuned(tree).read_bytes() == written().rstrip()


@pytest.mark.parametrize("operation", ["write_file", "rename"])
def test_a_folder_that_cannot_be_written_is_told(capsys, monkeypatch, tree, three, operation):
    def refuse(*arguments):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    before = snapshot(tree)
    monkeypatch.setattr(replacement, operation, refuse)
    status, _, err = apply(capsys, tree, three, "-q")
    assert status == 2
    assert err == (
        f"policygen: error: cannot write {tuned(tree)}: Permission denied\n"
        "  Make it writable, or work on a copy of the tree.\n"
    )
    assert snapshot(tree) == before


def test_a_store_that_cannot_be_made_keeps_the_tree_as_it_is(capsys, tree, three):
    Path("file").touch()
    status, _, err = apply(capsys, tree, three, "-q", "--store", "file/policygen.db")
    assert status == 2
    assert err.startswith("policygen: error: ")
    assert "file" in err
    assert tuned(tree).read_bytes() == header("3.0.1", HEADER)


def test_a_file_that_changes_while_it_is_proved_is_left_alone(capsys, monkeypatch, tree, three):
    begin = edit_module._checked_files

    def changed_first(*arguments):
        tuned(tree).write_bytes(b"// somebody else's\n")
        return begin(*arguments)

    monkeypatch.setattr(edit_module, "_checked_files", changed_first)
    status, _, err = apply(capsys, tree, three, "-q")
    assert status == 2
    assert f"{HEADER} was changed since it was read\n" in err
    assert tuned(tree).read_bytes() == b"// somebody else's\n"


def test_what_cannot_be_read_back_is_put_back(capsys, monkeypatch, tree, three):
    read = writing.read_bytes
    states = []

    def corrupted(path):
        data = read(path)
        states.append(path == tuned(tree) and data == written())
        return data.replace(b"= 10;", b"= 11;") if states[-1] else data

    monkeypatch.setattr(writing, "read_bytes", corrupted)
    status, _, err = apply(capsys, tree, three, "-q")
    assert any(states)
    assert status == 2
    assert "does not contain what was written" in err
    assert tuned(tree).read_bytes() == header("3.0.1", HEADER)


def test_a_plan_for_another_state_of_the_tree_is_refused(capsys, tree, three):
    plan = planned(capsys, tree, three)
    data = header("3.0.1", HEADER) + b"// changed\n"
    tuned(tree).write_bytes(data)
    status, out, err = apply_plan(capsys, tree, plan, "-q")
    assert (status, out) == (2, "")
    assert err == (
        f"policygen: error: {HEADER} is not the file that the plan was made for\n"
        "  Make the plan again, or name its tree with --cub.\n"
    )
    assert tuned(tree).read_bytes() == data


def test_a_plan_for_another_version_is_refused(capsys, tree, three):
    plan = planned(capsys, tree, three)
    status, out, err = apply_plan(capsys, root("3.1.4"), plan, "-q")
    assert (status, out) == (2, "")
    assert err == (
        "policygen: error: the plan is for CUB 3.0.1, but the tree is CUB 3.1.4\n"
        "  Make the plan again, or name its tree with --cub.\n"
    )


def test_a_plan_says_everything(capsys, tree, three):
    plan = planned(capsys, tree, three)
    for more in (("--db", three), ("--arch", "sm90"), ("--any-gpu",), ("-R", "x"), ("-a", "T=I8")):
        status, out, err = apply_plan(capsys, tree, plan, *more)
        assert (status, out) == (2, "")
        assert err.startswith("policygen: error: --plan cannot be combined with --db, --arch")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "plan.json is not a plan of this version of policygen: not JSON: line 1, column 1\n"),
        ("[]", "plan.json is not a plan of this version of policygen: it should be an object"),
        ("{}", "plan.json is not a plan of this version of policygen: cub: it is missing"),
        (
            '{"format": "policygen/plan/1"}',
            "plan.json is not a plan of this version of policygen: format: it should be"
            " 'policygen/plan/2'\n",
        ),
        (None, "cannot read plan.json: No such file or directory"),
    ],
)
def test_what_is_no_plan_is_refused(capsys, tree, text, message):
    if text is not None:
        Path("plan.json").write_text(text)
    status, out, err = apply_plan(capsys, tree, "plan.json")
    assert (status, out) == (2, "")
    assert err.startswith(f"policygen: error: {message}")


def edited(plan, change):
    """The plan with another document, as somebody might have typed it."""
    document = json.loads(plan.read_text())
    change(document)
    plan.write_text(json.dumps(document))


EVIL = "inline int evil() { return 1; }\n"


def with_more(document):
    """A C++ function beside what was decided, with all digests as they have to be."""
    data = header("3.0.1", HEADER)
    document["edits"].append(
        {"span": [0, 0], "old": "", "new": EVIL, "reason": "more", "path": HEADER}
    )
    document["edits"].sort(key=lambda edit: edit["span"])
    edits = [
        Edit(**{name: e[name] for name in ("old", "new", "reason")}, span=Span(*e["span"]))
        for e in document["edits"]
    ]
    after = splice(HEADER, data, edits)
    (file,) = document["files"]
    file.update(edits=len(edits), after=hashlib.sha256(after).hexdigest())


def with_another_value(document):
    (edit,) = [e for e in document["edits"] if e["new"] == "512"]
    edit["new"] = "256"


def with_none(document):
    document["edits"] = []


WAYS = ((), ("--no-prove",), ("--check",), ("--diff",), ("--patch", "change.patch"))
EDITS = f"{HEADER}: the plan's edits do not match its decisions"
SAYS = f"{THREE} T=I32 OffsetT=I32: the plan does not match its own decisions"
ANY = "the plan does not match its own decisions"
VARIANT = f"the plan chooses {{!r}} for {THREE}, which has no such variant"


def deciding(label):
    """Another variant as the choice, wherever it is named."""

    def change(document):
        text = json.dumps(document).replace(json.dumps(LABEL)[1:-1], json.dumps(label)[1:-1])
        document.update(json.loads(text))

    return change


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_more, EDITS),
        (with_another_value, EDITS),
        (with_none, EDITS),
        (lambda d: d["edits"][0].update(reason="x"), EDITS),
        (lambda d: d["edits"][0].update(path="../x.cuh"), "../x.cuh: the plan's edits do not"),
        (lambda d: d["actions"][1]["after"].update(items=9), SAYS),
        (lambda d: d["actions"][1].update(scores=[2.0, 1.0, 1.0, 1.0]), SAYS),
        (lambda d: d["actions"][1]["target"].update(line=1), SAYS),
        (lambda d: d["actions"].pop(0), f"{THREE} T=I32 OffsetT=I32: the plan does not match"),
        (lambda d: d["actions"].append(d["actions"][0]), ANY),
        (lambda d: d.update(policies=["Policy1"]), ANY),
        (lambda d: d["files"][0].update(after="0" * 64), ANY),
        (lambda d: d.update(files=[]), ANY),
        (lambda d: d["files"][0].update(path="../x.cuh"), "the plan changes ../x.cuh, but has no"),
        (lambda d: d.update(results=[]), EDITS),
        (lambda d: d["results"][1]["variants"].clear(), EDITS),
        (deciding(LABEL.replace("ipt_10", "ipt_11")), EDITS),
        (
            deciding("ipt_19\n}; int evil();//_1"),
            "plan.json is not a plan of this version of policygen: actions[1].variant",
        ),
        (deciding(f"{LABEL}.evil_1"), VARIANT.format(f"{LABEL}.evil_1")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ways", [WAYS[:1], pytest.param(WAYS[1:], marks=slow)])
def test_a_plan_that_says_more_or_less_than_its_decisions_give_is_refused(
    capsys, tree, three, change, message, ways
):
    refuse(capsys, tree, three, change, message, ways)


def test_no_way_of_applying_takes_a_plan_that_says_more(capsys, tree, three):
    refuse(capsys, tree, three, with_more, EDITS, WAYS)


def refuse(capsys, tree, three, change, message, ways):
    before = snapshot(tree)
    plan = planned(capsys, tree, three)
    edited(plan, change)
    for more in ways:
        status, out, err = apply_plan(capsys, tree, plan, "-q", *more)
        assert (status, out) == (2, "")
        assert err.startswith(f"policygen: error: {message}")
    assert snapshot(tree) == before
    assert not Path("change.patch").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("part", "message"), [("actions", SAYS), ("results", EDITS)])
def test_a_plan_that_decides_otherwise_is_another_plan(
    capsys, tree, three, tmp_path, part, message
):
    """Its edits are those of the other variant; nothing of the file's own is written."""
    other = database(tmp_path / "other.db", {("I32", "I32"): OTHER, ("I8", "I32"): None})
    wanted = json.loads(planned(capsys, tree, other).read_text())
    plan = planned(capsys, tree, three)
    edited(plan, lambda document: document.update({part: wanted[part]}))
    status, _, err = apply_plan(capsys, tree, plan, "-q")
    assert status == 2
    assert message in err
    assert tuned(tree).read_bytes() == header("3.0.1", HEADER)


def test_an_effect_on_workloads_that_the_plan_does_not_name_is_an_error(capsys, tree, three):
    plan = planned(capsys, tree, three)
    edited(plan, lambda document: document.update(reached=document["reached"][1:]))
    status, _, err = apply_plan(capsys, tree, plan, "-q")
    assert status == 1
    assert f"  {THREE} T=I32 OffsetT=I64 on sm90: it changes, but should not: threads" in err
    assert tuned(tree).read_bytes() == header("3.0.1", HEADER)


def test_a_workload_that_a_plan_invents_is_told(capsys, tree, three):
    plan = planned(capsys, tree, three)
    edited(plan, lambda document: document["actions"][1]["workload"].update(T="I99"))
    status, _, err = apply_plan(capsys, tree, plan, "-q")
    assert status in {1, 2}
    assert "I99" in err
    assert tuned(tree).read_bytes() == header("3.0.1", HEADER)


def test_without_a_compiler_nothing_is_written(capsys, monkeypatch, tmp_path, tree, three):
    plan = planned(capsys, tree, three)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "site-packages"))
    monkeypatch.setattr(toolchain, "INSTALLED", tmp_path / "usr/local/cuda/bin/nvcc")
    monkeypatch.setenv("PATH", str(tmp_path))
    for arguments in (("--plan", plan), ("--db", three, "--arch", "sm90")):
        status, out, err = run(capsys, "apply", "--cub", tree, *arguments)
        assert (status, out) == (3, "")
        assert err.startswith("policygen: error: nvcc is missing\n  Install it: ")
    assert tuned(tree).read_bytes() == header("3.0.1", HEADER)


@pytest.mark.slow
def test_a_second_apply_builds_on_the_first(capsys, tree, three, tmp_path):
    other = database(tmp_path / "b.db", {("I64", "I32"): LABEL})
    assert apply(capsys, tree, three, "-q")[0] == 0
    assert apply(capsys, tree, other, "-q")[0] == 0
    assert tuned(tree).read_bytes() != written()
    assert run(capsys, "verify-effect", "-q", "--cub", tree)[0] == 0
    assert run(capsys, "undo", "-q", "--cub", tree)[0] == 0
    assert tuned(tree).read_bytes() == written()
    assert run(capsys, "verify-effect", "-q", "--cub", tree)[0] == 0
