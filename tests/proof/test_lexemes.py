import random
import time

import pytest

from policygen.proof.lexemes import Spliced


def told(text, **done):
    """Every lexeme: what it is, and its bytes."""
    source = Spliced(text.encode(), **done)
    return [(one.kind, source.text[one.start : one.end].decode()) for one in source.lexemes()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a // b\nc", [("comment", "// b")]),
        ('a /* b\n" */ c', [("comment", '/* b\n" */')]),
        ("a // b \\\nstill // it\nc", [("comment", "// b still // it")]),
        ("/\\\n/ b", [("comment", "// b")]),
        ("a / b /c", []),
        (r'"a\"b" "c"', [("string", r'"a\"b"'), ("string", '"c"')]),
        ('"a\\\nb"', [("string", '"ab"')]),
        ('"//" "/*"', [("string", '"//"'), ("string", '"/*"')]),
        ("'\"' '\\''", [("char", "'\"'"), ("char", "'\\''")]),
        ("1'024 + 0xA'B", []),
        ("u8'a' 1'0 'b'", [("char", "'a'"), ("char", "'b'")]),
        ('R"(a)"', [("raw", '"(a)"')]),
        ('u8R"x(a)" b)x" c', [("raw", '"x(a)" b)x"')]),
        ('R"( // )" // b', [("raw", '"( // )"'), ("comment", "// b")]),
        ('FOOR"x(" c ")x"', [("string", '"x("'), ("string", '")x"')]),
        ('1e+R"x(" c ")x"', [("string", '"x("'), ("string", '")x"')]),
        ('1\'0R"x(" c ")x"', [("string", '"x("'), ("string", '")x"')]),
        ('éR"x(" c', [("string", '"x("')]),
        ('R"no fence" c', [("raw", '"'), ("endless", '" c')]),
        ("a \"open\nb 'open\nc", [("endless", '"open'), ("endless", "'open")]),
        ("a /* open\nb", [("endless", "/* open\nb")]),
        ('R"x(open', [("raw", '"x(open')]),
    ],
)
def test_comments_and_literals_are_told_from_code(text, expected):
    assert told(text) == expected


def test_lines_are_not_put_together_within_a_raw_string():
    source = Spliced(b'a\\\nb R"x()\\\nx")x" // c\\\nd\ne')
    (raw, comment) = source.lexemes()
    assert source.data[source.offset(raw.end) :].startswith(b" // c")
    assert source.text[comment.start : comment.end] == b"// cd"
    assert source.code.replace(b" ", b"") == b'abR""\ne'


def test_what_a_preprocessor_did_is_not_done_again():
    assert told('"a" \\\n"b"', done=True) == [("string", '"a"'), ("string", '"b"')]
    assert Spliced(b"a\\\nb", done=True).text == b"a\\\nb"


def test_code_has_the_length_of_the_text_and_directives_go_on_after_comments():
    source = Spliced(b'#if 1 /* a\nb */ && "c"\n')
    assert source.code == b'#if 1           && " "\n'
    assert len(source.code) == len(source.text)


def test_offsets_lead_to_the_file_and_back():
    rng = random.Random(17)
    for _ in range(300):
        data = "".join(rng.choices(["a", "b", "\n", "\\\n", "\\ \r\n", '"', "/"], k=30)).encode()
        source = Spliced(data)
        for position, char in enumerate(source.text):
            offset = source.offset(position)
            assert data[offset] == char
            assert source.position(offset) == position


@pytest.mark.parametrize("text", ["'" * 20_000, "1" * 20_000 + "'a", 'R"' * 20_000, "/*" * 20_000])
def test_no_text_takes_long(text):
    start = time.perf_counter()
    told(text)
    assert time.perf_counter() - start < 2
