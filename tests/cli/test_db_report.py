"""`policygen db report` as it is typed."""

import json
import sqlite3
from contextlib import closing

import pytest

from policygen.model.searches import SearchReport
from policygen.outputs import is_ours
from tests.cli.test_db import nvbench, run
from tests.cli.test_hostile_text import GPU, SEEN
from tests.results.build import simple
from tests.results.searched import Searched, searched

TWO = {"16": 2.0, "20": 2.0}


@pytest.fixture(scope="module")
def _made(tmp_path_factory):
    return searched(tmp_path_factory.mktemp("searched") / "run.db", count=64, finalists=4)


@pytest.fixture
def found(_made, tmp_path, monkeypatch):
    """A folder with the database of a search."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "run.db").write_bytes(_made.read_bytes())
    return tmp_path


def test_it_prints_the_winner_first(found, capsys):
    status, out, err = run(capsys, "report", "run.db")
    assert (status, err) == (0, "")
    rows = out.splitlines()
    assert rows[0] == "cub.bench.scan.exclusive.sum T=I8"
    assert rows[1] == "  H200 (6144, 132, eccon) · ctk 13.0.88 · cccl v3.6.0"
    assert " is faster than base: " in " ".join(rows[2:4])
    assert "CUB selects ipt_15.tpb_256.ns_500.trp_1 today." in out
    assert "computed other results than base" in out
    assert max(map(len, rows)) <= 80


def test_quiet_has_results_alone_and_verbose_all_finalists(found, capsys):
    _, whole, _ = run(capsys, "report", "run.db", "-v")
    _, quiet, _ = run(capsys, "report", "run.db", "-q")
    assert "CUB selects" in whole
    assert "CUB selects" not in quiet
    assert len(quiet.splitlines()) < len(whole.splitlines())


def test_a_page_is_written_by_its_name(found, capsys):
    told = (0, "written to search.html\n", "")
    assert run(capsys, "report", "run.db", "-o", "search.html") == told
    text = (found / "search.html").read_text()
    assert text.startswith("<!doctype html>")
    assert text.count("<svg") > 20
    assert is_ours(found / "search.html")
    # It is made again.
    assert run(capsys, "report", "run.db", "-o", "search.html")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "begins"),
    [
        (["-o", "a.md"], "# Search of scan.exclusive.sum\n"),
        (["-o", "a.txt"], "cub.bench.scan.exclusive.sum T=I8\n"),
        (["-o", "a.txt", "--format", "html"], "<!doctype html>"),
        (["-o", "a.json", "--json"], '{\n "format": "policygen/search-report/1"'),
    ],
)
def test_a_file_has_what_its_name_or_format_says(found, capsys, arguments, begins):
    assert run(capsys, "report", "run.db", *arguments, "-q") == (0, "", "")
    assert (found / arguments[1]).read_text().startswith(begins)


def test_markdown_has_no_figures(found, capsys):
    status, out, err = run(capsys, "report", "run.db", "--format", "md")
    assert (status, err) == (0, "")
    assert "| **Winner** |" in out
    assert "svg" not in out
    assert "### What failed, and why" in out


def test_json_is_one_document_of_its_own_format(found, capsys):
    status, out, err = run(capsys, "report", "run.db", "--json", "-a", "T=I8")
    assert (status, err) == (0, "")
    document = SearchReport.model_validate(json.loads(out))
    assert document.databases == ("run.db",)
    assert [one.databases for one in document.workloads] == [("run.db",)]


def test_files_of_others_stay(found, capsys):
    (found / "a.html").write_text("mine")
    status, _, err = run(capsys, "report", "run.db", "-o", "a.html")
    assert status == 2
    assert err.startswith(
        "policygen: error: a.html: exists already and was not written by policygen"
    )
    assert run(capsys, "report", "run.db", "-o", "a.html", "--force")[0] == 0
    before = (found / "run.db").read_bytes()
    assert run(capsys, "report", "run.db", "-o", "run.db", "--force")[0] == 2
    assert (found / "run.db").read_bytes() == before


def test_rules_of_choices_are_taken(found, capsys):
    _, out, _ = run(capsys, "report", "run.db", "--json", "--least-score", "1.5")
    document = SearchReport.model_validate(json.loads(out))
    assert document.rules.least_score == 1.5
    assert {one.choice.decision for one in document.workloads} == {"keep base"}


def test_a_database_without_samples_or_a_search_is_told_as_well(found, capsys):
    simple(found / "plain.db", base=TWO, ipt_1={"16": 1.6, "20": 1.6}, ipt_2={"16": 3.0, "20": 2.5})
    with closing(sqlite3.connect("plain.db")) as connection, connection:
        connection.execute('UPDATE "cub.bench.demo.base" SET samples = NULL')
    status, out, _ = run(capsys, "report", "plain.db")
    assert status == 0
    assert "rows of results do not record the" in " ".join(out.split())
    status, out, _ = run(capsys, "report", "plain.db", "--format", "html")
    assert status == 0
    assert "samples of base or of a variant cannot be read" in out


def test_nvbench_results_are_databases_too(found, capsys):
    for name, label in (("base", "base"), ("ipt_1", "variant")):
        nvbench(found, f"{name}/result.json", 2.0, f"bin/cub.bench.reduce.sum.{label}")
    status, out, _ = run(capsys, "report", "base/result.json", "ipt_1/result.json", "--json")
    assert status == 0
    document = SearchReport.model_validate(json.loads(out))
    assert set(document.databases) == {"base/result.json", "ipt_1/result.json"}


def test_what_matches_nothing_is_an_error(found, capsys):
    status, _, err = run(capsys, "report", "run.db", "-R", "cub.bench.none")
    assert (status, err.splitlines()[0]) == (2, "policygen: error: nothing matches")


def test_a_database_of_failures_alone_says_so(found, capsys):
    with Searched(found / "failed.db") as made:
        made.begin()
        made.search("I8", ended="stopped")
        made.fail("I8", "ipt_7.tpb_64", "crash", "\x1b[2J<script>boom</script>")
    status, out, _ = run(capsys, "report", "failed.db")
    assert status == 0
    assert "No variant was measured on all runtime workloads yet." in out
    status, out, _ = run(capsys, "report", "failed.db", "--format", "html")
    assert status == 0
    assert "\\x1b[2J&lt;script&gt;boom" in out


@pytest.mark.parametrize("form", ["table", "md", "html"])
def test_no_text_of_a_database_is_an_escape_sequence_or_markup(found, capsys, form):
    with closing(sqlite3.connect("run.db")) as connection, connection:
        for table in ("policygen_sessions", '"cub.bench.scan.exclusive.sum.base"'):
            connection.execute(f"UPDATE {table} SET gpu = ?", (GPU,))
        connection.execute("UPDATE policygen_failures SET reason = ?", (f"<b>{GPU}</b>]]>",))
        for column in ("driver", "method", "started", "card"):
            connection.execute(f"UPDATE policygen_sessions SET {column} = ?", (f"<i>{GPU}",))
        connection.execute("UPDATE policygen_searches SET strategy = ?", (f"<u>{GPU}",))
        connection.execute("UPDATE policygen_times SET step = ?", (f"<s>{GPU}",))
    status, out, err = run(capsys, "report", "run.db", "--format", form)
    assert status == 0
    assert all(row.isprintable() for row in (out + err).split("\n"))
    # Markdown escapes what shows them, too.
    assert SEEN in out.replace("\\\\", "\\").replace("\\]", "]")
    if form != "table":
        assert not any(f"<{tag}>H200" in out for tag in "bius")
