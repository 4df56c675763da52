"""What databases say of imports: a stranger's rows count where they say something that can be."""

import sqlite3
from contextlib import closing

import pytest

from policygen.errors import InputError
from policygen.results.database import open_database
from policygen.results.imported import check_alike, imported_facts
from policygen.results.merge import merge
from tests.results.build import Builder


def database(path, *statements):
    built = Builder(path).table()
    for variant, center in (("base", 2.0), ("ipt_1", 1.0)):
        built.row(variant, center, "I32", "16")
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement, *values in statements:
            connection.execute(statement, values)
    return path


IMPORTS = (
    "CREATE TABLE policygen_imports (algorithm, workload, base, file, sha256, program, kernel,"
    " device, size, warmup, entries)"
)
VALUES = "CREATE TABLE policygen_values (algorithm, parameter, value, text)"
ADD = "INSERT INTO policygen_imports VALUES (?, '{}', ?, 'f', 's', 'p', NULL, NULL, '9', 1, ?)"
NUMBER = "INSERT INTO policygen_values VALUES (?, ?, ?, ?)"


def test_rows_that_say_nothing_count_for_nothing(tmp_path):
    path = database(
        tmp_path / "a.db",
        (IMPORTS,),
        (VALUES,),
        (ADD, "x", "no label", 1),
        (ADD, b"x", "ipt_1", 1),
        (ADD, "x", "ipt_1.tpb_2", "many"),
        (NUMBER, "x", "tpb", "one", '"a"'),
        (NUMBER, "x", "tpb", 2, b"a"),
        (NUMBER, "x", "tpb", 2, '"b"'),
        (NUMBER, "x", "tpb", 2, '"c"'),
    )
    with open_database(path) as opened:
        facts = imported_facts(opened)
    assert facts.bases == {("x", ()): "ipt_1.tpb_2"}
    assert facts.values == {("x", "tpb"): {2: '"b"'}}
    merge([path], tmp_path / "all.db")
    with open_database(tmp_path / "all.db") as opened:
        assert imported_facts(opened).values == facts.values
        # What names no base, or counts nothing, is no import.
        assert imported_facts(opened).bases == {}


@pytest.mark.parametrize("table", ["policygen_imports (a)", "policygen_values (algorithm, text)"])
def test_tables_of_another_layout_are_not_read(tmp_path, table):
    path = database(tmp_path / "a.db", (f"CREATE TABLE {table}",))
    with open_database(path) as opened:
        facts = imported_facts(opened)
        check_alike([opened, opened])
    assert (facts.bases, facts.values) == ({}, {})


def test_a_database_without_imports_fits_all(tmp_path):
    own = (
        (IMPORTS,), (VALUES,), (ADD, "x", "ipt_1", 1), (NUMBER, "x", "ipt", 1, '"a"'),
    )  # fmt: skip
    paths = [database(tmp_path / "a.db", *own), database(tmp_path / "b.db")]
    with open_database(paths[0]) as one, open_database(paths[1]) as other:
        check_alike([one, other, one])
    plain = database(tmp_path / "c.db", (IMPORTS,), (ADD, "x", "ipt_1", 1))
    with open_database(paths[0]) as one, open_database(plain) as other:
        with pytest.raises(InputError, match="values of ipt of x are their own numbers there"):
            check_alike([one, other])
        with pytest.raises(InputError, match="values of ipt of x are not their own numbers there"):
            check_alike([other, one])
