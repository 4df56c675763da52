"""Two resolutions side by side, made up."""

from policygen.model.selection import EntryPlace, Resolution, ResolvedRow, Unresolved
from policygen.model.trees import Cub
from policygen.proof.values import compare_resolutions


def cub(version):
    return Cub(root=f"/{version}", version=version, dialect="specializations", found="--cub")


def row(values, benchmark="cub.bench.scan.exclusive.sum", arch="sm100", line=None, **workload):
    entry = None
    if line:
        entry = EntryPlace(header="tuning_scan.cuh", family="sm100_tuning", args=("1",), line=line)
    return ResolvedRow(
        benchmark=benchmark,
        workload=workload or {"T": "I8"},
        arch=arch,
        values=values,
        entry=entry,
        status="tuned" if entry else "default",
    )


def document(*rows, version="3.0.1", **more):
    return Resolution(
        cub=cub(version), toolchain=f"nvcc of {version}", archs=("sm100",), rows=rows, **more
    )


def compare(before, after):
    return compare_resolutions(document(*before), document(*after, version="3.1.4"))


def test_equal_values_are_no_difference_wherever_they_come_from():
    found = compare([row({"items": 7}, line=10)], [row({"items": 7}, line=99)])
    assert (found.compared, found.different) == (1, ())


def test_what_changed_is_named_in_the_order_of_the_new_tree():
    (found,) = compare(
        [row({"threads": 128, "items": 7, "load_algorithm": "BLOCK_LOAD_DIRECT"}, line=10)],
        [row({"items": 8, "load_algorithm": "BLOCK_LOAD_DIRECT", "threads": 256}, line=12)],
    ).different
    assert found.changed == ("items", "threads")
    assert found.before == {"threads": 128, "items": 7, "load_algorithm": "BLOCK_LOAD_DIRECT"}
    assert found.after == {"items": 8, "load_algorithm": "BLOCK_LOAD_DIRECT", "threads": 256}
    assert (found.entry_before.line, found.entry_after.line) == (10, 12)


def test_a_workload_that_one_tree_lacks_is_a_difference():
    found = compare([row({"items": 7}, T="C64")], [row({"items": 7}, T="C32", line=4)])
    assert found.compared == 2
    assert [
        (d.workload["T"], d.before, d.after, d.changed, d.entry_before, bool(d.entry_after))
        for d in found.different
    ] == [("C32", None, {"items": 7}, (), None, True), ("C64", {"items": 7}, None, (), None, False)]


def test_a_value_that_one_tree_does_not_know_is_not_compared():
    before = row({"items": 7, "radix_bits": 8})
    after = row({"items": 7, "lookahead_items": 3})
    assert compare([before], [after]).different == ()
    assert compare([before], [after.model_copy(update={"values": {"items": 8}})]).different[
        0
    ].changed == ("items",)


def test_the_order_of_axes_and_rows_does_not_matter():
    first, second = row({"items": 7}, T="I8", OffsetT="I32"), row({"items": 8}, T="I16")
    turned = row({"items": 7}, OffsetT="I32", T="I8")
    assert compare([first, second], [second, turned]).different == ()


def test_benchmarks_and_archs_are_kept_apart():
    before = [row({"items": 7}), row({"items": 8}, arch="sm90"), row({"items": 9}, "b")]
    after = [row({"items": 7}), row({"items": 1}, arch="sm90"), row({"items": 2}, "b")]
    found = compare(before, after)
    assert found.compared == 3
    assert [(d.benchmark, d.arch) for d in found.different] == [
        ("cub.bench.scan.exclusive.sum", "sm90"),
        ("b", "sm100"),
    ]


def test_remarks_and_refusals_of_both_trees_are_told_once():
    refused = Unresolved(benchmark="a", reason="it does not compile")
    found = compare_resolutions(
        document(remarks=("old", "both"), unresolved=(refused,)),
        document(remarks=("both", "new"), unresolved=(refused,), version="3.1.4"),
    )
    assert found.remarks == ("old", "both", "new")
    assert found.unresolved == (refused,)
    assert (found.before.version, found.after.version) == ("3.0.1", "3.1.4")
    assert (found.toolchain, found.compared) == ("nvcc of 3.1.4", 0)
