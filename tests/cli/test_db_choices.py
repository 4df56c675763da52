"""`policygen db` and `plan`: confirming runs, reasons, and filters that hide nothing."""

import json
import sqlite3

import pytest

from policygen.cli.main import main
from tests.results.build import ALGORITHM, Builder, simple
from tests.results.measured import MEASURED

SCAN = str(MEASURED / "A_scan_exclusive_sum/cccl_meta_bench.db")
SIZES = ("16", "20", "24", "28")


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def run(capsys, *arguments):
    status = main(["db", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def made(path, speed, **more):
    built = Builder(path).table()
    for name, value in {"base": 1.0, "ipt_1": speed}.items():
        built.rows(name, dict.fromkeys(SIZES, 1 / value), "I32", **more)
    return path


def test_a_result_that_holds_is_used_and_told_without_luck(capsys):
    status, out, _ = run(capsys, "choose", SCAN, "-a", "T{ct}=I8", "--json")
    (found,) = json.loads(out)["workloads"]
    choice = found["choice"]
    assert (status, choice["decision"], choice["tried"]) == (0, "use", 12)
    assert choice["variant"] == "ipt_16.tpb_256.ns_600.dcid_0.l2w_400.trp_1.ld_0"
    assert choice["score"] < choice["raw_score"] == pytest.approx(1.077072, abs=1e-6)
    assert (choice["unconfirmed"], choice["origin"]) == (True, "shrunken")
    assert 0.01 < choice["noise"] < 0.02
    assert (found["approximate"], found["declared"]) == (False, 4)


@pytest.mark.parametrize(
    "named", [["cub.bench.scan.exclusive.sum T=I8"], ["cub.bench.scan.exclusive.sum", "T=I8"]]
)
def test_why_tells_the_whole_reasoning(capsys, named):
    status, out, _ = run(capsys, "choose", "--why", *named, SCAN)
    assert status == 0
    for part in (
        "  use ipt_16.tpb_256.ns_600.dcid_0.l2w_400.trp_1.ld_0",
        "rows      12 variants and base on 4 of 4 declared runtime workloads in 1 run (",
        "          Elements{io}[pow2]=16: weight 0.1721, base 8.00 us, noise 2.83%\n",
        "noise     0.0120 for a score in one run, from 51 processes of scan.exclusive.sum",
        "luck      of 12 variants as fast as base, the best exceeds 1.0299 in 5% of searches\n",
        "confirmed by no run: --confirm DB adds one that the choice has not seen; to find a gain"
        " of 3% in 4 of 5 searches takes 1 run of the finalists\n",
        "changes   a confirming run in which it scores less than ",
    ):
        assert part in out
    assert "[T{ct}=I32" not in out


def test_why_tells_what_would_change_the_answer(capsys, tmp_path):
    search, again = made(tmp_path / "a", 1.03), made(tmp_path / "b", 0.99)
    small = made(tmp_path / "c", 1.001)
    why = ("choose", "--why", f"{ALGORITHM} T=I32")
    _, out, _ = run(capsys, *why, search, "--confirm", again)
    assert f"confirmed no, by {again}\n" in out
    assert "changes   further confirming runs" in out
    _, out, _ = run(capsys, *why, small)
    assert "changes   a confirming run in which the best scores at least 1.0" in out
    _, out, _ = run(capsys, *why, made(tmp_path / "e", 0.8))
    assert "changes   a variant with no runtime workload under 0.95, or different rules\n" in out
    lucky = made(tmp_path / "d", 1.016)
    _, out, _ = run(capsys, *why, lucky, "--confidence", "0.9999")
    assert "changes   a confirming run in which the best scores at least 1.0" in out
    Builder(search).execute(f"INSERT INTO subbenches VALUES ('{ALGORITHM}', 'pairs')")
    _, out, _ = run(capsys, *why, search)
    assert f"base is missing for {ALGORITHM}.pairs" in " ".join(out.split())
    assert "changes   base measured there as well\n" in out


def test_why_tells_of_all_workloads_that_are_meant(capsys):
    status, out, _ = run(capsys, "choose", "--why", "cub.bench.scan.exclusive.sum", SCAN)
    assert status == 0
    assert out.count("\nrows      ") == 2
    assert "\n\ncub.bench.scan.exclusive.sum[T{ct}=I32" in out


def test_why_needs_a_workload(capsys):
    status, _, err = run(capsys, "choose", "--why", "x y", SCAN)
    assert status == 2
    assert "--why 'x y' is not a workload\n  For example: cub.bench.reduce.sum T=I32" in err


def test_what_was_built_and_never_ran_is_told(capsys, tmp_path):
    path = made(tmp_path / "a", 1.2)
    names = [
        f"{ALGORITHM}.{name}" for name in ("base", "ipt_1", "ipt_2", "ipt_3", "ipt_4", "ipt_5")
    ]
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE builds (ctk, cccl, bench, code, elapsed)")
        rows = [("13.0", "v3.0", name, "0", 1.0) for name in names]
        database.executemany("INSERT INTO builds VALUES (?, ?, ?, ?, ?)", rows)
    _, _, err = run(capsys, "choose", path)
    assert f"{ALGORITHM}: built, but no run left a row: ipt_2, ipt_3, ipt_4 and 1 more\n" in err
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE subbenches")
        database.execute(f'DROP TABLE "{ALGORITHM}.base"')
    _, _, err = run(capsys, "choose", path)
    assert "nothing was measured: 6 of 6 builds succeeded, but no run left a row\n" in err


def test_a_plot_is_of_the_version_that_is_asked_for(capsys, tmp_path):
    path = made(tmp_path / "a", 1.2)
    built = Builder(path)
    for name in ("base", "ipt_1"):
        built.rows(name, dict.fromkeys(SIZES, 1.0), "I32", cccl="v3.1")
    out = tmp_path / "a.svg"
    status, _, err = run(capsys, "plot", path, "-o", out)
    assert status == 2
    assert (
        "They were measured on different GPUs or versions: choose with --gpu, --ctk and --cccl."
        in err
    )
    assert run(capsys, "plot", path, "-o", out, "--cccl", "v3.1", "--gpu", "G", "-q")[0] == 0


def test_a_merge_that_leaves_something_out_says_so_by_its_status(capsys, tmp_path):
    one = simple(tmp_path / "1", base={"16": 2.0}, ipt_1={"16": 1.0})
    two = simple(tmp_path / "2", base={"16": 2.0}, ipt_1={"16": 1.5})
    assert run(capsys, "merge", one, "-o", tmp_path / "a.db", "-q")[0] == 0
    assert run(capsys, "merge", one, two, "-o", tmp_path / "b.db", "-q")[0] == 1
