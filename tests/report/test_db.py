import re

import pytest

from policygen.model.results import (
    Choice,
    DbTop,
    Interval,
    PointRatio,
    Rules,
    ScoredVariant,
    ScoredWorkload,
    Verdict,
)
from policygen.model.workload import runtime_name
from policygen.report import ranking_views
from policygen.report.blocks import Note, Words, pieces
from policygen.report.console import duration, fitted, show
from policygen.report.ranking_views import percent, ranking, short_point, workload_name
from tests.report.shown import lines as shown
from tests.tiers import sampled

ANSI = re.compile(r"\x1b\[")
LONG = "ipt_24.tpb_768.rle_0.ws_0.mem_1.ld_1.laid_0.vec_2"


def point(
    ratio: float = 0.98, subbench: str = "base", interval: Interval | None = None, **axes: str
) -> PointRatio:
    axes = axes or {"Elements{io}[pow2]": "16", "Entropy": "0.201"}
    return PointRatio(subbench=subbench, point=axes, weight=0.125, ratio=ratio, interval=interval)


def variant(
    name: str, score: float, verdict: Verdict | None = None, *, slower: int = 0
) -> ScoredVariant:
    judged = verdict is not None
    return ScoredVariant(
        variant=name,
        score=score,
        min=score - 0.1,
        mean=score,
        max=score + 0.1,
        interval=Interval(low=score - 0.01, high=score + 0.01) if judged else None,
        verdict=verdict,
        worst=None if name == "base" else point(score - 0.1),
        slower=slower if judged else None,
        loss=0.0551 if slower else None,
    )


def workload(
    *variants: ScoredVariant,
    approximate: bool = False,
    incomplete: int = 0,
    hidden: int = 0,
    databases: tuple[str, ...] = ("a.db",),
    choice: Choice | None = None,
    value: str = "I16",
) -> ScoredWorkload:
    return ScoredWorkload(
        gpu="H200 (6144, 132, eccon)",
        ctk="13.0.88",
        cccl="v3.0.3",
        algorithm="cub.bench.radix_sort.keys",
        workload={"T{ct}": value, "OffsetT{ct}": "I32"},
        databases=databases,
        approximate=approximate,
        runtime_workloads=9,
        complete=len(variants) + hidden,
        incomplete=incomplete,
        variants=variants,
        choice=choice,
    )


def top(*workloads: ScoredWorkload, alpha: float = 1.0, rules: Rules | None = None) -> DbTop:
    return DbTop(rules=rules or Rules(), alpha=alpha, workloads=workloads)


def lines(
    document: DbTop, width: int = 160, *, verbose: bool = False, head: bool = True
) -> list[str]:
    found = shown(ranking(document, width, verbose=verbose, head=head), width)
    return [row.rstrip() for row in found]


def squeezed(rows: list[str]) -> str:
    return "".join("".join(row.split()) for row in rows)


FULL = workload(
    variant("ipt_19.tpb_384", 1.05, "better"),
    variant("base", 1.0),
    variant("ipt_7.tpb_64", 0.9, "worse", slower=2),
)


def test_a_wide_terminal_has_one_line_for_each_variant() -> None:
    assert lines(top(FULL), head=False) == [
        "cub.bench.radix_sort.keys[T{ct}=I16, OffsetT{ct}=I32]"
        "  H200 (6144, 132, eccon) · ctk 13.0.88 · cccl v3.0.3",
        "  variant            score       min      mean       max  interval     verdict"
        "  worst           slower",
        "  ipt_19.tpb_384  1.050000  0.950000  1.050000  1.150000  1.040\N{EN DASH}1.060  better "
        "  16/0.201 0.950  0 of 9",
        "  base            1.000000  0.900000  1.000000  1.100000",
        "  ipt_7.tpb_64    0.900000  0.800000  0.900000  1.000000  0.890\N{EN DASH}0.910  worse  "
        "  16/0.201 0.800  2 of 9",
    ]


def test_a_narrow_terminal_has_details_below_each_variant() -> None:
    assert lines(top(FULL), 80, head=False) == [
        "cub.bench.radix_sort.keys[T{ct}=I16, OffsetT{ct}=I32]",
        "  H200 (6144, 132, eccon) · ctk 13.0.88 · cccl v3.0.3",
        "  variant            score       min      mean       max",
        "  ipt_19.tpb_384  1.050000  0.950000  1.050000  1.150000",
        "    better · 1.040\N{EN DASH}1.060 · worst 16/0.201 0.950 · slower 0 of 9",
        "  base            1.000000  0.900000  1.000000  1.100000",
        "  ipt_7.tpb_64    0.900000  0.800000  0.900000  1.000000",
        "    worse · 0.890\N{EN DASH}0.910 · worst 16/0.201 0.800 · slower 2 of 9",
    ]


def test_a_label_without_room_stands_above_its_numbers() -> None:
    rows = lines(top(workload(variant(LONG, 1.05, "mixed"))), 80, head=False)
    assert rows[3:5] == [f"  {LONG}", " " * 42 + "1.050000  0.950000  1.050000  1.150000"]


@pytest.mark.parametrize("verbose", [True, False])
@pytest.mark.parametrize("width", [50, 80, 120, 160])
def test_nothing_is_cut_and_nothing_is_too_wide(width: int, verbose: bool) -> None:
    document = top(workload(variant(LONG, 1.05, "mixed", slower=3), incomplete=2), FULL)
    rows = lines(document, width, verbose=verbose)
    assert max(map(len, rows)) <= width
    text = squeezed(rows)
    for part in (LONG, "mixed", "3of9", "1.040\N{EN DASH}1.060", "1.150000", "ipt_7.tpb_64"):
        assert part in text
    assert "2variantswerenotmeasuredonall9runtimeworkloads" in text


def test_samples_that_were_not_looked_at_take_no_columns() -> None:
    rows = lines(top(workload(variant("ipt_1", 1.5), variant("base", 1.0))), head=False)
    assert rows[1].split() == ["variant", "score", "min", "mean", "max", "worst"]
    assert rows[2].endswith("1.600000  16/0.201 1.400")


def test_base_alone_has_numbers_only() -> None:
    assert lines(top(workload(variant("base", 1.0))), 80)[2:] == [
        "  variant     score       min      mean       max",
        "  base     1.000000  0.900000  1.000000  1.100000",
    ]


def test_a_workload_without_variants_says_so() -> None:
    assert lines(top(workload()), head=False)[1:] == ["  no variant"]


@pytest.mark.parametrize(
    ("incomplete", "words"),
    [
        (1, "  1 variant was not measured on all 9 runtime workloads; scores are approximate"),
        (3, "  3 variants were not measured on all 9 runtime workloads; scores are approximate"),
        (0, "  scores are approximate"),
    ],
)
def test_what_is_missing_is_told(incomplete: int, words: str) -> None:
    rows = lines(top(workload(variant("base", 1.0), approximate=True, incomplete=incomplete)))
    assert rows[3:] == [
        words,
        "",
        "approximate: the declared values of the {io} axes are unknown, so the weights come from"
        " the values present; name the benchmark's source with --bench",
    ]


def test_notes_explain_columns_and_alpha() -> None:
    assert lines(top(FULL, alpha=0.05))[-4:] == [
        "",
        "worst: the runtime workload with the lowest ratio, by Elements{io}[pow2]/Entropy",
        "interval: 95 % confidence; slower: runtime workloads slower by more than 4 %,"
        " beyond noise",
        "alpha 0.05: only runtime workloads whose samples differ from base's",
    ]


def test_quiet_prints_no_notes() -> None:
    document = top(workload(variant("ipt_1", 1.5, "mixed"), approximate=True, incomplete=4))
    assert len(lines(document, head=False)) == 3


def test_verbose_tells_the_worst_runtime_workload_in_full() -> None:
    worst = point(0.8, interval=Interval(low=0.79, high=0.81))
    full = variant("ipt_1", 0.9, "worse", slower=1).model_copy(update={"worst": worst})
    rows = lines(top(workload(full, variant("ipt_2", 0.8))), verbose=True, head=False)
    assert rows[0].endswith("cccl v3.0.3 · a.db")
    assert rows[3] == (
        "    worst at 0.800000 (0.790\N{EN DASH}0.810): Elements{io}[pow2]=16, Entropy=0.201"
        " · weight 0.1250 · up to 5.5 % slower"
    )
    assert rows[5].endswith("Entropy=0.201 · weight 0.1250")


def test_several_databases_are_named() -> None:
    rows = lines(
        top(workload(databases=("a.db",)), workload(databases=("b.db", "c.db"))), head=False
    )
    assert [row.rsplit(" · ")[-1] for row in rows if "cccl" in row] == ["a.db", "b.db + c.db"]
    assert "" in rows


def test_nothing_to_compare_is_told() -> None:
    assert lines(top()) == ["no workload has a baseline"]


@pytest.mark.parametrize(
    ("verdict", "style"),
    [("better", "green"), ("worse", "red"), ("mixed", "yellow"), ("too close to call", "dim")],
)
@pytest.mark.parametrize("width", sampled([80, 160], 80))
def test_verdicts_have_colours(verdict: Verdict, style: str, width: int) -> None:
    found = ranking(top(workload(variant("ipt_1", 1.1, verdict))), width, verbose=False, head=False)
    styles: dict[str, str] = {}
    for one in found:
        if isinstance(one, Words):
            styles[" ".join(one.parts)] = one.style
        elif isinstance(one, Note):
            styles |= {str(text).strip(): style for text, style in pieces(one.text)}
    assert styles["1.100000"] == style
    assert [s for text, s in styles.items() if verdict in text] == [style]


def test_colours_are_those_that_rich_knows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    show(fitted(ranking_views.ranking)(top(FULL), verbose=True, head=True))
    assert "\x1b[32m" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "short", "long"),
    [
        (point(), "16/0.201", "Elements{io}[pow2]=16, Entropy=0.201"),
        (point(subbench="large"), "large:16/0.201", "large: Elements{io}[pow2]=16, Entropy=0.201"),
        (point().model_copy(update={"point": {}}), "base", "base"),
    ],
)
def test_runtime_workloads_have_short_and_long_names(
    given: PointRatio, short: str, long: str
) -> None:
    assert (short_point(given), runtime_name(given.subbench, given.point)) == (short, long)


def test_a_benchmark_without_compile_time_axes_has_no_brackets() -> None:
    assert workload_name("cub.bench.a", {}) == ["cub.bench.a"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (59.94, "59.9 s"),
        (60, "1 min 00 s"),
        (3599.4, "59 min 59 s"),
        (8000, "2 h 13 min"),
    ],
)
def test_durations_are_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(("share", "words"), [(0.95, "95 %"), (0.999, "99.9 %"), (1, "100 %")])
def test_shares_are_percent(share: float, words: str) -> None:
    assert percent(share) == words


@pytest.mark.parametrize("columns", ["80", "160"])
@pytest.mark.parametrize("view", [ranking_views.ranking, ranking_views.choices])
def test_printing_follows_the_width_and_writes_no_colour_into_a_pipe(
    columns: str,
    view: object,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    choice = Choice(decision="use", variant="ipt_19.tpb_384", reason="best score")
    document = top(FULL.model_copy(update={"choice": choice}))
    assert callable(view)
    show(fitted(view)(document, verbose=False, head=True))
    out, err = capsys.readouterr()
    assert not ANSI.search(out)
    assert err == ""
    assert "ipt_19.tpb_384" in out
    assert max(map(len, out.splitlines())) <= int(columns)
    assert all(row == row.rstrip() for row in out.splitlines())


def test_a_list_that_is_cut_says_how_much() -> None:
    shown = lines(top(workload(hidden=1200, incomplete=2)))
    assert any(row.strip().startswith("1,200 more; 2 variants were not measured") for row in shown)


def test_versions_that_are_not_known_are_not_named() -> None:
    unnamed = workload().model_copy(update={"ctk": "", "cccl": ""})
    assert not [row for row in lines(top(unnamed)) if "ctk" in row or "cccl" in row]
