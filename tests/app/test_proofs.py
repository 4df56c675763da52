"""What was proved is recorded where there is a store, and never in the way of the proof."""

from pathlib import Path

import pytest

from policygen.app.journal import record_proof
from policygen.app.plan import _unmeasured
from policygen.model.selection import InputChange
from policygen.store.journal import proofs_of
from policygen.store_schema import OpenStore
from policygen.trees import open_tree
from policygen.trees.layout import tree_content
from tests.trees.toys import TUNINGS, make_root


@pytest.fixture
def cub(tmp_path):
    return open_tree(make_root(tmp_path / "tree"))


def recorded(cub, store):
    notes: list[str] = []
    record_proof(store, cub, "verify-sass", "all equal", notes.append, passed=True, whole=False)
    return notes


def test_no_store_is_made_for_a_proof(cub, tmp_path):
    assert recorded(cub, tmp_path / "policygen.db") == []
    assert not (tmp_path / "policygen.db").exists()


def test_a_proof_is_of_what_the_headers_hold(cub, tmp_path):
    store = tmp_path / "policygen.db"
    OpenStore.open(store).close()
    assert recorded(cub, store) == []
    (proof,) = proofs_of(store, Path(cub.root), "")
    assert proof.content == tree_content(cub)
    assert (proof.command, proof.words, proof.passed, proof.whole) == (
        "verify-sass", "all equal", True, False
    )  # fmt: skip


def test_a_content_is_that_of_the_headers_and_their_places(cub, tmp_path):
    known, folder = tree_content(cub), Path(cub.root, TUNINGS)
    other = open_tree(make_root(tmp_path / "elsewhere"))
    assert tree_content(other) == known
    (folder / ".tuning_for.cuh.0.policygen").write_text("waits to be written")
    assert tree_content(cub) == known
    (folder / "tuning_for.cuh").rename(folder / "tuning_of.cuh")
    assert tree_content(cub) != known
    (folder / "tuning_of.cuh").rename(folder / "tuning_for.cuh")
    assert tree_content(cub) == known
    (folder / "tuning_for.cuh").write_text("other")
    assert tree_content(cub) != known


def test_a_failure_to_record_is_a_note(cub, tmp_path):
    store = tmp_path / "policygen.db"
    store.write_bytes(b"no database, but long enough to be looked into" * 40)
    (note,) = recorded(cub, store)
    assert note.startswith(
        f"the run of verify-sass was not recorded: {store}: the store is damaged"
    )


def test_what_is_not_measured_is_told_for_each_selector_and_leaks_in_full():
    def change(selector: str, number: int, *leaks: str) -> InputChange:
        return InputChange(
            header="h.cuh",
            selector=selector,
            archs=("sm90",),
            conditions=(f"size is {number}",),
            values={"items": "1 → 2"},
            leaks=leaks,
        )

    changes = [change("scan", number) for number in range(5)]
    changes += [change("reduce", 1), *(change("scan", number, "sm100") for number in range(3))]
    remarks = list(_unmeasured(changes, ()))
    assert [remark for remark in remarks if "--reaches sm100 allows it" in remark] == remarks[:3]
    assert sum("scan on sm90" in remark for remark in remarks[3:]) == 2
    assert any("reduce on sm90" in remark for remark in remarks)
    assert remarks[-1] == "it changes 3 more kinds of unmeasured scan inputs"
