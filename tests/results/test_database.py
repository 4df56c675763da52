import hashlib
import sqlite3

import pytest

from policygen.errors import InputError
from policygen.results.database import expand, open_database
from policygen.results.ranking import rank
from tests.results.build import ALGORITHM, IO, Builder, simple


def looked(path):
    with open_database(path) as database:
        return database


@pytest.mark.parametrize("version", ["cccl", "cub"])
@pytest.mark.parametrize("bw", [True, False])
def test_every_layout_is_found_by_looking(tmp_path, version, bw):
    path = tmp_path / "any.name"
    Builder(path, version=version, bw=bw).table().table("other", axes=("T{ct}", "Seg[pow2]"))
    database = looked(path)
    assert database.layout == version
    assert [(t.name, t.ct_axes, t.rt_axes) for t in database.tables] == [
        (f"{ALGORITHM}.base", ("T{ct}",), (IO,)),
        (f"{ALGORITHM}.other", ("T{ct}",), ("Seg[pow2]",)),
    ]


def test_names_with_quotes_and_signs_are_only_names(tmp_path):
    axis, algorithm = 'an "axis" = [x]', 'cub.bench."odd"; --'
    path = tmp_path / "db"
    built = Builder(path).table(algorithm=algorithm, axes=("T{ct}", axis))
    for variant, center in (("base", 2.0), ("ipt_1", 1.0)):
        built.row(variant, center, "I'8", 'a="b"', algorithm=algorithm)
    (workload,) = rank([path]).workloads
    assert workload.algorithm == algorithm
    assert workload.workload == {"T{ct}": "I'8"}
    assert workload.variants[0].worst.point == {axis: 'a="b"'}
    (narrowed,) = rank([path], axes={axis: frozenset(['a="b"'])}).workloads
    assert narrowed.variants == workload.variants


@pytest.mark.parametrize(
    ("create", "columns"),
    [
        ("CREATE TABLE axes (algorithm TEXT, bench TEXT, axis TEXT, idx INT, value TEXT)", "abxiv"),
        ("CREATE TABLE declared (name TEXT, value TEXT, algorithm TEXT, bench TEXT)", "xvab"),
        ("CREATE TABLE t (bench TEXT, axis_name TEXT, axis_values TEXT)", "nxl"),
        (
            "CREATE TABLE t (algorithm TEXT, bench TEXT, axis TEXT, input_string TEXT, n TEXT)",
            "abxvn",
        ),
    ],
)
@pytest.mark.parametrize("axis", [IO, "Elements{io}"])
def test_declared_axes_are_found_by_what_stands_in_a_table(tmp_path, create, columns, axis):
    path = tmp_path / "db"
    built = Builder(path).table()
    values = ["16", "20", "24", "28"]
    cells = {"a": ALGORITHM, "b": "base", "x": axis, "n": f"{ALGORITHM}.base"}
    rows = []
    if "l" in columns:
        rows = [[cells.get(c, '["16", "20", "24", "28"]') for c in columns]]
    else:
        for index in (3, 1, 0, 2) if "i" in columns else range(4):
            rows.append([{**cells, "i": index, "v": values[index]}[c] for c in columns])
    marks = ", ".join("?" * len(columns))
    built.execute(create)
    built.execute(f"INSERT INTO {create.split()[2]} VALUES ({marks})", *rows)
    assert looked(path).declared == {(ALGORITHM, "base", IO): tuple(values)}


def test_a_table_of_something_else_declares_nothing(tmp_path):
    path = tmp_path / "db"
    Builder(path).table().execute("CREATE TABLE notes (text TEXT)").execute(
        "INSERT INTO notes VALUES (?)", ("Elements",)
    )
    assert looked(path).declared == {}


def test_nothing_is_written_to_an_input(tmp_path):
    path = simple(tmp_path / "db", base={"16": 2.0}, ipt_1={"16": 1.0})
    before = hashlib.sha256(path.read_bytes()).digest(), path.stat().st_mtime_ns
    path.chmod(0o444)
    rank([path])
    assert (hashlib.sha256(path.read_bytes()).digest(), path.stat().st_mtime_ns) == before
    assert [p.name for p in tmp_path.iterdir()] == ["db"]


def test_a_database_that_is_being_written_can_be_read(tmp_path):
    path = simple(tmp_path / "db", base={"16": 2.0}, ipt_1={"16": 1.0})
    writer = sqlite3.connect(path)
    writer.execute("BEGIN")
    writer.execute("INSERT INTO subbenches VALUES ('a', 'b')")
    assert rank([path]).workloads[0].variants[0].variant == "ipt_1"
    writer.rollback()
    writer.close()


def test_a_locked_database_is_told(tmp_path, monkeypatch):
    path = simple(tmp_path / "db", base={"16": 2.0})
    holder = sqlite3.connect(path)
    holder.execute("BEGIN EXCLUSIVE")
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **{**k, "timeout": 0.01}))
    with pytest.raises(InputError, match="another process has locked the database"):
        looked(path)
    holder.rollback()
    holder.close()


def test_a_search_in_which_every_build_failed_has_nothing_to_show(tmp_path):
    path = tmp_path / "db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE builds (ctk TEXT, cccl TEXT, bench TEXT, code TEXT, elapsed REAL)")
    db.close()
    found = rank([path])
    assert found.workloads == ()
    assert [str(w) for w in found.warnings] == [f"{path}: nothing was measured: every build failed"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not an SQLite database"),
        (b"hello", "not an SQLite database"),
        (b"SQLite format 3\0" + b"x" * 200, "SQLite cannot read this database: "),
    ],
)
def test_what_is_no_database_is_told(tmp_path, data, message):
    path = tmp_path / "db"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        looked(path)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        looked(tmp_path / "none")


def test_a_database_cut_short_is_told(tmp_path):
    path = simple(tmp_path / "db", base={str(i): 2.0 for i in range(200)})
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match="SQLite cannot read this database"):
        rank([path])


@pytest.mark.parametrize(
    ("create", "message"),
    [
        ("CREATE TABLE music (title TEXT)", "not a tuning database.*'subbenches'\n.*music"),
        ("CREATE TABLE subbenches (algorithm TEXT, bench TEXT)", None),
    ],
)
def test_a_database_of_something_else_is_told(tmp_path, create, message):
    path = tmp_path / "db"
    with sqlite3.connect(path) as db:
        db.execute(create)
    db.close()
    if message is None:
        assert looked(path).tables == ()
        return
    with pytest.raises(InputError, match=message):
        looked(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("ctk, gpu, variant, center", "has no column 'cccl'"),
        ("ctk, gpu, cccl, center", "has no column 'variant'"),
    ],
)
def test_a_table_without_a_column_that_is_needed_is_told(tmp_path, columns, message):
    path = tmp_path / "db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE subbenches (algorithm TEXT, bench TEXT)")
        db.execute("INSERT INTO subbenches VALUES ('a', 'b'), ('a', 'nothing stored')")
        db.execute(f'CREATE TABLE "a.b" ({columns})')
    db.close()
    with pytest.raises(InputError, match=message):
        looked(path)


def test_a_database_in_wal_mode_gets_no_company(tmp_path):
    path = simple(tmp_path / "db", base={"16": 2.0})
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
    db.close()
    assert rank([path]).workloads
    assert [p.name for p in tmp_path.iterdir()] == ["db"]


def test_an_interrupted_search_is_told(tmp_path):
    path = simple(tmp_path / "db", base={"16": 2.0})
    path.with_name("db-journal").write_bytes(b"x")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=r"an interrupted search left it incomplete.*\n  Copy it"):
        rank([path])


def test_a_link_to_itself_is_refused(tmp_path):
    """A fuzzer found it: resolving the path ended the command with exit status 70."""
    loop = tmp_path / "run.db"
    loop.symlink_to(loop.name)
    (path,) = expand([str(loop)])
    with pytest.raises(InputError, match=r"run\.db: cannot be read"), open_database(path):
        pass
