import pytest

from policygen.headers.scan import read_header
from policygen.proof.lint_subject import all_members, base_of
from tests.headers.headers import wrap

VALUE = "static constexpr int {} = 1;"


def entry(args: str, members: str = "", base: str = "", template: str = "", name: str = "sm90"):
    """`template <class T> struct sm90_tuning<T, 1> : base { static constexpr int a = 1; };`."""
    inherits = f" : {base}" if base else ""
    values = " ".join(VALUE.format(member) for member in members.split())
    return f"template <{template}> struct {name}_tuning<{args}>{inherits} {{ {values} }};\n"


def read(body: str, primary: str = ""):
    """A header with `sm90_tuning<class T, int Size>`, and its last live entry with its family."""
    data = wrap(body).replace(b"sm90_tuning;", b"sm90_tuning%s;" % primary.encode())
    header = read_header("tuning_demo.cuh", data)
    pairs = [(f, e) for f in header.families for e in f.entries if not e.disabled]
    return header, *max(pairs, key=lambda pair: pair[1].span.start)


def members(body: str, primary: str = "") -> str:
    return " ".join(sorted(all_members(*read(body, primary))))


def base(body: str, primary: str = "") -> str | None:
    """The arguments of the entry that the last one inherits from."""
    found = base_of(*read(body, primary))
    return None if found is None else f"{found[0].name}<{', '.join(found[1].args)}>"


def test_what_is_no_tuning_may_have_anything() -> None:
    assert all_members(*read(entry("char, 9", "c", "other<int>"))) is None


LAST = entry("char, 9", "c", "sm90_tuning<int, 4>")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(entry("int, 4", "a b"), "a b", id="its own"),
        pytest.param(entry("int, 4", "a b") + LAST, "a b c", id="its base's, too"),
        pytest.param(entry("int, 4", "a c") + LAST, "a c", id="a member of both"),
        pytest.param(entry("int, 4") + LAST, "c", id="an empty base"),
        pytest.param(
            entry("int, 8", "a") + entry("int, 4", "b", "sm90_tuning<int, 8>") + LAST,
            "a b c",
            id="a base of a base",
        ),
        pytest.param(LAST, "c", id="a base that is only declared"),
        pytest.param(
            "template <class T> struct sm80_tuning;\n"
            + entry("int", "a", name="sm80")
            + entry("char, 9", "c", "sm80_tuning<int>"),
            "a c",
            id="a base of another family",
        ),
        pytest.param(
            f"// {entry('int, 4', 'a')}{LAST}", "c", id="an entry in a comment is no base"
        ),
        pytest.param(
            f"#if 0\n{entry('int, 4', 'a')}#endif\n{LAST}", "c", id="a disabled entry is no base"
        ),
    ],
)
def test_an_entry_has_the_members(body: str, expected: str) -> None:
    assert members(body) == expected


def test_the_members_of_the_primary_template_are_inherited() -> None:
    primary = f" {{ {VALUE.format('a')} }}"
    assert members(LAST, primary) == "a c"
    assert base(LAST, primary) == "sm90_tuning<>"


PARTIAL = entry("T, 4", "a", template="class T")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(PARTIAL + LAST, "sm90_tuning<T, 4>", id="a partial one that fits"),
        pytest.param(
            PARTIAL + entry("int, 4", "b") + LAST, "sm90_tuning<int, 4>", id="the closest of two"
        ),
        pytest.param(
            entry("int, 4", "b") + PARTIAL + LAST, "sm90_tuning<int, 4>", id="in any order"
        ),
        pytest.param(
            entry("T, N", "a", template="class T, int N") + PARTIAL + LAST,
            "sm90_tuning<T, 4>",
            id="the closest of two partial ones",
        ),
        pytest.param(
            entry("T, 5", "a", template="class T") + LAST, "sm90_tuning<>", id="else the primary"
        ),
        pytest.param(
            entry("int,4", "a") + entry("char, 9", "c", "sm90_tuning< int , 4 >"),
            "sm90_tuning<int, 4>",
            id="spaces mean nothing",
        ),
        pytest.param(
            entry("int, 4", "a") + entry("char, 9", "c", "detail::demo::sm90_tuning<int, 4>"),
            "sm90_tuning<int, 4>",
            id="a qualified name",
        ),
        pytest.param(
            entry("int, 4", "a") + entry("char, 9", "c", "public sm90_tuning<int, 4>"),
            "sm90_tuning<int, 4>",
            id="a base that is said to be public",
        ),
        pytest.param(
            entry("pair<int, 3>, 4", "a")
            + entry("pair<int, 2>, 4", "b")
            + entry("char, 9", "c", "sm90_tuning<pair<int, 2>, 4>"),
            "sm90_tuning<pair<int, 2>, 4>",
            id="a comma inside an argument",
        ),
        pytest.param(
            entry("T, 9", "a", template="class T")
            + entry("T, 4", "c", "sm90_tuning<T, 9>", template="class T"),
            "sm90_tuning<T, 9>",
            id="a base with a parameter of its heir",
        ),
        pytest.param(
            "template <class... Ts> struct sm80_tuning;\n"
            + entry("Ts...", "a", template="class... Ts", name="sm80")
            + entry("char, 9", "c", "sm80_tuning<int>"),
            "sm80_tuning<>",
            id="a pack is not followed",
        ),
        pytest.param(
            "template <class T> struct sm80_tuning;\n" + entry("char, 9", "c", "sm80_tuning<T>"),
            "sm80_tuning<>",
            id="a primary template that is only declared",
        ),
        pytest.param(entry("char, 9", "c", "sm70_tuning<int>"), None, id="an unknown base"),
        pytest.param(
            entry("int", "a", name="sm80") + entry("char, 9", "c", "sm80_tuning<short>"),
            None,
            id="a family of which nothing fits",
        ),
    ],
)
def test_the_base_of_an_entry(body: str, expected: str | None) -> None:
    assert base(body) == expected


def test_a_family_of_another_namespace_is_no_base() -> None:
    other = (
        "namespace inner {\n"
        "template <class T> struct sm80_tuning { static constexpr int a = 1; };\n"
        "}\n"
    )
    assert base(other + entry("char, 9", "c", "sm80_tuning<int>")) is None


def test_entries_that_inherit_from_each_other_end() -> None:
    """No compiler takes them, but a reader must not run out of stack."""
    circle = entry("int, 1", "a", "sm90_tuning<int, 2>") + entry(
        "int, 2", "b", "sm90_tuning<int, 1>"
    )
    assert members(circle) == "a b"
    assert members(entry("int, 1", "a", "sm90_tuning<int, 1>")) == "a"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("", set()),
        ("class T, typename U", {"T", "U"}),
        ("class T, int Size, unsigned long N", {"T", "Size", "N"}),
        ("class... Ts", {"Ts"}),
    ],
)
def test_the_names_of_template_parameters(template: str, expected: set[str]) -> None:
    *_, last = read(entry("int, 1", template=template))
    assert last.own_parameters.keys() == expected
