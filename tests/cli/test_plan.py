import json
import shutil
import sqlite3
import sysconfig
from contextlib import closing
from pathlib import Path

import jsonschema
import pytest

from policygen.cli.main import main
from policygen.installation import add
from policygen.model.plans import Plan
from policygen.proof import toolchain
from policygen.proof.toolchain import find_toolchain
from tests.cli.tuned import HEADER, LABEL, OTHER, THREE, database, others, run, tuned
from tests.tiers import sampled

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]


def plan(capsys, tree, db, *more, arch="sm90"):
    return run(capsys, "plan", "--cub", tree, "--db", db, "--arch", arch, *more)


def test_every_workload_is_told_with_its_values_and_its_reason(capsys, tree, three):
    before = tuned(tree).read_bytes()
    status, out, err = plan(capsys, tree, three)
    assert status == 0
    assert out.splitlines()[:9] == [
        f"CUB 3.0.1 (specializations), tree [--cub]; nvcc {find_toolchain().version}; sm90",
        "",
        THREE,
        "  fallback T=I8 OffsetT=I32",
        "           no variant passes the rules; the best is",
        f"           {LABEL}: score 0.960711 is under",
        "           1.015",
        f"  update   T=I32 OffsetT=I32  {LABEL}",
        "           best score: 1.100376, worst runtime workload Elements{io}[pow2]=16 at",
    ]
    assert "           sm90_tuning<Input, OffsetT, input_size::_4, offset_size::_4>,\n" in out
    assert "           threads 320 → 512  items 12 → 10\n" in out
    assert "the same entries also decide, unmeasured, on sm90:\n" in out
    assert f"  {THREE} T=F32 OffsetT=I64\n" in out
    last = "2 workloads: 1 updated, 1 left to the fallback; 5 edits in 1 header\n"
    assert out.endswith(f"\n{last}")
    assert "note: it changes what the results do not measure:\n" in out
    assert others(err) == []
    assert tuned(tree).read_bytes() == before


def test_json_is_one_document_and_the_same_as_the_file(capsys, tree, three):
    status, out, err = plan(capsys, tree, three, "--json", "-o", "plan.json")
    assert status == 0
    assert others(err) == []
    document = json.loads(out)
    jsonschema.validate(document, Plan.model_json_schema(mode="serialization"))
    assert Path("plan.json").read_text() == out
    assert Plan.model_validate_json(out).to_json() + "\n" == out
    fallback, update = document["actions"]
    assert (fallback["decision"], fallback["before"]) == ("fallback", fallback["after"])
    assert (update["decision"], update["variant"]) == ("update", LABEL)
    assert update["databases"] == [f"../{three.parent.name}/three.db"]
    assert update["target"] == {
        "header": HEADER,
        "namespace": "cub::detail::three_way_partition",
        "family": "sm90_tuning",
        "args": ["Input", "OffsetT", "input_size::_4", "offset_size::_4"],
        "line": 156,
    }
    assert (update["before"]["items"], update["after"]["items"]) == (12, 10)
    (file,) = document["files"]
    assert (file["path"], file["edits"]) == (HEADER, len(document["edits"]))
    assert document["options"]["arch"] == "sm90"


def test_a_plan_is_the_same_every_time(capsys, tree, three):
    first, second = (plan(capsys, tree, three, "--json", "-q")[1] for _ in "12")
    assert first == second


def test_quiet_prints_workloads_alone_and_verbose_where_they_come_from(capsys, tree, three):
    status, out, err = plan(capsys, tree, three, "-q")
    assert (status, err) == (0, "")
    assert out.startswith(f"{THREE}\n")
    assert "edits in" not in out
    _, out, _ = plan(capsys, tree, three, "-v")
    assert "Demo H200 (6144, 132, eccon), CUDA 13.0.88, CCCL v3.0.1: " in " ".join(out.split())


def test_workloads_can_be_chosen_as_everywhere(capsys, tree, three):
    _, out, _ = plan(capsys, tree, three, "-a", "T{ct}=I32", "-q", "--json")
    assert [action["workload"]["T"] for action in json.loads(out)["actions"]] == ["I32"]
    status, out, err = plan(capsys, tree, three, "-R", "cub.bench.reduce")
    assert (status, out) == (2, "")
    assert err.startswith("policygen: error: nothing matches\n")
    status, out, err = plan(capsys, tree, three, "-R", f"{THREE}$", "-a", "T=NOPE", "-q")
    assert (status, out) == (2, "")
    assert err.startswith("policygen: error: no workload has T = NOPE\n  T is one of ")


@pytest.mark.parametrize("columns", sampled([80, 160], 80))
@pytest.mark.parametrize("more", [(), ("-v",)])
def test_nothing_is_cut_and_no_line_is_wider(capsys, monkeypatch, tree, three, columns, more):
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = plan(capsys, tree, three, *more)
    assert [row for row in out.splitlines() if len(row.rstrip()) > columns] == []
    words = " ".join(out.split())
    for action in json.loads(plan(capsys, tree, three, "--json")[1])["actions"]:
        assert action["reason"] in words
    assert "delay_constructor no_delay_constructor_t<1105> → fixed_delay_constructor_t<404" in words


@pytest.mark.slow
def test_databases_of_two_benchmarks_make_one_plan(capsys, tree, three, tmp_path):
    other = database(tmp_path / "b.db", {("I64", "I32"): OTHER})
    _, out, _ = plan(capsys, tree, three, "--db", other, "--no-prove", "--json", "-q")
    assert [(a["workload"]["T"], a["decision"]) for a in json.loads(out)["actions"]] == [
        ("I8", "fallback"),
        ("I32", "update"),
        ("I64", "update"),
    ]


def test_of_a_gpu_that_nobody_knows_the_user_says_what_it_is(capsys, tree, three, tmp_path):
    three = shutil.copyfile(three, tmp_path / "new.db")
    with closing(sqlite3.connect(three)) as connection:
        connection.execute(f"UPDATE '{THREE}.base' SET gpu = 'B400 (6144, 132, eccon)'")
        connection.commit()
    status, out, err = plan(capsys, tree, three)
    assert (status, out) == (2, "")
    assert err == (
        "policygen: error: the results are from B400 (not known), but --arch is sm90\n"
        "  If B400 is sm90, add --gpu-arch B400=sm90\n"
    )
    status, out, _ = plan(capsys, tree, three, "--gpu-arch", "B400=9.0", "--no-prove", "-q")
    assert status == 0
    assert "sm90_tuning<" in out
    status, _, err = plan(capsys, tree, three, "--gpu-arch", "B400")
    assert status == 2
    assert "--gpu-arch 'B400': 'B400' is not a GPU architecture" in err


@pytest.mark.slow
def test_results_of_another_gpu_are_refused_unless_forced(capsys, tree, three):
    status, out, err = plan(capsys, tree, three, arch="sm100")
    assert (status, out) == (2, "")
    assert err == (
        "policygen: error: the results are from Demo H200 (sm90), but --arch is sm100\n"
        "  Name the architecture that was measured, or add --any-gpu.\n"
    )
    status, out, _ = plan(capsys, tree, three, "--any-gpu", "--no-prove", "-q", arch="10.0")
    assert status == 0
    assert "sm100_tuning<" in out


def test_a_variant_that_no_rule_allows_is_not_planned(capsys, tree, three):
    _, out, _ = plan(capsys, tree, three, "--least-score", "1.2")
    assert "score 1.100376 is under 1.2" in " ".join(out.split())
    assert out.endswith("2 workloads: 2 left to the fallback; 0 edits in 0 headers\n")


def test_a_benchmark_that_has_no_entries_is_rejected_with_the_reason(capsys, tree, tmp_path):
    benchmark = "cub.bench.adjacent_difference.subtract_left"
    db = database(tmp_path / "a.db", {("I32", "I32"): "ipt_7.tpb_128"}, name=benchmark)
    status, out, _ = plan(capsys, tree, db, "-q")
    assert status == 0
    assert "  reject   T=I32 OffsetT=I32  ipt_7.tpb_128\n" in out
    assert "its item count is nominal, of 8 bytes\n" in out
    assert "options that would accept rejected results:\n" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--arch", "sm90"], "no database given\n  Name one: --db cccl_meta_bench.db"),
        (
            ["--db", "{db}"],
            "no architecture given\n  Name the architecture that was measured: --arch",
        ),
        (
            ["--db", "{db}", "--arch", "new"],
            "'new' is not a GPU architecture; write sm90, sm_90, 90",
        ),
        (["--db", "none.db", "--arch", "sm90"], "none.db"),
        (["--db", "{db}", "--arch", "sm90", "-R", "("], "-R '(' is not a regular expression: "),
        (["--db", "{db}", "--arch", "sm90", "-a", "T"], "-a 'T' is not of the form AXIS=VALUE"),
        (["--db", "{db}", "--arch", "sm90", "--cub", "none"], "none"),
        (
            ["--db", "{db}", "--arch", "sm90", "--measured-on", "none"],
            "'none' is neither a folder, a",
        ),
    ],
)
@pytest.mark.parametrize("command", ["plan", "apply"])
def test_a_mistyped_question_is_told(capsys, tree, three, command, arguments, message):
    given = [argument.format(db=three) for argument in arguments]
    where = [] if "--cub" in given else ["--cub", tree]
    status, out, err = run(capsys, command, "-q", *where, *given)
    assert (status, out) == (2, "")
    assert err.startswith("policygen: error: ")
    assert message in err


def test_a_plan_that_cannot_be_kept_is_told(capsys, tree, three):
    Path("plan.json").mkdir()
    status, out, err = plan(capsys, tree, three, "-q", "-o", "plan.json")
    assert (status, out) == (2, "")
    assert err == "policygen: error: plan.json: this is a folder\n"


@pytest.mark.parametrize("more", [(), ("--no-prove",)])
def test_without_a_compiler_there_is_no_plan(capsys, monkeypatch, tmp_path, tree, three, more):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "site-packages"))
    monkeypatch.setattr(toolchain, "INSTALLED", tmp_path / "usr/local/cuda/bin/nvcc")
    monkeypatch.setenv("PATH", str(tmp_path))
    status, out, err = plan(capsys, tree, three, *more)
    assert (status, out) == (3, "")
    assert err == (
        "policygen: error: nvcc is missing\n"
        f"  Install it: {add('cuda')}; or set CUDA_HOME to an installed toolkit.\n"
    )


def test_help_names_the_options(capsys):
    assert main(["plan", "--help"]) == 0
    out = capsys.readouterr().out
    known = ("--db", "--arch", "--cub", "-R", "-a", "--json", "-o", "--no-prove", "--any-gpu")
    for option in known:
        assert option in out


def test_architectures_of_amd_may_be_reached(capsys):
    """Whether the tree has them is asked later: here its database is missing."""
    for arch, place in (("gfx9999", "none.db"), ("nosuch", "'nosuch' is not a GPU architecture")):
        status, _, err = run(capsys, "plan", "--db", "none.db", "--arch", "sm90", "--reaches", arch)
        assert status == 2
        assert place in err
