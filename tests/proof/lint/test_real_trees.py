from collections import Counter
from dataclasses import replace

import pytest

from policygen.app.audits import sources_of
from policygen.app.scan import scan_tunings
from policygen.model.workload import parse_label
from policygen.proof.lint_checks import contradictions
from policygen.proof.lint_rules import lint
from policygen.proof.lint_subject import subjects
from tests.probing import TUNINGS, changed_tree, replaced
from tests.real_trees import tree
from tests.tiers import sampled

# Each was read in the header: what is wrong is in CUB, not in the reader.
FOUND = [
    # The table of small keys repeats the default of the family.
    ("tuning_radix_sort.cuh", 76, "same-as-inherited"),
    ("tuning_radix_sort.cuh", 88, "same-as-inherited"),
    # 15 nominal items are 7 of eight bytes, and 2 does not divide them.
    ("tuning_reduce.cuh", 166, "items-not-divisible-by-vector"),
    # The benchmark measured 1 << ipv.
    ("tuning_reduce.cuh", 168, "label-stores-exponent"),
    ("tuning_reduce.cuh", 177, "label-stores-exponent"),
    ("tuning_reduce.cuh", 186, "label-stores-exponent"),
    ("tuning_reduce.cuh", 195, "label-stores-exponent"),
    # ns_244 became 224.
    ("tuning_reduce_by_key.cuh", 639, "label-contradicts-values"),
    # no_delay holds ns where l2w belongs; l2w_680 became 860.
    ("tuning_scan_by_key.cuh", 773, "label-contradicts-values"),
    ("tuning_scan_by_key.cuh", 858, "label-contradicts-values"),
    ("tuning_scan_by_key.cuh", 871, "label-contradicts-values"),
    ("tuning_scan_by_key.cuh", 908, "label-contradicts-values"),
    # dcid_7 has no jitter.
    ("tuning_select_if.cuh", 970, "label-contradicts-values"),
]


# The returns of policy selectors have what the families beside them have, and more: 10 pixels of
# two bytes and vectors of 4; 19 nominal items are 9 of eight bytes, and 24 are 6 of sixteen.
RETURNED = {
    ("tuning_histogram.cuh", "items-not-divisible-by-vector"): 1,
    ("tuning_reduce_by_key.cuh", "label-contradicts-values"): 1,
    ("tuning_scan_by_key.cuh", "label-contradicts-values"): 4,
    ("tuning_select_if.cuh", "label-contradicts-values"): 1,
}


def scanned(version):
    scan, errors = scan_tunings(str(tree(version)), selectors=True)
    assert errors == ()
    return scan


def findings(version):
    scan = scanned(version)
    return lint(scan, sources_of(scan, ()))


@pytest.mark.trees
def test_what_is_found_in_a_real_tree_is_known():
    assert [(f.header, f.line, f.rule) for f in findings("3.0.1").findings] == FOUND


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.parametrize(
    ("version", "more"),
    sampled(
        [("2.8.2", None), ("3.1.4", None), ("3.2.0", None), ("3.5.0", 1), ("3.6.0", 5)],
        ("3.2.0", None),
    ),
)
def test_other_trees_have_the_same_faults_on_other_lines(version, more):
    report = findings(version)
    expected = Counter((header, rule) for header, _, rule in FOUND)
    if more is not None:
        expected += Counter(RETURNED)
        expected["tuning_reduce.cuh", "items-not-divisible-by-vector"] += more
    assert Counter((f.header, f.rule) for f in report.findings) == expected
    assert {rule for rule, count in report.counts.items() if count} == {r for _, _, r in FOUND}


@pytest.mark.trees
@pytest.mark.parametrize("version", ["3.0.1", "3.6.0"])
def test_everything_that_has_a_label_is_bound(version):
    labelled = [s for s in subjects(scanned(version)) if s.entry.labels and s.entry.members]
    assert len(labelled) > 140
    lost = Counter(s.family.header for s in labelled if not s.bindings)
    # Their results have no place in a family, whose rules would tell what labels mean.
    assert set(lost) <= {
        "tuning_adjacent_difference.cuh",
        "tuning_batched_topk.cuh",
        "tuning_scan.cuh",  # lookahead's
        "tuning_topk.cuh",
    }


COUNTS = {"items", "threads", "threads_per_block", "items_per_thread", "nominal_4b_items"}


@pytest.mark.trees
@pytest.mark.parametrize(("version", "number"), [("3.0.1", 2 * 142), ("3.6.0", 500)])
def test_no_changed_number_of_a_labelled_entry_is_overlooked(version, number):
    """What is typed wrongly by one is found in every entry of a real tree that has a label."""
    tried = 0
    for subject in subjects(scanned(version)):
        live = [label for label in subject.entry.labels if not label.rejected]
        if not live or not subject.bindings or {"ipt", "tpb"} - set(parse_label(live[0].variant)):
            continue
        before = len(list(contradictions(subject)))
        for index, member in enumerate(subject.entry.members):
            if member.name.rpartition(".")[2] not in COUNTS or member.value is None:
                continue
            rules = [rule for b in subject.bindings if (rule := b.members.get(member.name))]
            if subject.entry.kind == "branch" and any(rule.unit for rule in rules):
                continue  # how large the elements are does not stand in its conditions
            tried += 1
            members = list(subject.entry.members)
            members[index] = member.model_copy(update={"value": member.value + 1})
            entry = subject.entry.model_copy(update={"members": tuple(members)})
            found = list(contradictions(replace(subject, entry=entry)))
            assert len(found) == before + 1, (subject.family.header, entry.line)
    assert tried >= number


@pytest.mark.slow
@pytest.mark.trees
def test_returns_are_judged_as_entries_are(tmp_path):
    """None of these was found while only families were looked at."""
    name = "tuning_reduce.cuh"
    changes = (("sm100_tuning_values{19, 448, 1 << 2}", "sm100_tuning_values{18, 100, 1 << 2}"),)
    data = replaced((tree("3.6.0") / TUNINGS / name).read_bytes(), *changes)
    line = data[: data.index(b"{18, 100, 1 << 2}")].count(b"\n") + 1
    scan, _ = scan_tunings(str(changed_tree(tmp_path, "3.6.0", {name: data})), selectors=True)
    found = [
        (f.rule, f.message.partition(":")[0])
        for f in lint(scan, sources_of(scan, ())).findings
        if f.header == name and f.line == line
    ]
    assert found == [
        (
            "items-not-divisible-by-vector",
            "18 items, which are 9 for large elements, cannot be loaded as vectors of 4",
        ),
        ("label-contradicts-values", "the label says ipt_19, the entry has 18"),
        ("label-contradicts-values", "the label says tpb_448, the entry has 100"),
        ("threads-not-warp-multiple", "100 threads are not a multiple of the warp size 32"),
    ]
