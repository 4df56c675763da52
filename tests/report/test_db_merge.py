from policygen.model.results import MergeConflict, MergedTable, MergeReport
from policygen.report.database_views import merged
from tests.report.shown import lines as shown


def report(conflicts=0, unlisted=0, **counts):
    conflict = MergeConflict(
        path="b.db", table="t", what="ipt_1 with T{ct}=I8", kept="1.0", refused="2.0"
    )
    return MergeReport(
        out="all.db",
        databases=("a.db", "b.db"),
        tables=(MergedTable(table="t", rows=1, **counts),),
        conflicts=(conflict,) * conflicts,
        unlisted=unlisted,
    )


def merge_lines(document, *, verbose, head):
    return shown(merged(document, verbose=verbose, head=head), 80)


def test_a_merge_counts_its_rows():
    assert list(merge_lines(report(), verbose=False, head=True)) == [
        "t: 1 row",
        "2 databases merged into all.db",
    ]
    lines = list(merge_lines(report(duplicates=2, unusable=1), verbose=False, head=True))
    assert lines[0] == "t: 1 row (2 duplicate, 1 unusable)"


def test_conflicts_are_told_and_a_cut_list_says_how_much():
    lines = list(merge_lines(report(conflicts=12, unlisted=3), verbose=False, head=False))
    assert lines[:2] == [
        "conflict in t: ipt_1 with T{ct}=I8",
        "  kept 1.0, refused 2.0 of b.db",
    ]
    assert len(lines) == 21
    assert lines[-1] == "and 5 more conflicts"
    assert len(list(merge_lines(report(conflicts=12), verbose=True, head=False))) == 24
