"""Strategies of a kernel against sizes: who wins where, and what is damaged counts for nothing."""

import pytest

from policygen.app.databases import strategy_matrix
from policygen.app.filters import Filter
from policygen.errors import InputError
from policygen.results.database import open_database
from policygen.results.imported import KernelFacts, kernel_facts
from policygen.results.merge import merge
from tests.app.kernels_measured import CLASSES, KERNEL, LAUNCH, PEAK, START, kernel_database, spoil
from tests.gpu.simulated import FACTS

EVERYTHING = Filter((), "", (), ())
GPU = FACTS.label


@pytest.fixture
def path(tmp_path):
    return kernel_database(tmp_path / "run.db")


def matrix(path, by=None, where=EVERYTHING):
    (found,) = strategy_matrix([str(path)], where, by).kernels
    return found


def facts(path):
    with open_database(path) as database:
        return kernel_facts(database)


def test_the_best_variant_of_each_strategy_is_compared_at_each_size(path):
    found = matrix(path)
    assert (found.kernel, found.gpu, found.by) == (KERNEL, GPU, "strategy")
    assert (found.strategies, found.sizes) == (
        ("each", "stride", "managed"),
        ("1,000", "1,000,000"),
    )
    verdicts = {(one.size, one.strategy): (one.verdict, one.variant) for one in found.cells}
    assert verdicts == {
        ("1,000", "each"): ("best", START),
        ("1,000", "stride"): ("slower", "strategy_1.tpb_128"),
        ("1,000,000", "each"): ("slower", START),
        ("1,000,000", "stride"): ("best", "strategy_1.tpb_128"),
        ("1,000,000", "managed"): ("close", "strategy_2.tpb_128"),
    }
    assert found.cell("managed", "1,000") is None
    each = found.cell("each", "1,000")
    assert (each.tried, each.ratio) == (2, 1)
    assert each.seconds == pytest.approx(1e-6 * (1 + 0.01 + 0.001), rel=1e-3)
    assert each.interval.low < each.seconds < each.interval.high
    slow = found.cell("each", "1,000,000")
    assert slow.ratio == pytest.approx(1 / 1.3, rel=2e-3)
    assert slow.ratio_interval.high < 1


def test_a_merged_database_says_the_same_of_each_gpu(path, tmp_path):
    other = kernel_database(tmp_path / "other.db", gpu="Other GPU", peak=1e12)
    out = tmp_path / "merged.db"
    merge([path, other], out)
    merged, parts = facts(out), (facts(path), facts(other))
    assert merged.launches == {**parts[0].launches, **parts[1].launches}
    assert merged.peaks == {**parts[0].peaks, **parts[1].peaks}
    assert len(merged.launches) == 2 * len(parts[0].launches) > 0
    assert len(merged.peaks) == 2
    assert (merged.words, merged.starts) == (parts[0].words, parts[0].starts)
    found = strategy_matrix([str(out)], EVERYTHING, None).kernels
    alone = [matrix(one) for one in (path, other)]
    assert [(one.gpu, one.peak, one.cells) for one in found] == [
        (one.gpu, one.peak, one.cells) for one in alone
    ]


def test_launches_say_what_it_takes_and_a_copy_what_could_be(path):
    found = matrix(path)
    each = found.cell("each", "1,000")
    assert found.peak == PEAK
    assert each.bandwidth == LAUNCH.traffic / each.seconds
    assert each.share == each.bandwidth / PEAK
    assert each.use.model_dump() == {
        "registers": 32, "spilled": 8, "shared": 1536, "block": 128, "grid": 8, "occupancy": 0.5,
        "achieved": None,
    }  # fmt: skip
    managed = found.cell("managed", "1,000,000")
    assert (managed.use, managed.bandwidth, managed.share) == (None, None, None)


def test_another_parameter_can_be_compared(path):
    found = matrix(path, by="tpb")
    assert (found.by, found.strategies) == ("tpb", ("128", "256"))
    assert found.cell("256", "1,000").verdict == "slower"
    assert found.cell("128", "1,000,000").tried == 3
    with pytest.raises(InputError) as raised:
        matrix(path, by="ipt")
    assert str(raised.value) == "own.axpy has no parameter ipt\n  It has: strategy, tpb"


def test_one_process_is_too_few_to_know(tmp_path):
    found = matrix(kernel_database(tmp_path / "run.db", processes=1))
    assert {one.verdict for one in found.cells} == {"best", "not known"}
    assert {one.interval for one in found.cells} == {None}


def test_each_gpu_has_a_table_with_its_own_copy_and_launches(tmp_path):
    path = kernel_database(tmp_path / "run.db")
    other = LAUNCH.__class__(64, 0, 0, 0, 128, 8, 4, 1536, 6000)
    kernel_database(path, gpu="NVIDIA L4", peak=1e11, launch=other)
    first, second = strategy_matrix([str(path)], EVERYTHING).kernels
    assert (first.peak, second.peak) == (PEAK, 1e11)
    assert second.gpu.startswith("L4")
    assert [one.cell("each", "1,000").use.registers for one in (first, second)] == [32, 64]


def test_what_was_measured_of_no_kernel_is_told(path):
    with pytest.raises(InputError, match="contains no measurements of your own kernels"):
        matrix(path, where=Filter((), "own.other", (), ()))
    spoil(path, "DROP TABLE policygen_kernels")
    with pytest.raises(InputError) as raised:
        matrix(path)
    assert "policygen measure --workload kernel.toml --all --db FILE" in str(raised.value)


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE policygen_launches",
        "ALTER TABLE policygen_launches DROP COLUMN registers",
        "UPDATE policygen_launches SET registers = -1",
        "UPDATE policygen_launches SET grid = 'many'",
        "UPDATE policygen_launches SET traffic = 9e30",
        "UPDATE policygen_launches SET session = 99",
        "UPDATE policygen_launches SET variant = CAST(variant AS BLOB)",
    ],
)
def test_launches_that_are_damaged_count_for_nothing(path, statement):
    spoil(path, statement)
    found = matrix(path)
    assert len(found.cells) == 5
    assert {one.use for one in found.cells} == {None}


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE policygen_peaks",
        "ALTER TABLE policygen_peaks RENAME COLUMN bytes TO bits",
        "UPDATE policygen_peaks SET bytes = -1",
        "UPDATE policygen_peaks SET bytes = 9e99",
        "UPDATE policygen_peaks SET bytes = 'fast'",
        "UPDATE policygen_peaks SET session = NULL",
    ],
)
def test_a_copy_that_is_damaged_counts_for_nothing(tmp_path, statement):
    path = kernel_database(tmp_path / "run.db")
    if "NULL" in statement:
        spoil(path, "DROP TABLE policygen_peaks")
        spoil(path, "CREATE TABLE policygen_peaks (session INTEGER, bytes REAL)")
        statement = "INSERT INTO policygen_peaks VALUES (NULL, 4e12)"
    spoil(path, statement)
    found = matrix(path)
    assert found.peak is None
    assert {one.share for one in found.cells} == {None}


def test_words_that_are_damaged_are_numbers(path):
    spoil(path, "UPDATE policygen_values SET text = '[1' WHERE value = 1")
    spoil(path, "UPDATE policygen_values SET text = '{}' WHERE value = 2")
    assert matrix(path).strategies == ("each", "[1", "{}")
    spoil(path, "DROP TABLE policygen_values")
    assert matrix(path).strategies == ("0", "1", "2")


def test_rows_that_are_damaged_count_for_nothing(path):
    spoil(
        path,
        "INSERT INTO policygen_rows SELECT session, algorithm, bench, x'00', variant, samples,"
        " center, elapsed, at FROM policygen_rows LIMIT 1",
        "INSERT INTO policygen_rows SELECT session, algorithm, bench, workload, variant, samples,"
        " -1.0, elapsed, at FROM policygen_rows LIMIT 1",
        "INSERT INTO policygen_rows SELECT session, algorithm, bench, workload, variant, samples,"
        " 9e999, elapsed, at FROM policygen_rows LIMIT 1",
    )
    assert len(matrix(path).cells) == 5
    spoil(path, "UPDATE policygen_rows SET workload = 'nothing' WHERE algorithm LIKE '%small'")
    assert matrix(path).sizes == ("", "1,000,000")
    spoil(path, 'UPDATE policygen_rows SET workload = \'{"A": "1", "B": 2}\'')
    assert {*matrix(path).sizes} == {"A=1 B=2"}


def test_a_start_that_is_no_label_makes_no_kernel(path):
    spoil(path, "UPDATE policygen_kernels SET variant = 'nonsense' WHERE algorithm LIKE '%small'")
    assert matrix(path).sizes == ("1,000,000",)
    assert [*facts(path).starts] == ["own.axpy.large"]


def test_without_strategies_a_parameter_of_words_is_compared_and_else_the_first(tmp_path):
    path = kernel_database(tmp_path / "run.db")
    spoil(path, "UPDATE policygen_kernels SET variant = replace(variant, 'strategy', 'ld')",
          "UPDATE policygen_rows SET variant = replace(variant, 'strategy', 'ld')")  # fmt: skip
    assert matrix(path).by == "ld"
    spoil(path, "UPDATE policygen_values SET parameter = 'tpb'")
    assert matrix(path).by == "tpb"


def test_what_is_kept_is_what_is_read(path):
    found = facts(path)
    assert found.starts == dict.fromkeys(CLASSES, (KERNEL, START))
    assert found.peaks == {GPU: PEAK}
    assert len(found.launches) == 4
    spoil(
        path, *(f"DROP TABLE policygen_{one}" for one in ("launches", "kernels", "peaks", "values"))
    )
    assert facts(path) == KernelFacts({}, {}, {}, {})
