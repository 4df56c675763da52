"""Records what was proved of a tree, where applies are recorded."""

from datetime import UTC, datetime
from pathlib import Path

from policygen.app.notes import Note
from policygen.edit.proofs import ProofCommand, ProofRecord, keep_proof
from policygen.errors import InputError
from policygen.model.cub import Cub
from policygen.tree.content import tree_content


def record_proof(
    store: Path,
    cub: Cub,
    command: ProofCommand,
    words: str,
    note: Note,
    *,
    passed: bool,
    whole: bool = True,
) -> None:
    """Keeps what came of a proof; where there is no store, none is made for it.

    The proof holds whether or not it is recorded, so that a failure is a note.
    """
    if not store.is_file():
        return
    try:
        proof = ProofRecord(
            content=tree_content(cub),
            command=command,
            passed=passed,
            whole=whole,
            words=words,
            proved_at=datetime.now(UTC),
        )
        keep_proof(store, Path(cub.root), proof)
    except InputError as error:
        note(f"that {command} ran is not recorded: {error}")
