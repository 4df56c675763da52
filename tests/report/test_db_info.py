import pytest

from policygen.model.results import (
    CoveredWorkload,
    DatabaseInfo,
    DbCoverage,
    DbInfo,
    FailureCount,
    RunKey,
    TableInfo,
)
from policygen.report import ranking_views
from policygen.report.console import fitted, show
from policygen.report.ranking_views import UNKNOWN_SPACE
from tests.report.shown import lines as shown

H200 = RunKey(gpu="H200 (6144, 132, eccon)", ctk="13.0.88", cccl="v3.0.3")
PLACE = "H200 (6144, 132, eccon) · ctk 13.0.88 · cccl v3.0.3"
SHA = "0123456789abcdef" * 4


def table(*, values: int = 3, unusable: int = 0, declared: bool = True) -> TableInfo:
    return TableInfo(
        algorithm="cub.bench.reduce.sum",
        subbench="base",
        rows=1040,
        unusable=unusable,
        variants=12,
        workloads=({"T{ct}": "I32", "OffsetT{ct}": "I32"}, {"T{ct}": "F32", "OffsetT{ct}": "I32"}),
        keys=(H200,),
        axes={"Elements{io}[pow2]": tuple(str(i) for i in range(16, 16 + values)), "Entropy": ()},
        declared=declared,
    )


def database(
    *tables: TableInfo, path: str = "a.db", seconds: float | None = 125.0, failures: int = 0
) -> DatabaseInfo:
    return DatabaseInfo(
        path=path,
        sha256=SHA,
        layout="cccl",
        tables=tables,
        failures=tuple(
            FailureCount(kind="build", algorithm="cub.bench.reduce.sum", code="2", count=i + 1)
            for i in range(failures)
        ),
        build_seconds=seconds,
        run_seconds=None,
    )


def info(
    *databases: DatabaseInfo, width: int = 100, verbose: bool = False, head: bool = True
) -> list[str]:
    return shown(ranking_views.info(DbInfo(databases=databases), verbose=verbose, head=head), width)


def covered(
    count: int,
    total: int | None,
    *,
    value: str = "I32",
    path: str = "a.db",
    algorithm: str = "cub.bench.reduce.sum",
) -> CoveredWorkload:
    return CoveredWorkload(
        gpu=H200.gpu,
        ctk=H200.ctk,
        cccl=H200.cccl,
        algorithm=algorithm,
        workload={"T{ct}": value, "OffsetT{ct}": "I32"},
        databases=(path,),
        covered=count,
        variants=total,
        share=count / total if total else None,
    )


def coverage(
    *workloads: CoveredWorkload, width: int = 100, verbose: bool = False, head: bool = True
) -> list[str]:
    document = DbCoverage(workloads=workloads)
    return shown(ranking_views.coverage(document, width, verbose=verbose, head=head), width)


def test_a_database_shows_what_it_holds() -> None:
    assert info(database(table(unusable=7), failures=2)) == [
        "a.db  layout cccl · builds took 2 min 05 s · sha256 0123456789ab",
        "  cub.bench.reduce.sum.base  1,040 rows · 7 unusable · 12 variants · 2 workloads",
        f"    {PLACE}",
        "    workloads: T{ct}=I32, OffsetT{ct}=I32; T{ct}=F32, OffsetT{ct}=I32",
        "    Elements{io}[pow2] (declared): 16 17 18",
        "  1 failed build of cub.bench.reduce.sum, code 2",
        "  2 failed builds of cub.bench.reduce.sum, code 2",
    ]


def test_values_of_axes_that_nobody_declared_are_marked() -> None:
    rows = info(database(table(declared=False)))
    assert rows[4] == "    Elements{io}[pow2] (values present): 16 17 18"


def test_a_list_that_is_cut_says_how_much_and_verbose_cuts_nothing() -> None:
    cut = info(database(table(values=11)))
    assert cut[4] == (
        "    Elements{io}[pow2] (declared): 16 17 18 19 20 21 22 23 … 3 more (-v lists them)"
    )
    whole = info(database(table(values=11)), verbose=True)
    assert whole[2] == f"  sha256 {SHA}"
    assert whole[-1] == "    Elements{io}[pow2] (declared): 16 17 18 19 20 21 22 23 24 25 26"


def test_a_benchmark_without_compile_time_axes_lists_no_workloads() -> None:
    plain = table().model_copy(update={"workloads": ({},)})
    assert not any("workloads:" in row for row in info(database(plain)))


def test_a_database_without_measurements_says_so() -> None:
    assert info(database(seconds=None)) == [
        "a.db  layout cccl · sha256 0123456789ab",
        "  no measurements",
    ]


def test_several_databases_are_counted_unless_quiet() -> None:
    two = (database(table()), database(table(), path="b.db"))
    assert info(*two)[-2:] == ["", "2 databases, 2,080 rows"]
    assert info(*two, head=False)[-1].startswith("    Elements")


@pytest.mark.parametrize("width", [60, 80, 160])
def test_nothing_is_too_wide(width: int) -> None:
    rows = info(database(table(values=40, unusable=1), failures=1), width=width)
    assert max(map(len, rows)) <= width


def test_coverage_has_a_line_for_each_workload() -> None:
    assert coverage(covered(12, 12), covered(3, 1000, value="F32")) == [
        PLACE,
        "  cub.bench.reduce.sum[T{ct}=I32, OffsetT{ct}=I32]  12 of    12  100.0000 %",
        "  cub.bench.reduce.sum[T{ct}=F32, OffsetT{ct}=I32]   3 of 1,000    0.3000 %",
    ]


def test_coverage_names_the_files_when_there_are_several() -> None:
    rows = coverage(covered(12, 12), covered(3, 12, path="b.db"))
    assert [row for row in rows if "ctk" in row] == [f"{PLACE} · a.db", f"{PLACE} · b.db"]
    assert rows[2] == ""


@pytest.mark.parametrize(("head", "rows"), [(False, 2), (True, 5)])
def test_a_search_space_that_is_not_known_is_told(head: bool, rows: int) -> None:
    found = coverage(covered(12, None), head=head)
    assert found[1].endswith("12 of ?")
    assert len(found) == rows
    assert " ".join(" ".join(found[3:]).split()) == (UNKNOWN_SPACE if head else "")


def test_long_workloads_take_more_lines() -> None:
    name = "cub.bench.a_name_of_some_length"
    rows = coverage(covered(12, 12, value="complex128", algorithm=name), width=80)
    assert rows[1:] == [
        "  cub.bench.a_name_of_some_length[T{ct}=complex128,",
        "    OffsetT{ct}=I32]                                        12 of 12  100.0000 %",
    ]


def test_coverage_of_nothing_is_told() -> None:
    assert coverage() == ["no workload has a baseline"]


@pytest.mark.parametrize("columns", ["80", "160"])
def test_printing_follows_the_width(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    show(ranking_views.info(DbInfo(databases=(database(table()),)), verbose=True, head=True))
    show(
        fitted(ranking_views.coverage)(
            DbCoverage(workloads=(covered(3, 12),)), verbose=True, head=True
        )
    )
    out = capsys.readouterr().out
    assert SHA in out
    assert "25.0000 %" in out
    assert max(map(len, out.splitlines())) <= int(columns)


def test_databases_are_apart_by_a_blank_line():
    lines = info(database(table()), database(table()))
    starts = [number for number, line in enumerate(lines) if line.startswith("a.db")]
    assert len(starts) == 2
    assert lines[starts[1] - 1] == ""
