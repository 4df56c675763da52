"""Is it faster: what a review shows of a document of `verify-performance`."""

import re
from itertools import product

import pytest

from policygen.model.reviews import Review
from policygen.report.pages import COMMENT
from policygen.report.pages import render_page as render
from policygen.report.review_facts import annotations
from tests.browser import faults, opened, overflow
from tests.report.performances import (
    faster,
    performance,
    runtime,
    same,
    slower,
    undecided,
    unmeasured,
    workload,
    wrong,
)
from tests.report.structure import Structure, check_links
from tests.report.test_coverage_page import HOSTILE, LONG
from tests.report.test_review_page import PATH, differing, entry, open_all, review
from tests.tiers import sampled

NAMES = ("I32", "I8", "F32", "U64")


def measured(*workloads, reached=NAMES, given=None, **fields):
    """A review of one entry with what was measured of it."""
    one = entry(reached=tuple(differing(name=name) for name in reached), evidence=())
    told = given or performance(*workloads)
    return review(one, **{"base": "HEAD", "remarks": (), "performance": told, **fields})


def section(text):
    """Of Markdown."""
    return text.partition("\n### Is it faster?\n\n")[2].partition("\n<details>")[0]


def test_the_table_says_what_is_faster_beside_the_noise_and_what_was_claimed():
    found = section(render(measured(), "md")).split("\n")
    assert found[0].startswith("H200 (6144, 132, eccon), sm90, driver 570.1, nvcc 13.2; CUB 3.0.1,")
    assert found[2].startswith("**4 workloads: 1 faster, 1 slower, 1 undecided, 1 with the same")
    assert (
        "0.20 % to 0.40 % between processes, median 0.30 %; all verdicts together hold with 99 %"
        " confidence"
    ) in found[4]
    assert found[6:11] == [
        "| workload | verdict | ratio | between | noise | claim |",
        "| --- | --- | ---: | ---: | ---: | --- |",
        "| scan.exclusive.sum T=I8 | slower | 0.930 | 0.921 to 0.939 | 0.20 % | 1.020, at least"
        " 1.000: does not hold |",
        "| scan.exclusive.sum T=I32 | faster; 1 runtime workload slower | 1.084 | 1.073 to 1.095 |"
        " 0.20 % | 1.080, at least 1.050: holds |",
        "| scan.exclusive.sum T=F32 | undecided: within 5.0 % | 1.010 | 0.970 to 1.050 | 0.20 % |"
        " none |",
    ]
    assert found[-2] == "1 workload with the same machine code, equal by construction"


def test_runtime_workloads_that_are_slower_or_not_decided_are_listed():
    rows = [row for row in section(render(measured(), "md")).split("\n") if "| Elements" in row]
    assert rows == [
        "| Elements=16 | scan.exclusive.sum T=I8 | slower | 9.30 | 10.00 | 0.930 | 0.921 to 0.939 |"
        " 0.30 % |",
        "| Elements=20 | scan.exclusive.sum T=I32 | slower | 9.50 | 10.00 | 0.950 | 0.941 to 0.959"
        " | 0.30 % |",
        "| Elements=16 | scan.exclusive.sum T=F32 | undecided | 10.10 | 10.00 | 1.010 | 0.970 to"
        " 1.050 | 0.30 % |",
    ]
    fine = workload("I32", 1.1, "faster", runtime(1.1, "faster"))
    text = section(render(measured(fine), "md"))
    assert "No runtime workload is slower or undecided." in text
    assert "claim" not in text


def test_without_a_document_nothing_is_said_of_speed():
    document = measured().model_copy(update={"performance": None})
    for form in ("md", "html"):
        text = render(document, form)
        assert "Is it faster" not in text
        assert "as merged: not measured" in text
        assert "<svg" not in text
    assert "as merged" not in render(measured(), "md").partition("### ")[0]
    assert '"performance": null' in render(document, "json")
    assert Review.model_validate_json(render(measured(), "json")).performance is not None


def test_what_was_measured_as_it_is_merged_is_not_told_as_not_measured():
    text = render(measured(), "md")
    assert "\n3 workloads of 4 measured before and after, shown below\n" in text
    assert "1 workload changed but not measured" in text  # the same code
    whole = render(measured(reached=NAMES[:3]), "md")
    assert "\n3 workloads measured before and after, shown below\n" in whole
    assert "not measured" not in whole
    other = render(measured(reached=("U8",)), "md")
    assert "\nNot measured: no database given (--db).\n" in other
    assert "\n1 workload with changed values on sm90 not measured.\n" in other


def test_another_base_and_an_unknown_tree_are_told():
    text = render(measured(base="main", given=performance(cub=None)), "md")
    told = (
        "It was compared with HEAD, and this review compares with main; whether the two are the"
        " same"
    )
    assert told in text
    assert "The measured tree is unknown." in text
    assert "It was compared with" not in render(measured(), "md")


def test_what_was_not_measured_or_computes_something_else_is_told():
    text = section(render(measured(wrong(), unmeasured(), workload("x", None, "undecided")), "md"))
    assert "- scan.exclusive.sum T=F64: wrong results: the sum is another one\n" in text
    assert "- scan.exclusive.sum T=I128: not measured: the budget ended before" in text
    assert "- scan.exclusive.sum T=x: not measured; the reason is unknown" in text
    assert "| workload |" not in text


def test_what_is_slower_wrong_or_not_known_must_not_be_merged():
    lots = faster(), slower(), undecided(), same(), wrong(), unmeasured()
    name = "cub.bench.scan.exclusive.sum T={} on sm90"
    assert measured(*lots).failures == (
        f"slower: {name.format('I8')}",
        f"slower in part: {name.format('I32')}",
        f"less than claimed: {name.format('I8')}",
        f"does not run as before: {name.format('F64')}",
        f"not measured: {name.format('I128')}",
        f"undecided: {name.format('F32')}",
    )
    two = measured(slower(), workload("U8", 0.9, "slower")).failures[0]
    assert two == f"slower: {name.format('I8')}, and 1 more workload"
    three = measured(*[workload(str(n), 0.9, "slower") for n in range(3)]).failures[0]
    assert three == f"slower: {name.format('0')}, and 2 more workloads"
    assert measured(same(), workload("U8", 1.1, "faster")).failures == ()
    # As much slower as it may be.
    told = performance(workload("I8", 0.93, "slower"), tolerance=0.1)
    assert measured(given=told).failures == ()


def test_cards_answer_it():
    page = Structure(render(measured(), "html"))
    cards = [one.words for one in page.all("div") if "card" in one.attributes.get("class", "")]
    assert len(cards) == 5
    assert cards[3].startswith("Is it faster0.930 to 1.084 times as fast as before")
    assert "on H200, compared with HEAD" in cards[3]
    assert "1 claim of the change not met" in cards[3]
    assert cards[4].startswith("What could get worse2 of 5 runtime workloads slower")
    assert "worst: 0.930 for Elements=16 of scan.exclusive.sum T=I8" in cards[4]
    assert "1 runtime workload undecided" in cards[4]
    alone = render(measured(given=performance(same(), gpu=None, verdict="same-code")), "md")
    assert "**same machine code**<br>1 workload: 1 with the same machine code |" in alone
    unknown = render(measured(unmeasured()), "md")
    assert "| **Is it faster** | **not known**<br>1 workload: 1 not measured<br>" in unknown


def test_what_got_slower_stands_out_and_leads_to_its_row():
    page = Structure(render(measured(), "html"))
    check_links(page)
    (listing,) = page.all("ul", **{"class": "largest"})
    items = [one.words for one in page.all("li") if listing in one.inside]
    assert items[:3] == [
        "0.930 of its previous speed for scan.exclusive.sum T=I8 on sm90, as merged",
        "0.950 of its previous speed for Elements=20 of scan.exclusive.sum T=I32 on sm90, as"
        " merged",
        "1 workload changed by tuning_scan.cuh:7, not measured",
    ]
    assert "1.084 times as fast as before: scan.exclusive.sum T=I32 on sm90, as merged" in (items)
    assert "performance" in page.of("id")


def test_an_annotation_for_what_got_slower_is_at_the_line_of_its_entry():
    at, name = f"file={PATH},line=7,", "cub.bench.scan.exclusive.sum T={} on sm90"
    document = measured(faster(), slower(), undecided(), wrong(), reached=("I32", "I8"))
    assert annotations(document).splitlines() == [
        f"::error {at}title=policygen slower::{name.format('I32')}: before over after 1.084 (1.073"
        " to 1.095), worst 0.950 for Elements=20",
        f"::error {at}title=policygen slower::{name.format('I8')}: before over after 0.930 (0.921"
        " to 0.939), worst 0.930 for Elements=16",
        f"::error {at}title=policygen less than claimed::{name.format('I8')}: 1.020, at least"
        " 1.000: does not hold; measured at most 0.939",
        f"::error title=policygen other results::{name.format('F64')}: wrong: the sum is another"
        " one",
    ]
    told = performance(workload("I8", 0.93, "slower"), tolerance=0.1)
    (row,) = annotations(measured(given=told, reached=("I8",))).splitlines()
    assert row.startswith(f"::warning {at}title=policygen slower::")
    assert row.endswith("before over after 0.930 (0.921 to 0.939)")


def test_an_older_dispatcher_is_not_what_was_measured():
    row = differing(name="I8").model_copy(update={"legacy": True})
    document = review(entry(reached=(row,), evidence=()), performance=performance(slower()))
    first, last, *_ = annotations(document).splitlines()
    assert first.startswith("::notice ")
    assert last.startswith("::error title=policygen slower::")


HOSTILE_TOLD = {"before": HOSTILE, "after": HOSTILE, "gpu": HOSTILE, "remarks": (HOSTILE, LONG)}


def hostile():
    """A document in which each text is hostile, and each number absurd."""
    row = {"subbench": HOSTILE, "point": {HOSTILE: LONG}, "low": 0, "noise": 1e300, "weight": 0}
    rows = [
        runtime(1e300, "slower", **row, high=1e305, before_seconds=1e300),
        runtime(0, "undecided", high=0, low=0),
    ]
    failed = wrong().failed.model_copy(update={"reason": HOSTILE})
    return performance(
        workload(HOSTILE, 1e300, "slower", *rows, high=1e305, claimed=-1e300, least=0, holds=True),
        workload(LONG, 0, "equal", *rows, low=0, high=1e305),
        workload(f"{HOSTILE}1", None, "undecided", failed=failed),
        workload(f"{HOSTILE}2", None, "undecided", problem=HOSTILE),
        same(HOSTILE),
        **HOSTILE_TOLD,
    )


@pytest.fixture
def page(tmp_path):
    """Shows whole documents in a browser."""

    def write(document):
        path = tmp_path / "review.html"
        path.write_text(render(document, "html"))
        return path

    return write


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "scheme"),
    sampled(product((400, 1200), ("light", "dark")), (400, "dark")),
)
@pytest.mark.parametrize("given", [performance, hostile], ids=["plain", "hostile"])
def test_it_is_readable_everywhere(page, given, width, scheme):
    path = page(measured(given=given()))
    with opened(path, width=width, scheme=scheme) as (shown, said):
        open_all(shown)
        assert overflow(shown) <= 0
        assert faults(shown) == []
        assert said == []
        assert shown.locator("script").count() == 1
        assert shown.locator("main img").count() == 0
        assert shown.locator("svg").count() > 2


def test_absurd_numbers_are_short():
    text = render(measured(given=hostile()), "html")
    plain = re.sub(r"<[^>]*>", " ", text.partition("<main>")[2])
    assert not re.search(r"\d{30}", plain.replace(",", ""))
    assert "over 1,000" in plain
    assert "<script>alert" not in text
    assert "<script>" not in render(measured(given=hostile()), "md").partition("~~~")[0]
    rows = annotations(measured(given=hostile())).removesuffix("\n").split("\n")
    assert all(row.startswith("::") for row in rows)


def test_long_lists_are_cut_and_say_by_how_much():
    rows = [runtime(0.9, "slower", str(n)) for n in range(700)]
    many = [workload(f"t{n}", 0.9, "slower", runtime(0.9, "slower")) for n in range(600)]
    lost = [workload(f"p{n}", None, "undecided", problem="no") for n in range(510)]
    like = [same(f"s{n}") for n in range(501)]
    document = measured(*many, *lost, *like, workload("all", 0.9, "slower", *rows))
    text = render(document, "html")
    for told in (
        "and 101 more workloads",
        "and 800 more runtime workloads",
        "and 589 more workloads without figures",
        "and 10 more workloads",
        "and 1 more workload<",
        "and 676 more, all faster than these",
    ):
        assert told in text, told
    assert len(re.findall(r'<svg id="figure/[^"]*" viewBox', text)) < 12 * 13
    assert len(render(document, "md")) <= COMMENT


def test_figures_show_each_interval_and_each_quantile():
    text = render(measured(), "html")
    page = Structure(text)
    drawn = [one.words for one in page.all("svg")]
    assert len(drawn) == 3 + 5
    assert "3 runtime workloads with their intervals: 1 faster, 1 equal, 1 slower." in drawn[1]
    assert "Elements=20: 0.950, 0.941 to 0.959, slower" in drawn[1]
    assert "all of them, by their weights: 1.084, 1.073 to 1.095, faster" in drawn[1]
    assert text.count('class="whisker slower"') == 3
    assert text.count('class="whisker faster"') == 2
    assert "Before over after: Elements=20" in text
    assert "0.950 at the median" in text
    few = workload("I8", 0.93, "slower", runtime(0.93, "slower", quantiles=()))
    assert "at each quantile of the samples" not in render(measured(few), "html")


def test_sub_benchmarks_are_named_where_there_are_several():
    rows = runtime(0.9, "slower"), runtime(0.9, "slower", subbench="pairs")
    text = section(render(measured(workload("I8", 0.9, "slower", *rows)), "md"))
    assert "| Elements=16 |" in text
    assert "| pairs: Elements=16 |" in text


def test_what_is_far_away_stands_at_the_edge():
    far = workload("I8", 50, "faster", runtime(50, "faster"), runtime(1.1, "faster", "20"))
    text = render(measured(far), "html")
    assert "1 with an interval beyond 0.1 to 10, drawn at the edge" in text
    assert "50.000" in text


def test_equal_workloads_are_equal_within_so_much():
    one = workload("I8", 1.001, "equal", runtime(1.001, "equal"), low=0.996, high=1.004)
    text = render(measured(given=performance(one, workload("U8", 2.0, "equal", high=1e9))), "md")
    assert "| scan.exclusive.sum T=I8 | within 0.4 % | 1.001 |" in text
    assert "| scan.exclusive.sum T=U8 | within over 1,000 % | 2.000 | 1.980 to over 1,000 |" in text
    assert "0 of 1 runtime workloads slower" in text


def test_a_ratio_without_an_interval_decides_nothing():
    alone = {"low": None, "high": None, "noise": None}
    row = runtime(0.9, "undecided", **alone)
    document = measured(workload("I8", 0.9, "undecided", row, **alone))
    text = section(render(document, "md"))
    row = "undecided | 0.900 | interval not known | not known |"
    assert f"| scan.exclusive.sum T=I8 | {row}" in text
    assert "| 0.900 | interval not known | not known |" in text.partition("Runtime")[2]
    page = render(document, "html")
    assert "all of them, by their weights: 0.900, interval not known, undecided" in page
    assert 'class="whisker' not in page
    assert document.failures[0].startswith("undecided: ")


def test_noise_that_nobody_told_is_not_known():
    one = workload("I8", 1.1, "faster", noise=None)
    text = section(
        render(measured(given=performance(one, noise=None, gpu=None, driver=None)), "md")
    )
    assert "| 1.100 | 1.089 to 1.111 | not known |" in text
    assert "over 1 is faster.\n" in text
    assert "Runtime" not in text
    assert text.startswith("sm90, nvcc 13.2; ")


def test_markdown_ends_with_what_a_pull_request_needs():
    """Twelve workloads: ten rows, the rest folded; the verdicts in NVBench's words, too."""
    names = (*NAMES, *(f"T{n}" for n in range(8)))
    given = {"databases": ("run.db", "gone.db"), "digests": ("ab" * 32, "")}
    text = render(measured(faster(), reached=names, **given), "md")
    block = text.partition("\n### For the pull request\n\n")[2]
    shown, _, folded = block.partition("\n\n<details>")
    rows = shown.split("\n")
    assert rows[0] == "| workload | arch | before → after | speedup | verdict |"
    assert len(rows) == 12
    (row,) = (row for row in rows if "T=I32 " in row)
    assert row.endswith("| 1.084 (1.073 to 1.095) | faster (FAST) |")
    assert rows[-1].endswith("|  | not measured |")
    assert folded.startswith("<summary>2 more rows</summary>\n\n| workload |")
    assert folded.partition("</details>\n\n")[2] == (
        "- Other architectures with changed workloads: none\n"
        "- Machine code: not compared; policygen verify-sass does\n"
        f"- run.db: sha256 {'ab' * 32}\n"
    )


def test_what_changes_alike_on_several_architectures_is_one_row_of_markdown():
    changed = [differing(arch, name) for arch in ("sm86", "sm90") for name in ("T1", "T2")]
    other = differing("sm100", "T1").model_copy(update={"after": {"items": 21}})
    text = render(review(others=(*changed, other), remarks=()), "md")
    parts = text.split("### ")[1:]
    tables = [[row for row in part.split("\n") if row.startswith("| scan.")] for part in parts]
    archs = [[row.split(" | ")[1] for row in table] for table in tables if table]
    assert archs == [["sm86, sm90", "sm86, sm90", "sm100"]] * 2
    page = render(review(others=(*changed, other), remarks=()), "html")
    assert page.count('id="others/') == 5


def test_a_search_is_evidence_until_the_merged_change_is_measured():
    text = render(review(entry(), remarks=()), "md")
    assert re.search(r"\| 1\.\d{3}[^|]* \| as searched, not as merged \|", text)
