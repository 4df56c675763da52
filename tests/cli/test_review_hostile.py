"""A review of what a hostile database says, from its rows to the page in a browser."""

import sqlite3

import pytest

from fixtures.databases.every import GPUS, benchmark_database
from tests.browser import faults, opened, overflow
from tests.cli.tuned import LABEL, THREE, run, tuned

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

IMAGE = "<img src=x onerror=alert(1)>"
GPU = f"H200 {IMAGE}|`*_[x](javascript:alert(2))& (6144, 132, eccon)"
TYPE = f"{'Long' * 400}<script>alert(3)</script>{{{{7*7}}}}|"
FILE = "<b onclick=alert(4)>&|.db"


@pytest.fixture
def hostile(tmp_path):
    """One workload that a variant wins, and one of a type that nobody has."""
    path = tmp_path / FILE
    won = {("I32", "I32"): LABEL, ("I8", "I32"): LABEL}
    benchmark_database(path, THREE, "3.0.1", GPU, won)
    with sqlite3.connect(path) as data:
        for (table,) in data.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            for column in [row[1] for row in data.execute(f'PRAGMA table_info("{table}")')]:
                data.execute(
                    f'UPDATE "{table}" SET "{column}" = ? WHERE "{column}" = ?', (TYPE, "I8")
                )
    data.close()
    return path


def test_no_line_of_it_becomes_code(capsys, tree, tmp_path):
    path = tmp_path / "run.db"
    gpu = "H200\n#define int long\r\\ (6144, 132, eccon)"
    benchmark_database(path, THREE, "3.0.1", gpu, {("I32", "I32"): LABEL})
    given = ("--cub", tree, "--db", path, "--arch", "sm90", "--provenance", "full")
    status, diff, err = run(capsys, "apply", *given, "--no-prove", "--diff", "-q")
    assert status == 0, err
    (row,) = [row for row in diff.splitlines() if "#define" in row]
    assert row.startswith("+  // ")
    assert "(H200 #define int long \\, CUDA 13.0.88, CCCL v3.0.1, " in row


EVIL = f"{LABEL}.a\n#define private public\ninline int evil(){{return 1;}}\n//_1"
SQUARED = LABEL.replace("tpb_512", "tpb_2048")


@pytest.mark.parametrize("prove", [True, False])
@pytest.mark.parametrize(
    ("label", "told"),
    [
        (
            EVIL,
            "rows with a variant that is not a label, like ipt_19.tpb_512, are ignored:"
            " 'trp_1.ipt_10",
        ),
        (SQUARED, "reject cub.bench.partition.three_way T=I32 OffsetT=I32: "),
        (f"{LABEL}.a_1", "reject cub.bench.partition.three_way T=I32 OffsetT=I32: "),
        (LABEL.replace("ipt_10", "ipt_-19"), "reject cub.bench.partition.three_way T=I32 OffsetT"),
    ],
    ids=["code", "threads", "parameter", "items"],
)
def test_no_label_of_it_becomes_code(capsys, tree, tmp_path, label, told, prove):
    path = tmp_path / "run.db"
    benchmark_database(path, THREE, "3.0.1", GPUS["sm90"], {("I32", "I32"): LABEL})
    with sqlite3.connect(path) as data:
        (table,) = [
            name
            for (name,) in data.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if name.startswith(THREE)
        ]
        data.execute(f'UPDATE "{table}" SET variant = ? WHERE variant = ?', (label, LABEL))
    data.close()
    before = tuned(tree).read_bytes()
    given = ["--cub", tree, "--db", path, "--arch", "sm90"]
    status, out, err = run(capsys, "apply", *given, *([] if prove else ["--no-prove"]))
    assert status == 0, err
    assert tuned(tree).read_bytes() == before
    assert told in (out + err).replace("\n  ", " ")


@pytest.fixture
def written(capsys, tree, hostile):
    """A tree that has what the database says."""
    status, _, err = run(capsys, "apply", "--cub", tree, "--db", hostile, "--arch", "sm90", "-q")
    assert status == 0, err
    return tree


@pytest.mark.browser
def test_nothing_of_it_becomes_part_of_the_page(capsys, written, tmp_path):
    page = tmp_path / "review.html"
    given = ("review", "-q", "--cub", written, "--format", "html", "-o", page)
    assert run(capsys, *given)[0] == 0
    with opened(page, width=400) as (shown, said):
        shown.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        assert shown.locator("img, b[onclick]").count() == 0
        assert shown.locator("script").count() == 1
        assert IMAGE in shown.locator("main").inner_text()
        assert TYPE in shown.locator("main").inner_text()
        assert FILE in shown.locator("main").inner_text()
        assert overflow(shown) <= 0
        assert faults(shown) == []
        assert said == []


@pytest.mark.slow
def test_nothing_of_it_becomes_part_of_a_header_a_comment_or_an_annotation(capsys, written):
    header = written / "cub/device/dispatch/tuning/tuning_three_way_partition.cuh"
    assert b"<img" not in header.read_bytes()
    given = ("review", "-q", "--cub", written)
    status, text, _ = run(capsys, *given)
    assert status == 0
    # Commands stand in a block of code.
    told = text.partition("### To reproduce")[0]
    assert "<img" not in told
    assert "<script" not in told
    assert "<b onclick" not in told
    status, text, _ = run(capsys, *given, "--annotate", "github")
    assert (status, text) == (0, "")
