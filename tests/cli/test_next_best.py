"""What an entry cannot say: the next best variant is proposed, or written if that is asked for."""

import json
from pathlib import Path

import jsonschema
import pytest

from fixtures.databases.every import GPUS, benchmark_database
from policygen.model.plans import Plan
from tests.cli.tuned import run
from tests.probing import TUNINGS, changed_tree, header

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

FLAGGED = "cub.bench.select.flagged"
HEADER = "tuning_select_if.cuh"
PLACE = f"{HEADER} has no member for pf and implies pf_0"


def label(ipt, pf, ld=0):
    return f"trp_0.ld_{ld}.ipt_{ipt}.tpb_224.ns_500.dcid_1.l2w_700.pf_{pf}"


BEST, SECOND, THIRD, FOURTH = label(13, 2), label(14, 1), label(15, 0), label(16, 0)


def tree_of(folder, version):
    """A tree of links; the header that is tuned is a file of its own."""
    return changed_tree(folder, version, {HEADER: header(version, HEADER)})


def measured(folder, winners, arch="sm100"):
    """Results of CUB 3.6.0, whose benchmark has a parameter that families have no place for."""
    path = folder / "flagged.db"
    benchmark_database(path, FLAGGED, "3.6.0", GPUS[arch], winners)
    return path


def planned(capsys, tree, db, *more):
    """The actions, and what else is in the document."""
    arch = () if "--arch" in more else ("--arch", "sm100")
    arguments = ("--cub", tree, "--db", db, *arch, "--json", *more)
    status, out, err = run(capsys, "plan", *arguments)
    assert status == 0, err
    document = json.loads(out)
    jsonschema.validate(document, Plan.model_json_schema(mode="serialization"))
    return document["actions"], document


def cost(action):
    """What it costs, in words."""
    told = action["next_best"]
    own, best = told["scores"][0], told["best_score"]
    return f"{own:.6f} instead of {best:.6f}, {1 - own / best:.1%} less"


@pytest.mark.slow
def test_what_an_entry_cannot_say_is_rejected_with_what_is_next_best_and_its_cost(capsys, tmp_path):
    tree = tree_of(tmp_path / "tree", "3.0.1")
    db = measured(tmp_path, {("I32", "false"): (BEST, SECOND, THIRD, FOURTH)})
    (action,), document = planned(capsys, tree, db)
    assert (action["decision"], action["variant"]) == ("reject", BEST)
    found = action["next_best"]
    assert (found["variant"], found["best"]) == (THIRD, BEST)
    assert found["best_score"] == action["scores"][0] > found["scores"][0] > 1.06
    assert action["reason"] == (
        f"{BEST}: {PLACE}; next best that the entry can express: {THIRD}, {cost(action)};"
        " --next-best accepts it"
    )
    assert (document["edits"], document["options"]["next_best"]) == ([], False)
    assert [v["variant"] for one in document["instead"] for v in one["variants"]] == [THIRD]


@pytest.mark.slow
def test_the_next_best_is_written_proven_and_made_again_where_it_is_asked_for(capsys, tmp_path):
    tree = tree_of(tmp_path / "tree", "3.0.1")
    db = measured(tmp_path, {("I32", "false"): (BEST, SECOND, THIRD, FOURTH)})
    (action,), document = planned(
        capsys, tree, db, "--next-best", "--reach", "later", "-o", "plan.json"
    )
    assert (action["decision"], action["variant"]) == ("update", THIRD)
    assert action["scores"] == action["next_best"]["scores"]
    assert action["reason"].startswith(
        f"{BEST}: {PLACE}; next best that the entry can express, {cost(action)}; score: 1.0"
    )
    assert document["options"]["next_best"] is True
    assert (action["after"]["threads"], action["after"]["items"]) == (224, 15)
    db.unlink()  # a plan is made again without its databases
    status, out, err = run(capsys, "apply", "--cub", tree, "--plan", "plan.json")
    assert status == 0, err
    assert f"InPlace=false: {THIRD}, next best after {BEST}" in " ".join(out.split())
    assert f"  // {THIRD} 1.0" in (tree / TUNINGS / HEADER).read_text()
    status, out, err = run(capsys, "verify-effect", "--cub", tree, "--arch", "sm100")
    assert status == 0, err
    assert "proof: 1 workload changed as written" in out


@pytest.mark.slow
def test_a_plan_whose_next_best_is_changed_is_refused(capsys, tmp_path):
    tree = tree_of(tmp_path / "tree", "3.0.1")
    db = measured(tmp_path, {("I32", "false"): (BEST, SECOND, THIRD, FOURTH)})
    _, document = planned(capsys, tree, db, "--next-best")
    edits = f"{HEADER}: the plan's edits do not match its decisions"
    unknown = f"the plan chooses 'x_1' for {FLAGGED}, which has no such variant"
    for other, message in ((FOURTH, edits), (SECOND, edits), ("x_1", unknown)):
        document["instead"][0]["variants"][0]["variant"] = other
        Path("plan.json").write_text(json.dumps(document))
        status, _, err = run(capsys, "apply", "-q", "--check", "--cub", tree, "--plan", "plan.json")
        assert status == 2
        assert err.startswith(f"policygen: error: {message}")


@pytest.mark.slow
def test_workloads_of_one_entry_get_the_joint_variant_that_it_can_say(capsys, tmp_path):
    """Integers and floats share it; what is best for both in the worst case is another one."""
    tree = tree_of(tmp_path / "tree", "3.0.1")
    winners = {
        ("I32", "false"): (BEST, SECOND, THIRD, FOURTH),
        ("F32", "false"): (BEST, SECOND, FOURTH, THIRD),
    }
    db = measured(tmp_path, winners)
    rejected, _ = planned(capsys, tree, db)
    assert {action["decision"] for action in rejected} == {"reject"}
    assert {action["next_best"]["variant"] for action in rejected} == {THIRD}
    for action in rejected:
        proposal = f"; next best that the entry can express: {THIRD}, {cost(action)};"
        proposal += " --next-best accepts it"
        assert action["reason"].endswith(proposal)
    assert len({cost(action) for action in rejected}) == 2
    more = ("--next-best", "--reach", "later", "-o", "plan.json")
    written, document = planned(capsys, tree, db, *more)
    assert [(a["decision"], a["variant"]) for a in written] == [("update", THIRD)] * 2
    assert all("; its lowest score over 2 workloads is 1.0" in a["reason"] for a in written)
    assert [len(one["workloads"]) for one in document["instead"]] == [2]
    assert run(capsys, "apply", "-q", "--cub", tree, "--plan", "plan.json")[0] == 0


@pytest.mark.slow
def test_what_a_policy_gives_all_is_known_by_the_compiler_and_the_next_best_has_it(
    capsys, tmp_path
):
    """On 3.0.1 the policy of sm90 leaves the size of vectors to a template's default argument.

    The second best variant wants another one, too, and is passed over without being tried.
    """
    name = "tuning_histogram.cuh"
    tree = changed_tree(tmp_path / "tree", "3.0.1", {name: header("3.0.1", name)})
    best, second, third = (
        f"ipt_{ipt}.tpb_512.rle_1.ws_0.mem_1.ld_1.laid_0.vec_{vec}"
        for ipt, vec in ((12, 0), (13, 1), (14, 2))
    )
    path, won = tmp_path / "histogram.db", {("I8", "I32", "I32"): (best, second, third)}
    benchmark_database(path, "cub.bench.histogram.even", "3.0.1", GPUS["sm90"], won)
    (action,), document = planned(capsys, tree, path, "--arch", "sm90")
    assert action["reason"].startswith(f"{best}: {name}:198: entries of sm90_tuning cannot have")
    assert action["reason"].endswith(
        f"it has vec_size 4, not 1; next best that the entry can express: {third}, {cost(action)};"
        " --next-best accepts it"
    )
    assert [one["shown"] for one in document["unsaid"]] == [{"vec_size": 4}]
    given = ("--arch", "sm90", "--next-best", "-o", "plan.json")
    (action,), document = planned(capsys, tree, path, *given)
    assert (action["decision"], action["variant"]) == ("update", third)
    status, _, err = run(capsys, "apply", "-q", "--cub", tree, "--plan", "plan.json")
    assert status == 0, err
    assert run(capsys, "verify-effect", "-q", "--cub", tree, "--arch", "sm90")[0] == 0


@pytest.mark.slow
def test_a_function_that_makes_policies_takes_a_hint_and_the_family_beside_it_the_next_best(
    capsys, tmp_path
):
    """On 3.6.0 sm100's returns call a function that has no parameter for prefetch hints."""
    tree = tree_of(tmp_path / "tree", "3.6.0")
    db = measured(tmp_path, {("I32", "false"): (BEST, SECOND, THIRD)})
    later = "sm103,sm107,sm110,sm120,sm121"  # no policy of the families follows that of sm100
    given = ("--next-best", "--legacy", "update", "--reaches", later, "-o", "plan.json")
    both, document = planned(capsys, tree, db, *given)
    assert [(a["decision"], a["variant"], a["legacy"]) for a in both] == [
        ("update", BEST, False),
        ("update", THIRD, True),
    ]
    assert [one["legacy"] for one in document["instead"]] == [True]
    status, _, err = run(capsys, "apply", "-q", "--cub", tree, "--plan", "plan.json")
    assert status == 0, err
    after = (tree / TUNINGS / HEADER).read_text()
    taken = "detail::LoadPrefetch load_prefetch = detail::LoadPrefetch::none)"
    assert after.count(taken) == 1
    assert "BLOCK_SCAN_WARP_SCANS, delay, load_prefetch};" in after
    assert run(capsys, "verify-effect", "-q", "--cub", tree, "--arch", "sm100")[0] == 0
