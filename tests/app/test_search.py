"""`policygen search` with a simulated GPU: what is found, told, written, and gone on with."""

import json
import sqlite3
from contextlib import closing

import pytest

from policygen.cli import search as search_commands
from policygen.cli.main import main
from policygen.gpu import rungs
from policygen.model.searches import Searched, SearchedWorkload, SearchEvent, SearchFailure
from policygen.report.blocks import Words
from policygen.report.search_views import searched
from tests.app.searched import WHICH, pretend, ratios
from tests.gpu.pretended_sanitizer import sanitizing
from tests.gpu.simulated import Plan
from tests.real_trees import tree


@pytest.fixture
def search(tmp_path, monkeypatch):
    """Runs the command."""

    def run(*arguments, refused=(), **plan):
        made = Plan(str(tmp_path), ratios={**ratios(), **plan.pop("ratios", {})}, **plan)
        pretend(tmp_path, monkeypatch, made, refused)
        which = () if "-R" in arguments else WHICH
        db = () if "--db" in arguments else ("--db", str(tmp_path / "run.db"))
        effort = ("--processes", "2", "--rounds", "4", "--jobs", "1")
        return main(["search", "--cub", str(tree("3.6.0")), *which, *db, *effort, *arguments])

    return run


def documents(capsys):
    """The events, and the document after them."""
    *events, last = capsys.readouterr().out.splitlines()
    return [SearchEvent.model_validate_json(one) for one in events], json.loads(last)


@pytest.mark.slow
def test_events_are_lines_of_json_and_the_document_the_last(search, capsys):
    assert search("--json", "--variants", "30", "-q") == 0
    events, last = documents(capsys)
    assert events[0].event == "begun"
    assert [one.event for one in events][-3:] == ["rung", "rung", "ended"]
    assert {one.rung for one in events} == {"screening", "sharper", "last"}
    document = Searched.model_validate(last)
    (workload,) = document.workloads
    assert workload.counts.tried == workload.counts.measured == 30
    assert (workload.counts.variants, workload.counts.distinct) == (1044, 804)
    assert (workload.strategy, workload.ended) == ("local", "count")
    scores = [one.score for one in workload.finalists]
    assert scores == sorted(scores, reverse=True)
    assert workload.best == workload.finalists[0].variant
    assert workload.finalists[0].verdict == "faster"
    assert events[-1].best == workload.best
    assert document.spent <= document.budget == 1200
    assert document.is_fine


@pytest.mark.slow
def test_it_is_told_in_a_line_for_each_event_and_a_table(search, capsys):
    assert search("--variants", "12", "-v") == 0
    told = capsys.readouterr()
    assert "1 screening, batch: 12 of 804 tried, 0 failed, 0 wrong; best ipt_" in told.err
    assert "3 last, ended:" in told.err
    assert "local: 12 of 804 distinct variants tried, 12 measured, 0 failed" in told.out
    assert "screened   score" in told.out
    assert "run.db" in told.out
    # With -v it has those of runtime workloads.
    assert told.out.count("runtime workload") >= 3
    assert "Elements{io}[pow2]=28" in told.out


@pytest.mark.slow
def test_the_same_command_goes_on_and_chooses_nothing_else(search, capsys, tmp_path):
    # Every other variant is slow: whichever are tried, some are dropped after a sample.
    slow = dict.fromkeys(sorted(ratios())[::2], 0.5)
    assert search("--json", "--variants", "20", "-q", ratios=slow) == 0
    _, first = documents(capsys)
    assert search("--json", "--variants", "20", "-q", ratios=slow) == 0
    _, second = documents(capsys)
    (one,), (other,) = first["workloads"], second["workloads"]
    assert other["counts"] == one["counts"]
    assert other["best"] == one["best"]
    with closing(sqlite3.connect(tmp_path / "run.db")) as connection:
        rungs = connection.execute(
            "SELECT count(*) FROM policygen_rungs WHERE rung = 1 AND variant <> 'base'"
            " GROUP BY variant"
        ).fetchall()
    assert len(rungs) == 20
    # A first sample; and one on each runtime workload, if that was not too slow.
    assert set(rungs) == {(1,), (1 + 4,)}
    assert search("--json", "--variants", "25", "-q", ratios=slow) == 0
    _, third = documents(capsys)
    assert third["workloads"][0]["counts"]["tried"] == 25


@pytest.mark.slow
def test_wrong_results_are_loud_and_no_candidates(search, capsys):
    best = "ipt_18.tpb_384.ipv_1"
    assert search("--variants", "804", "-q", "--strategy", "random", does={best: "wrong"}) == 1
    out = capsys.readouterr().out
    assert f"1 variant: WRONG RESULTS: {best}" in out
    assert "faster" in out


@pytest.mark.slow
def test_what_nvcc_refuses_is_kept_and_not_compiled_again(search, capsys, tmp_path):
    refused = {label for label in ratios() if label.startswith("ipt_7.")}
    how = ("--json", "--variants", "60", "-q", "--strategy", "random")
    assert search(*how, refused=refused) == 0
    _, document = documents(capsys)
    (workload,) = document["workloads"]
    (failure,) = workload["failures"]
    assert failure["kind"] == "compile"
    assert failure["count"] == workload["counts"]["failed"] > 0
    with closing(sqlite3.connect(tmp_path / "run.db")) as connection:
        ((kept,),) = connection.execute(
            "SELECT count(*) FROM policygen_failures WHERE kind = 'compile'"
        ).fetchall()
        ((logged,),) = connection.execute(
            "SELECT count(*) FROM builds WHERE code <> '0'"
        ).fetchall()
    assert kept == logged == failure["count"]


@pytest.mark.slow
def test_a_choice_takes_the_last_rung_for_a_confirming_run(search, capsys, tmp_path):
    assert search("--variants", "40", "-q") == 0
    capsys.readouterr()
    assert main(["db", "choose", str(tmp_path / "run.db"), "--json"]) == 0
    (workload,) = json.loads(capsys.readouterr().out)["workloads"]
    choice = workload["choice"]
    assert choice["decision"] == "use"
    assert not choice["unconfirmed"]
    assert "in 2 runs that the choice has not seen" in choice["reason"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--strategy", "annealing"), "annealing"),
        (("--budget", "soon"), "'soon' is not a time; write 90s, 20m or 1.5h"),
        (("--budget", "0m"), "is not a time"),
        (("-R", "cub.bench.nothing$"), "cub.bench.nothing"),
        ((*WHICH, "-a", "Elements{io}[pow2]=17"), "no workload has Elements{io}[pow2] = 17"),
        (("-R", "cub.bench.reduce.sum$", "-a", "T=F31"), "F31"),
    ],
)
def test_what_cannot_be_asked_is_told(search, capsys, arguments, words):
    assert search(*arguments) in {1, 2}
    told = capsys.readouterr()
    assert words in told.err + told.out


@pytest.mark.slow
def test_a_search_needs_a_database(capsys):
    assert main(["search", "--cub", str(tree("3.6.0")), *WHICH]) == 2
    assert "Name one: --db run.db" in capsys.readouterr().err


@pytest.mark.slow
def test_a_lost_gpu_keeps_what_was_measured(search, capsys, tmp_path):
    assert search("--variants", "12", "-q", does={"base": "sample: crash"}) == 3
    assert "base failed" in capsys.readouterr().err
    assert search("--variants", "12", "-q") == 0


@pytest.mark.slow
def test_a_finalist_that_does_harm_is_none(search, capsys, monkeypatch, tmp_path):
    assert search("--json", "--variants", "12", "-q") == 0
    best = documents(capsys)[1]["workloads"][0]["best"]
    tool = sanitizing(tmp_path)(best)
    monkeypatch.setattr("policygen.gpu.search_places.find_sanitizer", lambda _: tool)
    db = str(tmp_path / "other.db")
    assert search("--json", "--variants", "12", "-q", "--sanitize", "--db", db) == 0
    (workload,) = documents(capsys)[1]["workloads"]
    assert best not in {one["variant"] for one in workload["finalists"]}
    (failure,) = workload["failures"]
    assert (failure["variant"], failure["kind"]) == (best, "error")
    assert failure["reason"].startswith(
        "compute-sanitizer: Invalid __global__ read of size 4 bytes"
    )


ILLEGAL, DIFFERENT = "ipt_7.tpb_512.ipv_1", "ipt_24.tpb_256.ipv_2"
FAILING = {ILLEGAL: "sticky", DIFFERENT: "wrong"}
FIRST = ("--variants", "6", "-q", "--start", ILLEGAL, "--start", DIFFERENT)


@pytest.mark.slow
def test_variants_that_fail_on_the_gpu_are_findings_with_what_memcheck_says(
    search, capsys, monkeypatch, tmp_path
):
    """On the terminal, in JSON, and in the report that the database gives."""
    tool = sanitizing(tmp_path)(ILLEGAL)
    monkeypatch.setattr("policygen.gpu.search_places.find_sanitizer", lambda _: tool)
    assert search("--json", *FIRST, does=FAILING) == 1
    (workload,) = documents(capsys)[1]["workloads"]
    wrong, illegal = workload["findings"]
    assert (wrong["kind"], wrong["count"], wrong["variants"]) == ("wrong", 1, [DIFFERENT])
    assert wrong["memcheck"]["outcome"] == "clean"
    assert (illegal["kind"], illegal["variants"]) == ("error", [ILLEGAL])
    assert illegal["reason"] == "an illegal memory access was encountered"
    assert illegal["memcheck"]["outcome"] == "error"
    assert not illegal["memcheck"]["in_cub"], "the frame is of another kernel"
    assert search(*FIRST, does=FAILING) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert f"finding: 1 variant: WRONG RESULTS: {DIFFERENT}: " in out
    assert f"memcheck finds no error in {DIFFERENT} or in base" in out
    assert f"base passes memcheck, {ILLEGAL} does not: Invalid __global__ read" in out
    assert "CUB itself" not in out
    assert main(["db", "report", str(tmp_path / "run.db"), "--json"]) == 0
    (reported,) = json.loads(capsys.readouterr().out)["workloads"]
    assert reported["findings"] == workload["findings"]


@pytest.mark.slow
def test_without_compute_sanitizer_a_finding_says_how_to_run_memcheck(search, capsys, monkeypatch):
    monkeypatch.setattr("policygen.proof.toolchain.which", lambda _: None)
    assert search(*FIRST, does={ILLEGAL: "sticky"}) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"finding: 1 variant: error: {ILLEGAL}: an illegal memory access" in out
    assert "memcheck was not run: compute-sanitizer is missing. Install it: " in out
    assert "To run it: policygen measure -R 'cub\\.bench\\.reduce\\.sum$' -a T=F32" in out
    assert f"--variant {ILLEGAL} --sanitize" in out


@pytest.mark.slow
def test_a_sanitizer_that_is_not_there_is_told_before_anything_is_measured(
    search, capsys, monkeypatch, tmp_path
):
    monkeypatch.setattr("policygen.proof.toolchain.which", lambda _: None)
    assert search("--variants", "12", "--sanitize") == 3
    assert "nvidia-cuda-sanitizer-api" in capsys.readouterr().err
    assert not (tmp_path / "run.db").exists()


@pytest.mark.slow
def test_finalists_of_a_cluster_are_not_looked_at(search, capsys):
    assert search("--variants", "12", "--sanitize", "--scheduler", "tcp://nowhere:8786") == 2
    assert "policygen measure --sanitize" in capsys.readouterr().err


@pytest.mark.slow
def test_wrong_results_stand_out_from_other_failures():
    failures = tuple(
        SearchFailure(kind=kind, count=2, variant="ipt_7", reason="why")
        for kind in ("wrong", "compile")
    )
    workload = SearchedWorkload(benchmark="cub.bench.reduce.sum", workload={}, failures=failures)
    document = Searched.model_construct(workloads=(workload,))
    *_, wrong, refused = searched(document, head=False, verbose=False)
    assert wrong == Words("2 variants: WRONG RESULTS: ipt_7: why", "red", "  ")
    assert refused == Words("2 variants: compile: ipt_7: why", "yellow", "  ")


CAMPAIGN = """
[[workload]]
benchmark = "reduce.sum"
axes = ["T=[F32,F64]", "OffsetT=I32"]

[[workload]]
benchmark = "reduce.min"
axes = ["T=F32", "OffsetT=I32"]
weight = 3
"""


@pytest.mark.slow
def test_a_campaign_searches_all_workloads_of_its_plan_and_writes_a_page_meanwhile(
    tmp_path, monkeypatch, capsys
):
    plan, page = tmp_path / "plan.toml", tmp_path / "page.html"
    plan.write_text(CAMPAIGN)
    pretend(tmp_path, monkeypatch, Plan(str(tmp_path), ratios=ratios()))
    monkeypatch.setattr(search_commands, "PAUSE", 0.0)
    monkeypatch.setattr(rungs, "RESTART", 0.1)
    pages, rendered = [], search_commands.render_page
    monkeypatch.setattr(
        search_commands, "render_page", lambda *of: [pages.append(page.exists()), rendered(*of)][1]
    )
    how = ("--cub", str(tree("3.6.0")), "--processes", "2", "--rounds", "4", "--jobs", "1")
    status = main(["campaign", str(plan), "--budget", "40s", "-o", str(page), *how])
    told = capsys.readouterr()
    assert status == 0, told.err
    assert pages == [True]  # it was there before the end
    # The heaviest is looked at first, and each has a line.
    begun = [line for line in told.err.splitlines() if "base runs" in line]
    assert "cub.bench.reduce.min" in begun[0]
    names = ("reduce.min T=F32", "reduce.sum T=F32", "reduce.sum T=F64")
    for name in names:
        (line,) = [line for line in told.out.splitlines() if f"{name} " in line]
        assert "faster" in line
        assert f"cub.bench.{name}" in page.read_text()
    assert (tmp_path / "plan.db").exists()


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("", "workload"),
        ("[[workload]]\nbenchmark = 'reduce.sums'\n", r"reduce\\.sums"),
        ("[[workload]]\nbenchmark = 'reduce.sum'\nweight = 0\n", "weight"),
        ("[[workload]]\nbenchmark = 'reduce.sum'\naxes = ['T=F31']\n", "F31"),
    ],
)
def test_a_plan_of_a_campaign_that_says_nothing_true_is_an_error(
    tmp_path, monkeypatch, capsys, group, words
):
    plan = tmp_path / "plan.toml"
    plan.write_text(group)
    pretend(tmp_path, monkeypatch)
    assert main(["campaign", str(plan), "--cub", str(tree("3.6.0"))]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "plan.db").exists()


def test_a_part_of_a_plan_that_has_no_workload_is_an_error(tmp_path, monkeypatch, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text(CAMPAIGN)
    pretend(tmp_path, monkeypatch)
    given = ("--cub", str(tree("3.6.0")), "-R", "cub.bench.scan")
    assert main(["campaign", str(plan), *given]) == 2
    assert "-R and -a select no workload of the campaign" in capsys.readouterr().err
