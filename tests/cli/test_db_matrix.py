"""`policygen db matrix` as it is typed."""

import json
import re

import jsonschema
import pytest

from policygen import rendering
from policygen.model.measured import StrategyMatrix
from policygen.outputs import is_ours
from policygen.report.measure_views import compared
from tests.app.kernels_measured import KERNEL, kernel_database, spoil
from tests.cli.test_db import run
from tests.cli.test_hostile_text import GPU, SEEN
from tests.report.shown import lines as shown
from tests.results.build import simple


@pytest.fixture
def found(tmp_path, monkeypatch):
    """A folder with a database."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    kernel_database(tmp_path / "run.db")
    return tmp_path


def test_it_prints_ratios_and_who_wins(found, capsys):
    status, out, err = run(capsys, "matrix", "run.db")
    assert (status, err) == (0, "")
    rows = out.splitlines()
    assert rows[0] == f"{KERNEL} on H200 (6144, 132, eccon); a copy kernel reaches 4,000 GB/s"
    assert rows[1].split() == ["strategy", "1,000", "1,000,000"]
    assert next(row.split() for row in rows if row.lstrip().startswith("managed"))[1] == "-"
    assert f"1,000: each, {'strategy_0.tpb_128'}, 1.0 us, 12 GB/s" in out
    assert "close: managed" in " ".join(out.split())
    assert max(map(len, rows)) <= 80


def test_a_blank_line_is_between_kernels(found, capsys):
    _, out, _ = run(capsys, "matrix", "run.db", "--json")
    document = StrategyMatrix.model_validate_json(out)
    two = document.model_copy(update={"kernels": document.kernels * 2})
    alone, both = (shown(compared(one, verbose=False, head=True), 80) for one in (document, two))
    assert both == [*alone, "", *alone]


def test_verbose_tells_what_each_takes_and_quiet_no_head(found, capsys):
    _, out, _ = run(capsys, "matrix", "run.db", "-v")
    text = " ".join(out.split())
    assert "8 blocks of 128, occupancy 50 %, 32 registers, 8 B spilled, 1,536 B shared" in text
    assert "% of a copy" in text
    _, quiet, _ = run(capsys, "matrix", "run.db", "-q")
    assert KERNEL not in quiet
    assert "1,000: each" in quiet


def test_json_is_one_document_of_its_own_format(found, capsys):
    status, out, err = run(capsys, "matrix", "run.db", "--json")
    assert (status, err) == (0, "")
    document = StrategyMatrix.model_validate_json(out)
    assert document.to_json() + "\n" == out
    schema = rendering.folder("schemas") / "json/matrix-1.schema.json"
    jsonschema.validate(json.loads(out), json.loads(schema.read_text()))
    assert document.databases == ("run.db",)
    assert run(capsys, "matrix", "run.db", "--json", "-o", "a.json") == (0, "", "")
    assert (found / "a.json").read_text() == out


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.md", f"# Strategies of {KERNEL}\n"),
        ("a.html", "<!doctype html>"),
        ("a.txt", f"{KERNEL} on H200"),
    ],
)
def test_a_file_has_what_its_name_says(found, capsys, name, begins):
    assert run(capsys, "matrix", "run.db", "-o", name) == (0, f"written to {name}\n", "")
    assert (found / name).read_text().startswith(begins)
    assert run(capsys, "matrix", "run.db", "-o", name, "-q", "--force") == (0, "", "")


def test_a_page_has_a_heat_map_with_a_cell_for_each(found, capsys):
    run(capsys, "matrix", "run.db", "-o", "a.html")
    text = (found / "a.html").read_text()
    assert is_ours(found / "a.html")
    assert text.count("<svg") == 1
    assert "The fastest at 1,000: each; 1,000,000: stride." in text
    assert "managed, 1,000: not measured" in text
    assert "stride, 1,000: 1.5" in text
    assert "a copy kernel reaches 4,000 GB/s" in text
    # The name of a row is beside the middle of its cells.
    above, below, name = (
        int(re.search(rf'y="(\d+)">{words}</text>', text)[1])
        for words in (r"1\.000", r"1\.0 us", "each")
    )
    assert name == (above + below) / 2
    run(capsys, "matrix", "run.db", "-o", "a.md")
    assert "svg" not in (found / "a.md").read_text()
    assert "50 %" in (found / "a.md").read_text()


def test_without_launches_and_copies_there_are_times_alone(found, capsys):
    spoil("run.db", "DROP TABLE policygen_launches", "DROP TABLE policygen_peaks")
    for form in ((), ("-v",), ("-o", "a.html"), ("-o", "a.md")):
        status, out, err = run(capsys, "matrix", "run.db", *form)
        assert (status, err) == (0, "")
        assert "GB/s" not in out
        assert "registers" not in out
    assert "a copy kernel reaches" not in (found / "a.html").read_text()


def test_another_parameter_is_compared_and_one_that_is_none_refused(found, capsys):
    _, out, _ = run(capsys, "matrix", "run.db", "--by", "tpb", "-q")
    assert out.split()[:3] == ["tpb", "1,000", "1,000,000"]
    status, _, err = run(capsys, "matrix", "run.db", "--by", "ipt")
    assert (status, err.splitlines()[0]) == (2, "policygen: error: own.axpy has no parameter ipt")


def test_a_database_without_kernels_says_how_to_measure_them(found, capsys):
    simple(found / "plain.db", base={"16": 2.0}, ipt_1={"16": 1.6})
    status, _, err = run(capsys, "matrix", "plain.db")
    assert status == 2
    assert "plain.db contains no measurements of your own kernels" in err
    assert "policygen measure --workload kernel.toml --all --db FILE" in err
    assert run(capsys, "matrix", "plain.db", "run.db")[0] == 0
    assert run(capsys, "matrix", "run.db", "-R", "own.other")[0] == 2


def test_what_is_read_is_not_written_over(found, capsys):
    before = (found / "run.db").read_bytes()
    assert run(capsys, "matrix", "run.db", "-o", "run.db", "--force")[0] == 2
    assert (found / "run.db").read_bytes() == before
    (found / "a.html").write_text("mine")
    assert run(capsys, "matrix", "run.db", "-o", "a.html")[0] == 2


def test_several_kernels_have_a_table_each(found, capsys):
    kernel_database(found / "run.db", gpu="NVIDIA L4", peak=None)
    status, out, _ = run(capsys, "matrix", "run.db")
    assert status == 0
    heads = [row for row in out.splitlines() if row.startswith(KERNEL)]
    assert len(heads) == 2
    assert heads[1].startswith(f"{KERNEL} on L4")
    assert "copy" not in heads[1]


@pytest.mark.parametrize("form", [[], ["-v"], ["-o", "a.md"], ["-o", "a.html"]])
def test_no_text_of_a_database_is_an_escape_sequence_or_markup(found, capsys, form):
    hostile = f"<i>{GPU}".replace("'", "''")
    spoil("run.db", f"UPDATE policygen_values SET text = '\"' || '{hostile}' || value || '\"'",
          f"UPDATE policygen_sessions SET gpu = '{hostile}'",
          f"UPDATE policygen_kernels SET kernel = '{hostile}'")  # fmt: skip
    status, out, err = run(capsys, "matrix", "run.db", *form)
    assert status == 0
    text = out + err + ((found / form[1]).read_text() if form[1:] else "")
    assert all(row.isprintable() for row in text.split("\n"))
    assert SEEN in text.replace("\\\\", "\\").replace("\\]", "]")
    if form[1:] == ["a.html"]:
        assert "<i>" not in text
