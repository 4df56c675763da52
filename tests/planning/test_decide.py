"""What becomes of the workloads of one entry, on a small header and without a compiler."""

from dataclasses import replace

import pytest

from policygen.model.benchmarks import ParameterRange
from policygen.planning.saved import changed_headers
from policygen.results.together import Together
from tests.planning.pretend import (
    KEYED,
    KEYED_INT,
    KEYED_LATER,
    SQUARES,
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

ONE = "ipt_20.tpb_256.ipv_2"
OTHER = "ipt_10.tpb_384.ipv_1"
NOW = "ipt_16.tpb_512.ipv_1"
SCORES = "1.200000  1.000000  1.100000  1.300000"
I32, F32 = summed("I32"), summed("F32")
I64, F64, C64 = summed("I64"), summed("F64"), summed("C64")
KEPT = "no variant passes the rules"
BEST = "best score: 1.200000"
SAME = "it has these values already"
NONE = "no variant was measured for all 2"
SHARED = "one entry decides 2 workloads, and "
SAME_TYPES = "nothing that an entry can name distinguishes them"
FLOAT_KEEPS = "an entry for float has its current values"


def decisions(made):
    return {name: decision for name, decision, _ in told(made)}


def text(oracle, made):
    """The header after a plan."""
    (after,) = changed_headers(made, {oracle.header: oracle.data}).values()
    return after.decode()


def entries(oracle, made):
    """The entries after a plan: arguments, and values or what they inherit."""
    after = changed_headers(made, {oracle.header: oracle.data})
    found = oracle.families(after.get(oracle.header, oracle.data))
    return {
        (family.name, *entry.args): entry.inherits or dict(entry.values)
        for family in found
        for entry in family.specializations
        if "op_type::min_or_max" not in entry.args
    }


GENERAL = ("sm100_tuning", "T", "OffsetT", "op_type::plus", "offset_size::_4", "accum_size::_4")
FLOAT = ("sm100_tuning", "float", "OffsetT", "op_type::plus", "offset_size::_4", "accum_size::_4")
VALUES = {
    ONE: {"items": 20, "threads": 256, "items_per_vec_load": 4},
    OTHER: {"items": 10, "threads": 384, "items_per_vec_load": 2},
    NOW: {"items": 16, "threads": 512, "items_per_vec_load": 2},
}


@pytest.mark.parametrize(
    ("entry", "wanted", "decision", "reason"),
    [
        (SUM_INT, ONE, "update", BEST),
        ("", OTHER, "add", BEST),
        (SUM_INT, None, "fallback", KEPT),
        ("", None, "fallback", KEPT),
        (SUM_INT, NOW, "keep", SAME),
        ("", "ipt_16.tpb_256.ipv_2", "keep", SAME),
    ],
)
def test_one_workload_is_updated_added_left_or_kept(entry, wanted, decision, reason):
    oracle = sums(SUMS + entry, types=("I32",))
    made = plan(oracle, {I32: wanted})
    assert told(made) == [("I32 I32", decision, reason)]
    assert bool(made.files) == (decision in {"update", "add"})
    if made.files:
        assert entries(oracle, made) == {GENERAL: VALUES[wanted]}
        assert f"// {wanted} {SCORES}\n" in text(oracle, made)


def test_an_action_tells_the_entry_with_the_values_before_and_after():
    oracle = sums(SUMS + SUM_INT, types=("I32",))
    (action,) = plan(oracle, {I32: ONE}).actions
    assert action.target.model_dump() == {
        "header": "tuning_reduce.cuh",
        "namespace": "cub::detail::reduce",
        "family": "sm100_tuning",
        "args": GENERAL[1:],
        "line": 6,
    }
    assert {n: action.before[n] for n in VALUES[NOW]} == VALUES[NOW]
    assert {n: action.after[n] for n in VALUES[ONE]} == VALUES[ONE]
    assert action.after["load_modifier"] == action.before["load_modifier"]
    assert (action.variant, action.scores) == (ONE, (1.2, 1.0, 1.1, 1.3))


def test_the_arguments_of_an_entry_that_is_not_there_yet_are_told_without_a_line():
    (action,) = plan(sums(types=("I32",)), {I32: OTHER}).actions
    assert action.target.args == ("·", "·", *GENERAL[3:])
    assert action.target.line is None


def test_full_provenance_names_gpu_and_versions_of_the_run_with_the_worst_score():
    oracle = sums(SUMS + SUM_INT)
    slow = want(F32, ONE, gpu="GB200 (1, 2, eccon)")
    worst = slow.variants[0].model_copy(update={"score": 1.1})
    results = [want(I32, ONE), slow.model_copy(update={"variants": (worst,), "ctk": "13.1"})]
    for kind, said in ((None, ""), ("confirmed", ", score confirmed")):
        choice = slow.choice.model_copy(update={"origin": kind})
        results[1] = results[1].model_copy(update={"choice": choice})
        made = planner(oracle, provenance="full", date="2026-11-20").plan(results)
        origin = f"(GB200, CUDA 13.1, CCCL v3.0.1, 2026-11-20{said})"
        line = f"// {ONE} 1.100000  1.000000  1.100000  1.300000  {origin}\n"
        assert line in text(oracle, made)


def test_workloads_that_want_the_same_variant_get_one_entry_however_collisions_are_met():
    for collisions in ("best-worst", "split"):
        oracle = sums()
        made = plan(oracle, {I32: OTHER, F32: OTHER}, collisions=collisions)
        assert decisions(made) == {"I32 I32": "add", "F32 I32": "add"}
        assert entries(oracle, made) == {GENERAL: VALUES[OTHER]}


def test_the_same_variant_of_two_benchmarks_is_one_entry_when_types_cannot_tell_them_apart():
    oracle = sums(types=("I32",), names=(SUM, SQUARES))
    made = plan(oracle, {I32: OTHER, summed("I32", SQUARES): OTHER}, collisions="split")
    assert [a.decision for a in made.actions] == ["add", "add"]


def test_a_conflict_names_who_wants_what_and_base_stays_a_fallback():
    oracle = sums(SUMS + SUM_INT, types=("I32", "F32"), names=(SUM, SQUARES))
    wanted = {I32: ONE, F32: None, summed("I32", SQUARES): OTHER}
    made = plan(oracle, wanted)
    reason = (
        f"one entry decides 3 workloads, and an entry only for int does not help ({NONE}), and no"
        " variant was measured for all 3;"
        f" cub.bench.reduce.sum T=I32 OffsetT=I32 wants {ONE}, cub.bench.reduce.sum T=F32"
        " OffsetT=I32 wants base, cub.bench.transform_reduce.sum T=I32 OffsetT=I32 wants"
        f" {OTHER}"
    )
    assert told(made) == [
        ("I32 I32", "reject", reason),
        ("F32 I32", "fallback", KEPT),
        ("I32 I32", "reject", reason),
    ]
    assert made.files == ()
    first = made.actions[0]
    assert first.target.line == 6
    assert (first.variant, first.after) == (ONE, None)
    assert {n: first.before[n] for n in VALUES[NOW]} == VALUES[NOW]


def best(label, **scores):
    """A variant for all of some workloads, as `choose_together` finds it."""

    def choose(cases):
        found = [
            want(case.measurement.point, label)
            .variants[0]
            .model_copy(update={"score": scores.get(case.measurement.workload["T"], 1.2)})
            for case in cases
        ]
        return Together(tuple(found), f"its lowest score over {len(cases)} workloads is 1.01")

    return choose


def test_the_variant_with_the_best_worst_case_is_written_for_all_even_for_who_keeps_base():
    oracle = sums(SUMS + SUM_INT)
    made = plan(oracle, {I32: OTHER, F32: None}, together=best(ONE, F32=1.01))
    why = "its lowest score over 2 workloads is 1.01"
    assert told(made) == [("I32 I32", "update", why), ("F32 I32", "update", why)]
    assert [a.scores[0] for a in made.actions] == [1.2, 1.01]
    # The comment does not promise more than all workloads of the entry get.
    assert f"// {ONE} 1.010000  1.000000  1.100000  1.300000\n" in text(oracle, made)


@pytest.mark.parametrize("options", [{"collisions": "split"}, {}])
def test_types_that_want_different_variants_get_an_entry_each(options):
    oracle = sums(SUMS + SUM_INT)
    made = plan(oracle, {F32: OTHER, I32: ONE}, **options)
    assert told(made) == [("F32 I32", "add", BEST), ("I32 I32", "update", BEST)]
    assert entries(oracle, made) == {GENERAL: VALUES[ONE], FLOAT: VALUES[OTHER]}
    added = made.actions[0].target
    assert (added.args, added.line) == (("float", "·", *GENERAL[3:]), None)


def test_types_with_the_same_variant_as_the_general_one_need_no_entry():
    types = ("I64", "F64", "C64")
    oracle = sums(types=types)
    made = plan(oracle, {I64: ONE, F64: OTHER, C64: ONE}, collisions="split")
    assert decisions(made) == {"I64 I32": "add", "F64 I32": "add", "C64 I32": "add"}
    assert [a.target.args[0] for a in made.actions] == ["·", "double", "·"]
    assert len(entries(oracle, made)) == 2


def test_a_type_that_no_entry_can_name_has_the_general_one():
    oracle = sums(types=("F64", "C64"))
    made = plan(oracle, {F64: OTHER, C64: None})
    assert decisions(made) == {"F64 I32": "add", "C64 I32": "fallback"}
    (added,) = entries(oracle, made)
    assert added[1] == "double"


def test_two_types_that_no_entry_can_name_are_a_conflict():
    oracle = by_key(pairs=(("I64", "C64"), ("I64", "F64")))
    oracle.points = tuple(oracle.points)
    variant = "ipt_20.tpb_256.trp_1.ld_0.ns_100.dcid_1.l2w_300"
    made = plan(oracle, {keyed("I64", "C64"): variant}, arch="sm90")
    reason = (
        "an entry with A no would also match every other type of this size, because it does not"
        " name the type"
    )
    assert [reason for _, _, reason in told(made)] == [reason]


def test_one_type_with_two_workloads_gets_the_best_for_both():
    oracle = sums(SUMS + SUM_INT, names=(SUM, SQUARES))
    wanted = {I32: ONE, F32: ONE, summed("F32", SQUARES): None}

    def together(cases):
        types = {case.measurement.workload["T"] for case in cases}
        return best(OTHER)(cases) if types == {"F32"} else Together((), "none suits all")

    made = plan(oracle, wanted, together=together)
    why = "its lowest score over 2 workloads is 1.01"
    assert told(made) == [
        ("I32 I32", "update", BEST),
        ("F32 I32", "add", why),
        ("F32 I32", "add", why),
    ]
    assert entries(oracle, made) == {GENERAL: VALUES[ONE], FLOAT: VALUES[OTHER]}


@pytest.mark.parametrize("options", [{}, {"collisions": "split"}])
def test_a_type_whose_workloads_disagree_keeps_what_it_has(options):
    oracle = sums(SUMS + SUM_INT, names=(SUM, SQUARES))
    made = plan(oracle, {I32: ONE, F32: ONE, summed("F32", SQUARES): OTHER}, **options)
    why = (
        f"an entry only for float does not help ({NONE}); an entry for float has its current values"
    )
    assert told(made) == [
        ("I32 I32", "update", BEST),
        ("F32 I32", "reject", why),
        ("F32 I32", "reject", why),
    ]
    assert entries(oracle, made) == {GENERAL: VALUES[ONE], FLOAT: VALUES[NOW]}


@pytest.mark.parametrize("options", [{}, {"collisions": "split"}])
def test_where_no_type_gets_another_variant_all_is_a_conflict(options):
    """The integers have what they want, so an entry for floats would be all that is written."""
    oracle = sums(SUMS + SUM_INT, names=(SUM, SQUARES))
    wanted = {I32: NOW, F32: ONE, summed("F32", SQUARES): OTHER}
    made = plan(oracle, wanted, **options)
    assert [action.decision for action in made.actions] == ["keep", "reject", "reject"]
    assert not made.edits


def test_split_takes_the_best_worst_case_where_types_tell_nothing_apart():
    oracle = sums(types=("I32",), names=(SUM, SQUARES))
    wanted = {I32: ONE, summed("I32", SQUARES): OTHER}
    made = plan(oracle, wanted, collisions="split", together=best(OTHER))
    assert [a.decision for a in made.actions] == ["add", "add"]
    made = plan(oracle, wanted, collisions="split")
    assert made.actions[0].reason.startswith(f"{SHARED}{SAME_TYPES}, and {NONE}; ")


def test_narrowing_an_entry_gives_the_rest_its_old_values_with_their_label():
    oracle = sums(SUMS + SUM_INT)
    made = plan(oracle, {I32: ONE, F32: None})
    assert told(made) == [
        ("I32 I32", "update", BEST),
        ("F32 I32", "fallback", f"{KEPT}; {FLOAT_KEEPS}"),
    ]
    assert entries(oracle, made) == {GENERAL: VALUES[ONE], FLOAT: VALUES[NOW]}
    assert "// ipt_16.tpb_512.ipv_2 1.100000  1.000000  1.100000  1.200000\n" in text(oracle, made)
    assert made.actions[1].target.args[0] == "float"
    assert made.reached == ()


def test_a_named_type_that_has_its_values_gets_an_entry_when_the_general_one_changes():
    """Without it the general entry would take from it what it has."""
    oracle = sums(SUMS + SUM_INT)
    made = plan(oracle, {I32: ONE, F32: NOW})
    assert told(made) == [
        ("I32 I32", "update", BEST),
        ("F32 I32", "keep", f"{SAME}; an entry for float has them"),
    ]
    assert entries(oracle, made) == {GENERAL: VALUES[ONE], FLOAT: VALUES[NOW]}


def test_named_types_need_no_entry_when_the_general_one_stays():
    oracle = sums(SUMS + SUM_INT)
    made = plan(oracle, {I32: None, F32: NOW})
    assert told(made) == [("I32 I32", "fallback", KEPT), ("F32 I32", "keep", SAME)]
    assert made.files == ()


def test_only_the_named_entry_is_written_when_the_general_type_keeps_base():
    oracle = sums(SUMS + SUM_INT)
    made = plan(oracle, {I32: None, F32: ONE})
    assert told(made) == [("I32 I32", "fallback", KEPT), ("F32 I32", "add", BEST)]
    assert entries(oracle, made) == {GENERAL: VALUES[NOW], FLOAT: VALUES[ONE]}


def test_narrowing_without_an_entry_gives_the_rest_an_empty_one():
    """The family only declares itself: CUB falls back where an entry has no values."""
    oracle = sums()
    made = plan(oracle, {I32: OTHER, F32: None})
    assert entries(oracle, made) == {GENERAL: VALUES[OTHER], FLOAT: {}}
    assert decisions(made) == {"I32 I32": "add", "F32 I32": "fallback"}
    assert made.reached == ()


INHERITING = (
    SUMS.replace("sm100", "sm90")
    + """
template <class T, class OffsetT, op_type Op, offset_size O, accum_size A>
struct sm100_tuning : sm90_tuning<T, OffsetT, Op, O, A>
{};
"""
)


def test_narrowing_inherits_where_the_primary_template_does():
    oracle = sums(INHERITING)
    made = plan(oracle, {I32: OTHER, F32: None})
    base = "sm90_tuning<float, OffsetT, op_type::plus, offset_size::_4, accum_size::_4>"
    assert entries(oracle, made) == {GENERAL: VALUES[OTHER], FLOAT: base}


@pytest.mark.parametrize(
    ("body", "base"),
    [
        (
            "sm90_tuning<T, OffsetT, op_type::plus, offset_size::_4, accum_size::_4>",
            "sm90_tuning<float, OffsetT, op_type::plus, offset_size::_4, accum_size::_4>",
        ),
        ("sm90_vals<16, 512>", "sm90_vals<16, 512>"),
    ],
)
def test_narrowing_inherits_what_the_entry_did_in_terms_of_the_named_type(body, base):
    entry = SUM_INT.partition("\n{")[0] + f" : {body}\n{{}};\n"
    oracle = sums(SUMS.replace("sm100", "sm90") + SUMS + entry)
    oracle.value = lambda families, index, point: {"items": 1, "threads": 2, "was": "there"}
    made = plan(oracle, {I32: OTHER, F32: None}, prove=False)
    assert entries(oracle, made)[FLOAT] == base


VALUED = """
template <class T, class OffsetT, op_type Op, offset_size O, accum_size A>
struct sm100_tuning
{
  static constexpr int items              = 7;
  static constexpr int threads            = 64;
  static constexpr int items_per_vec_load = 1;
};
"""


def test_narrowing_writes_out_the_values_that_a_primary_template_has():
    oracle = sums(VALUED)
    made = plan(oracle, {I32: OTHER, F32: None})
    seven = {"items": 7, "threads": 64, "items_per_vec_load": 1}
    assert entries(oracle, made) == {GENERAL: VALUES[OTHER], FLOAT: seven}


def test_what_no_entry_can_keep_is_a_conflict():
    oracle = sums(VALUED)
    oracle.value = lambda families, index, point: {"items": 1}
    made = plan(oracle, {I32: OTHER, F32: None})
    reason = (
        f"{SHARED}no entry can keep the values of cub.bench.reduce.sum T=F32 OffsetT=I32;"
        f" T=I32 OffsetT=I32 wants {OTHER}, T=F32 OffsetT=I32 wants base"
    )
    assert told(made) == [("I32 I32", "reject", reason), ("F32 I32", "fallback", KEPT)]


def test_qualified_values_are_kept_without_saying_the_namespace_twice():
    first, second = keyed("I32", "I32"), keyed("I32", "F32")
    oracle = by_key(KEYED + KEYED_INT + KEYED_LATER)
    variant = "ipt_20.tpb_256.trp_1.ld_0.ns_100.dcid_1.l2w_300"
    made = plan(oracle, {first: variant, second: None}, arch="sm90", reach="later")
    assert decisions(made) == {"I32 I32 I32": "update", "I32 F32 I32": "fallback"}
    assert text(oracle, made).count("= detail::no_delay_constructor_t<580>;") == 1
    assert text(oracle, made).count("= detail::fixed_delay_constructor_t<100, 300>;") == 1
    assert "detail::detail::" not in text(oracle, made)


def test_a_variant_that_the_header_cannot_express_is_rejected():
    oracle = sums(types=("I32",))
    made = plan(oracle, {I32: "ipt_20.tpb_256"})
    reason = "ipt_20.tpb_256: the variant has no parameter 'ipv'. It has: ipt, tpb"
    assert told(made) == [("I32 I32", "reject", reason)]


@pytest.mark.parametrize("prove", [True, False])
@pytest.mark.parametrize(
    ("label", "reason"),
    [
        ("ipt_-19.tpb_256.ipv_1", "ipt = -19 is outside of 7:24:1, the range of"),
        ("ipt_20.tpb_0.ipv_1", "tpb = 0 is outside of 128:1024:32, the range of"),
        ("ipt_20.tpb_2048.ipv_1", "tpb = 2048 is outside of 128:1024:32, the range of"),
        ("ipt_20.tpb_256.ipv_1.evil_1", "cub.bench.reduce.sum has no parameter 'evil'"),
    ],
)
def test_values_that_were_never_searched_are_refused_by_rule(label, reason, prove):
    oracle = sums(types=("I32",))
    made = plan(oracle, {I32: label}, prove=prove)
    ((name, decision, told_reason),) = told(made)
    assert (name, decision) == ("I32 I32", "reject")
    assert told_reason.startswith(f"{label}: {reason}")
    assert made.edits == ()


def test_a_wider_search_space_is_taken_where_it_is_given():
    oracle = sums(types=("I32",))
    wide = ParameterRange(macro="M", label="ipt", start=30, end=40, step=1)
    made = replace(planner(oracle), spaces={SUM: (wide,)}).plan([want(I32, "ipt_31.tpb_256.ipv_1")])
    assert decisions(made) == {"I32 I32": "add"}
    assert " 31;" in text(oracle, made)


@pytest.mark.parametrize(
    ("gpu", "named"),
    [
        ("B200\n#define int long\r\\ (8192, 148, eccon)", "B200 #define int long \\"),
        ("B200\u2028\u202e??/ (8192, 148, eccon)", "B200 ? ?/"),
    ],
)
def test_nothing_of_a_database_ends_the_comment_that_it_is_in(gpu, named):
    oracle = sums(SUMS + SUM_INT, types=("I32",))
    found = want(I32, ONE, gpu=gpu).model_copy(update={"cccl": "v3.0.1", "ctk": "13\\\n"})
    options = {"provenance": "full", "date": "2026-01-02\\", "force": True}
    made = planner(oracle, **options).plan([found])
    lines = text(oracle, made).split("\n")
    (line,) = [line for line in lines if "B200" in line]
    assert line.lstrip() == (f"// {ONE} {SCORES}  ({named}, CUDA 13\\ , CCCL v3.0.1, 2026-01-02\\)")


def test_a_variant_that_one_of_them_cannot_express_names_it_and_leaves_base_a_fallback():
    oracle = sums()
    made = plan(oracle, {I32: "ipt_20.tpb_256", F32: None}, together=best("ipt_20.tpb_256"))
    why = "ipt_20.tpb_256: the variant has no parameter 'ipv'. It has: ipt, tpb"
    reason = (
        f"{SHARED}an entry only for int does not help ({why}), and T=I32 OffsetT=I32: {why};"
        " T=I32 OffsetT=I32 wants ipt_20.tpb_256, T=F32 OffsetT=I32 wants base"
    )
    assert told(made) == [("I32 I32", "reject", reason), ("F32 I32", "fallback", KEPT)]


@pytest.mark.parametrize("options", [{}, {"together": best(OTHER)}])
def test_one_variant_with_other_values_for_each_workload_is_a_conflict(options):
    """The sum of bytes is an int: its benchmark counts bytes, the header counts ints."""
    last = {} if "together" not in options else {I32: None}
    oracle = sums(types=("I8", "I32"))
    made = plan(oracle, {summed("I8"): OTHER, I32: OTHER, **last}, **options)
    reason = "the variant means different values for each of them; T=I8 OffsetT=I32 wants"
    reason = f"{SHARED}{SAME_TYPES}, and {reason}"
    assert list(decisions(made).values()) == ["reject", "fallback" if last else "reject"]
    assert made.actions[0].reason.startswith(reason)
