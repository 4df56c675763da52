"""Of which architecture a GPU is, where its database says it."""

import sqlite3
from contextlib import closing

import pytest

from policygen.results.database import open_database
from policygen.results.merge import merge
from policygen.results.nvbench import read_nvbench, to_database
from policygen.results.ranking import rank
from policygen.results.tables import capability_arch
from tests.results.measured import MEASURED
from tests.results.test_nvbench import GPU, document, write

NAME = "Pretend (5120, 80, eccon)"


def database(folder, **more):
    """A base and a variant of NVBench, as a database."""
    devices = [{**GPU, **more}]
    base = read_nvbench(write(folder / "base", document(devices=devices)))
    program = "./bin/cub.bench.toy.variant"
    variant = read_nvbench(write(folder / "ipt_1", document(program, devices=devices)))
    out = folder / "made.db"
    to_database(base, [("ipt_1", variant)], out)
    return out


def known(path):
    with open_database(path) as found:
        return dict(found.gpus)


def with_table(path, columns, *rows):
    """The database with a table that we do not know."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE hardware ({', '.join(columns)})")
        marks = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO hardware VALUES ({marks})", rows)
        connection.commit()
    return path


@pytest.mark.parametrize(
    ("cell", "arch"),
    [
        (900, "sm90"),
        (1030, "sm103"),
        (90, "sm90"),
        ("9.0", "sm90"),
        ("sm_121", "sm121"),
        (None, None),
        ("fast", None),
        (7, None),
    ],
)
def test_a_compute_capability_is_understood_as_it_is_spelled(cell, arch):
    assert capability_arch(cell) == arch


def test_nvbench_tells_the_compute_capability(tmp_path):
    assert known(database(tmp_path, sm_version=1030)) == {NAME: "sm103"}
    assert known(database(tmp_path / "without")) == {}


def test_what_nvbench_measured_on_an_h200_is_told(tmp_path):
    (path, *_) = MEASURED.glob("A_reduce_sum/nvbench/*base/result.json")
    assert read_nvbench(path).arch == "sm90"


def test_a_ranking_says_it_of_each_workload(tmp_path):
    path = database(tmp_path, sm_version=1030)
    assert {one.arch for one in rank([path]).workloads} == {"sm103"}


def test_it_is_kept_when_databases_are_merged(tmp_path):
    first, second = database(tmp_path / "a", sm_version=1030), database(tmp_path / "b")
    merge([second, first], tmp_path / "merged.db")
    assert known(tmp_path / "merged.db") == {NAME: "sm103"}


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (("device", "sm_version"), (NAME, 1030)),
        (("compute_capability", "name"), ("10.3", NAME)),
        (("gpu", "cc", "clock"), (NAME, "sm_103", 1980)),
    ],
)
def test_any_table_that_says_it_is_believed(tmp_path, columns, row):
    assert known(with_table(database(tmp_path), columns, row)) == {NAME: "sm103"}


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (("device", "sm_version"), [("Another", 1030)]),
        (("device", "clock"), [(NAME, 1030)]),
        (("device", "sm_version"), [(NAME, 1030), (NAME, 900)]),
    ],
)
def test_a_table_that_does_not_say_it_says_nothing(tmp_path, columns, rows):
    assert known(with_table(database(tmp_path), columns, *rows)) == {}
