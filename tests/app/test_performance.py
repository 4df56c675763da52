"""`policygen verify-performance` with a simulated GPU; what changed is found by the compiler."""

import pytest

from policygen.app import performance
from policygen.cli.main import main
from policygen.gpu.changes import AFTER
from policygen.gpu.nvbench_files import JOINED
from tests.app.searched import driver_program, own_locks
from tests.cli.tuned import THREE
from tests.gpu.simulated import Plan
from tests.probing import changed_tree, header, replaced, root
from tests.report.performances import told
from tests.tiers import sampled

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

HEADER = "tuning_three_way_partition.cuh"
ENTRY = (
    "  static constexpr int threads                       = 320;\n"
    "  static constexpr int items                         = 12;\n",
    "  static constexpr int threads                       = 256;\n"
    "  static constexpr int items                         = 12;\n",
)
ONE = ("-R", f"{THREE}$", "-a", "T=I32", "-a", "OffsetT=I32")


@pytest.fixture
def verify(tmp_path, monkeypatch):
    """Runs the command on a tree with another entry; objects are files without content."""

    class Compiler:
        def __init__(self, _toolchain, folder, _listings):
            self.folder = folder

        def make(self, source):
            name = "after" if str(tmp_path) in "".join(source.includes[:1]) else "before"
            if name in refused:
                refused[name]()
            path = self.folder / f"{name}.so"
            path.touch()
            return path

    refused = {}
    tree = changed_tree(tmp_path, "3.0.1", {HEADER: replaced(header("3.0.1", HEADER), ENTRY)})

    def run(*arguments, failing=None, base="3.0.1", which=ONE, **plan):
        refused.update(failing or {})
        made = Plan(str(tmp_path), **plan)
        monkeypatch.setattr(performance, "worker_command", lambda *_: made.command())
        monkeypatch.setattr(performance, "ObjectCompiler", Compiler)
        driver_program(tmp_path, monkeypatch)
        own_locks(tmp_path, monkeypatch)
        there = () if base is None else ("--base", str(root(base)))
        given = ("--cub", str(tree), *there, *which, "--rounds", "6", "--processes", "3")
        return main(["verify-performance", *given, "-q", *arguments])

    return run


@pytest.fixture
def claimed(tmp_path, verify):
    """Writes a comment into the entry that changed."""

    def write(comment):
        (path,) = tmp_path.rglob(HEADER)
        old, new = header("3.0.1", HEADER), path.read_bytes()
        first = next(n for n, (a, b) in enumerate(zip(old, new, strict=True)) if a != b)
        start = new.rindex(b"\n", 0, first) + 1
        path.write_bytes(new[:start] + comment.encode() + new[start:])

    return write


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ratio", "verdict", "status"),
    sampled([(1.2, "faster", 0), (0.8, "slower", 1), (1.0, "equal", 0)], (1.0, "equal", 0)),
)
def test_what_a_change_is_worth_is_told(verify, capsys, ratio, verdict, status):
    assert verify("--json", ratios={AFTER: ratio}) == status
    document = told(capsys)
    (workload,) = document.workloads
    assert workload.verdict == document.verdict == verdict
    assert workload.ratio == pytest.approx(ratio, rel=0.02)
    assert workload.low < workload.ratio < workload.high
    assert {row.verdict for row in workload.runtime} == {verdict}
    assert document.noise.median == pytest.approx(0.003, abs=0.003)
    assert (document.arch, document.gpu) == ("sm90", "H200 (6144, 132, eccon)")


@pytest.mark.slow
def test_a_review_of_the_same_change_shows_it_at_the_line_of_the_entry(verify, capsys, tmp_path):
    path = tmp_path / "performance.json"
    assert verify("--json", "-o", str(path), ratios={AFTER: 0.8}) == 1
    given = ("--base", str(root("3.0.1")), "--performance", str(path), "-q")
    assert main(["review", "--cub", str(tmp_path / "tree"), *given, "--annotate", "github"]) == 1
    rows = capsys.readouterr().out.splitlines()
    (row,) = [row for row in rows if "title=policygen slower" in row]
    assert row.startswith(f"::error file=cub/device/dispatch/tuning/{HEADER},line=")
    assert f"{THREE} T=I32 OffsetT=I32 on sm90: before over after 0.8" in row
    assert main(["review", "--cub", str(tmp_path / "tree"), *given]) == 1
    out = capsys.readouterr().out
    assert "\n### Is it faster?\n" in out
    assert "It was compared with" not in out


@pytest.mark.slow
def test_a_table_shows_it_and_what_got_slower(verify, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert verify(ratios={AFTER: 0.8}) == 1
    out = capsys.readouterr().out
    assert f"slower   {THREE} T=I32" in out
    assert "slower   Elements=16" in out
    assert "equal code compared with itself varies by" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.slow
def test_workloads_with_the_same_code_are_not_measured(verify, tmp_path, capsys):
    which = ("-R", f"{THREE}$", "-a", "T=I8", "-a", "OffsetT=I32")
    out = str(tmp_path / "nvbench")
    assert verify("--all", "--json", "--nvbench", out, which=which, ratios={AFTER: 0.5}) == 0
    document = told(capsys)
    assert document.remarks[-1].endswith("no measurements to write")
    (workload,) = document.workloads
    assert workload.verdict == document.verdict == "same-code"
    assert workload.ratio is None
    assert document.gpu is None
    assert verify("--all", which=which) == 0
    assert "1 workload with the same machine code" in capsys.readouterr().out


@pytest.mark.slow
def test_other_results_are_told_loudly(verify, capsys):
    assert verify(does={AFTER: "wrong"}) == 1
    assert "WRONG RESULTS" in capsys.readouterr().out


@pytest.mark.slow
def test_what_may_be_slower_is_as_much_as_is_allowed(verify, capsys):
    assert verify("--tolerance", "40", ratios={AFTER: 0.8}) == 0
    assert verify("--tolerance", "10", ratios={AFTER: 0.8}) == 1
    assert "slower than the allowed 10 %" in capsys.readouterr().out
    # Narrower than the noise of so few processes.
    assert verify("--tolerance", "0.001") == 1
    assert "undecided: within" in capsys.readouterr().out


def test_nothing_to_compare_with_is_bad_input(verify, capsys):
    assert verify(base=None) == 2
    assert "Name what to compare with" in capsys.readouterr().err


def test_without_a_gpu_it_says_what_is_missing(verify, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("tests.app.test_performance.driver_program", lambda *_: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert verify() == 3
    assert capsys.readouterr().err


@pytest.mark.slow
def test_what_was_measured_is_written_for_scripts_of_nvbench(verify, tmp_path, capsys):
    out = tmp_path / "nvbench"
    assert verify("--nvbench", str(out), "--json", ratios={AFTER: 1.2}) == 0
    found = told(capsys)
    assert found.verdict == "faster"
    assert JOINED in found.remarks
    # Each runtime workload has ratios at quantiles.
    rows = [row for one in found.workloads for row in one.runtime]
    assert rows
    for row in rows:
        assert len(row.quantiles) == len(found.quantiles)
        assert row.quantiles[len(row.quantiles) // 2] == pytest.approx(1.2, rel=0.02)
    files = [str(out / f"{side}/{THREE}.json") for side in ("before", "after")]
    given = ("--before", files[0], "--after", files[1], "--json")
    assert main(["verify-performance", *given]) == 1
    again = told(capsys)
    # The same runtime workloads with the same weights; one file a side decides nothing.
    assert [(r.point, r.weight) for r in again.workloads[0].runtime] == [
        (r.point, pytest.approx(r.weight)) for r in found.workloads[0].runtime
    ]
    assert again.workloads[0].workload == found.workloads[0].workload
    assert again.workloads[0].ratio == pytest.approx(1.2, rel=0.01)
    assert (again.gpu, again.arch, again.verdict) == (found.gpu, found.arch, "undecided")
    assert verify("--nvbench", str(out)) == 2
    assert "the folder is not empty" in capsys.readouterr().err


@pytest.mark.slow
def test_the_entry_that_carries_the_loss_is_named(verify, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert verify("--entries", ratios={AFTER: 0.8}) == 1
    out = capsys.readouterr().out
    (row,) = [line for line in out.splitlines() if line.startswith("0.") and HEADER in line]
    assert f"{HEADER}: sm90_tuning<" in row
    assert verify("--json", ratios={AFTER: 0.8}) == 1
    document = told(capsys)
    (entry,) = document.entries
    assert entry.entry == document.workloads[0].entry
    assert (entry.verdict, entry.workloads, entry.slower) == ("slower", 1, 1)
    assert entry.worst == document.workloads[0].name


@pytest.mark.slow
def test_what_a_comment_claims_must_hold(verify, capsys, claimed):
    claimed("  // ipt_12.tpb_256 1.150000  1.100000  1.150000  1.200000\n")
    assert verify("--json", ratios={AFTER: 1.2}) == 0
    (workload,) = told(capsys).workloads
    assert (workload.claimed, workload.holds) == (1.15, True)
    assert verify(ratios={AFTER: 1.08}) == 1
    out = capsys.readouterr().out
    assert "the change claims 1.150, at least 1.150; measured at most 1.0" in " ".join(out.split())
