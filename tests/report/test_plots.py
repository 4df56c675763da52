import builtins
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from policygen.errors import InputError, MissingToolError
from policygen.installation import add
from policygen.model.databases import RatioPanel
from policygen.report import plots
from policygen.report.plots import (
    draw_ratios,
    draw_scores,
    quantile_ratios,
    ratio_plot,
    score_map,
)
from tests.tiers import sampled, slow

TITLE = "cub.bench.reduce.sum[T{ct}=I32, OffsetT{ct}=I32]  H200 (6144, 132, eccon)"
BASE = np.linspace(1.0, 1.1, 200)


def panel(row: str = "16", column: str = "", **variants: float) -> RatioPanel:
    return RatioPanel(row, column, BASE, {name: BASE / by for name, by in variants.items()})


def panels(rows: int, columns: int, variants: int) -> list[RatioPanel]:
    named = {f"ipt_{i}.tpb_512": 1 + 0.01 * i for i in range(variants)}
    return [
        panel(f"Elements{{io}}[pow2]={r}", f"Bins={c}, Entropy=0.201", **named)
        for r in range(rows)
        for c in range(columns)
    ]


def drawn(given: list[RatioPanel]) -> Figure:
    figure = Figure(layout="constrained")
    draw_ratios(figure, given)
    return figure


def mapped(cells: dict[tuple[int, int], float]) -> Figure:
    figure = Figure(layout="constrained")
    draw_scores(figure, "tpb", "ipt", cells)
    return figure


def square(side: int) -> dict[tuple[int, int], float]:
    return {(x, y): 1 + 0.01 * (x - y) for x in range(side) for y in range(side)}


def kind(path: Path) -> str:
    data = path.read_bytes()
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    return ElementTree.fromstring(data).tag.rpartition("}")[2]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.svg", "svg"), pytest.param("a.png", "png", marks=slow), ("A.PNG", "png")],
)
def test_the_suffix_says_what_is_written(name: str, expected: str, tmp_path: Path) -> None:
    ratio_plot(TITLE, panels(2, 2, 2), tmp_path / "ratio" / name)
    score_map(TITLE, "tpb", "ipt", square(3), tmp_path / "map" / name)
    assert kind(tmp_path / "ratio" / name) == expected
    assert kind(tmp_path / "map" / name) == expected
    assert [path.name for path in (tmp_path / "ratio").iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "what"), [("a.pdf", ".pdf"), ("plot", "a file without a suffix"), ("a.svg.gz", ".gz")]
)
def test_other_suffixes_are_refused_with_those_allowed(
    name: str, what: str, tmp_path: Path
) -> None:
    for draw in (
        lambda path: ratio_plot(TITLE, panels(1, 1, 1), path),
        lambda path: score_map(TITLE, "tpb", "ipt", square(2), path),
    ):
        with pytest.raises(InputError) as caught:
            draw(tmp_path / name)
        assert str(caught.value) == (
            f"{tmp_path / name}: a plot cannot be written as {what}\n"
            "  The name must end with .svg or .png."
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("suffix", sampled(["svg", "png"], "svg"))
def test_the_same_numbers_give_the_same_bytes(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = tmp_path / f"one.{suffix}", tmp_path / f"other.{suffix}"
    ratio_plot(TITLE, panels(2, 3, 2), one)
    # What a user has set for other plots changes nothing.
    monkeypatch.setitem(mpl.rcParams, "lines.linewidth", 9.0)
    monkeypatch.setitem(mpl.rcParams, "font.size", 20.0)
    ratio_plot(TITLE, panels(2, 3, 2), other)
    assert one.read_bytes() == other.read_bytes()
    score_map(TITLE, "tpb", "ipt", square(4), one)
    score_map(TITLE, "tpb", "ipt", square(4), other)
    assert one.read_bytes() == other.read_bytes()


def test_plots_open_no_window_and_leave_settings_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Windows belong to pyplot; importing it fails here.
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    names = ("font.size", "svg.hashsalt", "text.parse_math", "lines.linewidth")
    before = [mpl.rcParams[name] for name in names]
    ratio_plot(TITLE, panels(1, 1, 1), tmp_path / "a.svg")
    score_map(TITLE, "tpb", "ipt", square(2), tmp_path / "a.png")
    assert [mpl.rcParams[name] for name in names] == before


def test_names_are_no_formulas(tmp_path: Path) -> None:
    given = [panel("$x_$", "$\\undefined$", **{"$a^$": 1.1})]
    ratio_plot("$\\frac$", given, tmp_path / "a.svg")
    assert kind(tmp_path / "a.svg") == "svg"


@pytest.mark.parametrize("given", [[], [RatioPanel("16", "", BASE, {})]])
def test_no_samples_are_no_plot(given: list[RatioPanel], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no runtime workload has samples"):
        ratio_plot(TITLE, given, tmp_path / "a.svg")


def test_no_cells_are_no_map(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no variant has both tpb and ipt"):
        score_map(TITLE, "tpb", "ipt", {}, tmp_path / "a.svg")


def test_a_missing_matplotlib_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *args: object, **options: object) -> object:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingToolError) as caught:
        ratio_plot(TITLE, panels(1, 1, 1), tmp_path / "a.svg")
    assert str(caught.value) == f"matplotlib is missing\n  {add('plot')}"
    assert caught.value.exit_code == 3


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.svg: cannot be written: "):
        ratio_plot(TITLE, panels(1, 1, 1), tmp_path / "file" / "a.svg")


def test_an_old_plot_stays_when_the_new_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.svg"
    path.write_text("old", encoding="utf-8")

    def broken(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(plots, "draw_ratios", broken)
    with pytest.raises(RuntimeError):
        ratio_plot(TITLE, panels(1, 1, 1), path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_ratios_are_base_over_variant_at_each_quantile() -> None:
    x, y = quantile_ratios(BASE, np.concatenate([BASE[:100] / 2, BASE[100:]]))
    assert (x[0], x[-1], len(x)) == (0.01, 0.99, 99)
    assert y[10] == pytest.approx(2)
    assert y[90] == pytest.approx(1)


def test_each_runtime_workload_has_a_panel_in_its_row_and_column() -> None:
    figure = drawn([panel("16", "a", v=1.1), panel("20", "a", v=1.2), panel("20", "b", v=1.3, w=1)])
    first, nothing, left, right = figure.axes
    assert [axes.get_ylabel() for axes in (first, left)] == ["16", "20"]
    assert [axes.get_title() for axes in (first, left, right)] == ["a", "a", "b"]
    # The red line at 1 is one of the lines.
    assert [len(axes.lines) for axes in figure.axes] == [2, 1, 2, 3]
    assert all(axes.lines[-1].get_color() == "red" for axes in figure.axes)
    assert list(right.lines[-1].get_ydata()) == [1, 1]
    assert [axes.get_visible() for axes in figure.axes] == [True, False, True, True]
    assert nothing.get_title() == ""
    assert first.get_ylim() == right.get_ylim()


def test_a_variant_has_the_same_look_in_all_panels_and_one_entry_in_the_legend() -> None:
    figure = drawn([panel("16", "", v=1.1, w=1.0), panel("20", "", w=1.0)])
    assert figure.axes[0].lines[1].get_color() == figure.axes[1].lines[0].get_color()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["v", "w"]


def test_many_variants_are_told_apart_by_their_strokes() -> None:
    lines = drawn(panels(1, 1, 20)).axes[0].lines[:-1]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 20


def test_noise_is_not_blown_up() -> None:
    low, high = drawn([panel(v=1.0001)]).axes[0].get_ylim()
    assert low < 0.98
    assert high > 1.02


def test_long_labels_are_broken() -> None:
    axes = drawn([panel("large: Elements{io}[pow2]=16", "Bins=2048, Entropy=0.201, Key=0", v=1)])
    assert axes.axes[0].get_ylabel() == "large:\nElements{io}[pow2]=16"
    assert axes.axes[0].get_title() == "Bins=2048,\nEntropy=0.201,\nKey=0"


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (4, 1), (4, 6), (8, 12)])
def test_panels_are_large_enough_to_read(rows: int, columns: int) -> None:
    figure = drawn(panels(rows, columns, 2))
    width, height = figure.get_size_inches()
    assert width / columns >= 1.9
    assert height / rows >= 1.5


@pytest.mark.parametrize(
    "title", sampled(["short", TITLE, TITLE.replace(", ", "_and_another_one, ")], TITLE)
)
def test_a_title_is_broken_where_it_does_not_fit(title: str, tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    score_map(title, "tpb", "ipt", square(2), path)
    assert kind(path) == "svg"


def test_the_best_cell_is_framed_and_named() -> None:
    axes = mapped({(64, 7): 1.01, (128, 7): 1.05, (64, 9): 0.97}).axes[0]
    frame = axes.patches[-1]
    assert (frame.get_x(), frame.get_y(), frame.get_fill()) == (1, 0, False)
    assert axes.get_title() == "best: tpb 128, ipt 7, score 1.050000"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("tpb", "ipt")


def test_cells_without_a_variant_show_the_hatched_ground() -> None:
    axes = mapped({(64, 7): 1.01, (128, 9): 1.05}).axes[0]
    assert axes.patch.get_hatch() == "////"
    values = np.ma.getmaskarray(axes.collections[0].get_array())
    assert values.tolist() == [[False, True], [True, False]]


def test_colours_are_centred_at_one() -> None:
    low, high = mapped({(1, 1): 0.7, (2, 1): 1.1}).axes[0].collections[0].get_clim()
    assert (low + high) / 2 == pytest.approx(1)
    low, high = mapped({(1, 1): 1.0001}).axes[0].collections[0].get_clim()
    assert (low, high) == pytest.approx((0.98, 1.02))


@pytest.mark.parametrize(
    ("cells", "extend"),
    [
        ({(1, 1): 1.0}, "neither"),
        ({(1, 1): 1.0, (2, 1): 1.5}, "max"),
        ({(1, 1): 1.0, (2, 1): 0.5}, "min"),
        ({(x, 1): 1.0 for x in range(30)} | {(30, 1): 0.5, (31, 1): 1.5}, "both"),
    ],
)
def test_scores_beyond_the_colours_are_shown_at_the_bar(
    cells: dict[tuple[int, int], float], extend: str
) -> None:
    figure = mapped(cells)
    bar = figure.axes[0].collections[0].colorbar
    assert bar is not None
    assert bar.extend == extend


@pytest.mark.parametrize(("side", "numbers"), [(3, 9), (20, 400), (64, 0)])
def test_numbers_stand_in_the_cells_where_there_is_room(side: int, numbers: int) -> None:
    axes = mapped(square(side)).axes[0]
    assert len(axes.texts) == numbers
    assert len(axes.get_xticks()) <= plots.LABELS


def test_long_values_stand_upright() -> None:
    axes = mapped({(1_000_000, 1): 1.0}).axes[0]
    assert axes.get_xticklabels()[0].get_rotation() == 90
    assert mapped({(1, 1): 1.0}).axes[0].get_xticklabels()[0].get_rotation() == 0


def test_numbers_can_be_read_on_dark_and_on_light_cells() -> None:
    texts = mapped({(1, 1): 0.8, (2, 1): 1.0, (3, 1): 1.2}).axes[0].texts
    assert [text.get_color() for text in texts] == ["white", "black", "white"]
