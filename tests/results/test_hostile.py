"""Databases that hold what no tuning search writes: each row is used, or refused with its place."""

import errno
import os
import shutil
import sqlite3
import subprocess
import sys

import pytest

from policygen.app.databases import describe_databases
from policygen.app.inputs import ResultFiles
from policygen.cli.main import main
from policygen.errors import InputError
from policygen.results.database import open_all, read_rows
from policygen.results.merge import merge, replacing
from policygen.results.ranking import rank
from tests.results.build import ALGORITHM, Builder, simple
from tests.tiers import sampled

EVIL = "ipt_19.tpb_384.a\n#define private public\ninline int evil(){return 1;}\n//_1"
TABLE = f"{ALGORITHM}.base"
NO_LABEL = "rows with a variant that is not a label, like ipt_19.tpb_512, are ignored"
NO_TEXT = "rows with bytes instead of text are ignored"


def built(path, *variants):
    made = Builder(path).table()
    for variant in ("base", "ipt_1", *variants):
        made.row(variant, 2.0 if variant == "base" else 1.0, "I32", "16")
    return path


@pytest.mark.parametrize(
    ("variant", "told"),
    [
        (EVIL, "'ipt_19.tpb_384.a\\x0a#define private public\\x0ainline int evil(){re…'"),
        ("ipt_2\x1b[2J", "'ipt_2\\x1b[2J'"),
        ("ipt_\u0663", "'ipt_\u0663'"),
        ("ipt_" + "9" * 400_000, f"'ipt_{'9' * 56}…'"),
        ("", "''"),
        (b"ipt_2", "'b'ipt_2''"),
        (None, "'None'"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_row_whose_variant_is_no_label_is_refused_with_its_place(tmp_path, variant, told):
    path = built(tmp_path / "a.db", variant, variant)
    document = rank([path])
    (workload,) = document.workloads
    assert [one.variant for one in workload.variants] == ["ipt_1", "base"]
    assert [str(one) for one in document.warnings] == [
        f"{path}: {TABLE}: {NO_LABEL}: {told} (2, row 3)"
    ]
    (table,) = describe_databases(ResultFiles([str(path)])).databases[0].tables
    assert (table.rows, table.unusable, table.variants) == (4, 2, 1)


@pytest.mark.parametrize("column", ["gpu", "ctk", "cccl", "T{ct}", "Elements{io}[pow2]"])
def test_a_row_with_bytes_for_text_is_refused_with_its_place(tmp_path, column):
    path = built(tmp_path / "a.db", "ipt_2")
    with sqlite3.connect(path) as data:
        data.execute(f'UPDATE "{TABLE}" SET "{column}" = ? WHERE rowid = 3', (b"\xff\x00",))
    data.close()
    document = rank([path])
    assert [str(one) for one in document.warnings] == [f"{path}: {TABLE}: {NO_TEXT} (row 3)"]
    assert document.workloads[0].complete == 2


def test_reasons_are_told_apart_and_counted_over_all_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("policygen.results.database.BATCH", 2)
    path = built(tmp_path / "a.db", "x", "y", "ipt_2", "z")
    with sqlite3.connect(path) as data:
        data.execute(f'UPDATE "{TABLE}" SET center = NULL WHERE variant = ?', ("ipt_1",))
        data.execute(f'UPDATE "{TABLE}" SET gpu = ? WHERE variant = ?', (b"", "ipt_2"))
    data.close()
    warnings = []
    with open_all([path]) as (database,):
        rows = read_rows(database, database.tables[0], {}, warnings.append)
    assert rows.unusable == 5
    assert [(one.message.partition(":")[0], one.count, one.row) for one in warnings] == [
        ("rows with an impossible kernel time as their center are ignored", 1, 2),
        (NO_LABEL, 3, 3),
        (NO_TEXT, 1, 5),
    ]


def test_a_merge_takes_no_such_row(tmp_path):
    path = built(tmp_path / "a.db", EVIL, b"ipt_2")
    with sqlite3.connect(path) as data:
        data.execute("CREATE TABLE runs (ctk, cccl, bench, code, elapsed)")
        rows = [("13", "v3", "b.ipt_1", "0", 1.0), ("13", "v3", b"b", "0", 1.0)]
        data.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?)", rows)
        data.execute(
            f"INSERT INTO \"{TABLE}\" SELECT ctk, cccl, gpu, 'ipt_3', 1, 1, 1, NULL, ?, 16"
            f' FROM "{TABLE}" LIMIT 1',
            (b"I32",),
        )
    data.close()
    report = merge([path], tmp_path / "out.db")
    counts = {one.table: (one.rows, one.unusable) for one in report.tables}
    assert counts == {TABLE: (2, 3), "runs": (1, 1)}


def test_names_of_benchmarks_that_are_bytes_are_refused(capsys, tmp_path):
    path = built(tmp_path / "a.db")
    with sqlite3.connect(path) as data:
        data.execute("UPDATE subbenches SET bench = ?", (b"base",))
    data.close()
    for command in ("info", "top", "coverage"):
        assert main(["db", command, str(path)]) == 2
        assert capsys.readouterr().err == (
            f"policygen: error: {path}: table 'subbenches' contains bytes instead of text\n"
        )


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_bytes_are_exported_as_text(capsys, tmp_path, end):
    path = built(tmp_path / "a.db", b"\xff")
    with sqlite3.connect(path) as data:
        data.execute(f'UPDATE "{TABLE}" SET "T{{ct}}" = ?, gpu = 7 WHERE rowid = 1', (b"\x00",))
    data.close()
    assert main(["db", "export", str(path), "-q", "-o", str(tmp_path / f"a.{end}")]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("cells", "seconds"),
    [
        (["1.5", "2"], 3.5),
        (["9e999", "1.5"], 1.5),
        (["9e999", "-9e999"], None),
        (["1e308", "1e308"], None),
        (["NULL", "'x'", "x'00'"], None),
        ([str(2**63 - 1)] * 2, 2.0**64 - 2),
    ],
)
def test_time_that_is_no_number_is_not_counted(capsys, tmp_path, cells, seconds):
    path = built(tmp_path / "a.db")
    with sqlite3.connect(path) as data:
        data.execute("CREATE TABLE builds (ctk, cccl, bench, code, elapsed)")
        for cell in cells:
            data.execute(f"INSERT INTO builds VALUES ('13', 'v3', 'b', '0', {cell})")
    data.close()
    (info,) = describe_databases(ResultFiles([str(path)])).databases
    assert info.build_seconds == seconds
    assert main(["db", "info", str(path)]) == 0
    assert main(["db", "info", "--json", str(path)]) == 0
    assert capsys.readouterr().err == ""


def test_numbers_of_400_000_digits_are_sorted_and_told(capsys, tmp_path):
    made = Builder(tmp_path / "a.db").table()
    digits = "9" * 400_000
    for value in (digits, "10", "010", "9"):
        for variant, center in (("base", 2.0), ("ipt_1", 1.0)):
            made.row(variant, center, value, "16", cccl=f"v{digits}.0")
    document = rank([made.path])
    order = [one.workload["T{ct}"] for one in document.workloads]
    assert order[0] == "9"
    assert order[-1] == digits
    assert main(["db", "top", str(made.path)]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    "command",
    sampled(
        [
            ["db", "info", "PIPE"],
            ["db", "top", "PIPE"],
            ["db", "top", "DB", "--base", "PIPE"],
            ["db", "choose", "DB", "--confirm", "PIPE"],
            ["db", "merge", "PIPE", "-o", "OUT"],
            ["db", "export", "PIPE", "-o", "OUT.csv"],
            ["plan", "--db", "PIPE", "--arch", "sm90"],
        ],
        ["db", "top", "DB", "--base", "PIPE"],
    ),
    ids=" ".join,
)
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, command):
    pipe = tmp_path / "pipe.db"
    os.mkfifo(pipe)
    given = {
        "PIPE": pipe,
        "DB": simple(tmp_path / "a.db", base={"16": 2.0}),
        "OUT": tmp_path / "out.db",
        "OUT.csv": tmp_path / "out.csv",
    }
    told = subprocess.run(
        [sys.executable, "-m", "policygen", *(str(given.get(word, word)) for word in command)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert (told.returncode, told.stderr) == (
        2,
        f"policygen: error: {pipe}: not a regular file\n"
        "  Name a file: pipes and devices are not accepted.\n",
    )


def test_a_device_is_no_database(capsys):
    assert main(["db", "info", os.devnull]) == 2
    assert f"{os.devnull}: not a regular file" in capsys.readouterr().err


def _may_mount():
    unshare = shutil.which("unshare")
    tried = unshare and subprocess.run([unshare, "-rm", "true"], check=False, capture_output=True)
    return tried and not tried.returncode


@pytest.mark.skipif(not _may_mount(), reason="this system lets nobody mount a folder")
@pytest.mark.parametrize(
    "command",
    sampled([["merge", "-o", "out.db"], ["export", "-o", "out.csv"]], ["merge", "-o", "out.db"]),
)
def test_a_read_only_disk_is_told(tmp_path, command):
    path = simple(tmp_path / "a.db", base={"16": 2.0}, ipt_1={"16": 1.0})
    (tmp_path / "disk").mkdir()
    name, option, out = command
    words = [sys.executable, "-m", "policygen", "db", name, str(path), option, f"disk/{out}"]
    mounted = 'mount -t tmpfs -o ro none disk && exec "$@"'
    told = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mounted, "sh", *words],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert told.returncode == 2
    assert told.stderr.startswith(f"policygen: error: {tmp_path}/disk/{out}: cannot be written: ")
    assert told.stderr.count("\n") == 1


def test_what_cannot_be_removed_is_left(tmp_path):
    def replace_by_a_folder():
        with replacing(tmp_path / "out.db") as temporary:
            temporary.mkdir()
            temporary.unlink()

    with pytest.raises(InputError, match=os.strerror(errno.EISDIR)):
        replace_by_a_folder()
    assert [path.is_dir() for path in tmp_path.iterdir()] == [True]
