import multiprocessing
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from policygen import store_schema
from policygen.errors import InputError
from policygen.results.decisions import ChosenFrom, ChosenRow, Store
from policygen.store_schema import stamp
from tests.results.stored import history

WHEN = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)
LATER = WHEN + timedelta(hours=1)
NEWEST = len(store_schema.MIGRATIONS)
KEY = {"gpu": "Demo GPU (6144, 132, eccon)", "ctk": "13.0.88", "cccl": "v3.0.3"}


def choice(algorithm="cub.bench.reduce.sum", **changes):
    return ChosenRow(
        **{
            **KEY,
            "chosen_at": WHEN,
            "sources": (ChosenFrom(path="a.db", sha256="00"), ChosenFrom(path="b.db", sha256="11")),
            "algorithm": algorithm,
            "workload": {"T{ct}": "I32", "OffsetT{ct}": "I64"},
            "decision": "use",
            "variant": "ipt_19.tpb_512",
            "score": 1.09,
            "reason": "better",
            **changes,
        }
    )


def change(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep/policygen.db"


def test_what_was_chosen_comes_back_as_it_was(path):
    keep = choice(decision="keep base", variant=None, score=None, sources=())
    with Store.open(path) as store:
        assert store.record([choice(), keep]) == (1, 2)
    first, second = history(path)
    assert (first.row, second.row) == (choice(), keep)
    assert list(first.row.workload) == ["T{ct}", "OffsetT{ct}"]
    assert first.outcomes == [("chosen", stamp(WHEN))]


def test_outcomes_are_added_and_none_is_lost(path):
    with Store.open(path) as store:
        ids = store.record([choice(), choice("cub.bench.scan")])
        store.outcome(ids, "planned", LATER)
        store.outcome(ids[:1], "applied", LATER)
        store.outcome(ids[:1], "undone", LATER)
    states = [[state for state, _ in choice.outcomes] for choice in history(path)]
    assert states == [["chosen", "planned", "applied", "undone"], ["chosen", "planned"]]
    assert [choice.id for choice in history(path)] == [*ids]


def test_times_are_kept_in_utc(path):
    when = datetime(2026, 9, 1, 14, 0, tzinfo=timezone(timedelta(hours=2)))
    with Store.open(path) as store:
        store.record([choice(chosen_at=when)])
    assert history(path)[0].row.chosen_at.isoformat() == "2026-09-01T12:00:00+00:00"
    with pytest.raises(ValidationError, match="timezone"):
        choice(chosen_at=datetime(2026, 9, 1))  # noqa: DTZ001


def test_an_outcome_of_an_unknown_choice_changes_nothing(path):
    with Store.open(path) as store:
        store.record([choice()])
        with pytest.raises(InputError, match="has no choice 7, 9"):
            store.outcome([1, 9, 7], "planned", LATER)
        assert [state for state, _ in history(path)[0].outcomes] == ["chosen"]
        with pytest.raises(InputError, match="'lost' is not a state: chosen, planned"):
            store.outcome([1], "lost", LATER)


def test_an_older_store_is_brought_up_to_date(path):
    store_schema_text = store_schema.MIGRATIONS[0]
    path.parent.mkdir()
    change(
        path,
        *filter(str.strip, store_schema_text.split(";")),
        f"PRAGMA application_id = {store_schema.APPLICATION_ID}",
        "PRAGMA user_version = 1",
    )
    with Store.open(path) as store:
        store.record([choice()])
    assert len(history(path)) == 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (NEWEST,)
        indices = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE '%_of'")
        assert len(indices.fetchall()) == 3


def test_a_migration_that_fails_leaves_the_old_store(path, monkeypatch):
    Store.open(path).close()
    monkeypatch.setattr(
        store_schema,
        "MIGRATIONS",
        (*store_schema.MIGRATIONS, "CREATE TABLE more (id); CREATE TABLE choices (id)"),
    )
    with pytest.raises(InputError, match="the store cannot be used: table choices already exists"):
        Store.open(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (NEWEST,)
        names = connection.execute("SELECT name FROM sqlite_master WHERE name = 'more'")
        assert names.fetchall() == []


def test_a_newer_store_is_refused(path):
    Store.open(path).close()
    change(path, "PRAGMA user_version = 7")
    with pytest.raises(InputError) as failure:
        Store.open(path)
    assert str(failure.value) == (
        f"{path}: the store has version 7, but this policygen supports {NEWEST}\n"
        "  Use the version of policygen that wrote it, or a newer one."
    )


@pytest.mark.parametrize("version", [0, NEWEST, 7])
def test_a_database_of_something_else_is_refused_and_untouched(tmp_path, version):
    other = tmp_path / "other.db"
    change(other, "CREATE TABLE runs (id)", f"PRAGMA user_version = {version}")
    before = other.read_bytes()
    with pytest.raises(InputError, match="not a policygen store"):
        Store.open(other)
    assert other.read_bytes() == before


def test_damage_is_told(path, tmp_path):
    (tmp_path / "text.db").write_text("no database, and longer than a header" * 9, encoding="utf-8")
    with pytest.raises(InputError, match="the store is damaged: file is not a database"):
        Store.open(tmp_path / "text.db")
    with Store.open(path) as store:
        store.record([choice()] * 50)
    data = bytearray(path.read_bytes())
    data[4096:8192] = b"\xff" * 4096
    path.write_bytes(data)
    with pytest.raises(InputError, match="the store is damaged: "):
        Store.open(path)


def test_a_place_that_cannot_be_opened_is_told(tmp_path):
    with pytest.raises(InputError, match="the store cannot be used: unable to open"):
        Store.open(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="the store cannot be used: "):
        Store.open(tmp_path / "file/policygen.db")


def write_many(path, start):
    for _ in range(20):
        with Store.open(path) as store:
            ids = store.record([choice(), choice()])
            store.outcome(ids, "planned", LATER)


@pytest.mark.slow
def test_several_processes_write_at_once_and_nothing_is_lost(path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=write_many, args=(path, n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    choices = history(path)
    assert len(choices) == 120
    assert all(len(choice.outcomes) == 2 for choice in choices)


def test_a_writer_that_waits_too_long_says_so(path, monkeypatch):
    Store.open(path).close()
    monkeypatch.setattr("policygen.store_schema.PATIENCE", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="the store cannot be used: database is locked"):
            Store.open(path)
