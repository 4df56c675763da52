"""What sessions and searches wrote of themselves is read, whoever has been at the tables."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from policygen.model.results import RunKey
from policygen.results import sessions as sessions_module
from policygen.results.cases import importance
from policygen.results.database import open_all
from policygen.results.own_tables import FORMAT, NOISE, RUNGS, SEARCHES, SESSIONS, TIMES
from policygen.results.rungs import read_samples, rungs_of
from policygen.results.sessions import NOTHING, PointSpot, read_own, seconds_of, spot_of
from tests.results.build import simple
from tests.results.searched import ALGORITHM, CCCL, CT, CTK, GPU, IO, SIZES, Searched, searched

KEY = RunKey(gpu=GPU, ctk=CTK, cccl=CCCL)
I8, I32 = (spot_of(KEY, ALGORITHM, {CT: value}) for value in ("I8", "I32"))


@pytest.fixture
def path(tmp_path):
    return searched(tmp_path / "run.db", count=12, finalists=3, processes=3)


def changed(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def read(path):
    told = []
    with open_all([path]) as (database,):
        return read_own(database, told.append), [f"{one.table}: {one.message}" for one in told]


def rungs(path, asked=None):
    with open_all([path]) as databases:
        records = [read_own(one, [].append) for one in databases]
        return rungs_of(records, databases, I8, {}, asked or {})


def test_everything_that_a_search_writes_is_read(path):
    found, told = read(path)
    assert told == []
    assert len(found.sessions) == 1
    assert {spot.axes for spot in found.searches} == {(("T", "I8"),), (("T", "I32"),)}
    assert found.searches[I8][0]["base"] == "ipt_15.tpb_256.ns_500.trp_1"
    points = found.rungs[I8]
    assert list(points) == [PointSpot("base", ((IO, size),)) for size in SIZES]
    # Twelve and base, nine again and base, three times three and base.
    assert all(len(rows) == 13 + 10 + 12 for rows in points.values())
    assert [len(rows) for rows in found.noise[I8].values()] == [5] * 4
    assert {row.kind for row in found.failures[I8]} == {"compile"}
    assert found.times[1] == [("compiling", 61.5)]


def test_a_database_of_another_program_has_nothing_of_it(tmp_path):
    assert read(simple(tmp_path / "a.db", base={"16": 2.0}, ipt_1={"16": 1.0})) == (NOTHING, [])


def test_another_version_is_told_and_not_read(path):
    changed(path, f"UPDATE {FORMAT} SET version = 7")
    found, told = read(path)
    assert found == NOTHING
    assert told == [f"{FORMAT}: version 7 of these tables is unknown; they are not read"]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("center", "'x'"),
        ("center", "9e999"),
        ("center", "0.0"),
        ("base", "-1.0"),
        ("variant", "'<script>'"),
        ("variant", "x'00'"),
        ("rung", "0"),
        ("rung", "4"),
        ("process", "'a'"),
        ("session", "99"),
        ("algorithm", "x'00'"),
        ("bench", "7"),
        ("workload", "'{'"),
        ("workload", "'[1]'"),
        ("workload", "'{\"a\": 1}'"),
        ("workload", "x'00'"),
    ],
)
def test_a_row_that_says_no_time_of_a_variant_is_left_out_and_counted(path, column, value):
    changed(path, f"UPDATE {RUNGS} SET {column} = {value} WHERE rowid = 2")
    if column == "bench":  # a column of text keeps no number
        changed(path, f"UPDATE {RUNGS} SET bench = x'07' WHERE rowid = 2")
    found, told = read(path)
    assert told == [f"{RUNGS}: rows without usable content are ignored"]
    assert sum(len(rows) for rows in found.rungs[I8].values()) == 35 * 4 - 1


@pytest.mark.parametrize("table", [SESSIONS, SEARCHES, RUNGS, NOISE, TIMES])
def test_a_table_may_lack(path, table):
    changed(path, f"DROP TABLE {table}")
    found, _ = read(path)
    assert not {
        SESSIONS: found.rungs,
        SEARCHES: found.searches,
        RUNGS: found.rungs,
        NOISE: found.noise,
        TIMES: found.times,
    }[table]


def test_a_table_without_a_column_is_told_and_not_read(path):
    changed(path, f"ALTER TABLE {RUNGS} RENAME COLUMN center TO middle")
    found, told = read(path)
    assert not found.rungs
    assert told == [f"{RUNGS}: has no column 'center'; it is not read"]


@pytest.mark.parametrize(
    ("table", "change"),
    [
        (SESSIONS, "gpu = x'00'"),
        (NOISE, "beside = 'x'"),
        (TIMES, "seconds = -1"),
        ("policygen_failures", "variant = 'no label'"),
    ],
)
def test_rows_of_other_tables_are_left_out_as_well(path, table, change):
    changed(path, f"UPDATE {table} SET {change}")
    _, told = read(path)
    assert f"{table}: rows without usable content are ignored" in told


def test_rows_behind_the_first_million_are_counted(path, monkeypatch):
    monkeypatch.setattr(sessions_module, "MOST_ROWS", 20)
    found, told = read(path)
    assert sum(len(rows) for points in found.rungs.values() for rows in points.values()) == 20
    assert f"{RUNGS}: rows after the first 20 are ignored" in told


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:01:00+00:00", 60.0),
        ("1970-01-01T00:01:00", 60.0),
        ("1970-01-01T01:01:00+01:00", 60.0),
        ("soon", None),
        ("0001-01-01T00:00:00+23:00", None),
        ("1" * 1000, None),
        (7, None),
        (None, None),
    ],
)
def test_a_time_is_read_or_is_none(text, seconds):
    if text and str(text).startswith("0001"):
        assert seconds_of(text) is None or seconds_of(text) < 0
    else:
        assert seconds_of(text) == seconds


def test_a_score_is_the_weighted_mean_over_all_runtime_workloads_of_a_process(path):
    raw = [importance(place, len(SIZES)) for place in range(len(SIZES))]
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            f"SELECT variant, process, workload, base / center FROM {RUNGS} WHERE rung = 3"
            " AND workload LIKE '%\"I8\"%' ORDER BY rowid"
        ).fetchall()
    wanted = {}
    for variant, process, workload, ratio in rows:
        place = next(i for i, size in enumerate(SIZES) if f'"{size}"' in workload)
        one = wanted.setdefault((variant, process), [])
        one.append(raw[place] / sum(raw) * ratio)
    found = {
        (variant, one.run[2]): one.score
        for variant, scores in rungs(path).scores(3).items()
        for one in scores
    }
    assert found == pytest.approx({key: sum(parts) for key, parts in wanted.items()})
    assert len(found) == 4 * 3


def test_a_process_that_lacks_a_runtime_workload_does_not_count(path):
    before = rungs(path).scores(3)
    variant = next(name for name in before if name != "base")
    changed(
        path,
        f"DELETE FROM {RUNGS} WHERE rowid = (SELECT max(rowid) FROM {RUNGS} WHERE rung = 3"
        f" AND variant = '{variant}' AND workload LIKE '%\"I8\"%')",
    )
    after = rungs(path).scores(3)
    assert [len(before[variant]), len(after[variant])] == [3, 2]
    assert rungs(path).highest()[variant] == 3


def test_a_part_of_the_runtime_workloads_can_be_asked_for(path):
    found = rungs(path, {IO: frozenset({"16", "28"})})
    assert [point.axes[0][1] for point in found.points] == ["16", "28"]
    assert sum(found.weights) == pytest.approx(1)
    assert rungs(path, {IO: frozenset({"32"})}) is None


def test_samples_are_read_in_their_order_and_damaged_ones_left_out(path):
    places = [(0, 2), (0, 3), (0, 4), (0, 10**9)]
    with open_all([path]) as databases:
        whole = read_samples(databases, places)
    changed(
        path,
        f"UPDATE {RUNGS} SET samples = x'000102' WHERE rowid = 2",
        f"UPDATE {RUNGS} SET samples = 'text' WHERE rowid = 3",
    )
    with open_all([path]) as databases:
        left = read_samples(databases, places)
    assert (whole.size, left.size) == (30, 10)
    assert np.array_equal(whole[20:], left)
    nothing = np.array([np.nan, np.inf, -1, 0], "<f4").tobytes().hex()
    changed(path, f"UPDATE {RUNGS} SET samples = x'{nothing}'")
    with open_all([path]) as databases:
        assert read_samples(databases, places).size == 0


def test_the_clock_of_a_workload_begins_when_the_session_leaves_the_one_before(path):
    with open_all([path]) as databases:
        record = read_own(databases[0], [].append)
    spans = {spot.axes: sessions[1] for spot, sessions in record.spans.items()}
    (_, left), (first, _) = spans[("T", "I8"),], spans[("T", "I32"),]
    assert left < first
    clock = rungs(path).clock
    begun = record.sessions[1].started
    with open_all([path]) as databases:
        later = rungs_of([record], databases, I32, {}, {}).clock
    assert later.seconds((0, 1), left + 3) == pytest.approx(3)
    assert clock.seconds((0, 1), begun + 70) == pytest.approx(70)
    # What is before it, or years later, is no time of it.
    assert clock.seconds((0, 1), begun - 1) is None
    assert clock.seconds((0, 1), begun + 10**9) is None
    assert clock.seconds((0, 2), begun) is None
    assert clock.seconds((0, 1), None) is None


def test_a_second_session_goes_on_where_the_first_had_ended(path):
    first = max(
        one.seconds for scores in rungs(path).scores(1).values() for one in scores if one.seconds
    )
    last = max(
        one.seconds for scores in rungs(path).scores(3).values() for one in scores if one.seconds
    )
    with Searched(path, seed=2) as made:
        made.at(86400)
        made.begin()
        made.process = 100
        made.rung("I8", made.draw(4), 1, count=10, noise=0.02)
    scores = rungs(path).scores(1)
    later = [one for lot in scores.values() for one in lot if one.run[1] == 2]
    # Its four variants, and base.
    assert len(later) == 5
    assert all(last < one.seconds < last + 100 for one in later)
    assert first < last
