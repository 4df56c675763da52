"""What goes to one place of a header is one edit."""

import pytest

from policygen.headers.protocol import with_insertions
from policygen.model.records import Span
from policygen.model.tuning import Edit


def edit(new):
    return Edit(span=Span(5, 5), old="", new=new, reason="there")


@pytest.mark.parametrize(
    ("there", "inserted", "expected"),
    [
        pytest.param("// label\n", "entry\n", "entry\n// label\n", id="a label is its entry's"),
        pytest.param("\n", "\n\nentry\n", "\n\nentry\n", id="a blank line is there already"),
        pytest.param("\r\n", "entry\r\n\r\n", "entry\r\n\r\n", id="before an entry, too"),
        pytest.param("\n", "\nentry", "\n\nentry", id="behind a block, before a line"),
        pytest.param("\n", "entry\n", "entry\n\n", id="before a block, behind a line"),
    ],
)
def test_an_edit_and_an_insertion_at_its_place_are_one(there, inserted, expected):
    (found,) = with_insertions([edit(there)], [(5, inserted, "new")])
    assert found.new == expected


def test_an_edit_elsewhere_is_left():
    other = Edit(span=Span(1, 2), old="x", new="\n", reason="there")
    assert with_insertions([other], [(5, "entry", "new")]) == [
        other,
        Edit(span=Span(5, 5), old="", new="entry", reason="new"),
    ]


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(["\n\na\n", "\n\nb\n"], "\n\na\n\nb\n", id="behind an entry, before another"),
        pytest.param(["\n\na", "\n\nb"], "\n\na\n\nb", id="behind the last"),
        pytest.param(["\na", "\nb"], "\na\nb", id="lines"),
        pytest.param(["a\n\n", "b\n\n"], "a\n\nb\n\n", id="before an entry"),
    ],
)
def test_what_goes_to_one_place_has_one_blank_line_between(texts, expected, ending):
    texts = [text.replace("\n", ending) for text in texts]
    (found,) = with_insertions([], [(5, text, "new") for text in texts])
    assert found.new == expected.replace("\n", ending)
