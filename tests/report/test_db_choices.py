import pytest

from policygen.model.results import Choice, DbTop, RejectedVariant, Rules, ScoredWorkload
from policygen.report.ranking_views import choices, rules_in_words
from tests.report.shown import lines as shown
from tests.report.test_db import LONG, squeezed, top, variant, workload

USE = Choice(
    decision="use",
    variant="ipt_19.tpb_384",
    reason="best score: 1.050000, worst runtime workload Entropy=0.201 at 0.9800",
    rejected=(
        RejectedVariant(variant="ipt_7.tpb_64", score=1.021, reason="score 1.021000 is lower"),
        RejectedVariant(variant="ipt_1.tpb_1", score=None, reason=""),
    ),
)
KEEP = Choice(decision="keep base", variant=None, reason="no variant passes the rules")
BETTER = variant("ipt_19.tpb_384", 1.05, "better")


def lines(
    document: DbTop, width: int = 160, *, verbose: bool = False, head: bool = False
) -> list[str]:
    return shown(choices(document, width, verbose=verbose, head=head), width)


def used(name: str, *others: RejectedVariant) -> ScoredWorkload:
    choice = Choice(decision="use", variant=name, reason="best score", rejected=others)
    return workload(variant(name, 1.05, "better"), choice=choice)


def test_a_choice_has_its_reason_and_those_not_taken_theirs() -> None:
    assert lines(top(workload(BETTER, choice=USE)))[1:] == [
        "  use ipt_19.tpb_384  score 1.050000 (1.040\N{EN DASH}1.060), better",
        "    best score: 1.050000, worst runtime workload Entropy=0.201 at 0.9800",
        "  not taken:",
        "    ipt_7.tpb_64  1.021000  score 1.021000 is lower",
        "    ipt_1.tpb_1          -",
    ]


def test_keeping_base_is_a_choice() -> None:
    assert lines(top(workload(choice=KEEP)))[1:] == [
        "  keep base",
        "    no variant passes the rules",
    ]


def test_a_chosen_variant_that_is_not_listed_has_its_reason_alone() -> None:
    assert lines(top(workload(choice=USE)))[1:3] == [
        "  use ipt_19.tpb_384",
        "    best score: 1.050000, worst runtime workload Entropy=0.201 at 0.9800",
    ]


def test_a_chosen_variant_that_is_not_listed_can_bring_its_score() -> None:
    choice = USE.model_copy(update={"score": 1.05})
    assert lines(top(workload(choice=choice)))[1] == "  use ipt_19.tpb_384  score 1.050000"


def test_scores_without_samples_and_with_guessed_weights_say_so() -> None:
    plain = workload(variant("ipt_19.tpb_384", 1.05), choice=USE, approximate=True)
    assert lines(top(plain))[1] == "  use ipt_19.tpb_384  score 1.050000, approximate"


def test_long_labels_have_lines_of_their_own() -> None:
    other = RejectedVariant(variant=LONG[:-1] + "9", score=1.02, reason="score 1.020000 is lower")
    assert lines(top(used(LONG, other)), 80)[2:] == [
        f"  use {LONG}",
        "    score 1.050000 (1.040\N{EN DASH}1.060), better",
        "    best score",
        "  not taken:",
        f"    {LONG[:-1]}9",
        "      1.020000 score 1.020000 is lower",
    ]


def test_long_reasons_are_folded_beside_their_variants() -> None:
    reason = "the 95 % interval of its score, 0.9900 to 1.0100, does not lie above 1"
    other = RejectedVariant(variant="ipt_7.tpb_64", score=1.02, reason=reason)
    rows = lines(top(used("ipt_19.tpb_384", other)), 80)
    assert rows[-2:] == [
        "    ipt_7.tpb_64  1.020000  the 95 % interval of its score, 0.9900 to 1.0100,",
        "                            does not lie above 1",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_nothing_is_cut_and_nothing_is_too_wide(width: int) -> None:
    other = RejectedVariant(variant=LONG[:-1] + "9", score=1.02, reason="score is too low " * 9)
    rows = lines(top(used(LONG, other)), width, head=True, verbose=True)
    assert max(map(len, rows)) <= width
    text = squeezed(rows)
    assert all(part in text for part in (LONG, LONG[:-1] + "9", "1.020000", "a.db"))
    assert text.count("scoreistoolow") == 9


def test_rules_and_counts_follow() -> None:
    document = top(
        workload(BETTER, choice=USE, approximate=True, databases=("a.db",)),
        workload(choice=KEEP, databases=("b.db",)),
        workload(),
    )
    rows = lines(document, head=True)
    assert rows[-3].startswith("approximate: the declared values")
    assert rows[-2:] == [
        "rules: score at least 1.015, no runtime workload under 0.95, above 1 with 95 % confidence",
        "use a variant for 1, keep base for 1",
    ]
    assert [row.rsplit(" · ")[-1] for row in rows if "cccl v" in row] == ["a.db", "b.db"]


def test_notes_do_without_approximate_weights() -> None:
    rows = lines(top(workload(choice=KEEP)), head=True)
    assert rows[-3] == ""


def test_preferring_simple_is_a_rule() -> None:
    assert rules_in_words(Rules(prefer_simple=True)).endswith("the closest to the current values")


def test_nothing_to_choose_from_is_told() -> None:
    assert lines(top()) == ["no workload has a baseline"]
