"""Struct families that stand beside policy selectors: left, named, or written with the returns."""

import json
from html import unescape

import pytest

from fixtures.databases.every import GPUS, benchmark_database
from tests.cli.tuned import run
from tests.probing import TUNINGS, changed_tree, header, replaced
from tests.tiers import slow, thorough

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

HEADER = "tuning_radix_sort.cuh"
KEYS = "cub.bench.radix_sort.keys"
ENTRY = f"{HEADER}:431 sm100_small_key_tuning<ValueT, 2, 0, 8>"
LEFT = f"the struct families of the older dispatchers are unchanged ({HEADER})"
UNLIKE = (
    f"{ENTRY} differs from what is returned for {KEYS} T=I16 OffsetT=I64: threads 384, returned"
    " 256, items 20, returned 18"
)


@pytest.fixture(scope="module")
def _tree(tmp_path_factory):
    """What was compiled for a tree is known again only where it stands at the same place."""
    return changed_tree(tmp_path_factory.mktemp("selectors"), "3.6.0", {HEADER: b""})


@pytest.fixture
def selectors(_tree):
    """CUB 3.6.0, with a header that can be written."""
    (_tree / TUNINGS / HEADER).write_bytes(header("3.6.0", HEADER))
    return _tree


@pytest.fixture
def measured(tmp_path):
    """A workload with a return of its own, and one that base is best for."""
    path = tmp_path / "run.db"
    won = {("I16", "I64"): "ipt_18.tpb_256", ("F32", "I32"): None}
    benchmark_database(path, KEYS, "3.6.0", GPUS["sm100"], won)
    return path


def ask(capsys, command, tree, *more):
    status, out, err = run(capsys, command, "--cub", tree, "-q", *more)
    assert status == 0, err
    return out


def document(capsys, command, tree, *more):
    return json.loads(ask(capsys, command, tree, "--json", *more))


def given(db, *more):
    # Nothing bounds the struct families, as no policy follows that of sm100.
    return "--db", db, "--arch", "sm100", "--reach", "later", *more


def words(text):
    return " ".join(unescape(text.replace("\\", "")).split())


@slow
def test_families_are_left_and_plan_apply_and_review_say_so(capsys, selectors, measured):
    plan = document(capsys, "plan", selectors, *given(measured))
    assert [r for r in plan["remarks"] if "struct" in r] == [LEFT]
    assert LEFT in words(ask(capsys, "apply", selectors, *given(measured)))
    out = ask(capsys, "review", selectors)
    assert words(out).count(LEFT) == 1
    ask(capsys, "undo", selectors)


@pytest.mark.slow
def test_a_plan_that_writes_no_return_says_nothing_of_families(capsys, selectors, tmp_path):
    path = tmp_path / "none.db"
    benchmark_database(path, KEYS, "3.6.0", GPUS["sm100"], {("F32", "I32"): None})
    plan = document(capsys, "plan", selectors, *given(path))
    assert plan["edits"] == []
    assert not [r for r in plan["remarks"] if "struct" in r]


@slow
def test_families_that_say_something_else_are_named(capsys, selectors, measured):
    plan = document(capsys, "plan", selectors, *given(measured, "--legacy", "warn"))
    assert [r for r in plan["remarks"] if "struct" in r or ENTRY in r] == [LEFT, UNLIKE]
    assert UNLIKE in words(ask(capsys, "plan", selectors, *given(measured, "--legacy", "warn")))
    assert UNLIKE in words(ask(capsys, "apply", selectors, *given(measured, "--legacy", "warn")))
    before = (selectors / TUNINGS / HEADER).read_bytes()
    for form in ("md", "html", "json"):
        out = words(ask(capsys, "review", selectors, "--format", form))
        assert UNLIKE in out, form
    # The same once more, where the returns have their values and the families do not.
    again = document(capsys, "plan", selectors, *given(measured, "--legacy", "warn"))
    assert again["edits"] == []
    assert UNLIKE in again["remarks"]
    assert (selectors / TUNINGS / HEADER).read_bytes() == before
    ask(capsys, "undo", selectors)


@slow
def test_a_return_and_its_family_are_written_proved_reviewed_and_taken_back(
    capsys, selectors, measured
):
    before = (selectors / TUNINGS / HEADER).read_bytes()
    more = given(measured, "--legacy", "update")
    plan = document(capsys, "plan", selectors, *more, "-o", "plan.json")
    written = [a for a in plan["actions"] if a["decision"] == "update"]
    assert [(a["legacy"], a["target"]["family"]) for a in written] == [
        (False, "get_sm100_tuning"),
        (True, "sm100_small_key_tuning"),
    ]
    # What stays as it is in a return does so in its family.
    stays = {a["workload"]["T"] for a in plan["actions"] if a["decision"] == "fallback"}
    assert stays == {"F32"}
    assert written[0]["after"] == written[1]["after"]
    assert "legacy" in plan["options"]
    assert not [r for r in plan["remarks"] if "unchanged" in r or "something else" in r]
    out = ask(capsys, "apply", selectors, "--plan", "plan.json")
    assert f"update {KEYS} T=I16 OffsetT=I64 in struct families: ipt_18.tpb_256" in words(out)
    after = (selectors / TUNINGS / HEADER).read_text()
    family = "struct sm100_small_key_tuning<ValueT, 2,  0, 8> { static constexpr int threads"
    assert f"{family} = 256; static constexpr int items = 18; }};" in after
    assert "if (key_size == 2) return small_key_tuning_values{256,18};" in after
    effect = document(capsys, "verify-effect", selectors)
    assert effect["wrong"] == []
    told = [(c["workload"]["T"], c["arch"], c["legacy"]) for c in effect["changed"]]
    assert ("I16", "sm100", False) in told
    assert ("I16", "sm100", True) in told
    review = json.loads(ask(capsys, "review", selectors, "--format", "json"))
    entries = {one["place"]["family"]: one for one in review["entries"]}
    assert set(entries) == {"sm100_small_key_tuning", "get_sm100_tuning"}
    for name, one in entries.items():
        legacy = name == "sm100_small_key_tuning"
        assert {row["legacy"] for row in one["reached"]} == {legacy}
        assert "sm100" in {row["arch"] for row in one["reached"]}
        assert [e["scored"]["variant"] for e in one["evidence"]] == ["ipt_18.tpb_256"]
    assert review["actions"][0]["decision"] == "fallback"
    assert not [r for r in review["remarks"] if "unchanged" in r]
    assert "--legacy update" in review["commands"][0]
    assert "1 workload measured on Demo B200" in ask(capsys, "review", selectors)
    again = document(capsys, "plan", selectors, *more)
    assert again["edits"] == []
    ask(capsys, "undo", selectors)
    assert (selectors / TUNINGS / HEADER).read_bytes() == before


@thorough
def test_a_family_that_is_spoiled_afterwards_is_found(capsys, selectors, measured):
    ask(capsys, "apply", selectors, *given(measured, "--legacy", "update"))
    path = selectors / TUNINGS / HEADER
    old = "<ValueT, 2,  0, 8> { static constexpr int threads = 256; "
    path.write_bytes(replaced(path.read_bytes(), (old, old.replace("256", "288"))))
    status, out, _ = run(capsys, "verify-effect", "--cub", selectors, "-q")
    assert status == 1
    assert words(out).startswith(
        f"{KEYS} T=I16 OffsetT=I64 on sm100 by struct families: it gets threads 288, not 256:"
    )


def test_trees_of_the_older_dialect_have_nothing_beside(capsys, tree, three):
    plans = {
        wish: document(capsys, "plan", tree, "--db", three, "--arch", "sm90", "--legacy", wish)
        for wish in ("leave", "warn", "update")
    }
    beyond = "it changes what the results do not measure: three_way_partition::policy_hub on sm90"
    assert [row.partition(": T is")[0] for row in plans["leave"]["remarks"]] == [beyond]
    for wish, plan in plans.items():
        assert plan["edits"] == plans["leave"]["edits"]
        assert plan["actions"] == plans["leave"]["actions"]
        says = f"the tree has no policy selectors, so --legacy {wish} has no effect"
        own = [row for row in plan["remarks"] if not row.startswith(beyond)]
        assert own == ([] if wish == "leave" else [says])
