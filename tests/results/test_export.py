import csv
import sqlite3
import sys
from contextlib import closing

import fpzip
import numpy as np
import pytest

from fixtures.databases.generate import generate
from policygen.errors import InputError, MissingToolError
from policygen.installation import add
from policygen.results import export as exporting
from policygen.results.export import export
from policygen.results.samples import count_samples, decode
from tests.results.measured import MEASURED

TABLE = '"cub.bench.radix_sort.keys.base"'


def change(path, statement):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "a.db"
    generate(path, variants=3, workloads=2, runtime=4, samples=7, subbenches=2)
    return path


def test_each_row_stands_in_one_line_with_its_place(database, tmp_path):
    out = tmp_path / "out.csv"
    assert export([database], out, kind="csv") == 64
    found = rows(out)
    assert len(found) == 64
    assert list(found[0]) == [
        *("database", "algorithm", "subbench", "gpu", "ctk", "cccl", "variant", "elapsed"),
        *("center", "bw", "samples", "T{ct}", "OffsetT{ct}", "Elements{io}[pow2]", "Entropy"),
        "Segments",
    ]
    with closing(sqlite3.connect(database)) as connection:
        centers = {center for (center,) in connection.execute(f"SELECT center FROM {TABLE}")}
    assert {float(row["center"]) for row in found if row["subbench"] == "base"} == centers
    assert {(row["samples"], row["elapsed"], row["cccl"]) for row in found} == {
        ("7", "1.5", "v3.0.3")
    }
    assert {(row["subbench"], row["Entropy"] == "", row["Segments"] == "") for row in found} == {
        ("base", False, True),
        ("segments1", True, False),
    }


def test_the_order_does_not_depend_on_how_the_rows_are_stored(database, tmp_path):
    export([database], tmp_path / "1.csv", kind="csv")
    change(database, f"CREATE TABLE copy AS SELECT * FROM {TABLE} ORDER BY center")
    change(database, f"DELETE FROM {TABLE}")
    change(database, f"INSERT INTO {TABLE} SELECT * FROM copy")
    change(database, "DROP TABLE copy")
    export([database], tmp_path / "2.csv", kind="csv")
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


def test_many_rows_are_written_in_parts(database, tmp_path, monkeypatch):
    export([database], tmp_path / "1.csv", kind="csv")
    monkeypatch.setattr(exporting, "BATCH", 5)
    export([database], tmp_path / "2.csv", kind="csv")
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


def test_what_a_database_lacks_stays_empty(tmp_path):
    generate(tmp_path / "a.db", layout="cub", bandwidth=False, variants=2)
    change(tmp_path / "a.db", f"UPDATE {TABLE} SET center = NULL, samples = x'00'")
    export([tmp_path / "a.db"], tmp_path / "a.csv", kind="csv")
    found = rows(tmp_path / "a.csv")
    assert {(row["cccl"], row["center"], row["bw"], row["samples"]) for row in found} == {
        ("v2.2.0", "", "", "")
    }


def test_an_axis_may_be_called_as_one_of_our_columns(database, tmp_path):
    change(database, f'ALTER TABLE {TABLE} RENAME COLUMN "Entropy" TO "database"')
    export([database], tmp_path / "a.csv", kind="csv")
    found = rows(tmp_path / "a.csv")
    assert found[0]["database"] == "a.db"
    assert found[0]["database (axis)"] == "0.544"


def test_an_existing_file_is_replaced_whole(database, tmp_path):
    (tmp_path / "a.csv").write_text("old", encoding="utf-8")
    export([database], tmp_path / "a.csv", kind="csv")
    assert len(rows(tmp_path / "a.csv")) == 64


def test_bad_places_are_told(database, tmp_path):
    with pytest.raises(InputError, match="this is a folder"):
        export([database], tmp_path, kind="csv")
    with pytest.raises(InputError, match="one of the inputs"):
        export([database], database, kind="csv")
    with pytest.raises(InputError, match=r"a\.csv: cannot be written: "):
        export([database], database / "a.csv", kind="csv")


def test_a_failure_leaves_nothing_behind(database, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporting, "_write_csv", fail)
    with pytest.raises(InputError, match=r"a\.csv: cannot be written: No space left on device"):
        export([database], tmp_path / "a.csv", kind="csv")
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]


def test_parquet_without_pyarrow_names_what_to_install(database, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingToolError) as failure:
        export([database], tmp_path / "a.parquet", kind="parquet")
    assert str(failure.value) == (f"pyarrow is missing\n  Install it: {add('parquet')}")


def test_parquet_has_the_same_rows(database, tmp_path):
    pytest.importorskip("pyarrow")
    import pandas as pd

    assert export([database], tmp_path / "a.parquet", kind="parquet") == 64
    export([database], tmp_path / "a.csv", kind="csv")
    text = dict.fromkeys(rows(tmp_path / "a.csv")[0], "string")
    frame = pd.read_parquet(tmp_path / "a.parquet")
    wanted = pd.read_csv(tmp_path / "a.csv", dtype=text)
    numbers = ["elapsed", "center", "bw", "samples"]
    assert frame[numbers].astype(float).equals(wanted[numbers].astype(float))
    texts = [name for name in wanted if name not in numbers]
    assert frame[texts].fillna("").astype(str).equals(wanted[texts].fillna("").astype(str))


@pytest.mark.parametrize("count", [1, 2, 100, 508, 70_000])
def test_the_number_of_samples_is_told_without_decoding(count):
    chance = np.random.default_rng(count)
    for values in (chance.random(count), np.full(count, 1e-5)):
        assert count_samples(fpzip.compress(values.astype(np.float32))) == count


@pytest.mark.parametrize("blob", [None, "text", b"", b"x", b"\xff" * 40])
def test_what_is_no_blob_has_no_number_of_samples(blob):
    with pytest.raises(ValueError, match=r"no samples|not an fpzip blob"):
        count_samples(blob)


def test_a_blob_that_claims_too_much_is_refused():
    blob = bytearray(fpzip.compress(np.full(10, 1e-5, np.float32)))
    for place in range(len(blob)):
        for bit in range(8):
            damaged = bytearray(blob)
            damaged[place] ^= 1 << bit
            try:
                assert count_samples(bytes(damaged)) <= 4_000 * len(blob)
            except ValueError as error:
                text = str(error)
                assert "not an fpzip blob" in text or "they claim to be" in text


def test_real_samples_are_counted_as_they_are_decoded(tmp_path):
    path = MEASURED / "A_reduce_sum/cccl_meta_bench.db"
    export([path], tmp_path / "a.csv", kind="csv")
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        blobs = connection.execute('SELECT samples FROM "cub.bench.reduce.sum.base"').fetchall()
    expected = sorted(len(decode(blob)) for (blob,) in blobs)
    assert sorted(int(row["samples"]) for row in rows(tmp_path / "a.csv")) == expected
