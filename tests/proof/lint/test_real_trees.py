from collections import Counter
from dataclasses import replace

import pytest

from policygen.app.lint import sources_of
from policygen.app.scan import scan_tunings
from policygen.model.labels import parse_label
from policygen.proof.lint.labels import contradictions
from policygen.proof.lint.run import lint
from policygen.proof.lint.subject import subjects
from tests.trees import tree

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


def findings(version):
    scan, errors = scan_tunings(str(tree(version)))
    assert errors == ()
    return lint(scan, sources_of(scan, ()))


@pytest.mark.trees
def test_what_is_found_in_a_real_tree_is_known():
    assert [(f.header, f.line, f.rule) for f in findings("3.0.1").findings] == FOUND


@pytest.mark.trees
@pytest.mark.parametrize("version", ["2.8.2", "3.1.4", "3.2.0", "3.5.0", "3.6.0"])
def test_other_trees_have_the_same_faults_on_other_lines(version):
    report = findings(version)
    expected = Counter((header, rule) for header, _, rule in FOUND)
    assert Counter((f.header, f.rule) for f in report.findings) == expected
    assert {rule for rule, count in report.counts.items() if count} == {r for _, _, r in FOUND}
    assert report.unbound == ()


@pytest.mark.trees
def test_no_changed_number_of_a_labelled_entry_is_overlooked():
    """What is typed wrongly by one is found in every entry of a real tree that has a label."""
    scan, _ = scan_tunings(str(tree("3.0.1")))
    tried = 0
    for subject in subjects(scan):
        live = [label for label in subject.entry.labels if not label.rejected]
        if not live or {"ipt", "tpb"} - set(parse_label(live[0].variant)):
            continue
        before = len(list(contradictions(subject)))
        for index, member in enumerate(subject.entry.members):
            if member.name not in {"items", "nominal_4b_items", "threads"}:
                continue
            tried += 1
            members = list(subject.entry.members)
            members[index] = member.model_copy(update={"value": member.value + 1})
            entry = subject.entry.model_copy(update={"members": tuple(members)})
            found = list(contradictions(replace(subject, entry=entry)))
            assert len(found) == before + 1, (subject.family.header, entry.line)
    assert tried == 2 * 142
