"""What was proved of trees, in the store: by which command, of which content, how it ended."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime

from policygen.edit.journal import PATIENCE
from policygen.edit.target import real
from policygen.model.base import Record
from policygen.store_schema import open_store, stamp, told, transaction

ProofCommand = Literal["apply", "verify-effect", "verify-sass"]
_FIELDS = ("content", "command", "passed", "whole", "words", "proved_at")


class ProofRecord(Record):
    """One run of a command that proves something."""

    content: str
    """That of the tree which it was run on."""
    command: ProofCommand
    passed: bool
    whole: bool
    """Whether all was compared that the command compares when it is not told otherwise."""
    words: str
    proved_at: AwareDatetime


def keep_proof(store: Path, root: Path, proof: ProofRecord) -> None:
    """Adds a proof; nothing that is there is changed."""
    cells = {**proof.model_dump(), "root": str(real(root)), "proved_at": stamp(proof.proved_at)}
    insert = (
        "INSERT INTO proofs (root, content, command, passed, whole, words, proved_at)"
        " VALUES (:root, :content, :command, :passed, :whole, :words, :proved_at)"
    )
    with (
        told(store),
        closing(open_store(store, PATIENCE)) as connection,
        transaction(connection, "BEGIN IMMEDIATE"),
    ):
        connection.execute(insert, cells)


def proofs_of(store: Path, root: Path, content: str) -> tuple[ProofRecord, ...]:
    """What was proved of a tree, or of its content elsewhere; newest first."""
    with told(store), closing(open_store(store, PATIENCE)) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute(
            "SELECT * FROM proofs WHERE root = ? OR content = ? ORDER BY id DESC",
            (str(real(root)), content),
        ).fetchall()
        return tuple(
            ProofRecord.model_validate({name: row[name] for name in _FIELDS}) for row in rows
        )
