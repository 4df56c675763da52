"""Text of strangers: what it may be, and what becomes of it, over all of Unicode."""

import html as page
import json
import re
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import policygen
from policygen import rendering
from policygen.model.tuning import Content
from policygen.untrusted import (
    code,
    comment,
    fenced,
    html,
    is_visible,
    json_text,
    markdown,
    visible,
)

PACKAGE = Path(policygen.__file__).parent
TEXTS = st.text(st.characters(codec=None), max_size=60)
"""Of all characters, halves of pairs included, as Python has them for bytes that are no UTF-8."""
NASTY = st.text(
    st.sampled_from("\n\r\t\x1b\x07\x85\u2028\u2029\u202e\u200b\ufeff\udcff~`?/\\|<@#$&[]()*_- a1"),
    max_size=30,
)
ANY = st.one_of(TEXTS, NASTY)
DANGEROUS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_no_character_of_unicode_that_controls_or_hides_is_taken_for_visible():
    for number in range(sys.maxunicode + 1):
        char = chr(number)
        if unicodedata.category(char) in DANGEROUS:
            assert not is_visible(char), hex(number)
        elif char.isascii():
            assert is_visible(char)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ipt_19.tpb_384", "ipt_19.tpb_384"),
        ("Größe 日本 🙂", "Größe 日本 🙂"),
        ("\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("a\nb\tc\rd", "a\\x0ab\\x09c\\x0dd"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("\u202etxt.\u2028", "\\u202etxt.\\u2028"),
        ("\U000e0041\ufe0f", "\\U000e0041\\ufe0f"),
        ("no \udce9 byte", "no \\xe9 byte"),
        ("\udc80 to \udcff", "\\x80 to \\xff"),
        ("half \ud800", "half \\ud800"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text, shown):
    assert visible(text) == shown


def test_what_is_kept_stays():
    assert visible("a\n\tb\r\n", "\n\t") == "a\n\tb\\x0d\n"


@given(ANY)
def test_visible_text_is_printable_can_be_encoded_and_is_its_own_visible_text(text):
    shown = visible(text)
    assert shown.isprintable()
    shown.encode()
    assert visible(shown) == shown
    if all(map(is_visible, text)):
        assert shown == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ipt_19.tpb_384 1.089645  1.088196", "ipt_19.tpb_384 1.089645  1.088196"),
        ("a\n#define private public\n//_1", "a #define private public //_1"),
        ("a\u2028b\x85c\vd", "a b c d"),
        ("ends \\", "ends"),
        ("ends \\ \\", "ends"),
        ("ends ??/", "ends ? ?/"),
        ("a????/b", "a??? ?/b"),
        ("C:\\runs\\a.db", "C:\\runs\\a.db"),
        ("\u202eevil\u202c", " evil"),
    ],
)
def test_a_comment_is_one_line(text, line):
    assert comment(text) == line


@given(ANY)
def test_nothing_ends_a_comment_or_carries_it_on(text):
    line = comment(text)
    assert re.fullmatch(r"[ -~]*", line)
    assert not line.endswith("\\")
    assert not re.search(r"\?\?[=/'()!<>-]", line)
    assert comment(line) == line


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tuning_radix_sort.cuh:64", "tuning_radix_sort.cuh:64"),
        ("policy_hub<float, int>::Policy", "policy_hub&lt;float, int>::Policy"),
        ("a | b", "a \\| b"),
        ("*bold* `code` ~~gone~~", "\\*bold\\* \\`code\\` \\~\\~gone\\~\\~"),
        ("[x](javascript:alert(2))", "\\[x\\](javascript:alert(2))"),
        ("<img src=x>", "&lt;img src=x>"),
        ("&lt;b&gt; && &#60;", "&amp;lt;b&amp;gt; && &amp;\\#&#8203;60;"),
        ("@user and a@b.c", "@&#8203;user and a@&#8203;b.c"),
        ("fixes #1, cub#2, GH-3", "fixes \\#&#8203;1, cub#&#8203;2, GH&#8203;-3"),
        ("https://x.y www.x.y", "https:&#8203;//x.y www&#8203;.x.y"),
        ("cost $1$", "cost &#36;1&#36;"),
        ("- item", "\\- item"),
        ("> quote", "\\> quote"),
        ("12. item", "12\\. item"),
        ("3) item", "3\\) item"),
        ("=====", "\\====="),
        ("two\n\n# lines", "two \\# lines"),
        ("\u2028# x\x1b", "\\\\u2028# x\\\\x1b"),
    ],
)
def test_text_in_markdown_is_text(text, told):
    assert markdown(text) == told


@given(ANY)
def test_text_in_markdown_stays_in_its_line_and_cell(text):
    told = markdown(text)
    assert told.isprintable()
    ours = re.sub(r"&(?:#36|#8203|amp|lt);", " ", told)
    bare = re.sub(r"\\[!-/:-@\[-`{-~]", " ", ours)
    assert not set(bare) & set("\\`*[]|~<$")
    assert not re.search(r"@\w|#\d|://|www\.|gh-\d|&[#\w]", bare, re.IGNORECASE)
    assert not re.match(r"\s*(?:[-+>=]|\d+[.)](?: |$))", told)


@given(ANY)
def test_no_line_of_a_block_of_code_ends_it(text):
    fence, *lines, last = fenced(text, "diff").split("\n")
    assert fence == f"{last}diff"
    assert set(last) == {"~"}
    assert not any(last in line for line in lines)
    assert all(line.replace("\t", "").isprintable() for line in lines)
    assert len(lines) == text.count("\n") + 1


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("+a", "~~~diff\n+a\n~~~"),
        ("~~~~~", "~~~~~~diff\n~~~~~\n~~~~~~"),
        ("a\u2028~~~\u2028b", "~~~~diff\na\\u2028~~~\\u2028b\n~~~~"),
        ("a\x85\x0b\x1c\rb", "~~~diff\na\\x85\\x0b\\x1c\\x0db\n~~~"),
    ],
)
def test_a_fence_is_longer_than_what_stands_in_it(text, block):
    assert fenced(text, "diff") == block


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("a.cuh:64", "`a.cuh:64`"),
        ("a`b``c", "``` a`b``c ```"),
        ("a|b\nc", "`a\\|b c`"),
        ("\x1b", "`\\x1b`"),
    ],
)
def test_a_span_of_code_holds_any_text(text, span):
    assert code(text) == span


@given(ANY)
def test_html_within_markdown_is_one_line_of_text(text):
    told = html(text)
    assert told.isprintable()
    assert "<" not in told
    assert page.unescape(told.replace("&#8203;", "")) == visible(text)


@given(st.recursive(st.text(st.characters(exclude_categories=["Cs"])), st.lists))
@example("\x7f\x9b\u2028\u202e\U000e0041")
def test_a_json_document_says_the_same_with_escapes(value):
    for ascii_only in (True, False):
        plain = json.dumps(value, indent=1, ensure_ascii=ascii_only)
        told = json_text(plain)
        assert json.loads(told) == value
        assert told.replace("\n", "").isprintable()


@pytest.mark.parametrize("name", ["edit", "emit"])
def test_whatever_a_template_puts_into_a_comment_passes_the_one_function(name):
    tried = 0
    for path in sorted((rendering.folder("templates") / name).iterdir()):
        text = re.sub(r"{#.*?#}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for said in re.findall(r"(?<!:)//.*", text):
            for value in re.findall(r"{{(.*?)}}", said):
                assert value.endswith("| comment ") or value == ' " " if line ', (path.name, said)
                tried += 1
    assert tried


def test_whatever_is_written_into_a_comment_elsewhere_is_the_label_of_a_content():
    said = {
        (path.name, value)
        for path in PACKAGE.rglob("*.py")
        for value in re.findall(r'"[^"\n]*// {(.*?)}', path.read_text(encoding="utf-8"))
    }
    assert said == {
        ("comments.py", "label"),
        ("additions.py", "label"),
        ("entry_edits.py", "heading"),  # as another one of the header
        ("header.py", "label"),  # its width alone; the template writes it
        ("tree_views.py", "remark"),  # on a terminal
        ("selector_code.py", "row"),  # of PTX, which is read and neither written nor compiled
    }
    assert Content("empty", label="a\n#define b\\").label == "a #define b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("1.09 is a number", "1.09 is a number"), ("1. a", "1\\. a"), ("2)", "2\\)")],
)
def test_a_number_with_a_point_is_no_list(text, shown):
    assert markdown(text) == shown
