"""The judge of `changes`, on which a review that says "as before" is held."""

import pytest

from tests.fuzz import changes
from tests.fuzz.changes import Judge
from tests.fuzz.public_calls import CALLS, unit

HEADER = "cub/agent/agent_adjacent_difference.cuh"


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_the_judge_sees_what_changes_and_what_does_not_compile(tmp_path, monkeypatch):
    chosen = {name: CALLS[name] for name in ("adjacent_difference", "batched")}
    monkeypatch.setattr(changes, "CALLS", chosen)
    for name in chosen:
        (tmp_path / f"{name}.cu").write_text(unit(name))
    judge = Judge("3.6.0", tmp_path)
    text = (judge.before / HEADER).read_text()
    place = judge.after / HEADER

    place.write_text(f"// a comment\n{text}")
    assert judge.differs("sm_90", HEADER) == []

    place.write_text(text.replace("num_remaining > ITEMS", "num_remaining >= ITEMS"))
    assert place.read_text() != text
    assert judge.differs("sm_90", HEADER) == ["adjacent_difference"]
    assert judge.differs("sm_90", "cub/agent/agent_merge.cuh") == []

    place.write_text(f"{text}#error\n")
    assert judge.differs("sm_90", HEADER) is None
