import hashlib
import random
import sqlite3
from contextlib import closing, suppress

import pytest

from fixtures.databases.generate import SOME_MESS, demo_database, generate
from policygen.app.databases import describe_databases
from policygen.app.inputs import ResultFiles
from policygen.errors import InputError, PolicygenError
from policygen.results import merge as merging
from policygen.results.cases import importance
from policygen.results.database import expand, open_database
from policygen.results.export import export
from policygen.results.merge import merge
from policygen.results.own_tables import WeighedValues, keep_weights
from policygen.results.ranking import rank
from policygen.results.samples import count_samples
from tests.results.build import ALGORITHM, IO, Builder, simple
from tests.results.measured import MEASURED

NAME = "cub.bench.radix_sort.keys.base"
TABLE = f'"{NAME}"'


def query(path, sql, *values):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql, values).fetchall()


def change(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def state(path):
    return hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def counts(report):
    return {
        table.table: (table.rows, table.duplicates, table.conflicts, table.unusable)
        for table in report.tables
    }


@pytest.fixture
def pair(tmp_path):
    """Two searches of the same benchmark on GPUs of their own."""
    paths = [tmp_path / "a.db", tmp_path / "b.db"]
    for path in paths:
        generate(path, variants=4, workloads=2, runtime=4, samples=5)
    change(paths[1], f"UPDATE {TABLE} SET gpu = 'Other GPU (1, 2, eccoff)'")
    return paths


def test_all_rows_of_all_files_are_there_and_the_files_are_untouched(pair, tmp_path):
    before = [state(path) for path in pair]
    (tmp_path / "out").mkdir()
    report = merge(pair, tmp_path / "out/merged.db")
    assert [state(path) for path in pair] == before
    assert names_in(tmp_path) == ["a.db", "b.db", "out"]
    assert names_in(tmp_path / "out") == ["merged.db"]
    expected = [row for path in pair for row in query(path, f"SELECT * FROM {TABLE}")]
    assert query(tmp_path / "out/merged.db", f"SELECT * FROM {TABLE}") == expected
    assert counts(report) == {NAME: (80, 0, 0, 0), "builds": (5, 5, 0, 0), "runs": (5, 5, 0, 0)}
    assert report.conflicts == ()


def test_the_tables_are_those_of_cccl(tmp_path, pair):
    merge(pair, tmp_path / "m.db")
    assert query(tmp_path / "m.db", "SELECT * FROM subbenches") == [
        ("cub.bench.radix_sort.keys", "base")
    ]
    columns = [row[1:4] for row in query(tmp_path / "m.db", f"PRAGMA table_info({TABLE})")]
    assert columns == [
        ("ctk", "TEXT", 1),
        ("cccl", "TEXT", 1),
        ("gpu", "TEXT", 1),
        ("variant", "TEXT", 1),
        ("elapsed", "REAL", 0),
        ("center", "REAL", 0),
        ("bw", "REAL", 0),
        ("samples", "BLOB", 0),
        ("T{ct}", "TEXT", 0),
        ("OffsetT{ct}", "TEXT", 0),
        ("Elements{io}[pow2]", "TEXT", 0),
        ("Entropy", "TEXT", 0),
    ]
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        change(tmp_path / "m.db", f"INSERT INTO {TABLE} SELECT * FROM {TABLE} LIMIT 1")


def test_a_row_that_two_files_share_is_kept_once(tmp_path, pair):
    report = merge([pair[0], pair[0]], tmp_path / "m.db")
    assert counts(report)[NAME] == (40, 40, 0, 0)


def test_of_two_centers_the_first_files_counts_and_both_are_told(tmp_path, pair):
    change(pair[1], f"UPDATE {TABLE} SET gpu = (SELECT 'Pretend GPU 1 (5120, 80, eccon)')")
    change(pair[1], f"UPDATE {TABLE} SET center = 0.5 WHERE rowid = 2")
    change(pair[1], f"UPDATE {TABLE} SET center = NULL WHERE rowid = 3")
    report = merge(pair, tmp_path / "m.db")
    assert counts(report)[NAME] == (40, 38, 2, 0)
    first, second = report.conflicts
    (center,) = query(pair[0], f"SELECT center FROM {TABLE} WHERE rowid = 2")[0]
    assert (first.path, first.table) == (str(pair[1]), NAME)
    assert first.what == (
        "ipt_7.tpb_128: T{ct}=I8 OffsetT{ct}=I32 Elements{io}[pow2]=16 Entropy=1.000"
        " on Pretend GPU 1 (5120, 80, eccon), 13.0.88, v3.0.3"
    )
    assert (first.kept, first.refused) == (f"center {center!r}", "center 0.5")
    assert second.refused == "no center"
    assert query(tmp_path / "m.db", f"SELECT center FROM {TABLE} WHERE rowid = 2") == [(center,)]


def test_a_long_list_of_conflicts_is_cut_and_says_so(tmp_path, pair, monkeypatch):
    monkeypatch.setattr(merging, "LISTED", 3)
    change(pair[1], f"UPDATE {TABLE} SET gpu = 'Pretend GPU 1 (5120, 80, eccon)'")
    change(pair[1], f"UPDATE {TABLE} SET center = (SELECT 1) WHERE variant != 'base'")
    copy_base(*pair)
    report = merge(pair, tmp_path / "m.db")
    assert len(report.conflicts) == 3
    assert report.unlisted == 29
    assert counts(report)[NAME] == (40, 8, 32, 0)


def copy_base(source, target):
    """Gives the second file the base of the first."""
    rows = query(source, f"SELECT center, rowid FROM {TABLE} WHERE variant = 'base'")
    with closing(sqlite3.connect(target)) as db:
        db.executemany(f"UPDATE {TABLE} SET center = ? WHERE rowid = ?", rows)
        db.commit()


def test_variants_stay_with_the_base_that_they_were_measured_with(tmp_path):
    """Else a variant of one run would be compared with the base of another."""
    one = simple(tmp_path / "a.db", base={"16": 2.0}, ipt_1={"16": 1.0})
    two = simple(tmp_path / "b.db", base={"16": 3.0}, ipt_2={"16": 1.0})
    Builder(two).row("base", 5.0, "I64", "16").row("ipt_2", 4.0, "I64", "16")
    report = merge([one, two], tmp_path / "m.db")
    assert report.conflicts == ()
    assert counts(report) == {
        "cub.bench.demo.base": (4, 0, 0, 0),
        "policygen_run_2.cub.bench.demo.base": (2, 0, 0, 0),
    }
    rows = query(tmp_path / "m.db", 'SELECT variant, center FROM "cub.bench.demo.base"')
    assert rows == [("base", 2.0), ("ipt_1", 1.0), ("base", 5.0), ("ipt_2", 4.0)]


def test_a_base_that_differs_in_one_sub_benchmark_makes_all_of_them_another_run(tmp_path):
    paths = [tmp_path / "a.db", tmp_path / "b.db"]
    for path, variant, center in zip(paths, ("ipt_1", "ipt_2"), (1.0, 2.0), strict=True):
        built = Builder(path).table().table("other")
        for bench in ("base", "other"):
            built.row(variant, center, "I32", "16", bench=bench)
            if bench == "base" or variant == "ipt_2":
                built.row("base", center, "I32", "16", bench=bench)
    report = merge(paths, tmp_path / "m.db")
    assert counts(report) == {
        "cub.bench.demo.base": (2, 0, 0, 0),
        "cub.bench.demo.other": (1, 0, 0, 0),
        "policygen_run_2.cub.bench.demo.base": (2, 0, 0, 0),
        "policygen_run_2.cub.bench.demo.other": (2, 0, 0, 0),
    }


@pytest.fixture
def lanes(tmp_path):
    """What CCCL's search.py leaves: a database for each GPU and lane, with its own base."""
    made = [
        ("gpu0/lane0", 2.0, {"ipt_1": 1.9, "ipt_2": 1.6}),
        ("gpu0/lane1", 2.2, {"ipt_3": 2.1, "ipt_1": 2.2}),
        ("gpu1/lane0", 2.4, {"ipt_4": 1.8}),
    ]
    for lane, base, variants in made:
        folder = tmp_path / "build" / lane
        folder.mkdir(parents=True)
        built = Builder(folder / "cccl_meta_bench.db").table()
        for variant, center in {"base": base, **variants}.items():
            built.rows(variant, {"24": center, "28": 10 * center}, "I32")
        built.execute("CREATE TABLE axes (algorithm, bench, axis, idx, value)").execute(
            "INSERT INTO axes VALUES (?, ?, ?, ?, ?)",
            *((ALGORITHM, "base", IO, at, 16 + 4 * at) for at in range(4)),
        )
        (folder / "cccl_meta_bench.csv").write_text("ctk_version,13.0\n")
    (tmp_path / "build/gpu1/lane1").mkdir()
    (tmp_path / "build/gpu1/lane1/cccl_meta_bench.db").touch()
    (tmp_path / "build/gpu0/.lock").touch()
    return tmp_path / "build"


def ranked(*paths):
    (workload,) = rank(paths).workloads
    assert not workload.approximate
    return {one.variant: one for one in workload.variants}


def test_each_lane_of_a_search_keeps_its_base_apart_and_merged(lanes, tmp_path):
    paths = expand([str(lanes)])
    assert [path.relative_to(lanes).parent.as_posix() for path in paths] == [
        "gpu0/lane0",
        "gpu0/lane1",
        "gpu1/lane0",
    ]
    apart = ranked(*paths)
    assert {name: one.score for name, one in apart.items()} == pytest.approx({
        "ipt_4": 2.4 / 1.8,
        "ipt_2": 2.0 / 1.6,
        "ipt_3": 2.2 / 2.1,
        "ipt_1": (2.0 / 1.9 + 1) / 2,
        "base": 1.0,
    })  # fmt: skip
    report = merge(paths, tmp_path / "m.db")
    assert [(table.table, table.rows) for table in report.tables] == [
        ("cub.bench.demo.base", 6),
        ("policygen_run_2.cub.bench.demo.base", 6),
        ("policygen_run_3.cub.bench.demo.base", 4),
    ]
    assert ranked(tmp_path / "m.db") == apart
    first = merge(paths[:2], tmp_path / "n.db")
    again = merge([tmp_path / "n.db", paths[2], paths[1]], tmp_path / "o.db")
    assert [table.duplicates for table in again.tables] == [0, 6, 0]
    assert not first.conflicts + again.conflicts
    assert ranked(tmp_path / "o.db") == apart


def test_cccls_scripts_see_the_first_run_of_what_was_merged(lanes, tmp_path):
    merge(expand([str(lanes)]), tmp_path / "m.db")
    assert query(tmp_path / "m.db", "SELECT * FROM subbenches") == [(ALGORITHM, "base")]
    rows = query(tmp_path / "m.db", f'SELECT DISTINCT variant FROM "{ALGORITHM}.base"')
    assert rows == [("base",), ("ipt_1",), ("ipt_2",)]


def test_all_runs_of_a_merged_database_are_described_and_exported(lanes, tmp_path):
    merge(expand([str(lanes)]), tmp_path / "m.db")
    (info,) = describe_databases(ResultFiles([str(tmp_path / "m.db")])).databases
    assert [(table.rows, table.variants) for table in info.tables] == [(6, 2), (6, 2), (4, 1)]
    assert export([tmp_path / "m.db"], tmp_path / "m.csv", kind="csv") == 16
    lines = (tmp_path / "m.csv").read_text().splitlines()
    files = [line.partition(",")[0].rpartition("m.db")[2] for line in lines[1:]]
    assert files == [""] * 6 + [" policygen_run_2"] * 6 + [" policygen_run_3"] * 4


def test_a_narrowed_search_weighs_runtime_workloads_as_the_whole_benchmark_does(tmp_path):
    """The example of NVIDIA/cccl#11225: 0.985 by the values present, 0.98 by the declared ones."""
    centers = {"24": 1 / 0.9606, "28": 1 / 1.000047}
    path = simple(tmp_path / "a.db", base={"24": 1.0, "28": 1.0}, ipt_16=centers)
    assert rank([path]).workloads[0].variants[-1].score == pytest.approx(0.985067, abs=1e-4)
    Builder(path).execute("CREATE TABLE axes (algorithm, bench, axis, idx, value)").execute(
        "INSERT INTO axes VALUES (?, ?, ?, ?, ?)",
        *((ALGORITHM, "base", IO, at, 16 + 4 * at) for at in range(4)),
    )
    third, fourth = importance(2, 4), importance(3, 4)
    expected = (third * 0.9606 + fourth * 1.000047) / (third + fourth)
    assert rank([path]).workloads[0].variants[-1].score == pytest.approx(expected)


def test_cccl_2_2_joins_the_others_and_what_it_lacks_stays_empty(tmp_path, pair):
    old = tmp_path / "old.db"
    generate(old, layout="cub", bandwidth=False, logs=False, variants=4, workloads=2, runtime=4)
    report = merge([pair[0], old], tmp_path / "m.db")
    assert counts(report)[NAME][0] == 80
    found = query(tmp_path / "m.db", f"SELECT DISTINCT cccl, bw IS NULL FROM {TABLE}")
    assert found == [("v3.0.3", 0), ("v2.2.0", 1)]
    new = tmp_path / "logs.db"
    generate(new, layout="cub", variants=4, workloads=2, runtime=4)
    merge([new], tmp_path / "n.db")
    assert query(tmp_path / "n.db", "SELECT DISTINCT cccl FROM builds") == [("v2.2.0",)]


def test_declared_axes_are_carried_over(tmp_path):
    for name, workloads in (("a.db", 2), ("b.db", 4)):
        generate(tmp_path / name, declared=True, workloads=workloads, variants=3)
    paths = [tmp_path / "a.db", tmp_path / "b.db"]
    report = merge(paths, tmp_path / "m.db")
    (conflict,) = report.conflicts
    assert conflict.what == "declared values of T{ct}"
    assert (conflict.kept, conflict.refused) == ("I8", "I8, I16")
    with open_database(paths[1]) as expected, open_database(tmp_path / "m.db") as merged:
        assert merged.declared == expected.declared


def test_the_weights_of_a_users_sizes_are_carried_over_and_compared(tmp_path):
    key = (NAME.removesuffix(".base"), "base", "Elements{io}[pow2]")
    paths = [tmp_path / name for name in ("a.db", "b.db", "c.db")]
    for path, heavy in zip(paths, (5.0, 5.0, 7.0), strict=True):
        generate(path, workloads=1, variants=2)
        with closing(sqlite3.connect(path)) as connection, connection:
            values = WeighedValues.of(("16", "20"), (1.0, heavy))
            merging.declare(connection, {key: values})
            keep_weights(connection, key, values)
    report = merge(paths[:2], tmp_path / "same.db")
    assert not report.conflicts
    with open_database(tmp_path / "same.db") as database:
        assert database.declared[key].weights == {"16": 1.0, "20": 5.0}
    report = merge([paths[0], paths[2], paths[1]], tmp_path / "other.db")
    (conflict,) = report.conflicts  # the third has the weights of the first
    assert conflict.kept == "{'16': 1.0, '20': 5.0}"
    assert conflict.refused == "{'16': 1.0, '20': 7.0}"
    with open_database(tmp_path / "other.db") as database:
        assert database.declared[key].weights == {"16": 1.0, "20": 5.0}


def test_declared_values_that_look_like_lists_come_back_as_they_were(tmp_path):
    generate(tmp_path / "a.db", declared=True)
    change(tmp_path / "a.db", """UPDATE axes SET value = '["a,b"]' WHERE value = '1.000'""")
    merge([tmp_path / "a.db"], tmp_path / "m.db")
    with open_database(tmp_path / "m.db") as merged:
        found = merged.declared["cub.bench.radix_sort.keys", "base", "Entropy"]
    assert found == ("a,b", "0.544", "0.201")


def test_rows_without_a_value_on_an_axis_or_a_key_are_handled(tmp_path, pair):
    change(pair[0], f'UPDATE {TABLE} SET "Entropy" = NULL WHERE rowid = 1')
    rebuilt = tmp_path / "loose.db"
    with closing(sqlite3.connect(rebuilt)) as connection, connection:
        connection.execute("ATTACH ? AS other", (str(pair[0]),))
        for name in ("subbenches", NAME, "builds"):
            connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM other."{name}"')
        connection.execute(f"UPDATE {TABLE} SET gpu = NULL WHERE rowid = 5")
        connection.execute("UPDATE builds SET ctk = NULL WHERE rowid = 1")
    report = merge([rebuilt, pair[0]], tmp_path / "m.db")
    assert counts(report) == {
        NAME: (40, 39, 0, 1),
        "builds": (5, 4, 0, 1),
        "runs": (5, 0, 0, 0),
    }


def test_equal_log_rows_within_a_file_are_several_runs(tmp_path, pair):
    change(pair[0], "INSERT INTO runs SELECT * FROM runs")
    merge([*pair], tmp_path / "m.db")
    assert query(tmp_path / "m.db", "SELECT count(*) FROM runs") == [(10,)]


def test_other_axes_are_refused_with_both_files(tmp_path, pair):
    change(pair[1], f'ALTER TABLE {TABLE} RENAME COLUMN "Entropy" TO "Bits"')
    with pytest.raises(InputError) as failure:
        merge(pair, tmp_path / "m.db")
    assert str(failure.value) == (
        f"{pair[1]}: table '{NAME}' has the axes T{{ct}}, OffsetT{{ct}},"
        " Elements{io}[pow2], Bits,"
        f" but T{{ct}}, OffsetT{{ct}}, Elements{{io}}[pow2], Entropy in {pair[0]}\n"
        "  Different versions of a benchmark cannot be merged; merge each version separately."
    )
    assert not (tmp_path / "m.db").exists()
    assert names_in(tmp_path) == ["a.db", "b.db"]


def test_the_order_of_the_axes_does_not_matter(tmp_path, pair):
    columns = 'ctk, cccl, gpu, variant, elapsed, center, bw, samples, "Entropy", "T{ct}"'
    columns += ', "OffsetT{ct}", "Elements{io}[pow2]"'
    change(
        pair[1],
        f"CREATE TABLE other AS SELECT {columns} FROM {TABLE}",
        f"DROP TABLE {TABLE}",
        f"ALTER TABLE other RENAME TO {TABLE}",
    )
    merge(pair, tmp_path / "m.db")
    assert query(tmp_path / "m.db", f'SELECT DISTINCT "T{{ct}}" FROM {TABLE}') == [("I8",)]


def test_a_log_of_another_shape_is_refused(tmp_path, pair):
    change(pair[0], "ALTER TABLE builds RENAME COLUMN cccl TO revision")
    with pytest.raises(InputError, match="table 'builds' has no column 'cccl'"):
        merge(pair, tmp_path / "m.db")


def test_the_output_must_be_new_and_no_input(tmp_path, pair):
    with pytest.raises(InputError, match="one of the inputs"):
        merge(pair, pair[0], force=True)
    (tmp_path / "link.db").hardlink_to(pair[0])
    with pytest.raises(InputError, match="one of the inputs"):
        merge(pair, tmp_path / "link.db", force=True)
    (tmp_path / "m.db").write_bytes(b"mine")
    with pytest.raises(InputError, match="exists already"):
        merge(pair, tmp_path / "m.db")
    assert (tmp_path / "m.db").read_bytes() == b"mine"
    with pytest.raises(InputError, match="this is a folder"):
        merge(pair, tmp_path, force=True)


def test_force_replaces_the_file_and_keeps_its_mode(tmp_path, pair):
    out = tmp_path / "m.db"
    out.write_bytes(b"mine")
    out.chmod(0o640)
    merge(pair, out, force=True)
    assert query(out, f"SELECT count(*) FROM {TABLE}") == [(80,)]
    assert out.stat().st_mode & 0o777 == 0o640


def test_a_file_that_is_being_written_is_not_replaced(tmp_path, pair):
    (tmp_path / "m.db").write_bytes(b"")
    (tmp_path / "m.db-wal").write_bytes(b"")
    with pytest.raises(InputError, match=r"another process is writing to it: m\.db-wal"):
        merge(pair, tmp_path / "m.db", force=True)


def test_a_place_that_cannot_be_written_is_told(tmp_path, pair):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match=r"m\.db: cannot be written: "):
        merge(pair, tmp_path / "file/m.db")


def test_a_failure_of_the_writer_names_the_output_not_the_source(tmp_path, pair, monkeypatch):
    monkeypatch.setattr(merging, "_statements", lambda name, axes: ("INSERT nonsense", ""))
    with pytest.raises(InputError, match=r"m\.db: cannot be written: "):
        merge(pair, tmp_path / "m.db")
    assert names_in(tmp_path) == ["a.db", "b.db"]


def test_a_source_of_something_else_is_told(tmp_path, pair):
    (tmp_path / "c.db").write_bytes(b"not a database")
    with pytest.raises(InputError, match=r"c\.db: not an SQLite database"):
        merge([*pair, tmp_path / "c.db"], tmp_path / "m.db")
    with pytest.raises(InputError, match=r"d\.db: cannot be read"):
        merge([tmp_path / "d.db"], tmp_path / "m.db")


def test_real_databases_merge_and_read_back_row_by_row(tmp_path):
    paths = sorted(MEASURED.glob("*/cccl_meta_bench.db"))
    before = [state(path) for path in paths]
    merge(paths, tmp_path / "m.db")
    assert [state(path) for path in paths] == before
    merged = {}
    with open_database(tmp_path / "m.db") as database:
        for table in database.tables:
            rows = database.connection.execute(f"SELECT * FROM {table.quoted}").fetchall()
            merged[table.name] = set(rows)
    for path in paths:
        with open_database(path) as database:
            for table in database.tables:
                rows = database.connection.execute(f"SELECT * FROM {table.quoted}").fetchall()
                assert set(rows) <= merged[table.name]
                merged[table.name + "!"] = merged.get(table.name + "!", set()) | set(rows)
    assert all(rows == merged[name[:-1]] for name, rows in merged.items() if name.endswith("!"))


def read_all(path, out):
    """Everything that reads a database to its end; fpzip itself crashes on damaged samples."""
    with open_database(path) as database:
        for table in database.tables:
            query = f"SELECT samples FROM {table.quoted}"
            for (blob,) in database.connection.execute(query):
                with suppress(ValueError):
                    count_samples(blob)
    merge([path], out, force=True)


@pytest.mark.slow
def test_damaged_databases_give_our_errors_only(tmp_path):
    whole = tmp_path / "whole.db"
    generate(whole, variants=2, workloads=1, runtime=2, samples=4, declared=True, mess=SOME_MESS)
    data = whole.read_bytes()
    chance = random.Random(1)
    path, out, failures = tmp_path / "damaged.db", tmp_path / "out.db", []
    for _ in range(2000):
        damaged = bytearray(data)
        if chance.random() < 0.2:
            del damaged[chance.randrange(len(damaged)) :]
        for _ in range(chance.randrange(1, 8)):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            read_all(path, out)
        except PolicygenError as error:
            failures.append(str(error))
    assert 100 < len(failures) < 2000
    assert all(text.startswith(str(tmp_path)) for text in failures)
    assert not [name for name in names_in(tmp_path) if name.startswith(".")]


def test_an_export_of_a_merged_database_has_all_rows(tmp_path, pair):
    merge(pair, tmp_path / "m.db")
    assert export([tmp_path / "m.db"], tmp_path / "m.csv", kind="csv") == 80


def test_the_demo_merges_into_itself(tmp_path):
    demo_database(tmp_path / "demo.db")
    report = merge([tmp_path / "demo.db"], tmp_path / "m.db")
    assert counts(report)[NAME] == (384, 0, 0, 0)
