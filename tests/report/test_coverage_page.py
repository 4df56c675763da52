"""The heat map in a browser, from a document that is made up."""

import pytest

from policygen.model.coverage import Cell, Compared, Coverage, Fillable, Turned
from policygen.model.cub import Cub
from policygen.model.resolve import EntryPlace
from policygen.proof.coverage import shares
from policygen.report.views.coverage import ROWS, render
from tests.browser import faults, opened, overflow

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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_readable_on_a_phone_and_without_a_mouse(page, scheme):
    with opened(page, width=400, scheme=scheme) as (shown, said):
        shown.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        assert overflow(shown) <= 0
        assert faults(shown) == []
        assert said == []


def test_what_is_hostile_is_shown_as_it_is(page):
    with opened(page) as (shown, said):
        shown.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        assert shown.locator("script").count() == 1
        assert shown.get_by_text(HOSTILE).count() >= 5
        assert said == []


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


def test_the_keyboard_reaches_the_filters_and_the_rows(page):
    with opened(page) as (shown, _):
        shown.get_by_label("Find").focus()
        names = []
        for _ in range(9):
            shown.keyboard.press("Tab")
            names.append(shown.evaluate("document.activeElement.tagName"))
        assert names[:7] == ["SELECT", *["INPUT"] * 5, "SUMMARY"]
        shown.keyboard.press("Shift+Tab")
        shown.keyboard.press("Enter")
        assert shown.locator("details.benchmark[open]").count() == 1


def test_a_large_tree_is_small_and_ready_at_once(tmp_path):
    path = tmp_path / "large.html"
    path.write_text(render(document(count=120), "html"))
    assert path.stat().st_size < 2_000_000
    with opened(path) as (shown, _):
        assert shown.locator("#count").text_content() == "601 workloads"
        ready = "performance.getEntriesByType('navigation')[0].domComplete"
        assert shown.evaluate(ready) < 1000


def test_markdown_escapes_and_cuts_long_lists():
    more = ROWS + 5
    one = document(fillable=fillable(more), compared=compared(more), remarks=(HOSTILE,))
    text = render(one, "md")
    assert "<script>" not in text
    assert "\nand 5 more\n" in text
    assert f"\nand {2 * more - ROWS} more\n" in text
    assert all(
        line.count("|") - line.count("\\|") in {0, 4, 5, 6, 7, 8} for line in text.split("\n")
    )
    empty = render(document(fillable=()), "md")
    assert "No cell that is not tuned." in empty
    assert "Since" not in empty
