"""Plots of one workload: SVG files that need nothing else, and what is drawn in them."""

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from policygen.errors import InputError
from policygen.model.databases import PointRatios, WorkloadPlot
from policygen.model.results import DbPlot, RunKey
from policygen.model.searches import QUANTILES
from policygen.outputs import is_ours
from policygen.plots import check_suffix, is_plot
from policygen.report import charts
from policygen.report.blocks import Drawing
from policygen.report.plots import LEAST_WIDTH, MAP_WIDTH, MARGIN, draw_plot, svg_file
from tests.browser import opened
from tests.report.structure import marks, panels
from tests.tiers import sampled

TITLE = "cub.bench.reduce.sum[T{ct}=I32, OffsetT{ct}=I32] on H200 (6144, 132, eccon)"
EVIL = "<script>x</script>\x1b[2J\u202e</svg>\"'&"
DOCUMENT = DbPlot(
    out="a.svg",
    algorithm="cub.bench.reduce.sum",
    workload={},
    measured_on=RunKey(gpu="H200", ctk="13.0", cccl="v3.0.3"),
    databases=(),
    parameters=None,
    variants=(),
    panels=0,
)


def point(size: str = "16", subbench: str = "base", axes: str = "", **ratios: float) -> PointRatios:
    values = dict(one.split("=") for one in axes.split())
    named = {name: [ratio] * len(QUANTILES) for name, ratio in ratios.items()}
    return PointRatios(subbench, {"Elements{io}[pow2]": size, **values}, named)


def points(rows: int, columns: int, variants: int) -> list[PointRatios]:
    named = {f"ipt_{i}.tpb_512": 1 + 0.01 * i for i in range(variants)}
    return [
        point(f"{16 + r}", "base", f"Bins={c} Entropy=0.201", **named)
        for r in range(rows)
        for c in range(columns)
    ]


def drawn(given: list[PointRatios], title: str = TITLE) -> bytes:
    return draw_plot(WorkloadPlot(title, DOCUMENT, given))


def mapped(cells: dict[tuple[int, int], float], x: str = "tpb", y: str = "ipt") -> bytes:
    document = DOCUMENT.model_copy(update={"parameters": (x, y)})
    scores = {place: (score, score - 0.01) for place, score in cells.items()}
    return draw_plot(WorkloadPlot(TITLE, document, (), scores))


def square(side: int) -> dict[tuple[int, int], float]:
    return {(x, y): 1 + 0.01 * (x - y) for x in range(side) for y in range(side)}


def texts(svg: bytes, *looks: str) -> list[str]:
    found = marks(ElementTree.fromstring(svg), "text", *looks)
    return [one.text or one[0].tail or "" for one in found]  # after a tooltip


def told(svg: bytes, tag: str, *looks: str) -> list[str]:
    """The tooltips of marks."""
    found = marks(ElementTree.fromstring(svg), tag, *looks)
    return [one.findtext("{http://www.w3.org/2000/svg}title", "") for one in found]


# Files


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("a.pdf", ".pdf"),
        ("a.png", ".png"),
        ("plot", "a file without a suffix"),
        ("a.svg.gz", ".gz"),
    ],
)
def test_other_suffixes_are_refused_with_those_allowed(name: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        check_suffix(Path(name), ".svg", ".html")
    assert str(caught.value) == (
        f"{name}: a plot cannot be written as {what}\n  The name must end with .svg or .html."
    )
    with pytest.raises(InputError, match=r"\n  The name must end with \.svg\.$"):
        check_suffix(Path(name), ".svg")


def test_a_name_says_whether_a_plot_is_written() -> None:
    named = ("a.svg", "A.SVG", "a.html", "a.txt", "a")
    assert [is_plot(Path(name)) for name in named] == [True, True, True, False, False]
    check_suffix(Path("A.SVG"), ".svg")


@pytest.mark.parametrize("svg", [drawn(points(2, 3, 2)), mapped(square(4))])
def test_a_file_needs_nothing_else_and_is_known_to_be_ours(svg: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    path.write_bytes(svg)
    assert is_ours(path)
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    width, height = root.get("width"), root.get("height")
    assert root.get("viewBox") == f"0 0 {width} {height}"
    (styles,) = marks(root, "style")
    # Programs that draw know neither variables nor themes.
    assert styles.text
    assert not re.search(r"var\(|--|@media|:root|\bfont:", styles.text)
    looks = {look for one in root.iter() for look in one.get("class", "").split()}
    ruled = {*re.findall(r"\.([\w-]+)", styles.text)}
    # A first stroke and the text of a light cell have the look of all.
    assert looks - ruled <= {"t0", *(f"h{step}t" for step in range(2, 9))}
    # Nothing is loaded: addresses are names of vocabularies.
    assert {*re.findall(rb'(\S+)="http', svg)} == {b"xmlns", b"xmlns:rdf", b"xmlns:cc", b"xmlns:dc"}


def test_the_same_numbers_give_the_same_bytes() -> None:
    assert drawn(points(2, 3, 2)) == drawn(points(2, 3, 2))
    assert mapped(square(4)) == mapped(square(4))


def test_what_strangers_wrote_is_escaped() -> None:
    ratios = {EVIL: [1.1] * len(QUANTILES)}
    given = [PointRatios(name, {f"{EVIL}{{io}}": "1"}, ratios) for name in ("base", EVIL)]
    for svg in (drawn(given, EVIL), mapped(square(2), EVIL, EVIL)):
        root = ElementTree.fromstring(svg)
        assert not marks(root, "script")
        assert "\x1b" not in svg.decode()
        assert "\u202e" not in svg.decode()
        assert any("<script>x</script>\\x1b[2J\\u202e</svg>" in text for text in root.itertext())


@pytest.mark.parametrize("title", ["short", TITLE, TITLE.replace(", ", "_and_another_one, ")])
def test_a_title_is_broken_where_it_does_not_fit(title: str) -> None:
    lines = texts(drawn([point(v=1.1)], title), "title")
    assert " ".join(lines) == title
    assert max(map(len, lines)) * 10 <= LEAST_WIDTH


def test_drawings_stand_in_rows_and_within_the_file() -> None:
    rows = [[Drawing("a", "", 600, 30, ())], [Drawing(x, "", 300, 40, ()) for x in "bcd"]]
    svg = svg_file("title", "words", rows)
    root = ElementTree.fromstring(svg)
    assert root.get("width") == f"{3 * 300 + 2 * 24 + 2 * 16}"
    (_, _, _), (ax, ay, _), *others = panels(svg)
    assert (ax, [x for x, _, _ in others]) == (MARGIN, [16, 340, 664])
    assert {y for _, y, _ in others} == {ay + 30 + 24}
    assert float(root.get("height", 0)) == ay + 30 + 24 + 40 + 24


BOXES = """() => {
  const boxes = [...document.querySelectorAll('text')].map(one =>
    [one.textContent, one.getBoundingClientRect()]);
  const beyond = boxes.filter(([, box]) => box.left < 0 || box.right > innerWidth);
  const shared = boxes.flatMap(([name, a], place) => boxes.slice(place + 1)
    .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1)
    .filter(([, b]) => a.top < b.bottom - 5 && b.top < a.bottom - 5)
    .map(([other]) => [name, other]));
  return [beyond.map(([name]) => name), shared];
}"""


@pytest.mark.browser
@pytest.mark.parametrize("name", sampled(["panels", "long", "map", "large map"], "panels", "map"))
def test_no_words_hide_others_or_leave_the_file(name: str, tmp_path: Path) -> None:
    svg = {
        "panels": drawn(points(4, 2, 3)),
        "long": drawn([point(axes="Bins=2048 Entropy=0.201 Kind=segmented", v=1.1)]),
        "map": mapped(square(3), "items_per_thread", "threads_per_block"),
        "large map": mapped({(100 * x, 10**6 * y): 1.0 for x in range(30) for y in range(30)}),
    }[name]
    path = tmp_path / "a.svg"
    path.write_bytes(svg)
    width = int(float(ElementTree.fromstring(svg).get("width", 0)))
    with opened(path, width=width) as (shown, said):
        assert said == []
        assert shown.evaluate(BOXES) == [[], []]


# Ratios


def test_no_ratios_are_no_plot() -> None:
    with pytest.raises(InputError, match="no runtime workload has samples"):
        drawn([])


def test_each_runtime_workload_has_a_panel_in_the_row_of_its_size() -> None:
    a, b = "Entropy=1.000", "Entropy=0.201"
    svg = drawn([point("16", axes=a, v=1.1), point("20", axes=a, v=1.2), point("20", axes=b, v=1)])
    _, _, first, second, third = panels(svg)
    assert first[0] == second[0] < third[0]
    assert first[1] < second[1] == third[1]
    titles = [marks(part, "text", "name")[0].text for *_, part in (first, second, third)]
    assert titles == [f"Elements=16, {a}", f"Elements=20, {a}", f"Elements=20, {b}"]
    for *_, part in (first, second, third):
        assert len(marks(part, "path", "series")) == len(marks(part, "path", "unit")) == 1
    # All have the same axes.
    ticks = [[one.text for one in marks(part, "text", "end")] for *_, part in (first, second)]
    assert ticks[0] == ticks[1]


def test_sub_benchmarks_have_rows_of_their_own() -> None:
    given = [point("16", bench, f"Bins={c}", v=1.1) for bench in ("base", "large") for c in "12"]
    _, _, *found = panels(drawn(given))
    assert len({y for _, y, _ in found}) == 2
    assert texts(drawn(given), "name")[::3] == ["Elements=16, Bins=1", "large: Elements=16, Bins=2"]


def test_sizes_alone_are_a_nearly_square_grid() -> None:
    _, _, *found = panels(drawn([point(f"{size}", v=1.1) for size in range(4)]))
    assert len({x for x, _, _ in found}) == len({y for _, y, _ in found}) == 2


def test_a_variant_has_the_same_look_in_all_panels_and_one_entry_in_the_key() -> None:
    svg = drawn([point("16", v=1.1, w=1.0), point("20", w=1.0)])
    assert texts(svg, "label") == ["v", "w"]
    _, key, first, second = (
        [one.get("class") for one in marks(part, "path", "series")] for *_, part in panels(svg)
    )
    assert key == first
    assert second == first[1:]
    lowest = "w: 1.000 at the median, 1.000 at the lowest quantile, 1.000 at the highest"
    assert told(svg, "path", "series")[-1] == lowest


def test_many_variants_are_told_apart_by_their_strokes() -> None:
    _, _, (*_, panel) = panels(drawn(points(1, 1, 20)))
    assert len({one.get("class") for one in marks(panel, "path", "series")}) == 20


def test_noise_is_not_blown_up() -> None:
    low, high = charts.ratio_ends([1.0001])
    assert low < 0.98
    assert high > 1.02


def test_the_line_of_equal_speed_is_drawn_inside_a_panel_alone() -> None:
    """On its edge it would hide the axis."""

    def drawn(*y: float) -> int:
        return len(list(charts.unit(charts.Panel(0, 0, 10, 10, (0, 1), y))))

    assert [drawn(0.9, 1.1), drawn(1.0, 1.1), drawn(0.9, 1.0), drawn(1.1, 1.2)] == [1, 0, 0, 0]


def test_long_labels_are_broken() -> None:
    given = [point("16", b, "Bins=2048 Entropy=0.201 Key=0", v=1) for b in ("base", "large")]
    lines = texts(drawn(given), "name")
    assert lines[2:] == ["large: Elements=16, Bins=2048,", "Entropy=0.201, Key=0"]
    label = f"ipt_1.{'long_' * 30}"
    assert texts(drawn([point(**{label: 1.0})]), "label") == [label]


# Scores over two parameters


def test_the_best_cell_is_framed_and_named() -> None:
    svg = mapped({(64, 7): 1.01, (128, 7): 1.05, (64, 9): 0.97})
    (frame,) = marks(ElementTree.fromstring(svg), "rect", "best")
    cells = marks(ElementTree.fromstring(svg), "rect")
    (best,) = (one for one in cells if "tpb 128, ipt 7" in "".join(one.itertext()))
    assert (frame.get("x"), frame.get("y")) == (best.get("x"), best.get("y"))
    words = (
        "3 cells, colored by the best score in each. The best, 1.050, is framed: tpb 128, ipt 7."
    )
    assert " ".join(texts(svg)).count(words) == 1
    assert (texts(svg, "axis"), texts(svg, "name")) == (
        ["ipt", "tpb"],
        ["Best score over tpb and ipt"],
    )


def test_cells_without_a_variant_are_hatched() -> None:
    svg = mapped({(64, 7): 1.01, (128, 9): 1.05})
    # The last is that of the scale.
    assert told(svg, "rect", "missing") == [
        "tpb 64, ipt 9: no score",
        "tpb 128, ipt 7: no score",
        "",
    ]
    assert "no score" in texts(svg, "tick")
    assert b".missing { fill: url(#hatch); }" in svg
    assert b'<pattern id="hatch"' in svg


def test_a_cell_has_all_its_scores_in_its_tooltip() -> None:
    svg = mapped({(64, 7): 1.01})
    assert "tpb 64, ipt 7: best 1.010, median 1.005, 2 measured" in told(svg, "rect", "h8")


def test_colours_are_centred_at_one_and_end_with_the_best() -> None:
    svg = mapped({(1, 1): 0.7, (2, 1): 1.0, (3, 1): 1.1})
    shades = [one.get("class") for one in marks(ElementTree.fromstring(svg), "rect")][:3]
    assert shades == ["h0", "h5", "h10"]
    assert {"≤ 0.700", "1: base", "≥ 1.100"} <= {*texts(svg, "tick")}
    assert {"≤ 0.980", "1: base", "≥ 1.020"} <= {*texts(mapped({(1, 1): 1.0001}), "tick")}


@pytest.mark.parametrize(("side", "numbers"), [(3, 9), (20, 400), (64, 0)])
def test_numbers_stand_in_the_cells_where_there_is_room(side: int, numbers: int) -> None:
    svg = mapped(square(side))
    assert len(texts(svg, "in")) == numbers
    assert float(ElementTree.fromstring(svg).get("width", 0)) <= MAP_WIDTH + 2 * MARGIN


def test_more_values_than_can_be_seen_are_ranges() -> None:
    svg = mapped({(x, y): 1 + x / 1000 for x in range(100) for y in (1, 2)})
    assert len([one for one in told(svg, "rect") if one]) == 2 * 50
    last = [one for one in told(svg, "rect", "h10") if one.startswith("tpb 98 to 99, ipt 2: ")]
    assert re.fullmatch(r".*: best 1\.099, median 1\.09\d, 4 measured", *last)


@pytest.mark.parametrize("value", [1, 1_000_000])
def test_the_values_of_a_row_do_not_touch(value: int) -> None:
    root = ElementTree.fromstring(mapped({(value + x, 1): 1.0 for x in range(40)}))
    labels = [one for one in marks(root, "text", "mid") if (one.text or "").isdigit()]
    places = [float(one.get("x", 0)) for one in labels]
    least = max(len(one.text or "") for one in labels) * charts.LETTER
    assert min(b - a for a, b in pairwise(places)) > least


def test_numbers_can_be_read_on_dark_and_on_light_cells() -> None:
    svg = mapped({(1, 1): 0.8, (2, 1): 1.0, (3, 1): 1.2})
    looks = [one.get("class") for one in marks(ElementTree.fromstring(svg), "text", "in")]
    assert looks == ["in h0t", "in h5t", "in h10t"]
    assert b".drawing .h10t { fill: #fff; }" in svg
