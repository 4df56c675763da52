"""The whole plan, with a compiler that is pretended."""

import hashlib
from dataclasses import make_dataclass
from types import SimpleNamespace

import pytest

from policygen.bindings.load import site_of
from policygen.bindings.words import next_arch
from policygen.errors import InputError, Problems
from policygen.headers.dialects import Specializations
from policygen.headers.protocol import NotKeptError, TuningTree
from policygen.headers.scan import read_header
from policygen.headers.specializations.placement import family_spot
from policygen.model.plans import Options, Plan
from policygen.model.selection import FamilyKey, Selected
from policygen.model.trees import BoundVersion
from policygen.planning.measured import measurements
from policygen.planning.places import find_places
from policygen.planning.plan import remake_plan
from policygen.planning.saved import changed_headers, check_tree
from policygen.portable import portable
from tests.planning.pretend import (
    CUB,
    KEYED,
    KEYED_INT,
    KEYED_LATER,
    SUM,
    SUM_INT,
    SUMS,
    by_key,
    keyed,
    plan,
    planner,
    summed,
    sums,
    told,
    want,
)
from tests.planning.test_decide import BEST, KEPT, OTHER, entries
from tests.planning.wanted import GPUS, benchmark
from tests.probing import TUNINGS
from tests.real_trees import tree as cub_tree

ONE = "ipt_20.tpb_256.ipv_2"
DEFAULT = "ipt_16.tpb_256.ipv_2"
"""What CUB has for what no entry is for."""
NEW = "ipt_12.tpb_320.ipv_1"
NOW = "ipt_16.tpb_512.ipv_1"
KEYED_ONE = "ipt_20.tpb_256.trp_1.ld_0.ns_100.dcid_1.l2w_300"
I32, F32 = summed("I32"), summed("F32")
INHERIT = "Let later architectures inherit: --reaches sm100"


def test_a_plan_says_what_it_was_made_from():
    oracle = sums(SUMS + SUM_INT)
    made = planner(oracle, force=True).plan([want(I32, ONE)], ["a remark"])
    assert (made.cub, made.toolchain, made.remarks) == (CUB, "pretended", ("a remark",))
    assert made.options == Options(arch="sm100", force=True)
    after = changed_headers(made, {oracle.header: oracle.data})[oracle.header]
    (file,) = made.files
    assert file.model_dump() == {
        "path": "tuning_reduce.cuh",
        "edits": 4,
        "before": hashlib.sha256(oracle.data).hexdigest(),
        "after": hashlib.sha256(after).hexdigest(),
    }
    assert [(e.path, e.reason) for e in made.edits] == [("tuning_reduce.cuh", ONE)] * 4
    assert made.policies == ()


def test_a_plan_is_the_same_after_it_was_written_and_read():
    made = plan(sums(SUMS + SUM_INT), {I32: ONE, F32: None})
    assert Plan.model_validate_json(made.model_dump_json()) == made
    assert Plan.model_validate_json(made.to_json()) == portable(made)


def test_actions_stand_in_the_order_of_the_results():
    types = ("I64", "F32", "I32", "F64")
    oracle = sums(SUMS + SUM_INT, types=types)
    results = [
        want(F32, OTHER),
        want(summed("I64"), ONE, gpu=GPUS["sm90"]),
        want(summed("F64"), None),
        want(I32, OTHER, version="3.0.0"),
        want(I32, ONE),
        want(summed("I64"), OTHER, version="2.8.0"),
    ]
    found = planner(oracle).plan(results).actions
    assert [(a.workload["T"], a.cccl, a.gpu, a.decision) for a in found] == [
        ("F32", "v3.0.1", GPUS["sm100"], "add"),
        ("I64", "v3.0.1", GPUS["sm90"], "reject"),
        ("F64", "v3.0.1", GPUS["sm100"], "fallback"),
        ("I32", "v3.0.0", GPUS["sm100"], "reject"),
        ("I32", "v3.0.1", GPUS["sm100"], "update"),
        ("I64", "v2.8.0", GPUS["sm100"], "add"),
    ]


def test_a_benchmark_without_entries_says_what_would_have_to_be_edited():
    point = "cub.bench.adjacent_difference.subtract_left", (("T", "I32"), ("OffsetT", "I32"))
    made = plan(sums(), {point: "ipt_10.tpb_128"})
    edit = benchmark("3.0.1", point[0][10:]).edit.removesuffix(".")
    reason = f"policygen cannot write entries for this benchmark; edit {edit}"
    assert told(made) == [("I32 I32", "reject", reason)]


def test_a_benchmark_whose_header_the_tree_lacks_is_rejected():
    made = plan(sums(), {keyed("I32", "I32"): KEYED_ONE})
    assert told(made) == [("I32 I32 I32", "reject", "the tree has no tuning_reduce_by_key.cuh")]


def test_an_architecture_before_all_families_needs_a_chain_to_be_linked_into():
    made = plan(sums(), {I32: ONE}, arch="sm90")
    reason = (
        "tuning_reduce.cuh: no chain of policies reads a family of cub::detail::reduce. A new"
        " architecture needs a chain to link into."
    )
    assert told(made) == [("I32 I32", "reject", reason)]


def test_a_workload_that_the_compiler_does_not_tell_of_is_rejected():
    made = plan(sums(types=("F32",)), {I32: ONE})
    assert told(made) == [("I32 I32", "reject", "its header does not compile")]


def test_a_workload_that_no_entry_can_name_is_rejected():
    oracle = sums(types=("C64",))
    tell = oracle.tell

    def unknown(points, arch):
        return {
            point: Selected(t.values, None, {n: _unsized(k) for n, k in t.keys.items()}, t.sizes)
            for point, t in tell(points, arch).items()
        }

    oracle.tell = unknown
    (action,) = plan(oracle, {summed("C64"): ONE}).actions
    assert action.reason == (
        "an entry cannot name the type complex<float>. The header does not declare it."
    )
    assert (action.decision, action.target, bool(action.before)) == ("reject", None, True)


def _unsized(lead):
    return FamilyKey((*lead.args[:-1], "unknown"), lead.entry)


def test_what_would_not_be_selected_is_rejected_with_the_reason():
    oracle = sums(SUMS + SUM_INT, types=("I32", "F64"), blind=frozenset({I32}))
    made = plan(oracle, {I32: DEFAULT, summed("F64"): ONE})
    assert told(made) == [
        ("I32 I32", "keep", "it has these values already"),
        ("F64 I32", "add", BEST),
    ]
    oracle = sums(SUMS + SUM_INT, types=("I32", "F64"), blind=frozenset({I32}))
    made = plan(oracle, {I32: OTHER, summed("F64"): ONE})
    reason = "would be unreachable: nobody reads it on sm100"
    assert told(made) == [("I32 I32", "reject", reason), ("F64 I32", "add", BEST)]
    assert made.actions[0].target.line == 6
    assert len(oracle.compared) == 2
    assert [key for key in entries(oracle, made) if key[5] == "accum_size::_8"]


def test_an_update_that_writes_nothing_does_not_count_as_one():
    """The entry has the values, and what it decides does not show them: it is dead."""
    oracle = sums(SUMS + SUM_INT, types=("I32",), blind=frozenset({I32}))
    made = plan(oracle, {I32: NOW})
    reason = "would be unreachable: nobody reads it on sm100"
    assert told(made) == [("I32 I32", "reject", reason)]
    assert oracle.compared == []


def test_without_a_proof_the_compiler_is_not_asked_what_changes():
    oracle = sums(SUMS + SUM_INT, types=("I32",), blind=frozenset({I32}))
    made = plan(oracle, {I32: OTHER}, prove=False)
    assert told(made) == [("I32 I32", "update", BEST)]
    assert (made.reached, oracle.compared, len(made.files)) == ((), [], 1)


def test_workloads_of_the_same_entry_that_were_not_measured_are_told():
    made = plan(sums(SUMS + SUM_INT, types=("F32", "I32")), {I32: ONE})
    assert [one.model_dump() for one in made.reached] == [
        {
            "benchmark": SUM,
            "workload": {"T": "F32", "OffsetT": "I32"},
            "arch": "sm100",
            "kept": False,
            "between": False,
            "legacy": False,
        }
    ]


OPEN = SUM_INT.replace("class OffsetT>", "class OffsetT, offset_size O>").replace(
    "offset_size::_4", "O"
)
BOTH = (summed("I64"), summed("I64", offset="I64"))


def open_sums(**more):
    """The one entry leaves the offset open, and so do those that are written beside it."""
    return sums(SUMS + OPEN, types=("I32", "I64"), offsets=("I32", "I64"), **more)


def test_an_open_key_is_the_same_for_all_that_it_takes():
    made = plan(open_sums(), {BOTH[0]: ONE, BOTH[1]: None})
    assert [decision for _, decision, _ in told(made)] == ["add", "fallback"]
    # The type of the offset tells both apart.
    assert (
        made.actions[1].reason == f"{KEPT}; an entry for unsigned long long has its current values"
    )


def test_an_entry_that_would_take_a_workload_that_stays_is_rejected():
    """It leaves the offset open, as its closest entry does; that of the other one does not."""
    closed = SUM_INT.replace("offset_size::_4, accum_size::_4", "offset_size::_8, accum_size::_16")
    oracle = sums(SUMS + OPEN + closed, types=("I32", "I64"), offsets=("I32", "I64"))
    rejected, stays = plan(oracle, {BOTH[0]: ONE, BOTH[1]: None}).actions
    assert (rejected.decision, stays.decision) == ("reject", "fallback")
    assert rejected.reason == (
        "would change cub.bench.reduce.sum T=I64 OffsetT=I64, which must not change: items 8 → 10"
    )


def test_a_harmed_workload_that_no_entry_seems_to_take_stops_all_of_its_header():
    oracle = sums(SUMS + SUM_INT, types=("I32", "F64"))
    values = oracle.values

    def odd(data, point, arch):
        found = values(data, point, arch)
        changed = data != oracle.data and point == summed("F64")
        return {**found, "threads": 32} if changed else found

    oracle.values = odd
    made = plan(oracle, {I32: ONE, summed("F64"): None})
    reason = (
        "would change cub.bench.reduce.sum T=F64 OffsetT=I32, which must not change: threads 256"
        " → 32"
    )
    assert told(made) == [("I32 I32", "reject", reason), ("F64 I32", "fallback", KEPT)]


def test_only_the_entry_that_has_no_place_is_rejected():
    """Entries of one header: the one that needs an unknown member does not stop the others."""
    text = KEYED + KEYED_INT
    oracle = by_key(text, pairs=(("I32", "I32"), ("I64", "I64")))
    made = plan(oracle, {keyed("I64", "I64"): KEYED_ONE}, arch="sm100")
    reason = (
        "tuning_reduce_by_key.cuh: no entry of cub::detail::reduce_by_key has load_modifier. The"
        " type of a new member is taken from another entry."
    )
    assert told(made) == [("I64 I64 I32", "reject", reason)]
    oracle = by_key(text + EMPTY_LATER, pairs=(("I32", "I32"), ("I64", "I64")))
    both = {keyed("I32", "I32"): KEYED_ONE, keyed("I64", "I64"): KEYED_ONE}
    made = plan(oracle, both, arch="sm100")
    assert [reason for _, _, reason in told(made)] == [reason, reason]


EMPTY_LATER = """
template <class KeyT, class AccumT>
struct sm100_tuning<KeyT, AccumT, primitive_op::yes, primitive_key::yes, primitive_accum::yes, \
key_size::_8, accum_size::_8>
{};
"""


def test_entries_that_fail_only_together_are_all_rejected(monkeypatch):
    """No two entries are known that do: what writes them is made to refuse."""
    real = Specializations.write

    def touchy(self, name, writes):
        if len(writes) > 1:
            raise InputError("two edits overlap")
        return real(self, name, writes)

    monkeypatch.setattr(Specializations, "write", touchy)
    made = plan(sums(types=("I32", "F64")), {I32: OTHER, summed("F64"): OTHER})
    assert [(d, r) for _, d, r in told(made)] == [("reject", "two edits overlap")] * 2


def test_entries_are_added_in_the_order_of_their_sizes():
    types = ("F64", "I32")
    oracle = sums(types=types, offsets=("I64", "I32"))
    wanted = {summed(t, offset=o): OTHER for t in types for o in ("I64", "I32")}
    made = plan(oracle, wanted)
    keys = [key[4:] for key in entries(oracle, made)]
    sizes = [("4", "4"), ("4", "8"), ("8", "4"), ("8", "8")]
    assert keys == [(f"offset_size::_{o}", f"accum_size::_{a}") for o, a in sizes]


LATER = keyed("I32", "I32")


def test_a_later_architecture_keeps_what_it_had_by_an_entry_of_its_own():
    oracle = by_key(KEYED + KEYED_INT + KEYED_LATER, pairs=(("I32", "I32"),))
    made = plan(oracle, {LATER: KEYED_ONE}, arch="sm90")
    assert told(made) == [("I32 I32 I32", "update", BEST)]
    assert [(one.arch, one.kept) for one in made.reached] == [("sm100", True)]
    found = entries(oracle, made)
    ints = ("KeyT", "AccumT", "primitive_op::yes", "primitive_key::yes", "primitive_accum::yes",
            "key_size::_4", "accum_size::_4")  # fmt: skip
    assert found["sm90_tuning", *ints]["items"] == 20
    assert found["sm100_tuning", *ints] == {
        "items": 14,
        "threads": 256,
        "load_algorithm": "BLOCK_LOAD_DIRECT",
        "delay_constructor": "detail::no_delay_constructor_t<580>",
        "load_modifier": "LOAD_DEFAULT",
    }
    assert "sm100 keeps what it had" in {edit.reason for edit in made.edits}


def test_a_later_architecture_inherits_where_it_may():
    oracle = by_key(KEYED + KEYED_INT + KEYED_LATER, pairs=(("I32", "I32"),))
    made = plan(oracle, {LATER: KEYED_ONE}, arch="sm90", reach="later")
    assert [(one.arch, one.kept) for one in made.reached] == [("sm100", False)]
    assert {edit.reason for edit in made.edits} == {KEYED_ONE}


def refusal(oracle, arch="sm90", wanted=None):
    """Why nothing is written."""
    made = plan(oracle, wanted or {LATER: KEYED_ONE}, arch=arch)
    assert (made.edits, {action.decision for action in made.actions}) == ((), {"reject"})
    (reason,) = {action.reason for action in made.actions}
    return reason.replace(f". {INHERIT}", f"\n  {INHERIT}")


def test_a_later_architecture_without_a_family_cannot_keep_what_it_had():
    text = KEYED.replace("sm100_tuning", "sm95_tuning")
    found = refusal(by_key(text + KEYED_INT, pairs=(("I32", "I32"),)))
    assert found == (
        "cub.bench.reduce.by_key KeyT=I32 ValueT=I32 OffsetT=I32 on sm100 would change, and no"
        f" family of sm100 can keep its values\n  {INHERIT}"
    )


def test_one_entry_cannot_keep_two_different_things():
    pairs = (("I32", "I32"), ("I32", "F32"))
    oracle = by_key(KEYED + KEYED_INT + KEYED_LATER, pairs=pairs)
    values = oracle.values

    def differing(data, point, arch):
        other = point == keyed("I32", "F32") and arch == "sm100"
        return {**values(data, point, arch), **({"load_modifier": "LOAD_CA"} if other else {})}

    oracle.values = differing
    wanted = {LATER: KEYED_ONE, keyed("I32", "F32"): KEYED_ONE}
    assert refusal(oracle, wanted=wanted) == (
        "tuning_reduce_by_key.cuh: one entry cannot keep the values of all workloads on sm100\n"
        f"  {INHERIT}"
    )


def test_what_a_family_cannot_say_is_not_written_without_it():
    """Families of sm90 leave the load modifier to their policy."""
    measured = KEYED_ONE.replace("ld_0", "ld_1")
    assert refusal(by_key(KEYED + KEYED_INT), wanted={LATER: measured}) == (
        f"{measured}: sm90_tuning cannot express what was measured: it has load_modifier"
        " LOAD_DEFAULT, not LOAD_CA"
    )


def test_what_a_policy_does_not_show_cannot_be_kept():
    oracle = by_key(KEYED + KEYED_INT + KEYED_LATER, pairs=(("I32", "I32"),))
    values = oracle.values
    oracle.values = lambda *of: {n: v for n, v in values(*of).items() if n != "load_modifier"}
    assert refusal(oracle) == (
        "tuning_reduce_by_key.cuh: one entry cannot keep the values of all workloads on sm100\n"
        f"  {INHERIT}"
    )


def test_an_entry_for_all_that_is_no_number_does_not_keep_anything():
    plain = KEYED_INT.replace("primitive_accum::yes", "primitive_accum::no").replace(
        "accum_size::_4", "accum_size::_8"
    )
    oracle = by_key(KEYED + plain + KEYED_LATER, pairs=(("I32", "C64"),))
    assert refusal(oracle, wanted={keyed("I32", "C64"): KEYED_ONE}) == (
        "tuning_reduce_by_key.cuh: an entry that keeps the values on sm100, with A no, would also"
        f" match every other type of this size\n  {INHERIT}"
    )


def test_an_entry_that_cannot_be_written_keeps_nothing():
    found = refusal(by_key(KEYED + KEYED_INT, pairs=(("I32", "I32"),)))
    assert found == (
        "tuning_reduce_by_key.cuh: no entry of cub::detail::reduce_by_key has load_modifier\n"
        f"  {INHERIT}"
    )


def test_entries_that_do_not_keep_what_they_shall_are_refused():
    oracle = by_key(KEYED + KEYED_INT + KEYED_LATER, pairs=(("I32", "I32"),))
    values = oracle.values

    def deaf(data, point, arch):
        return values(data, point, "sm90")

    oracle.values = deaf
    assert refusal(oracle) == (
        "cub.bench.reduce.by_key KeyT=I32 ValueT=I32 OffsetT=I32 on sm100 would change despite the"
        " entries that should keep the values of later architectures: items 14 → 20,"
        " load_algorithm BLOCK_LOAD_DIRECT → BLOCK_LOAD_WARP_TRANSPOSE, delay_constructor"
        f" no_delay_constructor_t<580> → fixed_delay_constructor_t<100, 300>\n  {INHERIT}"
    )


def test_an_entry_that_inherits_on_a_later_architecture_gets_the_values_that_it_had():
    head = KEYED_LATER.partition("\n{")[0].replace("_8", "_4")
    args = "KeyT, AccumT, primitive_op::yes, primitive_key::yes, primitive_accum::yes"
    inherits = f"{head} : sm90_tuning<{args}, key_size::_4, accum_size::_4>\n{{}};\n"
    oracle = by_key(KEYED + KEYED_INT + KEYED_LATER + inherits, pairs=(("I32", "I32"),))
    made = plan(oracle, {LATER: KEYED_ONE}, arch="sm90")
    assert [(one.arch, one.kept) for one in made.reached] == [("sm100", True)]
    kept = [v for k, v in entries(oracle, made).items() if k[0] == "sm100_tuning"]
    assert sorted(value["items"] for value in kept) == [10, 14]


def test_the_family_of_an_architecture_is_its_own_or_made_after_the_one_before():
    oracle = by_key()
    headers = {oracle.header: read_header(oracle.header, oracle.data)}
    bench = benchmark("3.0.1", "reduce.by_key")
    sources, nothing = TuningTree(CUB, headers, {}), Selected({}, None, {}, {})
    archs = ("sm90", "sm100", "sm120")
    found = {arch: family_spot(bench, nothing, sources, arch) for arch in archs}
    assert {arch: (to.family.name, to.name, to.is_new) for arch, to in found.items()} == {
        "sm90": ("sm90_tuning", "sm90_tuning", False),
        "sm100": ("sm100_tuning", "sm100_tuning", False),
        "sm120": ("sm100_tuning", "sm120_tuning", True),
    }


def test_a_parameter_that_nothing_of_a_family_says_is_refused():
    oracle = by_key()
    headers = {oracle.header: read_header(oracle.header, oracle.data)}
    bench = benchmark("3.0.1", "reduce.by_key")
    spot = family_spot(bench, Selected({}), TuningTree(CUB, headers, {}), "sm100")
    with pytest.raises(InputError) as caught:
        spot.members(bench, {"ipt": 10, "pfd": 1})
    assert str(caught.value) == "tuning_reduce_by_key.cuh has no place for pfd"


def test_an_entry_of_another_family_takes_nothing():
    oracle, other = sums(), by_key()
    found = []
    for one, point in ((oracle, I32), (other, keyed("I32", "I32"))):
        label = OTHER if one is oracle else KEYED_ONE
        made = planner(one, arch="sm100")
        known, _ = measurements([want(point, label)], BoundVersion("3.0.1"), "sm100", force=False)
        found += find_places(known, made.dialect, made.oracle, "sm100")[0]
    one, two = (case.spot for case in found)
    assert (one.takes(one), one.takes(two)) == (True, False)


def test_a_benchmark_that_selectors_alone_decide_has_no_family():
    found = benchmark("3.5.0", "reduce.deterministic")
    with pytest.raises(InputError) as caught:
        site_of(found, BoundVersion("3.5.0"), "specializations")
    told = "cub.bench.reduce.deterministic has no family of tunings in CUB 3.5.0"
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("arch", "following"), [("sm80", "sm86"), ("sm100", "sm103"), ("sm121", None)]
)
def test_the_architecture_that_comes_next_is_known(arch, following):
    assert next_arch(arch) == following


def test_an_empty_plan_changes_nothing():
    made = planner(sums()).plan([])
    assert (made.actions, made.files, changed_headers(made, {})) == ((), (), {})


@pytest.fixture
def made():
    return plan(sums(SUMS + SUM_INT), {I32: ONE, F32: ONE})


def test_a_tree_that_lacks_a_header_is_refused(made):
    with pytest.raises(InputError) as caught:
        check_tree(made, {})
    assert str(caught.value) == (
        "the plan changes tuning_reduce.cuh, but has no results for it\n"
        "  The plan was changed; make it again."
    )


def test_a_tree_that_changed_is_refused(made):
    data = sums(SUMS + SUM_INT).data + b"\n"
    with pytest.raises(InputError) as caught:
        check_tree(made, {"tuning_reduce.cuh": data})
    assert str(caught.value) == (
        "tuning_reduce.cuh is not the file that the plan was made for\n"
        "  Make the plan again, or name its tree with --cub."
    )


def test_all_headers_that_do_not_fit_are_told_together(made):
    other = made.files[0].model_copy(update={"path": "tuning_scan.cuh"})
    two = made.model_copy(update={"files": (*made.files, other)})
    with pytest.raises(Problems) as caught:
        check_tree(two, {"tuning_reduce.cuh": b""})
    assert str(caught.value) == (
        "tuning_reduce.cuh is not the file that the plan was made for\n"
        "  Make the plan again, or name its tree with --cub.\n"
        "the plan changes tuning_scan.cuh, but has no results for it\n"
        "  The plan was changed; make it again."
    )


@pytest.mark.trees
@pytest.mark.parametrize(("reach", "policies"), [("only", 2), ("later", 1)])
def test_a_new_architecture_gets_a_family_with_its_links(reach, policies):
    path = cub_tree("3.0.1") / TUNINGS / "tuning_reduce.cuh"
    oracle = sums()
    oracle.data = path.read_bytes()
    read = oracle.families
    oracle.families = lambda data: [f for f in read(data) if f.namespace == "cub::detail::reduce"]
    results = [want(I32, NEW, gpu=B300), want(F32, None, gpu=B300)]
    results += [want(summed("F64"), OTHER, gpu=B300)]
    oracle.points = (I32, F32, summed("F64"))
    made = planner(oracle, arch="sm103", prove=False, reach=reach).plan(results)
    assert [a.decision for a in made.actions] == ["add", "fallback", "add"]
    assert [a.target.family for a in made.actions] == ["sm103_tuning"] * 3
    assert len(made.policies) == policies
    after = changed_headers(made, {oracle.header: oracle.data})[oracle.header].decode()
    head = "struct sm103_tuning<"
    rest = "op_type::plus, offset_size::_4, accum_size::"
    first, second, third = (
        after.index(f"{head}{types}, {rest}{size}>")
        for types, size in (("T, OffsetT", "_4"), ("float, OffsetT", "_4"), ("T, OffsetT", "_8"))
    )
    assert first < second < third


B300 = "B300 (8192, 148, eccon)"


def test_a_tree_without_a_family_of_the_architecture_or_an_earlier_one_is_named():
    name = "tuning_reduce_by_key.cuh"
    sources = TuningTree(CUB, {name: read_header(name, b"")}, {})
    with pytest.raises(InputError) as caught:
        family_spot(benchmark("3.0.1", "reduce.by_key"), Selected({}), sources, "sm90")
    assert (
        str(caught.value) == f"{name} has no family of tunings for sm90 or an earlier architecture"
    )


def test_a_plan_that_the_tree_does_not_bear_any_more_is_told():
    def settled(*_):
        raise NotKeptError([(None, "sm100 would change")])

    planner = make_dataclass("Planner", ["next_best"], namespace={"settled": settled})(None)
    with pytest.raises(InputError, match="the plan cannot be made again: sm100 would change"):
        remake_plan(planner, SimpleNamespace(instead=()), ())
