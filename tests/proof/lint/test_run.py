import pytest

from policygen.errors import InputError
from policygen.model.audits import Scan
from policygen.model.records import Span
from policygen.model.trees import Cub
from policygen.proof.lint_rules import RULES, choose, lint
from policygen.proof.lint_subject import HeaderSource, place
from tests.headers.headers import read, wrap

BODY = """template <class T> struct sm90_tuning<T, 4> { static constexpr int threads = 1050; };
template <class T> struct sm90_tuning<T, 8> { static constexpr int threads = 7; };
template <class T, int Size> struct sm80_tuning;
template <class T> struct sm80_tuning<T, 4> { static constexpr int threads = 33; };"""


def report(version="3.0.1", rules=RULES, families=None):
    cub = Cub(root="/cub", version=version, dialect="specializations", found="--cub")
    scan = Scan(cub=cub, families=read(BODY), chains=())
    sources = {"tuning_demo.cuh": HeaderSource("tree/tuning_demo.cuh", wrap(BODY))}
    return lint(scan, sources, rules, families)


def test_findings_come_by_place_with_what_they_are_about():
    found = report()
    assert [(f.rule, f.line, f.column, f.family, f.args) for f in found.findings] == [
        ("threads-not-warp-multiple", 4, 78, "sm90_tuning", ("T", "4")),
        ("threads-over-limit", 4, 78, "sm90_tuning", ("T", "4")),
        ("threads-not-warp-multiple", 5, 78, "sm90_tuning", ("T", "8")),
        ("threads-over-limit", 5, 78, "sm90_tuning", ("T", "8")),
        ("threads-not-warp-multiple", 7, 78, "sm80_tuning", ("T", "4")),
    ]
    assert {f.path for f in found.findings} == {"tree/tuning_demo.cuh"}
    assert found.findings[0].text == BODY.splitlines()[0]
    assert found.findings[0].width == 4
    assert found.counts["threads-over-limit"] == 2
    assert found.counts["duplicate-key"] == 0
    assert (found.families, found.entries, found.off) == (2, 5, ())


def test_families_without_a_binding_are_told():
    names = ("cub::detail::demo::sm90_tuning", "cub::detail::demo::sm80_tuning")
    assert report().unbound == report(version="unknown").unbound == names


def test_rules_that_are_off_are_told_and_not_counted():
    found = report(rules=choose(["threads-over-limit"], []))
    assert set(found.counts) == {"threads-over-limit"}
    assert set(found.off) == {rule.name for rule in RULES} - {"threads-over-limit"}


def test_only_the_families_that_are_asked_for_are_judged():
    found = report(families={("tuning_demo.cuh", "cub::detail::demo", "sm80_tuning")})
    assert [f.family for f in found.findings] == ["sm80_tuning"]
    assert (found.families, found.entries) == (1, 2)


def test_rules_are_chosen_by_name():
    assert choose([], []) == RULES
    assert len(choose([], ["duplicate-key"])) == len(RULES) - 1
    assert [r.name for r in choose(["duplicate-key", "threads-over-limit"], ["duplicate-key"])] == [
        "threads-over-limit"
    ]


@pytest.mark.parametrize(
    ("only", "off", "message"),
    [
        (["nothing"], [], "unknown rule 'nothing'\n  Rules: items-not-"),
        ([], ["zero", "one"], "unknown rule 'one'\n  Rules: items-not-"),
        (["duplicate-key"], ["duplicate-key"], "all rules are disabled\n  Rules: items-not-"),
    ],
)
def test_a_mistyped_rule_is_told(only, off, message):
    with pytest.raises(InputError) as error:
        choose(only, off)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("data", "span", "word", "where"),
    [
        (b"one\ntwo three\n", (8, 13), None, (2, 5, "two three", 5)),
        (b"one\r\ntwo\r\n", (5, 8), None, (2, 1, "two", 3)),
        (b"\xef\xbb\xbfone two", (7, 10), None, (1, 5, "one two", 3)),
        ("héé two".encode(), (6, 9), None, (1, 5, "héé two", 3)),
        (b"h\xe9 two", (3, 6), None, (1, 4, "h\xe9 two".replace("\\xe9", "é"), 3)),
        (b"one {\n two }", (4, 12), None, (1, 5, "one {", 1)),
        (b"// x\n// on B200\nstruct", (0, 20), "B200", (2, 7, "// on B200", 4)),
        (b"// x\nstruct", (5, 11), "B200", (2, 1, "struct", 6)),
        (b"end", (3, 3), None, (1, 4, "end", 1)),
    ],
)
def test_a_place_is_counted_in_characters(data, span, word, where):
    found = place(data, Span(*span), word)
    assert (found.line, found.column, found.text, found.width) == where
