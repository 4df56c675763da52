"""All configs of whole releases, counted and read a second time by other means."""

import re
from collections import Counter
from functools import cache

import pytest

from policygen.headers.scan import scan_headers
from policygen.trees import open_tree, tuning_headers
from tests.real_trees import rocprim_tree
from tests.tiers import sampled

pytestmark = pytest.mark.trees

GENERATED = re.compile(
    r"((?://[^\n]*\n)*)template<([^{};]*?)>\s*struct (default_\w+_config)<\s*"
    r"static_cast<unsigned int>\(target_arch::(\w+)\),([^{}]*?)>\s*:(?!:)\s*([^{}]*?)\s*\{\s*\};"
)
FACT = re.compile(
    r"(!?)bool\(rocprim::(\w+)<(\w+)>::value\)|\((sizeof\(\w+\) [<>]=? \d+)\)"
    r"|(!?std::is_same<[\w:, ]+>::value)|(\w+ == \d+)"
)
ROW = re.compile(
    r"select_arch_case<\s*(\w+)\s*,\s*(?:detail::)?(\w+)<[^<>]*>\s*>|(\w+)<[^<>]*>\s*>\s*\{\s*\}"
)
TABLE = re.compile(r"struct default_\w+\s*:\s*select_arch<\s*\w+\s*,(.*?\{\s*\};)", re.S)
STRUCT = re.compile(r"[^{};]*?\bstruct (\w+_config_\w+)\b")
ARCHS = {"803": "gfx803", "900": "gfx900", "906": "gfx906", "908": "gfx908", "1030": "gfx1030"}


@cache
def scanned(release):
    return scan_headers(tuning_headers(open_tree(rocprim_tree(release))))


def read(release):
    """All families."""
    return [family for header in scanned(release).headers for family in header.families]


def texts(release):
    """The text of the headers that hold configs, by name."""
    root = rocprim_tree(release) / "rocprim/device"
    found = [*root.glob("device_*_config.hpp"), *(root / "detail/config").glob("*.hpp")]
    return {path.name: path.read_text() for path in found}


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def spaced(text):
    return " ".join(text.split())


def facts_of(asked):
    """What a condition asks, or the types that are named in its place."""
    if "enable_if" not in asked:
        return tuple(part for part in map(str.strip, asked.split(",")) if part != "key_type")
    return tuple(
        f"{no}{trait}<{of}>" if trait else size or same or number
        for no, trait, of, size, same, number in FACT.findall(spaced(asked))
    )


def cases_of(struct):
    """How many configs `select_type<…>` chooses from; one where it chooses none."""
    _, found, rest = re.sub(r" (<=|>=|<|>) (?=\d)", "", struct).partition("select_type<")
    depth, count = 1, 1
    for sign in rest if found else "":
        depth += (sign in "<(") - (sign in ">)")
        count += sign == "," and depth == 1
        if not depth:
            break
    return count


def arguments(text):
    """`reduce_config<256, kernel_config<1, 2>>` as the values in it, from left to right."""
    return [
        part.rpartition("::")[2].strip() for part in re.findall(r"(?:[^<>,]|<<)+(?=[,>])", text)
    ]


def test_generated_configs_are_those_that_an_expression_finds():
    mine = {}
    for name, text in texts("5.7.1").items():
        for comment, _, config, arch, asked, taken in GENERATED.findall(text):
            key = (name, config, arch, facts_of(asked))
            assert key not in mine, "each asks for something else"
            mine[key] = (arguments(spaced(taken)), re.findall(r"// ([^\n]+)", comment))
    assert len(mine) == 1356
    theirs = {
        (family.header, family.name, family.arch, one.args): (
            [str(value).replace("True", "true") for value in one.values.values()],
            list(one.remarks),
        )
        for family in read("5.7.1")
        for one in family.entries
        if one.kind == "branch" and family.name.startswith("default_")
    }
    assert theirs.keys() == mine.keys()
    assert theirs == mine


@pytest.mark.parametrize("release", sampled(["5.3.3", "5.7.1"], "5.7.1"))
def test_tables_by_hand_have_the_cases_of_their_configs(release):
    mine = Counter()
    for name, text in texts(release).items():
        code = without_comments(text)
        cases = Counter()
        for chunk in re.split(r"^template\s*<", code, flags=re.M)[1:]:
            if found := STRUCT.match(chunk):
                cases[found[1]] += cases_of(chunk)
        for table in TABLE.findall(code):
            for number, config, other in ROW.findall(table):
                arch = ARCHS.get(number, "gfx90a") if number else "unknown"
                mine[name, config or other, arch] += cases[config or other]
    theirs = {
        (family.header, family.name, family.arch): len(family.entries)
        for family in read(release)
        if not re.fullmatch(r"default_\w+|\w+_base\w*", family.name)
    }
    assert theirs == dict(mine)
    assert len(theirs) == {"5.3.3": 59, "5.7.1": 23}[release]


@pytest.mark.slow
@pytest.mark.parametrize("release", ["5.3.3", "5.7.1"])
def test_spans_are_exact(release):
    root = rocprim_tree(release) / "rocprim/device"
    paths = [*(root / "detail/config").glob("*.hpp"), *root.rglob("*_config*.hpp")]
    for family in read(release):
        path = next(one for one in paths if one.name == family.header)
        data = path.read_bytes()
        for one in family.entries:
            begin = data[one.span.start : one.span.end].decode()
            assert begin.startswith(("template", "select_type_case<", one.inherits.split("<")[0]))
            assert data[: one.span.start].count(b"\n") <= one.line - 1
            assert data[: one.span.end].count(b"\n") >= one.line - 1
            for member in one.members:
                spelled = data[member.value_span.start : member.value_span.end].decode()
                assert spaced(spelled) == member.spelling
            assert not one.disabled
            assert family.namespace == "rocprim::detail"


@pytest.mark.slow
@pytest.mark.parametrize("release", ["5.3.3", "5.7.1"])
def test_whole_releases_are_read_without_problems(release):
    assert scanned(release).errors == ()
