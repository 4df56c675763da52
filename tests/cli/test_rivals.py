"""Two algorithms were measured for the same calls: what is better for an entry's calls is written.

The lookahead of run-length encoding goes by the size of keys alone, the lookback by that of lengths
as well: one entry of the former stands against two of the latter.
"""

from collections import Counter

import pytest

from fixtures.databases.every import GPUS, benchmark_database
from tests.cli.test_next_best import planned
from tests.cli.tuned import run
from tests.probing import changed_tree, header

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

LOOKBACK = "cub.bench.run_length_encode.encode"
LOOKAHEAD = f"{LOOKBACK}.lookahead"
HEADER = "tuning_rle_encode.cuh"
VARIANTS = {
    LOOKBACK: "ipt_8.tpb_256.trp_0.ld_0.ns_4.dcid_0.l2w_360",
    LOOKAHEAD: "ipt_16.cw_4.krs_4.prs_3.pll_2.dpll_5.dmrt_128.fst_48",
}
INTS = [("I64", "I64", "I32"), ("I64", "I64", "I64")]
FLOAT = ("F64", "I64", "I32")
"""It has an entry with integers of its size, and no benchmark of the lookahead."""


def measured(folder, name, gain, workloads=INTS, gpu=GPUS["sm100"]):
    """Every workload gains as much; where that is nothing, base is best."""
    winner = (VARIANTS[name],) if gain else None
    path = folder / f"{name}.db"
    benchmark_database(path, name, "3.6.0", gpu, dict.fromkeys(workloads, winner), gain=gain)
    return "--db", path


def tree_of(folder):
    return changed_tree(folder / "tree", "3.6.0", {HEADER: header("3.6.0", HEADER)})


def decisions(actions):
    return Counter((one["benchmark"], one["decision"]) for one in actions)


@pytest.mark.slow
@pytest.mark.parametrize(("better", "worse"), [(LOOKAHEAD, LOOKBACK), (LOOKBACK, LOOKAHEAD)])
def test_the_better_one_is_written_and_proved(capsys, tmp_path, better, worse):
    tree = tree_of(tmp_path)
    given = (*measured(tmp_path, better, 0.2), *measured(tmp_path, worse, 0.1))
    actions, _ = planned(capsys, tree, given[1], *given[2:])
    assert decisions(actions) == {(better, "add"): 2, (worse, "reject"): 2}
    for one in actions:
        if one["benchmark"] == worse:
            assert one["reason"].startswith(
                f"{better} is better for the calls of this entry; for this one "
                f"{VARIANTS[better]} has 1.1"
            )
    arguments = ("--cub", tree, "--arch", "sm100", *given)
    assert run(capsys, "apply", *arguments)[0] == 0
    assert run(capsys, "verify-effect", "--cub", tree)[0] == 0


@pytest.mark.slow
def test_one_that_finds_nothing_is_no_obstacle(capsys, tmp_path):
    tree = tree_of(tmp_path)
    given = (*measured(tmp_path, LOOKAHEAD, 0.1), *measured(tmp_path, LOOKBACK, 0.0))
    actions, document = planned(capsys, tree, given[1], *given[2:])
    assert decisions(actions) == {(LOOKAHEAD, "add"): 2, (LOOKBACK, "fallback"): 2}
    kept = {one["reason"] for one in actions if one["benchmark"] == LOOKBACK}
    assert all(one.endswith(f"; its call gets the result of {LOOKAHEAD}") for one in kept)
    names = {(one["benchmark"], one["arch"]) for one in document["reached"]}
    assert (LOOKBACK, "sm100") in names  # it is said that they change


@pytest.mark.slow
def test_what_shares_the_entry_of_the_worse_one_gives_way(capsys, tmp_path):
    tree = tree_of(tmp_path)
    lookback = measured(tmp_path, LOOKBACK, 0.1, [*INTS, FLOAT])
    given = (*measured(tmp_path, LOOKAHEAD, 0.2), *lookback)
    actions, _ = planned(capsys, tree, given[1], *given[2:])
    assert decisions(actions) == {(LOOKAHEAD, "add"): 2, (LOOKBACK, "reject"): 3}
    (reason,) = [one["reason"] for one in actions if one["workload"]["T"] == "F64"]
    assert reason == f"{LOOKAHEAD} is better for other calls of this entry"


@pytest.mark.slow
def test_scores_against_different_bases_are_not_compared(capsys, tmp_path):
    tree = tree_of(tmp_path)
    gpu = GPUS["sm100"].replace("B200", "GB200")
    given = (*measured(tmp_path, LOOKAHEAD, 0.2), *measured(tmp_path, LOOKBACK, 0.1, gpu=gpu))
    actions, document = planned(capsys, tree, given[1], *given[2:])
    assert document["edits"] == []
    assert {one["reason"] for one in actions} == {
        f"{LOOKBACK} and {LOOKAHEAD} were measured for the same calls on different GPUs or with"
        " different versions, so their scores are not comparable: give --db only for one of them"
    }
    actions, _ = planned(capsys, tree, given[3])
    assert decisions(actions) == {(LOOKBACK, "add"): 2}
