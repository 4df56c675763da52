"""All configs of whole releases, counted and read a second time by other means."""

import re
from collections import Counter
from functools import cache

import pytest

from policygen.dialects.scan import scan
from policygen.tree import open_tree
from tests.trees import rocprim_tree

pytestmark = pytest.mark.trees

GENERATED = re.compile(
    r"((?://[^\n]*\n)*)template<([^{};]*?)>\s*struct (default_\w+_config)<\s*static_cast<unsigned int>"
    r"\(target_arch::(\w+)\),([^{}]*?)>\s*:\s*([^{}]*?)\s*\{\s*\};"
)
FACT = re.compile(r"(!?)bool\(rocprim::(\w+)<(\w+)>::value\)|\((sizeof\(\w+\) [<>]=? \d+)\)|(std::is_same<[\w:, ]+>::value)")
ROW = re.compile(r"select_arch_case<\s*(\w+)\s*,\s*(\w+)<[^<>]*>\s*>|(\w+)<[^<>]*>\s*>\s*\{\s*\}")
TABLE = re.compile(r"struct default_\w+\s*:\s*select_arch<\s*\w+\s*,(.*?\{\s*\};)", re.S)
STRUCT = re.compile(r"\bstruct (\w+_config_\w+)(<[^{};]*>)?\s*(?::[^{};]*)?\{(.*?)\n\};", re.S)
ARCHS = {"803": "gfx803", "900": "gfx900", "906": "gfx906", "908": "gfx908", "1030": "gfx1030"}


@cache
def scanned(release):
    return scan(open_tree(rocprim_tree(release)))


def texts(release):
    """The text of the headers that hold configs, by name."""
    root = rocprim_tree(release) / "rocprim/device"
    found = [*root.glob("device_*_config.hpp"), *(root / "detail/config").glob("*.hpp")]
    return {path.name: path.read_text() for path in found}


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def spaced(text):
    return " ".join(text.split())


def facts_of(condition):
    return tuple(
        f"{no}{trait}<{of}>" if trait else size or same
        for no, trait, of, size, same in FACT.findall(spaced(condition))
    )


def arguments(text):
    """`reduce_config<256, kernel_config<1, 2>>` as the values in it, from left to right."""
    return [part.rpartition("::")[2].strip() for part in re.findall(r"[^<>,]+(?=[,>])", text)]


def test_generated_configs_are_those_that_an_expression_finds():
    mine = {}
    for name, text in texts("5.7.1").items():
        for comment, _, config, arch, asked, taken in GENERATED.findall(text):
            key = (name, config, arch, facts_of(asked))
            assert key not in mine, "each asks for something else"
            mine[key] = (arguments(spaced(taken)), re.findall(r"// ([^\n]+)", comment))
    assert len(mine) == 1397
    theirs = {
        (family.header, family.name, family.arch, tuple(f for f in one.args if "(" in f or "<" in f)): (
            [str(value).replace("True", "true") for value in one.values.values()],
            list(one.remarks),
        )
        for family in scanned("5.7.1").families
        for one in family.entries
        if one.kind == "branch" and family.name.startswith("default_")
    }
    assert theirs.keys() == mine.keys()
    assert theirs == mine


@pytest.mark.parametrize("release", ["5.3.3", "5.7.1"])
def test_tables_by_hand_have_the_cases_of_their_configs(release):
    mine = Counter()
    for name, text in texts(release).items():
        code = without_comments(text)
        cases = Counter()
        for struct, _, body in STRUCT.findall(code):
            cases[struct] += max(len(re.findall(r"\bselect_type_case<", body)), 0) + 1
        for table in TABLE.findall(code):
            for number, config, other in ROW.findall(table):
                arch = ARCHS.get(number, "gfx90a") if number else "unknown"
                mine[name, config or other, arch] += cases[config or other]
    theirs = {
        (family.header, family.name, family.arch): len(family.entries)
        for family in scanned(release).families
        if not re.fullmatch(r"default_\w+|\w+_(?:base|fallback)\w*", family.name)
    }
    assert theirs == dict(mine)
    assert len(theirs) == {"5.3.3": 60, "5.7.1": 30}[release]


@pytest.mark.parametrize("release", ["5.3.3", "5.7.1"])
def test_spans_are_exact(release):
    root = rocprim_tree(release) / "rocprim/device"
    paths = [*root.rglob("*.hpp")]
    for family in scanned(release).families:
        (path,) = [one for one in paths if one.name == family.header and one.parts[-2] != "x"]
        data = path.read_bytes()
        for one in family.entries:
            begin = data[one.span.start : one.span.end]
            assert begin.startswith((b"template", b"select_type_case", *(b for b in [one.inherits.split("<")[0].encode()] if b)))
            assert data[: one.span.start].count(b"\n") <= one.line - 1
            assert data[: one.span.end].count(b"\n") >= one.line - 1
            for member in one.members:
                spelled = data[member.value_span.start : member.value_span.end].decode()
                assert spaced(spelled) == member.spelling
            assert not one.disabled
            assert family.namespace == "rocprim::detail"


@pytest.mark.parametrize("release", ["5.3.3", "5.7.1"])
def test_whole_releases_are_read_without_problems(release):
    assert scanned(release).problems == ()
