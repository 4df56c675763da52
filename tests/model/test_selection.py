"""Two selections side by side."""

from operator import ne

from policygen.model.selection import Delta, DeltaRow, delta

SUM = "cub.bench.reduce.sum"


def spot(t, arch="sm90", benchmark=SUM):
    return (benchmark, (("T", t),)), arch


def test_what_differs_is_told_with_both_sides_and_in_words():
    before = {spot("I8"): {"items": 7}, spot("I16"): {"items": 7}}
    after = {spot("I8"): {"items": 8}, spot("I16"): {"items": 7}}
    found = delta(before, after, ne, {})
    row = DeltaRow(SUM, (("T", "I8"),), "sm90", {"items": 7}, {"items": 8})
    assert found == Delta(("sm90",), 2, (row,))
    assert (row.name, row.point) == (f"{SUM} T=I8", spot("I8")[0])


def test_what_one_side_lacks_stands_against_what_stands_for_it():
    found = delta({spot("I8"): "tuned"}, {spot("I16"): "default"}, ne, None)
    assert [(r.workload[0][1], r.before, r.after) for r in found.changes] == [
        ("I16", None, "default"),
        ("I8", "tuned", None),
    ]


def test_archs_are_in_their_order_and_a_rule_says_what_is_unlike():
    rows = {spot("I8", arch): arch for arch in ("sm100", "sm90", "sm120")}
    found = delta(rows, dict.fromkeys(rows, "other"), lambda old, _: old == "sm100", "")
    assert found.archs == ("sm90", "sm100", "sm120")
    assert [row.arch for row in found.changes] == ["sm100"]
    assert delta({}, {}, ne, None) == Delta((), 0, ())
