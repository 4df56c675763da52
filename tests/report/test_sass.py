"""What the terminal shows of machine code, from documents that are made up."""

import pytest

from policygen.errors import InputError
from policygen.model.machine_code import Different, KernelPlace, SassRow, VerifySass
from policygen.model.trees import Cub
from policygen.report import value_views
from policygen.report.console import show
from policygen.report.value_views import SHOWN, write_diffs

NONE = dict.fromkeys(
    ("identical", "renamed", "moved", "different", "only_before", "only_after", "refused"), 0
)
PLACE = {"benchmark": "cub.bench.reduce.sum", "workload": {"T": "I8"}, "kernel": "Kernel<int>"}


def row(arch, benchmark="reduce.sum", **counts):
    values = {**NONE, "workloads": 2, "kernels": 4, "equal": 4, **counts}
    return SassRow(benchmark=f"cub.bench.{benchmark}", arch=arch, **values)


def document(*rows, **fields):
    cub = Cub(root="/tree", version="3.0.1", dialect="specializations", found="--cub")
    counts = {name: sum(getattr(one, name) for one in rows) for name in ("kernels", "equal")}
    return VerifySass(
        cub=cub,
        base="HEAD",
        toolchain="nvcc 13.2",
        archs=tuple(sorted({one.arch for one in rows})),
        workloads=len(rows),
        identical=0,
        rows=rows,
        renamed=0,
        **counts,
        **fields,
    )


def different(arch="sm90", **fields):
    values = {"kind": "different", "summary": "registers 8 → 9", "registers": (8, 9)}
    return Different(**PLACE, arch=arch, **values, diff=("@@ -1 +1 @@", "-A", "+B", " C"), **fields)


def printed(capsys, one, *, head=False, verbose=False):
    show(value_views.sass(one, head=head, verbose=verbose))
    return capsys.readouterr().out


def test_architectures_that_are_alike_share_a_row(capsys):
    archs = ("sm75", "sm80", "sm90", "sm100")
    rows = [row(arch, equal=3, moved=1) if arch == "sm90" else row(arch) for arch in archs]
    out = printed(capsys, document(*rows, row("sm75", "scan.sum"), row("sm80", "scan.sum")))
    assert [line.split() for line in out.splitlines()[2:6]] == [
        ["reduce.sum", "sm75", "to", "sm80", "(2)", "2", "4", "4", "·"],
        ["reduce.sum", "sm90", "2", "4", "3", "1"],
        ["reduce.sum", "sm100", "2", "4", "4", "·"],
        ["scan.sum", "sm75", "to", "sm80", "(2)", "2", "4", "4", "·"],
    ]


def test_long_lists_are_cut_and_say_by_how_much(capsys):
    lone = [KernelPlace(**PLACE, arch="sm90")] * (SHOWN + 2)
    one = document(row("sm90"), different=[different()] * (SHOWN + 3), only_before=lone)
    out = printed(capsys, one)
    assert "and 3 more (-v lists them, --diffs DIR writes their diffs)" in out
    assert "and 2 more (-v lists them)" in out
    assert "    -A\n    +B" not in out
    whole = printed(capsys, one, verbose=True)
    assert "more (" not in whole
    assert whole.count("    -A\n    +B\n     C\n") == SHOWN + 3


def test_a_comparison_of_benchmarks_says_so(capsys):
    out = printed(capsys, document(row("sm90"), units="benchmarks"), head=True)
    assert "compared with HEAD\ncompiled: the benchmarks' own sources\n" in out


def test_diffs_that_cannot_be_written_are_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write to"):
        write_diffs(document(row("sm90"), different=[different()]), tmp_path / "file")
