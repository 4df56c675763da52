"""What libclang says that a whole release selects, computed a second time from the text."""

import re
from collections import Counter

import pytest

from policygen.headers.scan import scan_headers
from policygen.trees import open_tree, tuning_headers
from tests.real_trees import rocprim_tree
from tests.rocprim.places import RELEASE, headers, resolved, rows_of

pytestmark = pytest.mark.trees

SIZES = {
    "double": 8,
    "float": 4,
    "rocprim::half": 2,
    "rocprim::int128_t": 16,
    "int64_t": 8,
    "int": 4,
    "short": 2,
    "int8_t": 1,
    "rocprim::empty_type": 1,  # as C++ has it
}
GENERATED = ("-R", "rocprim.device_(histogram|merge_sort_|radix_sort_|reduce$|scan)")
FLOATING = {"double", "float", "rocprim::half"}
SAID_BY_NOBODY = {"SizeLimit", "HistogramConfig.SizeLimit", "SortConfig.SizeLimit"}


def short(name):
    return name.rpartition("::")[2]


def holds(fact, types):
    """Whether a fact holds, by Python's own arithmetic."""
    said = fact
    for name, value in types.items():
        said = re.sub(rf"sizeof\({name}\)", str(SIZES.get(value, 0)), said)
        said = said.replace(f"is_floating_point<{name}>", str(value in FLOATING))
        for other in re.findall(rf"std::is_same<{name}, ([\w:]+)>::value", said):
            same = str(short(other) == short(value))
            said = re.sub(rf"std::is_same<{name}, {other}>::value", same, said)
        said = re.sub(rf"\b{name}\b", value, said)
    return eval(said.replace("!", "not ").replace("not =", "!="))


def is_explicit(entry):
    """Whether a config is for types that it names, and for no others."""
    return not entry.template_parameters


def named(entry, data):
    """The types that it names; a value is left out where there is none."""
    found = [short(data[s.start : s.end].decode()) for s in entry.arg_spans[1:]]
    return found if len(found) == 2 else [*found, "empty_type"]


def matches(entry, data, types):
    """Whether a config is for these types: by its facts, or by the types that it names."""
    if is_explicit(entry):
        return named(entry, data) == [*map(short, types.values())]
    return all(holds(fact, types) for fact in entry.args)


def spelled(value):
    """A value as the compiler has it."""
    text = str(value)
    return eval(text) if re.fullmatch(r"[\d()+*<> -]+", text) else value


@pytest.fixture(scope="module")
def scanned():
    tree = open_tree(rocprim_tree(RELEASE))
    paths = {path.name: path for path in tuning_headers(tree)}
    found = scan_headers(tuple(paths.values())).headers
    return {one.name: (one, paths[one.name].read_bytes()) for one in found}


@pytest.mark.slow
def test_libclang_and_python_agree_on_every_workload_and_architecture(capsys, scanned):
    document, err = resolved(capsys, rocprim_tree(RELEASE), *GENERATED)
    assert err == ""
    seen, fallbacks = Counter(), {}
    for row in document["rows"]:
        header, data = scanned[row["benchmark"].removeprefix("rocprim.") + ".hpp"]
        families = {one.arch: one for one in header.families if one.name.startswith("default_")}
        types = row["workload"]
        mine = [
            one
            for one in families[row["arch"]].entries
            if one.kind == "branch" and matches(one, data, types)
        ] if row["arch"] in families else []  # fmt: skip
        if len(mine) == 2:  # of gfx906: what is named goes before what is asked for
            mine = [one for one in mine if is_explicit(one)]
        assert len(mine) < 2, "a config is for each"
        if mine:
            (entry,) = mine
            said = {name: spelled(value) for name, value in entry.values.items()}
            assert said.items() <= row["values"].items()
            assert row["values"].keys() - said.keys() <= SAID_BY_NOBODY | DEFAULTED
            assert (row["status"], row["entry"]["args"]) == ("tuned", list(entry.args))
        else:
            (entry,) = [one for one in families["unknown"].entries if one.kind == "primary"]
            assert row["status"] == "default"
            key = (row["benchmark"], *types.values())
            assert fallbacks.setdefault(key, row["values"]) == row["values"]
        assert row["entry"]["line"] == entry.line
        seen[row["status"]] += 1
    assert seen == {"tuned": 1475, "default": 1381}
    assert len(rows_of(document)) == 2856


DEFAULTED = {"Algo", "OddEvenBlockSize", "OddEvenItemsPerThread"}


@pytest.mark.slow
def test_every_workload_of_the_bindings_is_answered_on_every_architecture(capsys):
    document, _ = resolved(capsys, rocprim_tree(RELEASE), *GENERATED)
    archs = {row["arch"] for row in document["rows"]}
    text = "".join(path.read_text() for path in headers())
    assert archs == {*re.findall(r"target_arch::(\w+)\)", text), "unknown"}
    counts = Counter((row["benchmark"], row["arch"]) for row in document["rows"])
    assert len(counts) == 8 * len(archs)
    assert len(set(counts.values())) == 5
