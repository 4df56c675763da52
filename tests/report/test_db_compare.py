"""Two databases beside each other, as tables, as a page, and as plots."""

import re
from pathlib import Path

import pytest

from policygen.errors import InputError
from policygen.model.databases import (
    ComparedSide,
    ComparedWorkload,
    DbCompare,
    LoneWorkload,
    PairedScore,
    PointDifference,
    RankOrder,
    ScoreDifference,
    SideFiles,
    Winner,
)
from policygen.model.results import Rules, RunKey
from policygen.plots import plot_comparison
from policygen.report.database_views import compared
from policygen.report.pages import render_page as render
from policygen.report.plots import PANELS, draw_comparison
from tests.browser import faults, opened, overflow
from tests.report.shown import lines
from tests.report.structure import SVG, Structure, check_links, marks, panels
from tests.tiers import sampled

GPU = "H200 (6144, 132, eccon)"
SHORT, LONG = "ipt_19.tpb_512", "trp_1.ipt_10.tpb_512.ns_404.dcid_1.l2w_710"


def winner(variant=SHORT, **more):
    told = {"chosen": False, "score": 1.0123, "rank": 1, "other_score": 0.987, "other_rank": 12}
    return Winner(variant=variant, **{**told, "verdict": "too close to call", **more})


def side(won, **more):
    told = {"gpu": GPU, "ctk": "13.0", "cccl": "v3.0.3", "only": 0, "runtime_only": 0}
    return ComparedSide(
        **{**told, "databases": ("a.db",), "variants": 12, "approximate": False, **more},
        choice=None,
        winner=won,
    )


def workload(kind="I32", a=None, b=None, scores=12, **more):
    told = {
        "algorithm": "cub.bench.reduce.sum",
        "workload": {"T{ct}": kind, "OffsetT{ct}": "I32"},
        "differs": (),
        "copy_of_rows": False,
        "agreement": "both keep base",
        "order": RankOrder(
            spearman=-0.25, best=4, in_both=3, by_chance=1.3, best_of_a=None, best_of_b=None
        ),
        "difference": ScoreDifference(
            shift=-0.0113,
            spread=0.0081,
            expected=0.0149,
            noise=0.0081,
            largest=0.02,
            variant=SHORT,
        ),
        "points": (
            PointDifference(
                subbench="base",
                point={"Elements{io}[pow2]": "16"},
                weight=1.0,
                base_a=6.88e-6,
                base_b=1.5e-3,
                shift=0.01,
                spread=None,
                expected=0.02,
            ),
        ),
        "scores": tuple(
            PairedScore(variant=f"ipt_{i}", a=1.02 - i / 100, b=1.01 - i / 120)
            for i in range(1, scores + 1)
        ),
    }
    return ComparedWorkload(
        **{**told, **more}, a=a or side(winner()), b=b or side(winner(other_score=None))
    )


def document(*workloads, **more):
    key = RunKey(gpu=GPU, ctk="13.0", cccl="v3.0.3")
    told = {
        name: SideFiles(databases=(f"{name}.db",), keys=(key,))
        for name in ("a", "b")
        if name not in more
    }
    return DbCompare(
        rules=Rules(), workloads=workloads, **{"only_a": (), "only_b": (), **told, **more}
    )


def text(found, width=80, *, verbose=False, head=True):
    return "\n".join(
        line.rstrip() for line in lines(compared(found, width, verbose=verbose, head=head), width)
    )


def test_a_terminal_of_80_columns_shows_all():
    assert text(document(workload())) == (
        "A  a.db\n"
        f"   {GPU} · ctk 13.0 · cccl v3.0.3\n"
        "B  b.db\n"
        f"   {GPU} · ctk 13.0 · cccl v3.0.3\n"
        "\n"
        "cub.bench.reduce.sum\n"
        "T, OffsetT  variants  order  best    shift  spread  by noise  choices\n"
        "I32, I32          12  -0.25   3/4  -1.13 %  0.81 %    1.49 %  both keep base\n"
        "\n"
        "T, OffsetT  winner    variant              in A        in B  there\n"
        "I32, I32    A's best  ipt_19.tpb_512  1.0123 #1  0.9870 #12  too close to call\n"
        "I32, I32    B's best  ipt_19.tpb_512          -      1.0123  too close to call\n"
        "\n"
        "order: Spearman's rank correlation of the scores; best: how many of A's best\n"
        "  variants are among B's best; shift and spread: mean and standard deviation of\n"
        "  B's score minus A's; by noise: the spread that noise alone would cause, as\n"
        "  assumed by choices; there: how it did on the other side; costs: how far it is\n"
        "  behind the best variant there\n"
        "1 workload in both: both keep base for 1\n"
        "noise of a score in one run, estimated from both sides: 0.81 % (0.81 % to 0.81\n"
        "%); choices assume 1.49 %"
    )


@pytest.mark.parametrize("width", [60, 80, 100, 160])
@pytest.mark.parametrize("label", [SHORT, LONG])
def test_nothing_is_cut_and_no_line_is_too_long(width, label):
    found = document(workload(a=side(winner(label)), b=side(winner(label))))
    shown = text(found, width, verbose=True)
    assert max(map(len, shown.split("\n"))) <= width
    assert "…" not in shown
    # A label that is broken goes on at a dot.
    assert label in re.sub(r"\.\n +", ".", shown)
    assert ("costs" in shown.split("\n\n")[2]) == (width >= 100 or len(label) > width - 58)


def test_what_is_said_of_a_choice_has_its_reason():
    against = winner(chosen=True, says="contradicts", reason="0.9 is slower than base")
    unsure = winner(chosen=True, says="not confirmed", reason="1.001 is too close")
    found = document(workload(a=side(against), b=side(unsure), agreement="contradicts"))
    shown = text(found)
    assert f"  I32, I32: B contradicts A's {SHORT}: 0.9 is slower than base\n" in shown
    assert f"  I32, I32: A does not confirm B's {SHORT}: 1.001 is too close\n" in shown
    assert "1 workload in both: a choice is contradicted for 1\n" in shown
    assert "B contradicts" not in text(found, head=False)
    assert "order:" not in text(found, head=False)


def test_more_words_are_the_runtime_workloads():
    shown = text(document(workload()), verbose=True)
    assert "I32, I32: runtime workloads\n" in shown
    assert "Elements=16        1.000  6.88 µs  1.5 ms  +1.00 %       -    2.00 %\n" in shown


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ({"differs": ("gpu",)}, "A and B used different GPUs: noise alone does not"),
        (
            {"differs": ("gpu", "ctk", "cccl")},
            "A and B used different GPUs, versions of the toolkit and versions of CCCL: noise",
        ),
        ({"copy_of_rows": True}, "1 workload of B is a copy of A's, bit for bit: a copy"),
        ({"a": side(None, approximate=True)}, "scores are approximate: the declared values of"),
        ({"b": side(None, only=1)}, "1 variant only in B"),
        ({"a": side(None, runtime_only=2)}, "2 runtime workloads only in A: ignored here"),
        ({"agreement": None}, "no choice, because not all runtime workloads were measured for 1"),
    ],
)
def test_what_the_whole_has_to_be_read_with_is_told(made, told):
    assert told in text(document(workload(**made)), 160)


def test_more_noise_than_choices_take_is_told_with_what_to_do():
    loud = ScoreDifference(
        shift=0, spread=0.03, expected=0.01, noise=0.03, largest=0.05, variant=SHORT
    )
    told = "choices assume less noise: set noise under [choose] in a policygen.toml"
    assert told in text(document(workload(difference=loud)), 160)
    assert told not in text(document(workload()), 160)


def test_workloads_of_one_side_alone_are_listed_and_counted():
    alone = tuple(
        LoneWorkload(algorithm="cub.bench.scan", workload={"T{ct}": f"I{i}"}) for i in range(10)
    )
    found = document(workload(), only_a=alone)
    assert "not in B: cub.bench.scan[T{ct}=I0]; " in text(found, 160)
    assert "cub.bench.scan[T{ct}=I7]; and 2 more (-v lists them)" in text(found, 4000)
    assert "cub.bench.scan[T{ct}=I9]" in text(found, 4000, verbose=True)


def test_what_was_measured_on_several_gpus_is_told_apart():
    found = document(workload(), workload("F32", b=side(None, gpu="B200")))
    assert f"cub.bench.reduce.sum: A on {GPU} ctk 13.0 cccl v3.0.3, B on B200 ctk" in text(
        found, 160
    )


# Plots


def drawn(*workloads):
    """The panels of a plot as a browser has them, and the names in its key."""
    svg = draw_comparison(document(*workloads))
    _, (*_, key), *found = panels(svg)
    return [panel for *_, panel in found], [one.text for one in marks(key, "text")]


def tooltips(panel, tag, *looks):
    return [one.findtext(f"{SVG}title") for one in marks(panel, tag, *looks)]


def test_each_workload_is_a_panel_with_both_winners():
    (first, second, third), named = drawn(
        workload(a=side(winner(chosen=True)), b=side(winner(score=1.02, other_score=1.01))),
        workload("F32", b=side(winner(other_score=None))),
        workload("I8", a=side(None), b=side(None)),
    )
    assert [one.text for one in marks(first, "text", "name")] == ["T=I32, OffsetT=I32"]
    assert "order -0.25" in [one.text for one in marks(first, "text", "tick")]
    # A's at (own, other), B's the other way round; what is chosen is filled.
    assert tooltips(first, "path", "last", "a", "won") == [
        f"{SHORT}, A uses it: 1.0123 in A, 0.9870 in B"
    ]
    assert tooltips(first, "circle", "ring", "b") == [
        f"{SHORT}, B's best, base is kept: 1.0100 in A, 1.0200 in B"
    ]
    assert not marks(first, "circle", "won")
    # A's is on top.
    looks = [one.get("class") for one in first.iter() if one.get("class")]
    assert looks.index("ring b") < looks.index("last a won")
    shown = [
        (len(marks(one, "path", "last")), len(marks(one, "circle"))) for one in (second, third)
    ]
    assert shown == [(1, 0), (0, 0)]
    for panel in (first, second, third):
        assert len(marks(panel, "path", "dots")) == len(marks(panel, "path", "band")) == 1
        assert len(marks(panel, "path", "unit")) == 2
    assert named == [
        *("a variant", "equal in both", "95 % of noise"),
        *("A uses it", "A's best, base is kept", "B's best, base is kept"),
    ]


def test_the_band_is_what_noise_explains_around_the_shift():
    (panel,), _ = drawn(workload())
    (band,) = marks(panel, "path", "band")
    (equal,) = marks(panel, "path", "equal")
    (left, bottom), (right, top) = corners(equal)
    places = corners(band)
    assert {x for x, _ in places} | {y for _, y in places} >= {left, right, bottom, top}
    assert all(left <= x <= right and top <= y <= bottom for x, y in places)
    # B is 1.13 % below A: the band reaches farther below the line of equals than above it.
    ((below, _),) = [place for place in places if place[1] == bottom and place[0] != left]
    ((above, _),) = [place for place in places if place[1] == top and place[0] != right]
    assert below - left > right - above > 0


def corners(mark):
    numbers = map(float, re.findall(r"[\d.]+", mark.get("d")))
    return list(zip(numbers, numbers, strict=True))


def test_several_benchmarks_are_named_in_their_panels():
    found, _ = drawn(workload(), workload(algorithm="cub.bench.scan.exclusive.sum"))
    titles = [[one.text for one in marks(panel, "text", "name")] for panel in found]
    assert titles == [
        ["reduce.sum, T=I32, OffsetT=I32"],
        ["scan.exclusive.sum, T=I32, OffsetT=I32"],
    ]


@pytest.mark.parametrize("count", sampled([1, 2, 3, 5, 7, 14, PANELS], 1, 3, 7))
def test_as_many_panels_are_seen_as_there_are_workloads(count):
    svg = draw_comparison(document(*(workload(f"T{i}") for i in range(count))))
    _, _, *found = panels(svg)
    assert len(found) == len({(x, y) for x, y, _ in found}) == count
    assert max(len({x for x, _, _ in found}), len({y for _, y, _ in found})) <= 6


def test_the_same_comparison_gives_the_same_bytes(tmp_path):
    found = document(workload(), workload("F32"))
    for name in ("one", "two"):
        plot_comparison(found, tmp_path / f"{name}.svg")
    one, two = ((tmp_path / f"{name}.svg").read_bytes() for name in ("one", "two"))
    assert one == two
    assert len(one) > 5000


def test_more_panels_than_fit_are_refused_and_a_page_has_them_all(tmp_path):
    found = document(*(workload(f"T{i}", scores=1) for i in range(PANELS + 1)))
    with pytest.raises(InputError) as caught:
        plot_comparison(found, tmp_path / "a.svg")
    assert str(caught.value) == (
        "25 workloads match, but a plot shows at most 24\n"
        "  Choose some with -R and -a, or write a page that shows all: -o FILE.html"
    )
    page = Structure(render(found))
    assert len(page.all("figure", **{"class": "drawing"})) == 1 + PANELS + 1
    check_links(page)


def test_an_old_plot_stays_when_the_new_one_fails(tmp_path, monkeypatch):
    path = tmp_path / "a.svg"
    path.write_bytes(draw_comparison(document(workload())))
    before = path.read_bytes()

    def broken(*_):
        raise RuntimeError

    monkeypatch.setattr("policygen.plots.draw_comparison", broken)
    with pytest.raises(RuntimeError):
        plot_comparison(document(workload("F32")), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"cannot write .*/file/a\.svg: File exists"):
        plot_comparison(document(workload()), tmp_path / "file" / "a.svg")


# The page


def test_a_page_escapes_what_strangers_wrote(tmp_path: Path):
    evil = "<script>alert(1)</script>"
    found = document(
        workload(evil, a=side(winner(chosen=True, says="contradicts", reason=evil))),
        a=SideFiles(databases=(f"{evil}.db",), keys=()),
    )
    page = render(found)
    assert evil not in page
    assert page.count("&lt;script&gt;") > 2


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "scheme"), sampled([(400, "dark"), (1200, "light")], (400, "dark"))
)
def test_a_page_is_read_by_all_and_asks_nobody(tmp_path, width, scheme):
    won = winner(LONG, chosen=True, says="holds", costs=0.012)
    path = tmp_path / "a.html"
    path.write_text(render(document(workload(a=side(won)), workload("F32"))), encoding="utf-8")
    with opened(path, width=width, scheme=scheme) as (page, said):
        assert (said, overflow(page), faults(page)) == ([], 0, [])
        assert page.locator("figure svg").count() == 3
        assert page.locator("figure svg").nth(1).evaluate("one => one.clientWidth") > 300
        assert page.locator("table").count() == 4
