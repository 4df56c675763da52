"""The demo's database: its times are made up, and the pages that show them rest on these."""

import sqlite3

import pytest

from fixtures.databases.layout import DatabaseLayout, MeasuredOn, Row, SubBench, add_rows, create
from policygen.demo.database import ALGORITHM, AXES, CCCL, CTK, GPU, demo_database
from policygen.results.database import open_database
from policygen.results.samples import decode


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "run.db"
    demo_database(path)
    return path


@pytest.fixture(scope="module")
def rows(made):
    with sqlite3.connect(made) as connection:
        connection.row_factory = sqlite3.Row
        found = connection.execute(f'SELECT * FROM "{ALGORITHM}.base"').fetchall()
        builds = dict(connection.execute("SELECT bench, code FROM builds").fetchall())
        runs = connection.execute("SELECT code, elapsed FROM runs").fetchall()
    connection.close()
    cells = {
        (row["T{ct}"], row["variant"], row["Elements{io}[pow2]"], row["Entropy"]): row
        for row in found
    }
    assert len(cells) == len(found)
    return cells, builds, runs


@pytest.mark.parametrize(
    ("point", "seconds"),
    [
        (("I8", "base", "16", "1.000"), 19.95e-6),
        (("I8", "base", "28", "0.201"), 1363.6e-6),
        (("I8", "ipt_19.tpb_384", "24", "1.000"), 115.5e-6 / 1.09),
        (("I64", "ipt_11.tpb_256", "24", "1.000"), 115.5e-6 / 0.96),
        (("I64", "ipt_23.tpb_384", "24", "1.000"), 115.5e-6 / 0.84),
        (("I32", "ipt_23.tpb_384", "20", "1.000"), 28.35e-6 / 1.16),
        (("I32", "ipt_23.tpb_384", "20", "0.201"), 27.27e-6 / 0.58),
    ],
)
def test_a_time_is_bases_by_the_speedup_of_the_variant(rows, point, seconds):
    row = rows[0][point]
    assert row["center"] == pytest.approx(seconds, rel=0.005)
    samples = decode(row["samples"])
    assert len(samples) == 60
    assert sorted(samples)[29] <= row["center"] <= sorted(samples)[30]
    base = rows[0][(point[0], "base", *point[2:])]["center"]
    assert row["bw"] == pytest.approx(0.4 * base / row["center"], rel=0.01)


def test_a_variant_that_does_not_build_is_in_the_logs_alone(rows):
    cells, builds, runs = rows
    assert {name.rpartition(".base")[2] for name, code in builds.items() if code != "0"} == {
        f"{ALGORITHM}.ipt_23.tpb_512"
    }
    assert len(builds) == 13
    assert [tuple(run) for run in runs] == [("0", 1.5)] * 4 * 12
    assert "ipt_23.tpb_512" not in {variant for _, variant, _, _ in cells}
    assert len(cells) == 4 * 12 * 4 * 2


def test_it_declares_the_values_of_its_axes(made):
    with open_database(made) as database:
        declared = {axis: tuple(values) for (_, _, axis), values in database.declared.items()}
    assert declared == AXES


@pytest.mark.parametrize("bandwidth", [True, False])
def test_a_layout_has_the_columns_that_it_names(tmp_path, bandwidth):
    layout = DatabaseLayout(version="cub", bandwidth=bandwidth, logs=False)
    path = tmp_path / "old.db"
    create(path, "a", [SubBench("base", AXES)], layout)
    key = MeasuredOn(CTK, CCCL, GPU)
    point = dict(zip(AXES, ("I8", "I32", "16", "1.000"), strict=True))
    add_rows(path, "a", [Row(key, "base", "base", point, 1.5, 0.5, 0.25, b"")], layout)
    with sqlite3.connect(path) as connection:
        cursor = connection.execute('SELECT * FROM "a.base"')
        names = [column[0] for column in cursor.description]
        cells = dict(zip(names, cursor.fetchone(), strict=True))
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    connection.close()
    assert cells.pop("bw", None) == (0.25 if bandwidth else None)
    assert cells["cub"] == CCCL
    assert "axes" not in tables
    assert "builds" not in tables
    with open_database(path) as database:
        assert database.layout == "cub"
