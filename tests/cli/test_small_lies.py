"""What a command says when it is given what makes no sense, or what it does not do."""

import json
import time
from pathlib import Path

import pytest

from policygen import Filter
from policygen.app.filters import parse_archs, parse_target, typed_archs
from policygen.app.inputs import choose_rules
from policygen.demo.database import demo_database
from policygen.errors import InputError
from policygen.planning.measured import mixed_version_remarks
from policygen.proof import toolchain
from tests.cli.tuned import run
from tests.real_trees import tree


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def test_architectures_are_given_with_commas_or_again():
    assert parse_archs(["sm90,10.0", "sm_103"]) == {"sm90", "sm100", "sm103"}
    assert parse_archs(["sm107", "12.1", "110"]) == {"sm107", "sm121", "sm110"}
    assert parse_target(["sm_90", "9.0"]) == "sm90"
    assert typed_archs(["9.0,sm_100", "90", "earlier"], ["earlier"]) == ("sm90", "sm100", "earlier")
    assert typed_archs(["sm35"]) == ("sm35",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sm900", "unknown architecture sm900\n  Available: sm50, sm52, sm60, "),
        ("sm95", "unknown architecture sm95\n  Available: sm50, sm52, sm60, "),
        ("sm90,", "'' is not a GPU architecture"),
        (
            "sm_90a",
            "'sm_90a' is a compiler target, but CUB selects only by architecture\n"
            "  Write --arch sm90, which covers all of its targets.",
        ),
        ("sm100f", "'sm100f' is a compiler target"),
    ],
)
def test_an_architecture_that_there_is_not_is_no_question(text, message):
    with pytest.raises(InputError) as caught:
        typed_archs([text])
    assert str(caught.value).startswith(message)


def test_an_architecture_that_the_compiler_knows_is_one(monkeypatch):
    """nvcc may be newer than what is written here."""
    made = toolchain.find_toolchain()
    newer = type("Newer", (), {"archs": (*made.archs, "sm130")})
    monkeypatch.setattr("policygen.app.filters.find_toolchain", lambda: newer)
    assert typed_archs(["sm130"]) == ("sm130",)


def test_one_architecture_is_tuned_at_a_time():
    for texts in (["sm90,sm100"], ["sm100", "sm90"]):
        with pytest.raises(InputError, match="--arch names sm90, sm100\n"):
            parse_target(texts)


@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm900", "sm_90a"])
def test_nothing_is_answered_or_proposed_for_none(capsys, arch):
    demo_database(Path("demo.db"))
    where = ("--cub", tree("3.0.1"), "--arch", arch)
    for command in (("resolve",), ("plan", "--db", "demo.db", "--any-gpu")):
        status, out, err = run(capsys, *command, *where)
        assert (status, out) == (2, "")
        assert arch in err


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("worst_allowed", 95.0, "--worst 95.0: it should be less than or equal to 1"),
        ("least_score", 101.5, "--least-score 101.5: it should be less than or equal to 10"),
        ("confidence", 95.0, "--confidence 95.0: it should be less than 1"),
    ],
)
def test_a_ratio_is_no_per_cent(name, value, told):
    with pytest.raises(InputError) as caught:
        choose_rules(**{name: value})
    assert str(caught.value) == f"{told}\n  It is a ratio, not a percentage: {value / 100:g}."


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_a_share_that_is_missed_is_told(capsys):
    asked = ("-R", "cub.bench.reduce", "--arch", "sm90,sm100", "-q", "--cub", tree("3.0.1"))
    status, _, err = run(capsys, "audit", "coverage", *asked, "--fail-under", "99")
    rows = [row for row in err.splitlines() if row.startswith("policygen: ")]
    assert status == 1
    assert [row.split(":")[1] for row in rows] == [" sm90", " sm100"]
    assert all(row.endswith(" % tuned, less than the 99 % of --fail-under") for row in rows)
    status, _, err = run(capsys, "audit", "coverage", *asked, "--fail-under", "0")
    assert (status, "fail-under" in err) == (0, False)


@pytest.mark.trees
@pytest.mark.parametrize(
    ("name", "text"), [("notes.txt", "some words\n"), ("other.json", '{"a": [1]}')]
)
@pytest.mark.parametrize("command", ["plan", "db"])
def test_a_strangers_file_is_no_database(capsys, name, text, command):
    Path(name).write_text(text)
    words = {
        "plan": ("plan", "--db", name, "--arch", "sm90", "--cub", tree("3.0.1")),
        "db": ("db", "top", name),
    }
    status, out, err = run(capsys, *words[command])
    assert (status, out) == (2, "")
    assert err == (
        f"policygen: error: {name}: neither a tuning database nor an NVBench result\n"
        "  Expected a cccl_meta_bench.db, or what NVBench writes with --jsonbin or --json;"
        " a benchmark's source (.cu) or a search space (.csv) next to it provides the declared"
        " values.\n"
    )


@pytest.mark.trees
@pytest.mark.parametrize("option", ["--sass", "--effect"])
def test_a_proof_that_is_none_is_refused_at_once(capsys, monkeypatch, option):
    def never(*_, **__):
        raise AssertionError("a review was made first")

    monkeypatch.setattr("policygen.cli.review.review_change", never)
    Path("README.md").write_text("# Words\n")
    began = time.monotonic()
    status, out, err = run(capsys, "review", "--cub", tree("3.0.1"), option, "README.md")
    assert (status, out) == (2, "")
    assert err.startswith("policygen: error: README.md is not a ")
    assert time.monotonic() - began < 5


ANCHORED = "-R matches from the start of a name: -R '.*sort' matches "


@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("command", "names"),
    [
        (("db", "top", "demo.db"), "cub.bench.radix_sort.keys"),
        (("db", "choose", "demo.db"), "cub.bench.radix_sort.keys"),
        (("db", "info", "demo.db"), "cub.bench.radix_sort.keys"),
        (("db", "plot", "demo.db", "-o", "a.svg"), "cub.bench.radix_sort.keys"),
        (("plan", "--db", "demo.db", "--arch", "sm90", "TREE"), "cub.bench.radix_sort.keys"),
        (("emit", "--db", "demo.db", "--arch", "sm90", "NEW"), "cub.bench.radix_sort.keys"),
        (("resolve", "TREE"), "cub.bench.merge_sort."),
        (("verify-sass", "--base", "3.0.1", "TREE"), "cub.bench.merge_sort."),
        (("scan", "TREE"), "radix_sort"),
        (("audit", "reach", "TREE"), "radix_sort"),
    ],
)
def test_that_a_regex_is_anchored_is_told(capsys, monkeypatch, command, names):
    monkeypatch.setenv("POLICYGEN_CUB_HEADERS", str(tree("3.0.1").parent))
    demo_database(Path("demo.db"))
    given = {"TREE": ("--cub", tree("3.0.1")), "NEW": ("--cub", tree("3.6.0"))}
    words = [part for word in command for part in given.get(word, (word,))]
    status, out, err = run(capsys, *words, "-R", "sort")
    assert (status, out) == (2, "")
    assert f"  {ANCHORED}{names}" in err
    assert max(len(row) for row in err.splitlines()) < 800


def test_results_of_several_releases_are_told():
    assert list(mixed_version_remarks([("a", "v3.0.3"), ("b", "v3.0.3")])) == []
    assert list(mixed_version_remarks([("a", "v3.6.0"), ("b", "v3.0.3"), ("c", "v3.0.3")])) == [
        "results of several versions of CCCL are written, workloads of each: 3.0.3 (2), 3.6.0 (1)"
    ]


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_a_header_tells_of_another_base(capsys):
    demo_database(Path("demo.db"))
    given = ("--db", "demo.db", "--arch", "sm90", "--cub", tree("3.6.0"), "--no-prove")
    status, out, _ = run(capsys, "emit", *given, "-o", "a.cuh")
    words = " ".join(out.split())
    told = (
        "measured on CCCL 3.0.3, but the header is for CUB 3.6.0, where kernels and policies may"
        " differ: what was faster there can be slower here, so measure again"
    )
    assert (status, told in words) == (0, True)
    _, out, _ = run(capsys, "emit", *given, "--json")
    assert json.loads(out)["remarks"] == [told]


def test_a_filter_takes_axes_with_and_without_their_kind():
    assert Filter(axes=("T=I8",)).values == {"T": frozenset({"I8"})}
