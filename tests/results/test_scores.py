import math

import pytest

from policygen.app.databases import cover, describe_databases
from policygen.app.inputs import ResultFiles
from policygen.errors import InputError
from policygen.model.benchmarks import ParameterRange
from policygen.model.workload import parse_label
from policygen.results.cases import distance, fits, importance
from policygen.results.database import expand
from policygen.results.ranking import rank
from policygen.results.sessions import split
from tests.results.build import ALGORITHM, IO, Builder, simple


def variants(path, **options):
    (workload,) = rank([path], **options).workloads
    return {v.variant: v for v in workload.variants}


def test_the_weight_of_large_inputs_comes_close_to_one():
    assert importance(0, 4) == pytest.approx(0.6)
    assert [importance(i, 4) for i in range(4)] == sorted(importance(i, 4) for i in range(4))
    assert importance(4, 4) == pytest.approx(0.999)


def test_the_score_is_the_weighted_speedup(tmp_path):
    path = simple(tmp_path / "db", base={"16": 2.0, "20": 4.0}, ipt_1={"16": 1.0, "20": 4.0})
    found = variants(path)["ipt_1"]
    first, second = importance(0, 2), importance(1, 2)
    assert found.score == pytest.approx((2 * first + second) / (first + second), abs=1e-12)
    assert (found.min, found.mean, found.max) == (1.0, 1.5, 2.0)
    assert variants(path)["base"].score == pytest.approx(1.0)


def test_declared_axes_give_the_weights_of_the_full_run(tmp_path):
    """A run of the two largest sizes alone must not count the first of them as the smallest."""
    path = simple(tmp_path / "db", base={"24": 2.0, "28": 4.0}, ipt_1={"24": 1.0, "28": 4.0})
    declared = {(ALGORITHM, "base", IO): ("16", "20", "24", "28")}
    (approximate,) = rank([path]).workloads
    (exact,) = rank([path], declared=declared).workloads
    assert (approximate.approximate, exact.approximate) == (True, False)
    third, fourth = importance(2, 4), importance(3, 4)
    assert exact.variants[0].score == pytest.approx((2 * third + fourth) / (third + fourth))
    assert exact.variants[0].score < approximate.variants[0].score + 1


def test_declared_axes_that_lack_a_measured_value_are_not_believed(tmp_path):
    path = simple(tmp_path / "db", base={"24": 2.0}, ipt_1={"24": 1.0})
    (found,) = rank([path], declared={(ALGORITHM, "base", IO): ("16",)}).workloads
    assert found.approximate


def test_values_that_are_no_numbers_keep_the_order_of_their_appearance(tmp_path):
    path = simple(
        tmp_path / "db", base={"small": 2.0, "big": 2.0}, ipt_1={"big": 1.0, "small": 2.0}
    )
    found = variants(path)["ipt_1"]
    first, second = importance(0, 2), importance(1, 2)
    assert found.score == pytest.approx((first + 2 * second) / (first + second))


def test_only_variants_measured_everywhere_count(tmp_path):
    path = simple(
        tmp_path / "db",
        base={"16": 2.0, "20": 4.0},
        ipt_1={"16": 1.0},
        ipt_2={"16": 1.0, "20": math.inf},
        ipt_3={"16": 1.0, "20": -1.0},
        ipt_4={"16": 1.0, "20": None},
        ipt_5={"16": 1.0, "20": "fast"},
        ipt_6={"16": 1, "20": 4},
        ipt_7={"16": 1.0, "20": 4.0, "24": 1.0},
        ipt_8={"16": 1.0, "20": 5e-324},
    )
    document = rank([path])
    (workload,) = document.workloads
    assert {v.variant for v in workload.variants} == {"base", "ipt_6", "ipt_7"}
    assert (workload.incomplete, workload.runtime_workloads) == (6, 2)
    assert [str(w) for w in document.warnings if "center" in w.message] == [
        f"{path}: {ALGORITHM}.base: rows with an impossible kernel time as their center are"
        " ignored (5, row 5)"
    ]


def test_nan_is_no_center(tmp_path):
    """SQLite stores NaN as NULL."""
    path = simple(tmp_path / "db", base={"16": 2.0}, ipt_1={"16": math.nan})
    assert list(variants(path)) == ["base"]


def test_base_and_variant_of_different_gpus_and_versions_are_never_compared(tmp_path):
    path = tmp_path / "db"
    built = Builder(path).table()
    built.row("base", 2.0, "I32", "16").row("ipt_1", 1.0, "I32", "16")
    built.row("base", 9.0, "I32", "16", cccl="v3.1").row("ipt_1", 3.0, "I32", "16", cccl="v3.1")
    built.row("ipt_1", 1.0, "I32", "16", gpu="Other (1, 2, eccon)")
    document = rank([path])
    assert [(w.gpu, w.cccl, w.variants[0].score) for w in document.workloads] == [
        ("G (1, 2, eccon)", "v3.0", pytest.approx(2.0)),
        ("G (1, 2, eccon)", "v3.1", pytest.approx(3.0)),
    ]
    assert [w.message for w in document.warnings] == [
        f"{ALGORITHM}[T{{ct}}=I32] on Other (1, 2, eccon), ctk 13.0, cccl v3.0: base was not"
        " measured, so nothing can be compared"
    ]


def test_sub_benchmarks_are_scored_together(tmp_path):
    path = tmp_path / "db"
    built = Builder(path).table().table("other", axes=("T{ct}", "Seg"))
    for variant, one, two in (("base", 2.0, 2.0), ("ipt_1", 1.0, 2.0), ("ipt_2", 1.0, None)):
        built.row(variant, one, "I32", "16")
        if two:
            built.row(variant, two, "I32", "4", bench="other")
            built.row(variant, two, "I32", "8", bench="other")
    (workload,) = rank([path]).workloads
    found = {v.variant: v for v in workload.variants}
    assert set(found) == {"base", "ipt_1"}
    weight = importance(0, 1)
    assert found["ipt_1"].score == pytest.approx((2 * weight + 2) / (weight + 2))
    assert found["ipt_1"].mean == pytest.approx((2 + 1) / 2)


def test_runs_of_a_workload_are_combined_and_each_row_has_the_base_of_its_own_run(tmp_path):
    one = simple(tmp_path / "1", base={"16": 2.0}, ipt_1={"16": 1.0}, ipt_2={"16": 1.6})
    two = simple(tmp_path / "2", base={"16": 3.0}, ipt_1={"16": 1.0}, ipt_3={"16": 2.0})
    for paths in ([one, two], [two, one]):
        (found,) = rank(paths).workloads
        assert found.databases == tuple(map(str, paths))
        assert [(v.variant, v.score) for v in found.variants] == [
            ("ipt_1", pytest.approx(2.5)),
            ("ipt_3", pytest.approx(1.5)),
            ("ipt_2", pytest.approx(1.25)),
            ("base", 1.0),
        ]


def test_no_run_borrows_the_base_of_another_one(tmp_path):
    one = simple(tmp_path / "1", base={"16": 2.0}, ipt_1={"16": 1.0})
    two = simple(tmp_path / "2", ipt_2={"16": 0.5})
    document = rank([one, two])
    (found,) = document.workloads
    assert [v.variant for v in found.variants] == ["ipt_1", "base"]
    assert [(w.database, w.message) for w in document.warnings] == [
        (
            str(two),
            f"{ALGORITHM}[T{{ct}}=I32] on G (1, 2, eccon), ctk 13.0, cccl v3.0: base was not"
            " measured, so nothing can be compared",
        )
    ]


def test_an_axis_can_be_narrowed_and_an_unknown_one_is_told(tmp_path):
    path = simple(tmp_path / "db", base={"16": 2.0, "20": 4.0}, ipt_1={"16": 1.0, "20": 4.0})
    assert variants(path, axes={IO: frozenset(["16"])})["ipt_1"].score == pytest.approx(2.0)
    with pytest.raises(InputError, match=r"-a Size: there is no such axis\n  Available: Elements"):
        rank([path], axes={"Size": frozenset(["1"])})


@pytest.mark.parametrize(
    ("label", "values"),
    [
        ("ipt_19.tpb_512", {"ipt": 19, "tpb": 512}),
        ("lbs_-2.bif_-16", {"lbs": -2, "bif": -16}),
        ("a_b_3", {"a_b": 3}),
        ("base", None),
        ("ipt_x", None),
        ("", None),
    ],
)
def test_a_label_gives_its_parameters(label, values):
    assert parse_label(label) == values


def space(**ranges):
    return [
        ParameterRange(macro=n, label=n, start=a, end=b, step=c) for n, (a, b, c) in ranges.items()
    ]


@pytest.mark.parametrize(
    ("label", "inside"),
    [("ipt_8.tpb_64", True), ("ipt_9.tpb_64", False), ("ipt_8", False), ("base", False)],
)
def test_a_variant_fits_its_search_space_or_not(label, inside):
    assert fits(label, space(ipt=(8, 24, 8), tpb=(64, 128, 64))) is inside


def test_coverage_counts_complete_variants_and_base_is_none(tmp_path):
    path = simple(
        tmp_path / "db",
        base={"16": 2.0, "20": 2.0},
        ipt_8={"16": 1.0, "20": 1.0},
        ipt_16={"16": 1.0},
        ipt_99={"16": 1.0, "20": 1.0},
    )
    document = cover([path], {ALGORITHM: space(ipt=(8, 24, 8))})
    (found,) = document.workloads
    assert (found.covered, found.variants, found.share) == (1, 3, pytest.approx(1 / 3))
    assert "variants like ipt_99 do not fit the search space" in str(document.warnings[0])
    (unknown,) = cover([path], {}).workloads
    assert (unknown.covered, unknown.variants, unknown.share) == (2, None, None)


def test_info_tells_what_there_is(tmp_path):
    path = simple(tmp_path / "db", base={"16": 2.0, "20": 0.0}, ipt_8={"16": 1.0})
    log = "(ctk TEXT, cccl TEXT, bench TEXT, code TEXT, elapsed REAL)"
    built = Builder(path)
    built.execute(f"CREATE TABLE builds {log}").execute(f"CREATE TABLE runs {log}")
    built.execute(
        "INSERT INTO builds VALUES ('13', 'v', ?, ?, ?)",
        (f"{ALGORITHM}.base", "0", 10.0),
        (f"{ALGORITHM}.ipt_8.tpb_2", "2", 5.0),
        (f"{ALGORITHM}.ipt_9.tpb_2", "2", 5.0),
    )
    (found,) = describe_databases(ResultFiles([str(path)])).databases
    (table,) = found.tables
    assert (table.rows, table.unusable, table.variants, table.declared) == (3, 1, 1, False)
    assert table.axes == {IO: ("16",)}
    assert table.workloads == ({"T{ct}": "I32"},)
    assert [(f.kind, f.algorithm, f.code, f.count) for f in found.failures] == [
        ("build", ALGORITHM, "2", 2)
    ]
    assert (found.build_seconds, found.run_seconds) == (20.0, None)
    assert len(found.sha256) == 64


@pytest.mark.parametrize(
    ("bench", "algorithm"),
    [
        ("cub.bench.reduce.sum.base", "cub.bench.reduce.sum"),
        ("cub.bench.reduce.sum.ipt_8.tpb_2", "cub.bench.reduce.sum"),
        ("cub.bench.reduce.by_key", "cub.bench.reduce.by_key"),
        ("base", "base"),
    ],
)
def test_a_log_names_the_algorithm_and_the_variant_in_one(bench, algorithm):
    assert split(bench)[0] == algorithm


def test_files_are_taken_once_and_globs_are_expanded(tmp_path, monkeypatch):
    for name in ("b.db", "a.db"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert [p.name for p in expand(["*.db", "a.db", "./b.db"])] == ["a.db", "b.db"]
    (tmp_path / "deep/deeper").mkdir(parents=True)
    (tmp_path / "deep/deeper/c.db").touch()
    assert [p.name for p in expand(["**/*.db"])] == ["a.db", "b.db", "c.db"]
    (tmp_path / "odd[1].db").touch()
    assert [p.name for p in expand(["odd[1].db"])] == ["odd[1].db"]
    with pytest.raises(InputError, match=r"no file matches '\*\.sqlite'"):
        expand(["*.sqlite"])
    with pytest.raises(InputError, match=r"a folder without a cccl_meta_bench\.db\n  Name the "):
        expand([str(tmp_path)])


def test_the_distance_of_variants_is_the_sum_of_relative_changes():
    assert distance("ipt_10.tpb_512", "ipt_10.tpb_512") == 0
    assert distance("ipt_10.tpb_256", "ipt_10.tpb_512") == pytest.approx(0.5)
    assert distance("ipt_10", "ipt_10.tpb_512") == 1
    assert distance("base", "ipt_10") == math.inf


def test_tables_with_their_axes_in_another_order_are_not_pooled(tmp_path):
    one, two = tmp_path / "1", tmp_path / "2"
    Builder(one).table(axes=("T{ct}", "A", "B")).row("base", 2.0, "I", "1", "2")
    Builder(two).table(axes=("T{ct}", "B", "A")).row("ipt_1", 1.0, "I", "2", "1")
    document = rank([one, two])
    assert [w.database for w in document.workloads] == [str(one)]


def test_declarations_of_versions_that_differ_are_not_believed(tmp_path):
    path = simple(tmp_path / "db", base={"16": 2.0}, ipt_1={"16": 1.0})
    built = Builder(path).execute(
        "CREATE TABLE axes (cccl TEXT, algorithm TEXT, bench TEXT, axis TEXT, value TEXT)"
    )
    insert = "INSERT INTO axes VALUES (?, ?, 'base', ?, ?)"
    built.execute(insert, ("v3", ALGORITHM, IO, "16"), ("v3", ALGORITHM, IO, "20"))
    assert not rank([path]).workloads[0].approximate
    built.execute(insert, ("v4", ALGORITHM, IO, "16"))
    assert rank([path]).workloads[0].approximate


def test_pooled_databases_that_declare_differently_are_not_believed(tmp_path):
    paths = []
    for name, variant, value in (("1", "base", "20"), ("2", "ipt_1", "24")):
        paths.append(simple(tmp_path / name, **{variant: {"16": 1.0}}))
        built = Builder(paths[-1]).execute(
            "CREATE TABLE axes (algorithm TEXT, bench TEXT, axis TEXT, value TEXT)"
        )
        insert = "INSERT INTO axes VALUES (?, 'base', ?, ?)"
        built.execute(insert, (ALGORITHM, IO, "16"), (ALGORITHM, IO, value))
    (found,) = rank(paths).workloads
    assert found.approximate


def test_odd_digits_are_only_text(tmp_path):
    path = tmp_path / "db"
    Builder(path).table().row("base", 1.0, "\N{SUPERSCRIPT TWO}", "16")
    assert rank([path]).workloads[0].workload == {"T{ct}": "\N{SUPERSCRIPT TWO}"}
