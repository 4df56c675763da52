import pytest

from policygen.errors import InputError, SourceError
from policygen.headers.spelling import edit_at, splice
from policygen.model.records import Span
from policygen.model.tuning import Edit

DATA = b"int a = 1;\r\nint b = 2;\n"


def edit(start, end, new, old=None):
    return Edit(
        span=Span(start, end), old=DATA[start:end].decode() if old is None else old, new=new,
        reason=f"{new} at {start}",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("edits", "after"),
    [
        ([], DATA),
        ([edit(8, 9, "7")], b"int a = 7;\r\nint b = 2;\n"),
        ([edit(20, 21, "77"), edit(8, 9, "")], b"int a = ;\r\nint b = 77;\n"),
        ([edit(10, 10, " // é")], "int a = 1; // é\r\nint b = 2;\n".encode()),
        ([edit(9, 9, ","), edit(8, 9, "7")], b"int a = 7,;\r\nint b = 2;\n"),
        ([edit(8, 8, "-"), edit(8, 9, "7")], b"int a = -7;\r\nint b = 2;\n"),
        ([edit(23, 23, "!")], DATA + b"!"),
    ],
)
def test_edits_are_done_in_the_order_of_their_places(edits, after):
    assert splice("x.cuh", DATA, edits) == after
    assert splice("x.cuh", DATA, edits[::-1]) == after


@pytest.mark.parametrize(
    ("edits", "place"),
    [
        ([edit(4, 9, "x"), edit(8, 10, "y")], 8),
        ([edit(4, 9, "x"), edit(6, 6, "y")], 6),
        ([edit(8, 9, "x"), edit(8, 9, "y")], 8),
        ([edit(5, 5, "x"), edit(5, 5, "y")], 5),
    ],
)
def test_edits_that_meet_are_refused(edits, place):
    with pytest.raises(
        InputError, match=f"x.cuh: two edits overlap at byte {place}\n  y at {place}"
    ):
        splice("x.cuh", DATA, edits)


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (
            [edit(20, 21, "3", "4")],
            "x.cuh:2:9: the header differs from the one that the plan was made for: expected '4'"
            " here\n"
            "  int b = 2;\n          ^\n  Make the plan again.",
        ),
        (
            [edit(21, 30, "3", "")],
            "x.cuh:2:10: the header differs from the one that the plan was made for: expected ''"
            " here\n"
            "  int b = 2;\n           ^\n  Make the plan again.",
        ),
    ],
)
def test_what_is_not_as_expected_is_shown_and_refused(edits, message):
    with pytest.raises(SourceError) as caught:
        splice("x.cuh", DATA, edits)
    assert str(caught.value) == message


def test_an_edit_holds_what_stands_at_its_place():
    found = edit_at(DATA, Span(4, 9), "c = 3", "why")
    assert found == Edit(span=Span(4, 9), old="a = 1", new="c = 3", reason="why")


def test_what_no_plan_can_hold_is_refused():
    with pytest.raises(InputError, match="byte 6 of a comment to be replaced is not UTF-8"):
        edit_at(b"// caf\xe9", Span(0, 7), "", "why")
