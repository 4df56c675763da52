"""What a change does to inputs that no benchmark has, on real trees."""

from itertools import product
from random import Random

import numpy as np
import pytest

from policygen import trees
from policygen.app.effect import Planned as PlannedTree
from policygen.app.effect import effect_of, prove_plan
from policygen.app.plan import completed
from policygen.bindings.words import ladder
from policygen.errors import EffectError
from policygen.model.arch import arch_number
from policygen.planning.saved import changed_headers
from policygen.proof import selector_code
from policygen.proof.all_inputs import (
    CompiledSelector,
    Selector,
    Side,
    compare_inputs,
    compile_selectors,
    find_selectors,
    policies_of,
)
from policygen.proof.ask import ask
from policygen.proof.oracle import ALL
from policygen.proof.other_calls import compare_all_inputs, dependent_headers, find_examples
from policygen.proof.probe import QueriedTree
from policygen.proof.sites import places
from policygen.proof.toolchain import find_toolchain
from policygen.proof.units import SiteQuery, overlay
from tests.planning.wanted import Planned, benchmark, scored
from tests.probing import root

real = [pytest.mark.trees, pytest.mark.nvcc]


def delta(version, name, *changes):
    """What a change of one header does."""
    before = Side.of((str(root(version)),))
    data = before.contents[name]
    for old, new in changes:
        assert old in data.decode()
        data = data.replace(old.encode(), new.encode(), 1)
    after = Side.of((overlay(name, data), str(root(version))))
    cub = trees.open_tree(root(version))
    return compare_all_inputs([name], (before, after), cub.bindings, find_toolchain())


# Both programs are compared on boxes; each input and output has eight bytes.
HEAD = """
.visible .entry policygen_inputs_0(
\t.param .u64 policygen_inputs_0_param_0,
\t.param .u32 policygen_inputs_0_param_1,
\t.param .u64 policygen_inputs_0_param_2
)
{
\t.reg .b32 \t%r<9>;

\tld.param.u64 \t%rd1, [policygen_inputs_0_param_0];
\tld.param.u32 \t%r1, [policygen_inputs_0_param_1];
\tld.param.u64 \t%rd2, [policygen_inputs_0_param_2];
\tld.global.u32 \t%r2, [%rd1];
\tld.global.u32 \t%r3, [%rd1+8];
"""


def program(body):
    """A selector of two members, of its PTX."""
    return selector_code.parse(
        selector_code.read_entries(f"{HEAD}{body}\tret;\n\n}}")["policygen_inputs_0"]
    )


def test_a_selectors_text_has_the_tables_and_functions_that_it_names():
    function = ".func (.param .b32 func_retval0) twice(\n)\n{\n\tld.const.u32 \t%r1, [table];\n}"
    table = ".const .align 4 .b8 table[4] = {1, 2, 3, 4};"
    unused = ".func (.param .b32 func_retval0) other(\n)\n{\n\tret;\n}"
    ptx = f"{table}\n{function}\n{unused}\n{HEAD}\tcall.uni (retval0), twice, ();\n\tret;\n\n}}"
    text = selector_code.read_entries(ptx)["policygen_inputs_0"]
    rows = [row.removeprefix("// ") for row in text.splitlines() if row.startswith("// ")]
    assert "\n".join(rows) == f"{table}\n{function}"


def different(first, second, axes):
    """The inputs for which two programs differ."""
    found = set()
    for leaf in selector_code.evaluate([first, second], axes):
        unequal = np.not_equal(leaf.outputs[0][0], leaf.outputs[1][0])
        unequal = np.broadcast_to(unequal & (leaf.mask != 0), [len(n) for n in leaf.box])
        found |= {
            tuple(
                axis[indices[at]] for axis, indices, at in zip(axes, leaf.box, place, strict=True)
            )
            for place in np.argwhere(unequal)
        }
    return found


def wrapped(number):
    """A number in 32 bits."""
    return (number + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["div.s32 %r4, %r2, %r3;"], lambda _, a, b: int(a / b)),
        (["add.s32 %r4, %r2, -2147483648;"], lambda _, a, b: wrapped(a - 2**31)),
        (["sub.s32 %r5, %r2, %r3;", "shr.u32 %r4, %r5, 1;"], lambda _, a, b: (a - b) % 2**32 >> 1),
        (
            ["mul.lo.s32 %r5, %r2, %r3;", "min.s32 %r4, %r5, %r1;"],
            lambda arch, a, b: min(wrapped(a * b), arch),
        ),
        (
            [
                *("setp.gt.s32 %p1, %r2, %r3;", "setp.eq.s32 %p2, %r1, 90;"),
                *("and.pred %p3, %p1, %p2;", "mov.u32 %r4, 1;", "@%p3 bra $L__BB0_2;"),
                *("mov.u32 %r4, 2;", "$L__BB0_2:"),
            ],
            lambda arch, a, b: 1 if a > b and arch == 90 else 2,
        ),
        (
            ["setp.lt.s32 %p1, %r2, 0;", "selp.b32 %r4, %r3, %r2, %p1;"],
            lambda _, a, b: b if a < 0 else a,
        ),
        (
            [
                *("mov.u32 %r4, %r3;", "$L__BB0_1:", "add.s32 %r4, %r4, %r3;"),
                *("setp.lt.s32 %p1, %r4, 20;", "@%p1 bra $L__BB0_1;"),
            ],
            lambda _, a, b: b * max(2, -(-20 // b)),
        ),
    ],
)
def test_code_is_evaluated_for_each_input(rows, expected):
    axes = [[80, 90, 100], [-7, -1, 0, 3, 8, 2**31 - 1], [1, 2, 3, 16]]
    stored = "\tcvt.s64.s32 \t%rd3, %r4;\n\tst.global.u64 \t[%rd2], %rd3;\n"
    first = program("\n".join([*rows, stored]))
    count = 0
    for leaf in selector_code.evaluate([first], axes):
        values = np.broadcast_to(leaf.outputs[0][0], [len(n) for n in leaf.box])
        holds = np.broadcast_to(leaf.mask, values.shape)
        for place, value in np.ndenumerate(values):
            if not holds[place]:
                continue
            inputs = [axis[n[at]] for axis, n, at in zip(axes, leaf.box, place, strict=True)]
            count += 1
            assert value == np.int64(expected(*inputs)).astype(np.int32), inputs
    assert count == 3 * 6 * 4  # boxes neither overlap nor leave anything out


def test_programs_are_compared_where_both_take_their_paths():
    stored = "\tcvt.s64.s32 \t%rd3, %r4;\n\tst.global.u64 \t[%rd2], %rd3;\n"
    chosen = "\tsetp.eq.s32 \t%p1, %r2, {};\n\tselp.b32 \t%r4, 7, 9, %p1;\n"
    first, second = (program(chosen.format(number) + stored) for number in (3, 8))
    axes = [[90, 100], [2, 3, 8], [1, 2]]
    expected = {(arch, size, n) for arch in axes[0] for size in (3, 8) for n in axes[2]}
    assert different(first, second, axes) == expected


def test_unknown_code_is_refused_and_not_guessed():
    with pytest.raises(selector_code.UnsupportedCodeError, match=r"brev\.b32 is not evaluated"):
        list(selector_code.evaluate([program("\tbrev.b32 \t%r4, %r2;\n")], [[90], [1], [1]]))


def test_each_input_that_is_loaded_has_an_axis_even_if_nothing_is_compared_with_it():
    loaded = "\tld.global.v2.u64 \t{%rd4, %rd5}, [%rd1+16];\n\tld.global.u64 \t%rd6, [%rd1+40];\n"
    compared = "\tsetp.gt.u64 \t%p1, %rd5, 4000;\n\tsetp.gt.s32 \t%p2, %r3, 5;\n"
    by_axis, computed = selector_code.compared_constants(program(loaded + compared))
    assert by_axis == {0: set(), 1: set(), 2: {5}, 3: set(), 4: {4000}, 6: set()}
    assert computed == set()


FIRST_ONLY = HEAD.replace("\tld.global.u32 \t%r3, [%rd1+8];\n", "")
STORED = "\tcvt.s64.s32 \t%rd3, %r4;\n\tst.global.u64 \t[%rd2], %rd3;\n"


def selector(members, ptx, enumerators=None):
    """A compiled selector that returns a number of threads."""
    text = selector_code.read_entries(f"{ptx}{STORED}\tret;\n\n}}")["policygen_inputs_0"]
    declared = Selector("tuning_x.cuh", "cub::detail::x", "policy_selector", members, {})
    names = dict.fromkeys(dict(members), ()) | (enumerators or {})
    return CompiledSelector(declared, text, ("threads",), names)


def compared(old, new):
    """What two selectors do differently."""
    key = "tuning_x.cuh", "policy_selector"
    examples = {"wide": {"size": 4, "wide": True}, "narrow": {"size": 4, "wide": False}}
    at = {(key[0], "cub::detail::x"): examples}
    return compare_inputs({key: old}, {key: new}, ["sm90", "sm100"], lambda _: at)


SIZE, WIDE = ("size", "int"), ("wide", "bool")
BEFORE = selector((SIZE,), f"{FIRST_ONLY}\tmov.u32 \t%r4, 7;\n")
AFTER = f"{HEAD}\tsetp.ne.s32 \t%p1, %r3, 0;\n\tselp.b32 \t%r4, 9, 7, %p1;\n"


def test_what_changes_with_a_new_last_member_is_told_by_its_values():
    found = compared(BEFORE, selector((SIZE, WIDE), AFTER))
    assert found.unknown == ()
    (change,) = found.changes
    assert change.conditions == ("wide is true",)
    assert change.archs == ("sm90", "sm100")
    assert change.values == {"threads": "7 → 9"}
    assert change.examples == ("wide",)


@pytest.mark.parametrize(
    "after",
    [
        selector((WIDE, SIZE), AFTER),  # calls give the size to the other
        selector((("key_size", "int"), WIDE), AFTER),
        selector((("size", "long"), WIDE), AFTER),
        selector((), AFTER),
        selector((SIZE, WIDE), AFTER, {"size": ("_4", "_8")}),
    ],
)
def test_other_changes_of_members_are_not_compared(after):
    found = compared(BEFORE, after)
    assert found.changes == ()
    reason = "x::policy_selector: its members differ: calls give it other inputs"
    assert found.unknown == (("tuning_x.cuh", reason),)


class TestTrees:
    pytestmark = real

    @pytest.mark.parametrize("name", ["reduce", "select_if", "histogram"])
    @pytest.mark.slow
    def test_the_code_says_for_benchmarks_what_the_compiler_says(self, name):
        version, file = "3.6.0", f"tuning_{name}.cuh"
        side, toolchain = Side.of((str(root(version)),)), find_toolchain()
        cub = trees.open_tree(root(version))
        compiled = compile_selectors([file], side, toolchain)[file, "policy_selector"]
        archs = [arch for arch in ladder() if arch_number(arch) >= 75]
        (selector,) = find_selectors(file, side.contents)
        members = find_examples([selector], side, cub.bindings, toolchain)[file, selector.namespace]
        queries = [
            SiteQuery(query.site, query.points, tuple(archs), aggregates=selector.aggregates)
            for query in places(cub, (), ALL, {}, frozenset({file}))
            if query.site.is_selector and query.site.scope == selector.namespace
        ]
        answered = ask(QueriedTree(cub.bindings, side.includes, {}), queries, toolchain)
        assert answered.rows
        for (workload, arch), row in answered.rows.items():
            evaluated = policies_of(compiled, members[workload.name], archs)
            assert evaluated[arch] == dict(row.fields.values), (workload.name, arch)

    @pytest.mark.parametrize("name", ["reduce", "scan", "rle_encode", "unique_by_key"])
    @pytest.mark.slow
    def test_a_box_has_what_each_of_its_inputs_has(self, name):
        side, file = Side.of((str(root("3.6.0")),)), f"tuning_{name}.cuh"
        compiled = compile_selectors([file], side, find_toolchain())[file, "policy_selector"]
        program, random = selector_code.parse(compiled.text), Random(name)
        axes = [[75, 90, 100, 107, 120]]
        for path, kind in compiled.selector.members:
            count = len(compiled.enumerators.get(path, ()))
            axes.append(range(count) if count else [0, 1] if kind == "bool" else [1, 2, 4, 8, 12])
        places = [tuple(random.randrange(len(axis)) for axis in axes) for _ in range(60)]
        missing = set(places)
        for leaf in selector_code.evaluate([program], axes):
            shape = [len(indices) for indices in leaf.box]
            for place in [one for one in missing if all(map(np.isin, one, leaf.box))]:
                at = tuple(int(np.argmax(n == p)) for n, p in zip(leaf.box, place, strict=True))
                if not np.broadcast_to(leaf.mask, shape)[at]:
                    continue
                point = [[axis[at]] for axis, at in zip(axes, place, strict=True)]
                (own,) = selector_code.evaluate([program], point)
                for slot, value in own.outputs[0].items():
                    whole = np.broadcast_to(leaf.outputs[0][slot], shape)
                    assert whole[at] == np.ravel(value)[0], (place, slot)
                missing.remove(place)
        assert not missing

    @pytest.mark.slow
    def test_a_selector_that_calls_another_changes_with_it(self):
        cc = "::cuda::compute_capability"
        guard = (
            f"if (cc >= {cc}{{9, 0}} && cc < {cc}{{10, 0}} && operation_t == op_kind_t::plus"
            " && accum_size == 4 && offset_size == 4) { const auto rp = ReducePassPolicy{"
            "416, 19, 4, BLOCK_REDUCE_RAKING, LOAD_LDG}; return {rp, rp}; }\n"
        )
        old = "auto sm100_tuning = get_sm100_tuning("
        found = delta("3.6.0", "tuning_reduce.cuh", (old, guard + old))
        assert found.unknown == ()
        assert found.compared > 100_000_000
        told = {change.selector: change for change in found.changes}
        assert len(found.changes) == 2
        assert told.keys() == {"reduce::policy_selector", "segmented_reduce::policy_selector"}
        own, other = told["reduce::policy_selector"], told["segmented_reduce::policy_selector"]
        conditions = ("operation_t is plus", "offset_size is 4", "accum_size is 4")
        assert own.conditions == (*conditions, "determinism is not __gpu_to_gpu")
        assert other.conditions == conditions
        assert own.archs == other.archs == ("sm90",)
        assert other.values["large_reduce.threads_per_block"] == "256 → 416"
        assert "cub.bench.reduce.sum T=F32 OffsetT=I32" in own.examples
        assert "cub.bench.segmented_reduce.sum T=F32" in other.examples

    @pytest.mark.slow
    def test_sizes_of_no_benchmark_are_found(self):
        old = "const int tune_type_size   = key_size + value_size;"
        # Values of 12 bytes are none of a benchmark's.
        new = old.replace(";", " + (key_size == 4 && value_size == 12 ? 16 : 0);")
        changes = delta("3.6.0", "tuning_merge.cuh", (old, new)).changes
        assert [change.conditions for change in changes] == [("key_size is 4", "value_size is 12")]
        assert changes[0].examples == ()
        assert changes[0].values["items_per_thread"].endswith(" → 1")

    @pytest.mark.slow
    def test_what_a_selector_is_told_of_types_is_compared(self):
        found = delta("3.6.0", "tuning_merge.cuh", ("int{sizeof(key_t)}", "int{alignof(key_t)}"))
        assert {change.selector for change in found.changes} == {
            "merge::policy_selector_from_types"
        }
        assert {change.conditions for change in found.changes} == {("KeyT is user_12 or user_16",)}
        assert found.unknown == ()

    @pytest.mark.slow
    @pytest.mark.parametrize("size", ["sizeof", "alignof"])
    def test_a_new_last_member_does_not_hide_what_the_others_are_told(self, size):
        returned = "return {64, 7, LOAD_LDG, BLOCK_STORE_WARP_TRANSPOSE, false, false};"
        found = delta(
            "3.6.0",
            "tuning_merge.cuh",
            ("  int offset_size;\n", "  int offset_size;\n  bool wide = false;\n"),
            (
                "    const int tune_type_size",
                f"    if (wide) {returned}\n    const int tune_type_size",
            ),
            ("int{sizeof(key_t)}", f"int{{{size}(key_t)}}"),
            ("int{sizeof(OffsetT)}}(cc)", "int{sizeof(OffsetT)}, sizeof(key_t) == 16}(cc)"),
        )
        assert found.unknown == ()
        own, *calls = found.changes
        assert (own.selector, own.conditions) == ("merge::policy_selector", ("wide is true",))
        assert own.examples
        assert {name.partition("KeyT=")[2][:4] for name in own.examples} == {"I128"}
        # Keys of 16 bytes are wide, whatever else is told of them.
        conditions = {change.conditions for change in calls}
        assert conditions == ({("KeyT is user_12",)} if size == "alignof" else set())

    @pytest.mark.slow
    def test_what_stays_the_same_is_proved_for_all_inputs(self):
        old = "static constexpr int items_per_thread   = 16;"
        found = delta("3.6.0", "tuning_reduce.cuh", (old, old.replace(";", " + 0;")))
        assert found.changes == ()
        assert found.headers >= {"tuning_reduce.cuh", "tuning_segmented_reduce.cuh"}

    @pytest.mark.slow
    def test_an_operator_of_no_benchmark_falls_through_to_the_family_of_an_earlier_arch(self):
        wanted = [
            scored(
                benchmark("3.0.1", "scan.exclusive.sum"),
                {"T": "I32", "OffsetT": "I32"},
                "ipt_20.tpb_288.ns_648.dcid_1.l2w_1000.trp_1.ld_0",
                "3.0.1",
            )
        ]
        own = Planned(root("3.0.1"), wanted, arch="sm90", force=True)
        assert own.after, [action.reason for action in own.plan.actions]
        work = PlannedTree(own.plan, own.compiler)
        effect = effect_of(own.plan, own.compiler, own.after)
        leaks = [change for change in effect.inputs if change.leaks]
        assert any(
            {"T is I32 or U32", "Op is minimum or maximum"} <= {*change.conditions}
            and change.leaks == ("sm100",)
            and change.values["threads"] == "128 → 288"
            for change in leaks
        ), [change.text for change in effect.inputs]
        with pytest.raises(EffectError, match="the results do not measure sm100"):
            prove_plan(work)
        remarks = completed(work, own.planner, wanted).remarks
        assert any("--reaches sm100 allows it" in row for row in remarks)

    @pytest.mark.slow
    def test_a_plan_names_other_algorithms_that_it_changes(self):
        wanted = [
            scored(
                benchmark("3.6.0", "reduce.sum"),
                {"T": "F32", "OffsetT": "I32"},
                "ipt_19.tpb_416.ipv_2",
                "3.6.0",
            )
        ]
        own = Planned(root("3.6.0"), wanted, arch="sm90", force=True)
        work = PlannedTree(own.plan, own.compiler)
        effect = prove_plan(work)
        assert "segmented_reduce::policy_selector" in {change.selector for change in effect.inputs}
        assert "segmented_reduce::policy_selector" in effect.summary
        remarks = completed(work, own.planner, wanted).remarks
        assert any("segmented_reduce::policy_selector" in row for row in remarks)
        assert changed_headers(own.plan, own.data)


def test_headers_that_include_a_header_depend_on_it():
    line = b"#include <cub/device/dispatch/tuning/%s>\n"
    contents = {"a.cuh": b"", "b.cuh": line % b"a.cuh", "c.cuh": line % b"b.cuh", "d.cuh": b""}
    assert dependent_headers(["a.cuh"], contents) == ("a.cuh", "b.cuh", "c.cuh")


def test_boxes_are_united_whatever_their_parts_were():
    full = (frozenset(range(4)), frozenset(range(6)), frozenset({1, 2}))
    parts = [
        (frozenset({0}), full[1], full[2]),
        (frozenset({1, 2, 3}), frozenset({0, 1}), full[2]),
        (frozenset({1}), frozenset({2, 3, 4, 5}), full[2]),
        (frozenset({2, 3}), frozenset({2, 3, 4, 5}), frozenset({1})),
        (frozenset({2, 3}), frozenset({2, 3, 4, 5}), frozenset({2})),
    ]
    assert selector_code.united(parts) == [full]
    corner = [*parts[:3], (frozenset({2}), frozenset({5}), frozenset({2}))]
    united = selector_code.united(corner)
    points = {point for box in corner for point in product(*box)}
    assert {point for box in united for point in product(*box)} == points
