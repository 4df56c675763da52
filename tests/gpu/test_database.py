"""What is measured stands in CCCL's own layout, at once, and beside it where it comes from."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from policygen.cli.main import main
from policygen.errors import InputError
from policygen.gpu.database_writer import RowSpot, open_writer
from policygen.gpu.device import Failure
from policygen.gpu.measured_rows import open_measurements
from policygen.results.database import open_database
from policygen.results.own_tables import FORMAT, OWN
from policygen.results.samples import decode
from tests.gpu.measuring import ABOUT, ALGORITHM, DECLARED, IO, SUBBENCH, measure, query, rows, spot
from tests.gpu.simulated import FACTS

REAL = Path(__file__).parents[2] / "fixtures/measured/A_reduce_sum/cccl_meta_bench.db"
SAMPLES = (1.5e-5, 1e-5, 1.25e-5)


@pytest.fixture
def db(tmp_path):
    return tmp_path / "run.db"


@pytest.fixture
def session(db):
    with open_measurements(db, ABOUT) as opened:
        opened.prepare(spot(16), DECLARED)
        yield opened


def layout(path, table):
    """Columns with their types, and what may stand there once."""
    columns = [row[1:4] for row in query(path, f'PRAGMA table_info("{table}")')]
    indexes = query(path, f'PRAGMA index_list("{table}")')
    unique = [
        [row[2] for row in query(path, f'PRAGMA index_info("{name}")')]
        for _, name, is_unique, *_ in indexes
        if is_unique
    ]
    return columns, unique


@pytest.mark.parametrize("table", ["subbenches", "builds", "runs"])
def test_tables_are_laid_out_as_in_a_database_of_cccl_s_search(session, db, table):
    assert layout(db, table) == layout(REAL, table)


def test_results_are_laid_out_as_in_a_database_of_cccl_s_search(session, db):
    real, (real_key,) = layout(REAL, "cub.bench.reduce.sum.base")
    mine, (my_key,) = layout(db, f"{ALGORITHM}.{SUBBENCH}")
    assert mine[:8] == real[:8]
    assert my_key[:4] == real_key[:4]
    assert mine[8:] == [("T{ct}", "TEXT", 0), (IO, "TEXT", 0)]
    assert {row[1:] for row in real[8:]} == {("TEXT", 0)}
    assert my_key[4:] == ["T{ct}", IO]


def test_cells_are_what_cccl_s_search_writes(session, db):
    session.record(spot(16), "base", SAMPLES, 0.5)
    session.fail(spot(16), "ipt_1", Failure("compile", "nvcc refuses it"), 2.0)
    ((ctk, cccl, gpu, variant, elapsed, center, bw, blob, *axes),) = query(
        db, f'SELECT * FROM "{ALGORITHM}.{SUBBENCH}"'
    )
    assert (ctk, cccl, gpu) == ("13.2.78", "v3.6.0", "H200 (6144, 132, eccon)")
    assert (variant, elapsed, bw, axes) == ("base", 0.5, None, ["I8", "16"])
    assert center == float(np.float32(1.25e-5))
    assert decode(blob).tolist() == sorted(map(float, map(np.float32, SAMPLES)))
    own = ("13.2.78", "v3.6.0", f"{ALGORITHM}.base", "0")
    assert query(db, "SELECT * FROM runs") == [(*own, 0.5)]
    assert query(db, "SELECT * FROM builds") == [(*own[:2], f"{ALGORITHM}.ipt_1", "5", 2.0)]
    assert query(db, "SELECT * FROM subbenches") == [(ALGORITHM, SUBBENCH)]
    ((_, *types),) = query(
        db,
        f'SELECT variant, typeof(elapsed), typeof(center), typeof(samples), typeof("{IO}")'
        f' FROM "{ALGORITHM}.{SUBBENCH}"',
    )
    ((_, *real),) = query(
        REAL,
        f'SELECT variant, typeof(elapsed), typeof(center), typeof(samples), typeof("{IO}")'
        ' FROM "cub.bench.reduce.sum.base" LIMIT 1',
    )
    assert types == real == ["real", "real", "blob", "text"]


def test_our_own_tables_say_where_it_comes_from(session, db):
    session.record(spot(16), "base", SAMPLES, 0.5)
    session.fail(spot(16), "ipt_1", Failure("wrong", "3 of 9 elements differ"), 0.25)
    session.noise(spot(16), 0, SAMPLES)
    session.time("compile", 12.5)
    session.note(3, 2, 1)
    ((*cells,),) = query(
        db,
        "SELECT policygen, ctk, arch, driver, nvcc, method, seed, sm_clock, memory_clock,"
        " power_limit, repeated, throttled, restarts, ended, card FROM policygen_sessions",
    )
    *cells, ended, card = cells
    assert cells[1:] == [
        "13.2.78",
        "sm90",
        "580.82.07",
        "13.2.78",
        "events",
        7,
        1980,
        3201,
        700.0,
        3,
        2,
        1,
    ]
    assert ended is None
    assert FACTS.uuid not in card
    workload = '{"Elements{io}[pow2]": "16", "T{ct}": "I8"}'
    named = (1, ALGORITHM, SUBBENCH, workload)
    center = float(np.float32(1.25e-5))
    assert [row[:-1] for row in query(db, "SELECT * FROM policygen_rows")] == [
        (*named, "base", 3, center, 0.5)
    ]
    assert [row[:-1] for row in query(db, "SELECT * FROM policygen_failures")] == [
        (*named, "ipt_1", "wrong", "3 of 9 elements differ")
    ]
    assert query(db, "SELECT * FROM policygen_noise") == [
        (*named, 0, 3, center, 1.5)
    ]  # the first over the second
    assert query(db, "SELECT * FROM policygen_times") == [(1, "compile", 12.5)]
    assert query(db, "SELECT code, elapsed FROM runs") == [("0", 0.5), ("1", 0.25)]


def test_what_failed_is_known_to_the_next_session(session, db):
    session.fail(spot(16), "ipt_1", Failure("hang", "it did not finish within 10 seconds"))
    assert session.failed(spot(16)) == {
        "ipt_1": Failure("hang", "it did not finish within 10 seconds")
    }
    assert session.failed(spot(18)) == {}


def test_the_end_of_a_session_is_noted(db):
    with open_measurements(db, ABOUT):
        pass
    with pytest.raises(KeyboardInterrupt), open_measurements(db, ABOUT):
        raise KeyboardInterrupt
    ended = [when is not None for (when,) in query(db, "SELECT ended FROM policygen_sessions")]
    assert ended == [True, False]
    assert list(db.parent.iterdir()) == [db]


def test_what_is_measured_again_is_joined_to_its_row(db):
    with open_measurements(db, ABOUT) as session:
        session.prepare(spot(16), DECLARED)
        session.record(spot(16), "base", (1e-5, 2e-5), 1.0)
    with open_measurements(db, replace(ABOUT, seed=8)) as session:
        session.prepare(spot(16), DECLARED)
        assert session.measured(spot(16)) == {"base"}
        session.record(spot(16), "base", (4e-5,), 0.5)
    ((elapsed, center, blob),) = rows(db).values()
    assert (elapsed, center) == (1.5, float(np.float32(2e-5)))
    assert decode(blob).tolist() == [float(np.float32(value)) for value in (1e-5, 2e-5, 4e-5)]
    told = query(db, "SELECT session, samples, center FROM policygen_rows")
    assert [(number, count) for number, count, _ in told] == [(1, 2), (2, 1)]


def test_rows_of_another_gpu_toolkit_or_cccl_are_others(db):
    for about in (
        ABOUT,
        replace(ABOUT, ctk="13.3.0"),
        replace(ABOUT, cccl="v3.5.0", method="nvbench"),
        replace(ABOUT, gpu=replace(FACTS, sms=114)),
    ):
        with open_measurements(db, about) as session:
            session.prepare(spot(16), DECLARED)
            assert session.measured(spot(16)) == set()
            session.record(spot(16), "base", SAMPLES, 1.0)
            session.fail(spot(16), "ipt_1", Failure("crash", "it was ended by signal 11"))
    assert len(query(db, f'SELECT * FROM "{ALGORITHM}.{SUBBENCH}"')) == 4


def test_another_method_needs_another_file(db):
    with open_measurements(db, ABOUT):
        pass
    other = replace(ABOUT, method="nvbench")
    words = "with the method events, not nvbench"
    with pytest.raises(InputError, match=words), open_measurements(db, other):
        pass


def test_another_version_of_a_benchmark_needs_another_file(session):
    other = RowSpot(ALGORITHM, SUBBENCH, {"T{ct}": "I8", "Entropy": "1.000"})
    with pytest.raises(InputError, match=r"has the axes T{ct}, Elements{io}.*, not T{ct}, Entropy"):
        session.prepare(other, {})
    declared = {**DECLARED, (ALGORITHM, SUBBENCH, IO): ("16", "28")}
    with pytest.raises(InputError, match="have different declared values there"):
        session.prepare(spot(16), declared)
    session.prepare(spot(16), DECLARED)
    session.prepare(spot(16), {})


def test_values_with_commas_are_declared_once(db):
    declared = {(ALGORITHM, SUBBENCH, "T{ct}"): ("I8", "pair<I8, I8>")}
    for _ in range(2):
        with open_measurements(db, ABOUT) as session:
            session.prepare(spot(16), declared)
    with open_database(db) as found:
        assert found.declared == declared


def test_one_process_writes(session, db):
    program = (
        "import sys; from tests.gpu.measuring import *\n"
        "with open_measurements(Path(sys.argv[1]), ABOUT): pass"
    )
    words = f"from pathlib import Path\n{program}"
    ended = subprocess.run(
        [sys.executable, "-c", words, db],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert ended.returncode == 1
    told = "run.db: another process is writing measurements to it"
    assert told in ended.stderr
    with pytest.raises(InputError, match=told), open_writer(db):
        pass


def test_a_database_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "cccl_meta_bench.db"
    path.write_bytes(before := REAL.read_bytes())
    with pytest.raises(InputError, match="was not measured by policygen"), open_writer(path):
        pass
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_database_of_a_newer_policygen_is_left_alone(db):
    with open_measurements(db, ABOUT):
        pass
    with closing(sqlite3.connect(db)) as connection:
        connection.execute(f"UPDATE {FORMAT} SET version = 9")
        connection.commit()
    words = "have version 9, but this policygen supports 1"
    with pytest.raises(InputError, match=words), open_writer(db):
        pass


def test_what_is_no_database_is_left_alone(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not to be lost")
    with (
        pytest.raises(InputError, match="exists already, and is not a database"),
        open_writer(text),
    ):
        pass
    assert text.read_text() == "not to be lost"
    os.mkfifo(pipe := tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"), open_writer(pipe):
        pass
    with pytest.raises(InputError, match="cannot be written"), open_writer(tmp_path):
        pass


def test_damaged_samples_are_not_joined(session, db):
    session.record(spot(16), "base", SAMPLES, 1.0)
    session.writer._connection.execute(f"UPDATE \"{ALGORITHM}.{SUBBENCH}\" SET samples = x'00'")
    with pytest.raises(InputError, match="samples cannot be read"):
        session.record(spot(16), "base", SAMPLES, 1.0)
    assert len(query(db, "SELECT * FROM policygen_rows")) == 1


def test_half_a_row_is_none(session, db):
    """What belongs together is written together."""
    session.writer._connection.execute("DROP TABLE runs")
    with pytest.raises(InputError, match="cannot be written: no such table: runs"):
        session.record(spot(16), "base", SAMPLES, 1.0)
    assert rows(db) == {}
    assert query(db, "SELECT * FROM policygen_rows") == []


def test_who_reads_while_it_is_measured_sees_whole_rows(session, db):
    session.record(spot(16), "base", SAMPLES, 1.0)
    with open_database(db) as found:
        assert [table.name for table in found.tables] == [f"{ALGORITHM}.{SUBBENCH}"]
        session.record(spot(18), "base", SAMPLES, 1.0)
        (count,) = found.connection.execute(
            f"SELECT count(*) FROM {found.tables[0].quoted}"
        ).fetchone()
    assert count == 2


def test_readers_take_none_of_our_tables_for_another_s(tmp_path):
    """They name benchmarks, axes, values and GPUs, by which tables of others are told."""
    measure(tmp_path / "run.db", tmp_path)
    with open_database(tmp_path / "run.db") as found:
        assert found.declared == DECLARED
        assert found.gpus == {"H200 (6144, 132, eccon)": "sm90"}
        assert found.unmeasured == ()
    own = [name for (name,) in query(tmp_path / "run.db", "SELECT name FROM sqlite_master")]
    assert sum(name.startswith(OWN) for name in own) >= 6


def test_policygen_reads_what_it_measures(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    measure(tmp_path / "run.db", tmp_path, rounds=12)
    assert main(["db", "info", "run.db", "--json"]) == 0
    (database,) = json.loads(capsys.readouterr().out)["databases"]
    (table,) = database["tables"]
    assert (table["rows"], table["variants"], table["declared"]) == (15, 4, True)
    assert main(["db", "top", "run.db", "--json"]) == 0
    (workload,) = json.loads(capsys.readouterr().out)["workloads"]
    assert (workload["arch"], workload["approximate"]) == ("sm90", False)
    assert workload["variants"][0]["variant"] == "ipt_2.tpb_64"
    assert workload["variants"][0]["score"] == pytest.approx(1.25, abs=0.02)
    assert main(["db", "choose", "run.db", "--json"]) == 0
    (workload,) = json.loads(capsys.readouterr().out)["workloads"]
    assert (workload["choice"]["decision"], workload["choice"]["variant"]) == (
        "use",
        "ipt_2.tpb_64",
    )


def test_all_samples_of_a_row_are_read_and_those_that_cannot_be_are_told(session):
    for variant, samples in (("base", SAMPLES), ("base", (2e-5,)), ("a_1", SAMPLES)):
        session.record(spot(16), variant, samples, 0.1)
    found = session.samples(spot(16))
    assert found["base"] == pytest.approx([1e-5, 1.25e-5, 1.5e-5, 2e-5])
    assert found["a_1"] == pytest.approx(sorted(SAMPLES))
    with session.writer.writing() as connection:
        connection.execute(
            f"UPDATE {spot(16).table} SET samples = ? WHERE variant = 'a_1'", (b"x",)
        )
    with pytest.raises(InputError, match="samples cannot be read"):
        session.samples(spot(16))
