"""What rows of a page are called: by their text alone, and each only once."""

import pytest

from policygen.report.blocks import Fact, fact, largest
from policygen.report.pages import Anchors, slug


@pytest.mark.parametrize("text", ["shares/reduce.sum", "workloads/scan/T=I8/OffsetT=I32"])
def test_plain_text_is_its_own_name(text):
    assert slug(text) == text


@pytest.mark.parametrize(
    "text", ["", "a b", 'x" onclick="y', "<script>", "\u202e", "\ud800", "a" * 101, "a~b"]
)
def test_other_text_becomes_plain_letters_and_a_digest(text):
    name = slug(text)
    assert name == slug(text)
    plain, _, digest = name.rpartition("~")
    assert len(digest) == 10
    assert len(plain) <= 60
    assert all(letter.isascii() and (letter.isalnum() or letter in "._=/-") for letter in plain)


def test_texts_that_look_alike_have_other_names():
    texts = ["a b", "a  b", "a-b", "a<b", "a>b", "a-b~c"]
    assert len({slug(text) for text in texts}) == len(texts)


def test_a_text_that_comes_again_has_a_number_and_links_lead_to_the_first():
    anchors = Anchors()
    assert [anchors.define(text) for text in ("a/b", "a/b", "c", "a/b")] == [
        "a/b",
        "a/b~2",
        "c",
        "a/b~3",
    ]
    assert anchors.link("a/b") == "#a/b"


def test_the_largest_of_each_kind_are_taken_in_turns_until_there_are_ten():
    first = [fact(size, "of the first") for size in (1, 3, 2)]
    second = [fact(size, "of the second") for size in range(100)]
    found = [one.size for one in largest([first, second, []])]
    assert found == [3, 2, 1, 99, 98, 97, 96, 95, 94, 93]
    assert largest([]) == []
    assert fact(1234, "x") == Fact(1234, (("1,234", "bold"), (" x", "")))
