"""The page of a search in a browser, and what its figures and sentences are made of."""

import re
from itertools import product
from xml.etree import ElementTree

import pytest

from policygen.app.databases import report_search
from policygen.app.inputs import ResultFiles
from policygen.model.results import Choice, DataWarning
from policygen.model.searches import (
    Memcheck,
    ReportedSession,
    RungSpan,
    SearchCurve,
    SearchRun,
    TriedVariant,
)
from policygen.report import charts, search_charts, search_page, search_views
from policygen.report.charts import PANELS, shown_points
from policygen.report.pages import render_page as render
from policygen.report.search_charts import (
    Bin,
    Colours,
    MarkedVariants,
    bins_of,
    by_pair,
    by_parameter,
    by_rank,
    convergence,
    intervals,
    space_of,
)
from policygen.report.search_views import reported
from tests.browser import faults, opened, overflow
from tests.report.shown import lines
from tests.report.structure import Structure, check_links
from tests.results.measured import MEASURED
from tests.results.searched import CT, searched
from tests.tiers import sampled

EVIL = "<script>x</script>\x1b[2J\u202e</svg>\"'&"


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    path = searched(tmp_path_factory.mktemp("searched") / "run.db", count=160)
    return report_search(ResultFiles([str(path)]))


@pytest.fixture(scope="module")
def workload(document):
    return document.workloads[0]


def with_workloads(document, *workloads, **more):
    return document.model_copy(update={"workloads": workloads, **more})


def parsed(drawing_page):
    return [ElementTree.fromstring(one) for one in re.findall(r"(?s)<svg.*?</svg>", drawing_page)]


def titles(page):
    return [one.find("title").text for one in parsed(page)]


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "scheme"),
    sampled(product((400, 1280), ("light", "dark")), (400, "dark")),
)
def test_it_is_readable_everywhere(document, tmp_path, width, scheme):
    path = tmp_path / "search.html"
    path.write_text(render(document))
    with opened(path, width=width, scheme=scheme) as (shown, said):
        assert overflow(shown) <= 0
        assert said == []
        assert shown.locator("script").count() == 1
        # Texts of figures are not larger or smaller than can be read.
        sizes = shown.evaluate(
            "[...document.querySelectorAll('svg text.tick')].map(one =>"
            " one.getBoundingClientRect().height).filter(Boolean)"
        )
        assert min(sizes) > 9
        assert max(sizes) < 24
        if width == 400:
            shown.evaluate("document.querySelectorAll('details').forEach(o => { o.open = true })")
            assert overflow(shown) <= 0
            assert faults(shown) == []


@pytest.mark.browser
@pytest.mark.slow
def test_figures_follow_the_colours_of_the_page(document, tmp_path):
    path = tmp_path / "search.html"
    path.write_text(render(document))
    found = {}
    for scheme in ("light", "dark"):
        with opened(path, scheme=scheme) as (shown, _):
            found[scheme] = shown.evaluate(
                "['svg .tick', 'svg path.best', 'svg rect.h10', 'svg .dots', 'svg .s1'].map(one =>"
                " { const s = getComputedStyle(document.querySelector(one));"
                " return s.fill + s.stroke })"
            )
    assert all(a != b for a, b in zip(found["light"], found["dark"], strict=True))


def test_figures_set_no_colour_themselves(document):
    for one in parsed(render(document)):
        assert not [
            e for e in one.iter() if {"fill", "stroke", "style"} & set(e.attrib) and e != one
        ]


def test_the_page_has_every_figure_with_its_title_and_words(document):
    page = render(document)
    structure = Structure(page)
    check_links(structure)
    names = titles(page)
    for wanted in (
        "The best score by evaluations",
        "The best score by time",
        "All scores, the best first",
        "Scores with intervals",
        "Base over variant: Elements=28",
        *(f"Score against {name}" for name in ("ipt", "tpb", "ns", "trp")),
        "Best score over ipt and tpb",
        "Best score over ns and trp",
    ):
        assert names.count(wanted) == 2, wanted
    drawings = structure.all("svg")
    assert all(one.attributes["role"] == "img" for one in drawings)
    ids = set(structure.of("id"))
    for one in drawings:
        assert {one.attributes["aria-labelledby"], one.attributes["aria-describedby"]} <= ids
    assert all(one.find("desc").text for one in parsed(page))
    heads = [one.words.removesuffix(" #") for one in structure.all("h3")]
    assert heads[:8] == [
        "Findings",
        "Finalists",
        "Base time divided by variant time, by quantile",
        "Progress of the search",
        "Parameters",
        "Pairs of parameters",
        "What failed, and why",
        "Noise",
    ]


def test_every_coordinate_lies_in_its_drawing(document):
    for one in parsed(render(document)):
        _, _, width, height = map(float, one.attrib["viewBox"].split())
        for element in one.iter():
            for name, limit in (("x", width), ("cx", width), ("y", height), ("cy", height)):
                if name in element.attrib:
                    assert -1 <= float(element.attrib[name]) <= limit + 1
            for name in ("width", "height"):
                assert float(element.attrib.get(name, 1)) >= 0


def test_the_cards_answer_first(document):
    structure = Structure(render(document))
    cards = [one.words for one in structure.elements if one.tag == "h2" and one.within()]
    wanted = ["Winner", "CUB selects today", "What else was close", "Has it converged?", "Failed"]
    start = cards.index("Winner")
    assert cards[start : start + 5] == wanted
    strong = [one.words for one in structure.all("strong")][:5]
    winner = document.workloads[0].finalists[0]
    assert strong[0] == f"{winner.score:.3f}"
    assert strong[1] == document.workloads[0].base
    assert strong[4] == "16"


def test_nothing_of_a_database_breaks_out(document, workload):
    where = {"subbench": EVIL, "point": {EVIL: EVIL}}
    finalists = tuple(
        one.model_copy(
            update={
                "runtime": tuple(row.model_copy(update=where) for row in one.runtime),
                "quantiles": tuple(row.model_copy(update=where) for row in one.quantiles),
            }
        )
        for one in workload.finalists
    )
    group = workload.failures[0].model_copy(update={"reason": EVIL, "variants": (EVIL,)})
    session = ReportedSession(database=EVIL, started=EVIL, gpu=EVIL, card=EVIL, method=EVIL)
    run = SearchRun(strategy=EVIL, variants=EVIL, distinct=EVIL)
    choice = {"decision": "keep base", "variant": None, "reason": EVIL, "noise_origin": EVIL}
    evil = workload.model_copy(
        update={
            "algorithm": EVIL,
            "workload": {EVIL: EVIL},
            "gpu": EVIL,
            "finalists": finalists,
            "failures": (group,),
            "searches": (run, run),
            "choice": Choice(**choice, noise=0.1),
        }
    )
    warning = DataWarning(database=EVIL, table=EVIL, message=EVIL)
    page = render(
        with_workloads(document, evil, workload, sessions=(session,), warnings=(warning,))
    )
    assert page.count("<script") == 1
    assert all(row.isprintable() for row in page.split("\n"))
    assert "\\x1b[2J\\u202e&lt;/svg&gt;" in page
    structure = Structure(page)
    check_links(structure)
    assert not [
        one for one in structure.elements if any(n.startswith("on") for n in one.attributes)
    ]
    parsed(page)


def test_measurements_without_a_search_say_what_is_left_out(tmp_path):
    path = MEASURED / "A_scan_exclusive_sum/cccl_meta_bench.db"
    page = render(report_search(ResultFiles([str(path)])))
    names = titles(page)
    assert "The best score by evaluations" not in names
    assert "All scores, the best first" in names
    assert "Score against ipt" in names
    words = Structure(page).all("body")[0].words
    assert "rows of results do not record the order of measurement" in words
    assert "policygen did not make these measurements" in words
    assert "CUB selects today" not in words


def test_many_workloads_are_a_table_with_figures_for_the_first(document, workload, monkeypatch):
    monkeypatch.setattr(search_page, "DETAILED", 2)
    monkeypatch.setattr(search_page, "LISTED", 4)
    lots = [workload.model_copy(update={"workload": {CT: f"I{n}"}}) for n in range(6)]
    page = render(with_workloads(document, *lots))
    assert titles(page).count("Score against ipt") == 2
    words = Structure(page).all("body")[0].words
    assert "and 2 more workloads; choose with -R and -a." in words
    assert "4 more workloads without figures on this page" in words


def test_a_report_of_nothing_says_so(document):
    empty = with_workloads(document, sessions=())
    assert "<h1>Search report</h1>" in render(empty)
    assert "No workload was measured." in render(empty, "md")
    assert lines(reported(empty, verbose=False, head=True), 80) == ["no workload was measured"]


def test_a_finalist_of_no_last_rung_wins_nothing(document, workload):
    sharper = workload.model_copy(update={"rung": "sharper", "best": None})
    assert "has not reached its last rung" in search_views.result(sharper)
    page = render(with_workloads(document, sharper, sharper))
    assert "last rung not reached" in page
    assert "for now" in page


def test_what_is_not_beaten_says_so(document, workload):
    best = workload.finalists[0].model_copy(update={"score": 1.001, "verdict": "equal"})
    one = workload.model_copy(update={"best": None, "finalists": (best,)})
    assert search_views.result(one).startswith("No variant beats base by more than noise: the best")
    assert search_views.close(one) == "no other was measured as precisely"
    page = render(with_workloads(document, one, one))
    assert "is not beaten by more than noise" in page
    assert "<b>base</b>; best: " in page


@pytest.mark.parametrize(
    ("screened", "words"),
    [
        (None, ""),
        (1.045, "the screening score was 1.045: 0.025 of it was selection bias"),
        (1.0203, "the screening score was 1.020, too"),
        (1.01, "the screening score was 1.010, 0.010 less"),
    ],
)
def test_luck_is_told(workload, screened, words):
    one = workload.finalists[0].model_copy(update={"score": 1.02, "screened": screened})
    assert search_views.luck(one) == words


@pytest.mark.parametrize(
    ("update", "words"),
    [
        ({"runtime_workloads": 3}, "Measured on 3 of 4 declared runtime workloads"),
        ({"approximate": True}, "Scores are approximate"),
        ({"unlisted": 2}, "2 variants more were measured"),
        ({"best": None}, "db choose takes"),
    ],
)
def test_what_limits_a_result_is_told(workload, update, words):
    choice = Choice(decision="use", variant=workload.best, reason="best score")
    one = workload.model_copy(update={"choice": choice, **update})
    assert any(text.startswith(words) for text in search_views.remarks(one))


def test_the_extent_of_a_search_is_told(workload):
    run = SearchRun(strategy="hill", distinct="9" * 40, ended=None)
    one = workload.model_copy(update={"searches": (run,)})
    assert list(search_views.extent(one)) == [
        "176 of 1.00e+40 distinct variants were tried, less than 0.1 %.",
        "Strategy hill; it is still running, or was killed.",
    ]
    run = run.model_copy(update={"distinct": "many", "ended": "exhausted", "spent": 90.0})
    one = workload.model_copy(update={"searches": (run,)})
    assert list(search_views.extent(one)) == [
        "Strategy hill; all distinct variants were tried after 1 min 30 s."
    ]
    last = workload.curve.best[-1].model_copy(update={"evaluation": workload.curve.evaluations})
    curve = workload.curve.model_copy(update={"best": (last,)})
    still = " ".join(search_views.convergence(workload.model_copy(update={"curve": curve})))
    assert "was still rising at the last variant" in still


def memchecked(workload, **memcheck):
    wrong = next(one for one in workload.findings if one.kind == "wrong")
    given = {"variant": "ipt_7", "outcome": "error", "words": "Invalid read", **memcheck}
    update = {"count": 7, "variants": ("ipt_7", "ipt_8"), "memcheck": Memcheck(**given)}
    finding = wrong.model_copy(update=update)
    return workload.model_copy(update={"findings": (finding,)})


@pytest.mark.parametrize(
    ("memcheck", "words"),
    [
        ({}, "base passes memcheck, VARIANT does not: Invalid read"),
        (
            {"in_cub": True},
            "CUB itself fails here: base passes memcheck, VARIANT does not: Invalid",
        ),
        (
            {"outcome": "base"},
            "memcheck also fails for base, so it says nothing about these variants",
        ),
        ({"outcome": "clean", "words": ""}, "memcheck finds no error in VARIANT or in base"),
        (
            {"outcome": "clean", "words": "it hangs"},
            "or in base, although it fails again: it hangs",
        ),
        ({"outcome": "not run", "words": "no GPU."}, "was not run: no GPU. To run it: policygen"),
    ],
)
def test_a_finding_says_what_memcheck_says(document, workload, memcheck, words):
    """The page, Markdown and the terminal say the same."""
    one = memchecked(workload, **memcheck)
    words = words.replace("VARIANT", "ipt_7")
    report = with_workloads(document, one)
    shown = " ".join(lines(reported(report, verbose=False, head=True), 80))
    for text in (render(report), render(report, "md"), shown):
        plain = " ".join(re.sub(r"<[^>]*>", " ", text).replace("\\", "").split())
        assert words in plain
        assert "7 variants: WRONG RESULTS: ipt_7, ipt_8 and 5 more: " in plain
        assert ("CUB itself" in plain) == bool(memcheck.get("in_cub"))


def test_a_database_without_a_memcheck_says_how_to_run_it(document, workload):
    assert {one.kind for one in workload.findings} == {"wrong", "hang"}
    assert all(one.memcheck is None for one in workload.findings)
    text = render(with_workloads(document, workload), "md").replace("\\", "")
    assert "memcheck was not run. To run it: policygen measure -R" in text


def test_a_search_of_several_sessions_lists_them(document, workload):
    run = workload.searches[0]
    open_end = run.model_copy(update={"ended": None, "budget": None, "seed": None})
    one = workload.model_copy(update={"searches": (run, open_end), "other_failures": 3})
    page = render(with_workloads(document, one, other_sessions=2))
    assert "it is still running, or was killed" in page
    assert "and 3 other reasons" in page
    assert "and 2 earlier sessions" in page


def test_values_stand_by_themselves_or_in_ranges():
    assert bins_of("a", {3, 1, 2}).bins == (Bin(1, 1), Bin(2, 2), Bin(3, 3))
    found = bins_of("ns", set(range(0, 2049, 4)))
    assert len(found.bins) <= search_charts.MOST_BINS
    assert found.bins[0] == Bin(0, 124)
    assert found.bins[0].text == "0 to 124"
    assert [found.place(value) for value in (0, 124, 128, 2048)] == [0, 0, 1, 16]
    wide = bins_of("x", {-(2**31), 2**31 - 1, *range(30)})
    assert len(wide.bins) <= search_charts.MOST_BINS
    assert all(wide.bins[wide.place(v)].low <= v for v in (-(2**31), 0, 29, 2**31 - 1))
    assert found.found({"ns": 4000}) is None
    assert found.found({"other": 4}) is None
    assert bins_of("a", {1, 3}).found({"a": 2}) is None


def test_cells_count_what_is_in_them(workload):
    space = space_of(workload)
    assert [one.name for one in space.parameters] == ["ipt", "tpb", "ns", "trp"]
    for one in space.parameters:
        cells = space.column(one)
        assert sum(len(cell.scores) for cell in cells) == 160
        assert sum(len(cell.failed) for cell in cells) == 16
    x, y = space.parameters[:2]
    grid = space.grid(x, y)
    assert max(max(c.scores) for c in grid.values() if c.scores) == max(
        v.score for v in workload.variants
    )
    # What scores were made of: items and threads, and not whether it is transposed.
    assert space.shares["ipt"] > 0.2 > space.shares["trp"]
    assert [one.name for one in space.leading(2)] == ["ipt", "tpb"]


def test_a_map_tells_its_numbers_where_one_points(workload):
    space = space_of(workload)
    drawings = list(by_pair(space, MarkedVariants.of(workload)))
    assert len(drawings) == 6
    titled = [mark.title for mark in drawings[0].marks if mark.name == "rect" and mark.title]
    assert any(re.fullmatch(r"ipt \d+, tpb \d+ to \d+: best \d\.\d{3}, .*", t) for t in titled)
    looks = [mark.look for mark in drawings[0].marks if mark.name == "rect"]
    assert all(look.startswith(("h", "none", "best")) for look in looks)
    legend = [mark.text for mark in drawings[0].marks if mark.name == "text"]
    assert {"1: base", "failed"} <= set(legend)


def test_wide_cells_have_their_number(workload):
    few = [v for v in workload.variants if v.variant.endswith("trp_1")][:3]
    variants = tuple(
        TriedVariant(variant=f"a_{n}.b_{n % 2}", score=one.score) for n, one in enumerate(few)
    )
    one = workload.model_copy(update={"variants": variants, "failed_variants": ()})
    (drawing,) = by_pair(space_of(one), MarkedVariants.of(one))
    told = {mark.text for mark in drawing.marks if mark.look.startswith("in ")}
    assert told == {f"{v.score:.3f}" for v in variants}


def test_colours_have_base_in_the_middle():
    colours = Colours.of([1.05, 1.01, 0.9, 0.5])
    assert [colours.shade(score) for score in (1.05, 1.2, 1.0, 0.7, 0.1)] == [
        "h10", "h10", "h5", "h0", "h0"
    ]  # fmt: skip
    assert Colours.of([1.001]).faster == 0.02
    assert Colours.of([0.9]).slower == pytest.approx(0.1)


def test_without_scores_or_parameters_there_is_no_figure(workload):
    none = workload.model_copy(update={"variants": (), "curve": None, "finalists": ()})
    space = space_of(none)
    marked = MarkedVariants.of(none)
    assert [*by_parameter(space, marked), *by_pair(space, marked), *convergence(none)] == []
    assert intervals(none) is None
    single = workload.model_copy(
        update={
            "variants": (TriedVariant(variant="a_1", score=0.5),),
            "failed_variants": ("a_2", "base"),
            "best": None,
            "base": None,
        }
    )
    space = space_of(single)
    drawings = list(by_parameter(space, MarkedVariants.of(single)))
    assert [one.title for one in drawings] == ["Score against a"]
    assert by_rank(single).title == "All scores, the best first"


@pytest.mark.parametrize(
    ("seconds", "unit"),
    [(100.0, "seconds"), (1000.0, "minutes"), (100_000.0, "hours")],
)
def test_times_have_units_that_one_can_read(workload, seconds, unit):
    curve = workload.curve.model_copy(update={"seconds": seconds})
    drawings = list(convergence(workload.model_copy(update={"curve": curve})))
    texts = [mark.text for mark in drawings[1].marks]
    assert f"{unit} of the search" in texts
    untimed = workload.model_copy(
        update={
            "variants": tuple(v.model_copy(update={"seconds": None}) for v in workload.variants)
        }
    )
    assert len(list(convergence(untimed))) == 1


def test_more_runtime_workloads_than_fit_are_cut(workload):
    first = workload.finalists[0]
    points = [{"Elements{io}[pow2]": str(n)} for n in range(PANELS + 3)]
    runtime = tuple(
        first.runtime[0].model_copy(update={"point": point, "weight": n / 100})
        for n, point in enumerate(points)
    )
    quantiles = tuple(first.quantiles[0].model_copy(update={"point": point}) for point in points)
    one = workload.model_copy(
        update={
            "finalists": (first.model_copy(update={"runtime": runtime, "quantiles": quantiles}),)
        }
    )
    shown = shown_points(one)
    assert [dict(axes)["Elements{io}[pow2]"] for _, axes in shown] == [
        str(n) for n in range(3, PANELS + 3)
    ]


@pytest.mark.parametrize(
    ("low", "high", "most", "found"),
    [
        (0, 300, 6, ["0", "50", "100", "150", "200", "250", "300"]),
        (0.87, 1.08, 5, ["0.90", "0.95", "1.00", "1.05"]),
        (0.9991, 1.0012, 5, ["0.9995", "1.0000", "1.0005", "1.0010"]),
        (0, 20_000, 4, ["0", "5,000", "10,000", "15,000", "20,000"]),
    ],
)
def test_axes_have_round_numbers(low, high, most, found):
    assert charts.spelled_steps(charts.steps(low, high, most)) == found


@pytest.mark.parametrize(
    "scores",
    [[1.0], [0.5], [0.2, 0.3], [1.02, 0.99, 0.5], [1e21, 1.0], [1e-12], [1.3, 1.2, 0.1, 0.1, 0.1]],
)
def test_the_best_score_is_always_in_sight(scores):
    low, high = charts.score_range(scores)
    assert low < max(scores) < high
    assert low < 1 < high


def test_long_texts_are_cut_to_their_room():
    assert charts.cut("abc", 100) == "abc"
    assert charts.cut("a" * 100, 64) == "a" * 9 + "…"


def test_points_at_the_same_place_are_drawn_once():
    (mark,) = charts.dots([(1.01, 2), (1.02, 2), (3, 4)], "dots")
    assert mark.where["d"] == "M1 2h0M3 4h0"
    assert list(charts.dots([], "dots")) == []
    assert list(charts.line([], "best")) == []


def test_variants_at_the_edge_are_counted():
    assert charts.outside([0.90, 0.95, 1.10], 0.93) == "1 variant below 0.93 at the lower edge."
    assert charts.outside([0.90, 0.95, 1.10], 0.96) == "2 variants below 0.96 at the lower edge."
    assert charts.outside([0.90, 0.95, 1.10], 0.80) == ""


def test_what_failed_is_summarized_as_far_as_the_rows_record_it(workload):
    counts = workload.counts.model_copy(update={"wrong": 1, "failed": 2, "incomplete": 1})
    own = workload.model_copy(update={"counts": counts})
    assert search_views.failures(own) == (
        "1 variant computed other results than base, 2 variants failed, 1 variant lacks some of"
        " the runtime workloads."
    )
    none = {"wrong": 0, "failed": 0, "incomplete": 0}
    counts = counts.model_copy(update=none)
    own = workload.model_copy(update={"counts": counts, "failures": ()})
    assert search_views.failures(own) == "Nothing failed."
    rows = own.model_copy(update={"origin": "rows"})
    assert search_views.failures(rows) == ""
    rows = rows.model_copy(update={"failures": workload.failures})
    assert search_views.failures(rows).startswith("Failed builds and runs of this benchmark")


@pytest.mark.parametrize(("end", "named"), [(49, []), (60, ["screening"]), (100, ["screening"])])
def test_a_rung_is_named_above_its_strip_where_there_is_room(end, named):
    """The panel is as wide as 100 seconds, and a word of nine letters takes 57.6."""
    spans = (RungSpan(rung="screening", start=0, end=end),)
    curve = SearchCurve(evaluations=3, seconds=100, best=(), spans=spans)
    panel = charts.Panel(0, 50, 100, 100, (0, 100), (0.9, 1.1))
    marks = search_charts._rung_strips(panel, curve)
    assert [mark.text for mark in marks if mark.text] == named
