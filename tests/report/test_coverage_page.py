"""The heat map in a browser, from a document that is made up."""

from itertools import product

import pytest

from policygen.app.audits import shares
from policygen.model.audits import Cell, Compared, Coverage, Fillable, Turned
from policygen.model.selection import EntryPlace
from policygen.model.trees import Cub
from policygen.report.coverage_views import ROWS
from policygen.report.pages import render_page as render
from tests.browser import faults, opened, overflow
from tests.report.structure import Structure, check_links
from tests.tiers import sampled

CUB = Cub(root="/tree", version="3.0.1", dialect="specializations", found="--cub")
HOSTILE = "<script>alert(1)</script>|`*_[x](y)&"
LONG = "std::tuple<" + "very_long_name_of_a_type_without_any_space" * 6 + ">"
ENTRY = EntryPlace(header="tuning_scan.cuh", family="sm100_tuning", args=(HOSTILE,), line=7)
STATUSES = ("tuned", "inherited", "default", "disabled", "unreachable")


def cell(benchmark, value, arch, status, **fields):
    since = {"tuned": arch, "inherited": "sm80"}.get(status)
    return Cell(
        benchmark=f"cub.bench.{benchmark}",
        workload={"T": value, "OffsetT": "I32"},
        arch=arch,
        status=status,
        since=since,
        **{"entry": ENTRY if status in {"disabled", "unreachable"} else None, **fields},
    )


def cells(count=1):
    found = []
    for number in range(count):
        for value in ("I8", "I16", "F32", HOSTILE, LONG):
            found += [
                cell(f"reduce.sum{number}", value, "sm90", "tuned"),
                cell(f"reduce.sum{number}", value, "sm100", STATUSES[len(found) // 2 % 5]),
            ]
    found.append(cell("scan.sum", "I8", "sm90", "default"))
    found.append(cell("scan.sum", "I8", "sm100", "disabled", reason=HOSTILE))
    return found


def document(count=1, **fields):
    found = cells(count)
    archs = ("sm90", "sm100")
    return Coverage(
        cub=CUB, toolchain=HOSTILE, archs=archs, shares=shares(found), cells=found, **fields
    )


def fillable(count=1):
    place = {"benchmark": "cub.bench.scan.sum", "workload": {"T": HOSTILE}, "arch": "sm90"}
    one = Fillable(**place, status="default", variant=HOSTILE, score=1.2, databases=("a.db",))
    return (one,) * count


def compared(count=1):
    place = {"benchmark": "cub.bench.scan.sum", "workload": {"T": HOSTILE}, "arch": "sm90"}
    lost = Turned(**place, before="tuned", after=None)
    gained = Turned(**place, before="default", after="tuned")
    return Compared(cub=CUB, turned=(lost, gained) * count)


WHOLE = {"fillable": fillable(), "compared": compared(), "remarks": (HOSTILE,)}


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "coverage.html"
    path.write_text(render(document(**WHOLE), "html"))
    return path


@pytest.mark.browser
@pytest.mark.parametrize("scheme", sampled(["light", "dark"], "dark"))
def test_it_is_readable_on_a_phone_and_without_a_mouse(page, scheme):
    with opened(page, width=400, scheme=scheme) as (shown, said):
        shown.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        assert overflow(shown) <= 0
        assert faults(shown) == []
        assert said == []


ARCHS = ("sm80", "sm86", "sm90", "sm100", "sm103", "sm120")


def six():
    """Three benchmarks on six architectures; the last one has no row for the first of them."""
    found = []
    for at, arch in enumerate(ARCHS):
        names = ("reduce.sum", "scan.sum", "find") if at else ("reduce.sum", "scan.sum")
        found += [
            cell(name, value, arch, STATUSES[(at + len(value)) % 5])
            for name in names
            for value in ("I8", "F32")
        ]
    turned = [
        Turned(benchmark=f"cub.bench.{name}", workload={"T": "I8"}, arch=arch, before=b, after=a)
        for name, arch, b, a in (
            ("scan.sum", "sm90", "tuned", "default"),
            ("scan.sum", "sm100", "default", "tuned"),
            ("scan.sum", "sm100", "inherited", "default"),
            ("reduce.sum", "sm80", None, "tuned"),
            ("reduce.sum", "sm80", "tuned", None),
        )
    ]
    since = Compared(cub=CUB, turned=turned)
    return Coverage(
        cub=CUB, toolchain="nvcc", archs=ARCHS, shares=shares(found), cells=found, compared=since
    )


@pytest.fixture
def six_page(tmp_path):
    path = tmp_path / "six.html"
    path.write_text(render(six(), "html"))
    return path


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1200])
def test_counts_follow_the_filter(six_page, width):
    """All counts that the filter is above: of all benchmarks, of each, and of their workloads."""
    cells = ".lists details.a-sm90 li" if width == 400 else "tr[data-row]"
    with opened(six_page, width=width) as (shown, said):
        shown.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        before = shown.inner_text("main")
        shown.fill("#find", "reduce I8")
        assert shown.inner_text("#count") == "1 workload"
        words = shown.locator(f"{cells}:visible").all_inner_texts()
        assert len(words) == 2, "all benchmarks, and the one that is left"
        assert all("/1" in text and "/2" not in text and "/6" not in text for text in words)
        assert "1 of 2 workloads" in shown.inner_text(".benchmark:visible summary")
        shown.fill("#find", "")
        assert shown.inner_text("main") == before
        assert said == []


def test_the_matrix_has_a_cell_for_each_benchmark_on_each_architecture():
    page = Structure(render(six(), "html"))
    (table,) = page.all("table", **{"class": "shares"})
    inside = [one for one in page.elements if table in one.inside]
    columns = [one for one in inside if one.attributes.get("scope") == "col"]
    rows = [one for one in inside if one.attributes.get("scope") == "row"]
    assert [one.words for one in columns] == ["tuned workloads", *ARCHS]
    names = ["all benchmarks", "find", "reduce.sum", "scan.sum"]
    assert sorted(one.words.removesuffix(" #") for one in rows) == names
    cells = [one for one in inside if one.tag == "td"]
    assert len(cells) == len(names) * len(ARCHS)
    assert [one.attributes["class"] for one in cells] == [f"a-{arch}" for arch in ARCHS] * 4
    assert sum(not one.words for one in cells) == 1, "of find on sm80 there is nothing"
    parts = [one.attributes["class"] for one in inside if one.within(**{"class": "stack"})]
    assert set(parts) <= set(STATUSES)


@pytest.mark.parametrize("made", [six, lambda: document(**WHOLE)])
def test_each_row_has_an_address_of_its_own(made):
    page = Structure(render(made(), "html"))
    check_links(page)
    bodies = [one for one in page.all("tr") if any(e.tag == "tbody" for e in one.inside)]
    assert bodies
    assert all(one.attributes.get("id") for one in bodies)
    assert page.of("href")
    again = Structure(render(made(), "html"))
    assert again.of("id") == page.of("id")


def test_rows_that_come_later_change_no_address():
    less, more = (Structure(render(document(count), "html")) for count in (1, 2))
    assert set(less.of("id")) <= set(more.of("id"))


def test_what_changed_is_counted_by_algorithm_and_architecture():
    page = Structure(render(six(), "html"))
    (table,) = page.all("table", **{"class": "delta"})
    assert not any(one.tag == "details" for one in table.inside), "it is open"
    cells = [one for one in page.elements if table in one.inside and one.tag in {"th", "td"}]
    told = [one.words.removesuffix(" #") for one in cells]
    width = len(ARCHS) + 2
    minus = "\N{MINUS SIGN}1"
    assert [told[at : at + width] for at in range(0, len(told), width)] == [
        ["algorithm", *ARCHS, "all"],
        ["all", "new 1 gone 1", "", minus, "+1 ±1", "", "", f"+1 {minus} ±1 new 1 gone 1"],
        ["reduce.sum", "new 1 gone 1", "", "", "", "", "", "new 1 gone 1"],
        ["scan.sum", "", "", minus, "+1 ±1", "", "", f"+1 {minus} ±1"],
    ]


def test_at_most_ten_facts_stand_out_and_each_leads_to_its_row():
    some = [
        one.model_copy(update={"benchmark": f"cub.bench.b{number}", "workload": {"T": f"I{at}"}})
        for number, one in enumerate(fillable(20))
        for at in range(number + 1)
    ]
    page = Structure(render(document(30, **{**WHOLE, "fillable": some}), "html"))
    (listing,) = page.all("ul", **{"class": "largest"})
    items = [one for one in page.all("li") if listing in one.inside]
    assert len(items) == 10
    words = "workloads of b19 can be filled for sm90; the best score is 1.200"
    assert f"20 {words}" in [one.words for one in items]
    assert all(one.words[0].isdecimal() for one in items)
    assert sum(listing in one.inside for one in page.all("a")) == 10
    assert len(page.all("ul", **{"class": "largest"})) == 1
    nothing = [cell("scan.sum", "I8", "sm90", "tuned")]
    text = render(
        Coverage(cub=CUB, toolchain="", archs=("sm90",), shares=shares(nothing), cells=nothing),
        "html",
    )
    assert "What stands out" not in text


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "scheme"),
    sampled(product((400, 1000, 1200, 1600), ("light", "dark")), (400, "dark")),
)
def test_six_architectures_are_a_matrix_and_on_a_phone_a_list(six_page, width, scheme):
    with opened(six_page, width=width, scheme=scheme) as (shown, said):
        assert shown.locator(".shares").is_visible() == (width > 640)
        assert shown.locator(".lists").is_visible() == (width <= 640)
        assert overflow(shown) <= 0
        assert faults(shown) == []
        assert said == []
        if width > 640:
            tops = {shown.locator(f".shares thead .a-{arch}").bounding_box()["y"] for arch in ARCHS}
            assert len(tops) == 1
            heights = {box.bounding_box()["height"] for box in shown.locator(".card").all()}
            assert len(heights) == 1


@pytest.mark.browser
@pytest.mark.slow
def test_names_and_heads_stay_in_sight(tmp_path):
    path = tmp_path / "large.html"
    path.write_text(render(document(count=120), "html"))
    with opened(path, width=700) as (shown, _):
        box = shown.locator(".wide:has(> .shares)")
        box.evaluate("one => { one.scrollTop = 900; one.scrollLeft = 40 }")
        outer, head = (one.bounding_box() for one in (box, shown.locator(".shares thead th").first))
        assert abs(head["y"] - outer["y"]) < 2
        assert abs(head["x"] - outer["x"]) < 2


@pytest.mark.browser
def test_a_name_in_the_matrix_opens_its_workloads(six_page):
    with opened(six_page) as (shown, _):
        shown.locator(".shares").get_by_role("link", name="scan.sum", exact=True).click()
        assert shown.locator("details.benchmark[open] b").all_text_contents() == ["scan.sum"]


@pytest.mark.browser
def test_the_matrix_follows_the_filters(six_page):
    with opened(six_page) as (shown, _):
        shown.get_by_role("searchbox").fill("reduce")
        assert shown.locator(".shares tbody tr:visible").count() == 2
        shown.get_by_label("Arch").select_option("sm90")
        assert shown.locator(".shares thead th:visible").count() == 2


@pytest.mark.browser
@pytest.mark.slow
def test_what_is_printed_is_whole_and_light(six_page):
    with opened(six_page, scheme="dark") as (shown, _):
        shown.emulate_media(media="print", color_scheme="light")
        assert not shown.locator("#filters").is_visible()
        box = shown.locator(".wide:has(> .shares)")
        assert box.evaluate("one => getComputedStyle(one).maxHeight") == "none"
        back = "getComputedStyle(document.body).backgroundColor"
        assert shown.evaluate(back) == "rgb(255, 255, 255)"


@pytest.mark.browser
def test_what_is_hostile_is_shown_as_it_is(page):
    with opened(page) as (shown, said):
        shown.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        assert shown.locator("script").count() == 1
        assert shown.get_by_text(HOSTILE).count() >= 5
        assert said == []


@pytest.mark.browser
def test_filters_show_what_fits(page):
    with opened(page) as (shown, _):
        count = shown.locator("#count")
        assert count.text_content() == "6 workloads"
        shown.get_by_label("Find").fill("reduce t=i8")
        assert count.text_content() == "1 workload"
        assert shown.locator(".heat tbody tr:visible", has_text="T=I8").count() == 1
        shown.get_by_label("Find").fill("")
        shown.get_by_label("tuned", exact=True).uncheck()
        shown.get_by_label("Arch").select_option("sm90")
        assert count.text_content() == "1 workload"
        assert shown.locator(".benchmark:visible").count() == 1
        assert shown.locator("th.a-sm100:visible").count() == 0
        shown.get_by_label("Arch").select_option("")
        for status in STATUSES:
            shown.get_by_label(status, exact=True).uncheck()
        assert count.text_content() == "0 workloads"


@pytest.mark.browser
def test_the_keyboard_reaches_the_filters_and_the_rows(page):
    with opened(page) as (shown, _):
        shown.get_by_label("Find").focus()
        names = []
        for _ in range(10):
            shown.keyboard.press("Tab")
            names.append(shown.evaluate("document.activeElement.tagName"))
        # The matrix is a region that can be scrolled; its first row has but the link to itself.
        assert names == ["SELECT", *["INPUT"] * 6, "DIV", "A", "A"]
        assert shown.evaluate("document.activeElement.textContent") == "reduce.sum0"
        shown.keyboard.press("Enter")
        assert shown.locator("details.benchmark[open]").count() == 1


def test_the_page_of_a_large_tree_is_small():
    assert len(render(document(count=120), "html").encode()) < 2_000_000


@pytest.mark.browser
def test_a_browser_makes_few_elements_of_a_large_tree(tmp_path):
    path = tmp_path / "large.html"
    path.write_text(render(document(count=120), "html"))
    with opened(path) as (shown, _):
        assert shown.locator("#count").text_content() == "601 workloads"
        # How soon it is ready goes by what a browser makes of it.
        assert shown.evaluate("document.querySelectorAll('*').length") < 12_000


def test_markdown_escapes_and_cuts_long_lists():
    more = ROWS + 5
    one = document(fillable=fillable(more), compared=compared(more), remarks=(HOSTILE,))
    text = render(one, "md")
    assert "<script>" not in text
    assert "\nand 5 more\n" in text
    assert f"\nand {2 * more - ROWS} more\n" in text
    assert all(
        line.count("|") - line.count("\\|") in {0, 4, 5, 6, 7, 9} for line in text.split("\n")
    )
    empty = render(document(fillable=()), "md")
    assert "They cover no untuned cell." in empty
    assert "Since" not in empty
