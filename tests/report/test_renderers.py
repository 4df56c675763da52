"""Hostile text in every kind of block, in every medium: no view escapes, so the renderers must."""

import re

import pytest

from policygen.report import pages
from policygen.report.blocks import (
    BLANK,
    Beside,
    Card,
    Cards,
    Chapter,
    Code,
    Column,
    Diff,
    Drawing,
    Figure,
    Filters,
    Fold,
    Heading,
    Listing,
    Mark,
    Matrix,
    MatrixRow,
    Mixed,
    Note,
    Page,
    Styled,
    Table,
    Words,
)
from policygen.report.terminal import fill
from tests.report.shown import lines

EVIL = "<script>x</script>\x1b[2J\u202e|`*_[a](b)\n# @user"
SEEN = "\\x1b[2J\\u202e"
FIGURE = Figure("strip", [(EVIL, 1, EVIL)])
TABLE = Table([EVIL, Column(EVIL, "n")], [[EVIL, Styled(EVIL, EVIL, EVIL)]], EVIL, EVIL)
COMMON = [
    Note(EVIL, EVIL),
    Note(((EVIL, "bold"), (EVIL, "code"), (f" {EVIL} ", ""), (EVIL, "mono"))),
    Heading(EVIL),
    Listing([EVIL, ((EVIL, ""), (1.5, ""))], EVIL),
    TABLE,
    Cards([Card(EVIL, EVIL, [EVIL])]),
    Fold(EVIL, [Note(EVIL)]),
    Chapter([Note(EVIL)], EVIL, {"archs": [EVIL]}),
    Code([EVIL], "sh"),
    Diff(EVIL, ["@@ -1 +1 @@", f"-{EVIL}", "+~~~~"]),
]
PAGE = [
    Filters(EVIL, {"archs": (EVIL, [EVIL])}, [EVIL]),
    Fold(EVIL, [], EVIL, FIGURE),
    Matrix(
        EVIL,
        [Column(EVIL, EVIL)],
        [MatrixRow(EVIL, [Mixed(EVIL, EVIL, EVIL, [(EVIL, 1)])], EVIL)],
        EVIL,
        EVIL,
    ),
    Table([EVIL], [[EVIL]], anchors=[EVIL]),
    Listing([EVIL], to=[EVIL]),
    Heading(EVIL, anchor=EVIL),
    Fold(EVIL, [Note(EVIL)], anchor=EVIL),
    Table([EVIL], [[Styled(FIGURE)], [Styled(EVIL, "code")], [EVIL]], "heat"),
    Cards([Card(EVIL, EVIL, [], EVIL, figure=Figure("bar", FIGURE.bars))]),
    Table([EVIL], [[Styled(EVIL, to=EVIL)]]),
    Drawing(EVIL, EVIL, 10, 10, [Mark("text", EVIL, {"x": 1.25, "y": EVIL}, EVIL, EVIL)], EVIL),
]
TERMINAL = [
    Note(EVIL, "red"),
    Note(((EVIL, "bold"), (EVIL, ""))),
    Words(EVIL, "red", EVIL, EVIL),
    Words([EVIL], even=True, first=EVIL, mark="dim"),
    Beside(Words([EVIL]), Words([EVIL])),
    Table([EVIL], [[EVIL], [Styled(EVIL, "bold")]]),
]


@pytest.mark.parametrize("block", TERMINAL, ids=repr)
@pytest.mark.parametrize("width", [30, 160])
def test_a_terminal_shows_what_a_block_holds(block, width):
    found = lines([block], width)
    assert all(row.isprintable() for row in found)
    assert SEEN in re.sub(r"\s", "", "".join(found))


@pytest.mark.parametrize("block", COMMON, ids=repr)
def test_no_block_breaks_out_of_its_markdown(block):
    text = pages.render_markdown(Page("title", {EVIL: EVIL}, [block]))
    assert all(row.isprintable() for row in text.split("\n"))
    assert "\\x1b" in text
    outside = re.sub(r"(?s)~~~+\w+\n.*?\n~~~+", "", text)
    outside = re.sub(r"(?<![`\\])(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)
    assert "<script" not in outside
    assert "@user" not in outside
    assert not [row for row in outside.split("\n") if row.startswith("# ") and row != "# title"]


@pytest.mark.parametrize("block", [*COMMON, *PAGE], ids=repr)
@pytest.mark.parametrize("template", ["coverage", "review", "search"])
def test_no_block_breaks_out_of_its_page(block, template):
    text = pages.render(Page(EVIL, {EVIL: EVIL}, [block]), template)
    assert text.count("<script") == 1
    assert all(row.isprintable() for row in text.split("\n"))
    assert SEEN in text


def test_a_renderer_refuses_what_its_medium_does_not_have():
    with pytest.raises(TypeError, match="a terminal has no Heading"):
        lines([Heading("a")], 80)
    with pytest.raises(TypeError, match="Markdown has no Filters"):
        pages.render_markdown(Page("a", {}, [PAGE[0]]))
    drawn = Table(["a"], [[Styled(FIGURE)]])
    with pytest.raises(TypeError, match="Markdown has no figures"):
        pages.render_markdown(Page("a", {}, [drawn]))
    with pytest.raises(TypeError, match="a terminal has no figures"):
        lines([drawn], 80)


def test_markdown_tells_how_much_it_cuts():
    cut = [
        Listing(["a", "b", "c"], shown=1),
        Table(["t"], [["x"], ["y"]], shown=1),
        Listing(["d", "e", "f"], shown=2, loose=True),
        Diff("p", ["g", "h", "i"], shown=1),
    ]
    assert pages.render_markdown(Page("title", {"tree": "here", "by": "nvcc"}, cut)) == (
        "# title\n\ntree: here; by: nvcc\n\n- a\n\nand 2 more\n\n| t |\n| --- |\n| x |\n\n"
        "and 1 more\n\n- d\n\n- e\n\n<details><summary>p</summary>\n\n~~~diff\ng\n~~~\n\n"
        "and 2 more lines\n\n</details>\n"
    )


def test_words_that_find_no_room_behind_their_beginning_go_below():
    words = Words("T, OffsetT>", first="a_name_of_some_length<", later="    ")
    assert fill(words, 40) == ["a_name_of_some_length<T, OffsetT>"]
    assert fill(words, 30) == ["a_name_of_some_length<T,", "    OffsetT>"]
    assert fill(words, 24) == ["a_name_of_some_length<", "    T, OffsetT>"]


def test_what_stands_beside_goes_below_without_room():
    both = Beside(Words(["left"], first="  "), Words(["right", "side"], first="    ", joint=" · "))
    assert lines([both, BLANK], 24) == ["  left  right · side", ""]
    assert lines([both], 18) == ["  left", "    right · side"]
