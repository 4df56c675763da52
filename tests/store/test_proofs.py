"""What was proved is kept with the store, and found by tree and by content."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from policygen import store_schema
from policygen.errors import InputError
from policygen.store.journal import ProofRecord, keep_proof, proofs_of

WHEN = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)


def proof(content="a", command="verify-effect", *, passed=True, whole=True):
    return ProofRecord(
        content=content,
        command=command,
        passed=passed,
        whole=whole,
        words="all as written",
        proved_at=WHEN,
    )


def test_a_proof_is_found_by_its_tree_and_by_its_content(tmp_path):
    store, here, there = tmp_path / "policygen.db", tmp_path / "here", tmp_path / "there"
    known = [proof(), proof("b", "verify-sass", passed=False), proof(whole=False)]
    for one, root in zip(known, (here, here, there), strict=True):
        keep_proof(store, root, one)
    assert proofs_of(store, here, "none") == (known[1], known[0])
    assert proofs_of(store, here, "a") == (known[2], known[1], known[0])
    assert proofs_of(store, there, "b") == (known[2], known[1])
    assert proofs_of(store, tmp_path, "none") == ()


def test_a_tree_is_the_same_through_a_link(tmp_path):
    (tmp_path / "tree").mkdir()
    (tmp_path / "link").symlink_to("tree")
    keep_proof(tmp_path / "policygen.db", tmp_path / "link", proof())
    assert proofs_of(tmp_path / "policygen.db", tmp_path / "tree", "") == (proof(),)


def test_an_older_store_gets_the_table(tmp_path, monkeypatch):
    store = tmp_path / "policygen.db"
    with monkeypatch.context() as patch:
        patch.setattr(store_schema, "MIGRATIONS", store_schema.MIGRATIONS[:-1])
        store_schema.OpenStore.open(store).close()
    assert proofs_of(store, tmp_path, "a") == ()
    keep_proof(store, tmp_path, proof())
    assert proofs_of(store, tmp_path, "a") == (proof(),)


def test_what_cannot_be_kept_or_read_is_told(tmp_path):
    store = tmp_path / "policygen.db"
    keep_proof(store, tmp_path, proof())
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE proofs SET command = 'guess'")
        connection.commit()
    with pytest.raises(InputError, match="the store is damaged"):
        proofs_of(store, tmp_path, "a")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="the store cannot be used"):
        keep_proof(tmp_path / "file/policygen.db", tmp_path, proof())
