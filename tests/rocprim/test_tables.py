"""A table by hand of a few cases: what is written for types and architectures, and what is not."""

import re
import subprocess
from types import SimpleNamespace

import pytest

from policygen.bindings.load import bound
from policygen.bindings.words import table_number
from policygen.cli.main import main
from policygen.errors import InputError
from policygen.headers.protocol import EntryWrite, TuningTree
from policygen.headers.scan import read_header
from policygen.headers.text import Text
from policygen.model.selection import FamilyKey, Selected
from policygen.model.trees import Cub
from policygen.model.tuning import Content
from policygen.rocprim.dialect import Configs, _copied, write_tables
from tests.rocprim.places import resolved, rows_of
from tests.rocprim.toy_tables import (
    ALONE,
    KEYS,
    MERGE,
    OTHER,
    PAIRS,
    TABLE,
    TYPES,
    header,
    make_toy,
)
from tests.rocprim.tuned import against, applied, as_json, imported, on, row_for

NONE = "rocprim::empty_type"
CONFIG = "device_merge_config.hpp"


pytestmark = pytest.mark.usefixtures("wide")


@pytest.fixture
def toy(tmp_path):
    return make_toy(tmp_path / "toy")


def types(key, value):
    return {"key_type": key, "value_type": value}


def plant(capsys, root, arch, planted):
    """Imports results of pairs of types with as many items."""
    document = on(capsys, root, arch)
    runs = []
    for key, value, items in planted:
        gain = 1.2 if items else 0.5
        found = row_for(document, "merge", **types(key, value))
        runs += against(found, {"ipt": items or 3}, gain=gain)
    assert imported(capsys, root, runs, arch)[0] == 0


def written(capsys, root, arch, planted, *options):
    """What `apply` says, and the lines that are new."""
    old = (root / MERGE).read_text().split("\n")
    plant(capsys, root, arch, planted)
    told = applied(capsys, root, *options, arch=arch)
    return told, [one for one in (root / MERGE).read_text().split("\n") if one not in old]


def items(capsys, root, *options):
    """The items of each workload."""
    found = rows_of(resolved(capsys, root, *options)[0])
    return {key[1:]: row[0]["ItemsPerThread"] for key, row in found.items()}


def test_cases_are_told_with_their_lines_and_whose_they_are(capsys, toy):
    document, err = resolved(capsys, toy, "--arch", "gfx900,gfx90a,gfx942", "-a", "value_type=int")
    told = {
        (row["arch"], row["workload"]["key_type"]): (row["status"], row["values"]["ItemsPerThread"])
        for row in document["rows"]
        if row["workload"]["key_type"] in {"int", "double"}
    }
    assert told == {
        ("gfx900", "int"): ("tuned", 10),
        ("gfx900", "double"): ("default", 2),
        ("gfx90a", "int"): ("default", 2),
        ("gfx90a", "double"): ("default", 2),
        ("gfx942", "int"): ("default", 2),
        ("gfx942", "double"): ("default", 2),
    }
    assert err == ""


def test_an_architecture_without_a_row_has_the_last_one(capsys, tmp_path):
    root = make_toy(tmp_path / "toy", PAIRS, KEYS, OTHER, TABLE)
    document = on(capsys, root, "gfx942,unknown", "-a", "key_type=int", "-a", "value_type=int")
    assert [(row["arch"], row["status"], row["entry"]["family"]) for row in document["rows"]] == [
        ("unknown", "tuned", "merge_config_900"),
        ("gfx942", "inherited", "merge_config_900"),
    ]


@pytest.mark.slow
def test_a_case_that_no_type_gets_is_told(capsys, toy):
    _, told = as_json(capsys, "audit", "reach", "--cub", str(toy))
    (one,) = told["unreachable"]
    assert (one["family"], one["args"]) == ("merge_config_900", ["sizeof(Key) == 3"])


def test_what_is_tuned_is_counted(capsys, toy):
    _, told = as_json(capsys, "audit", "coverage", "--cub", str(toy))
    shares = {one["arch"]: one["counts"] for one in told["shares"] if one["benchmark"] is None}
    assert {arch: counts["tuned"] for arch, counts in shares.items()} == {
        "unknown": 0,
        "gfx900": 2 * 3 + 8,  # float and int with what has four bytes at most; keys alone
        "gfx90a": 0,
    }


@pytest.mark.slow
def test_other_values_are_reviewed_with_the_workloads_that_get_them(capsys, toy):
    run = ["git", "-C", str(toy), "-c", "user.name=a", "-c", "user.email=a@invalid"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "base"]):
        subprocess.run([*run, *words], check=True)
    text = header().replace("merge_config<256, 11>", "merge_config<256, 12>")
    (toy / MERGE).write_text(text)
    status, told = as_json(capsys, "review", "--cub", str(toy), "--base", "HEAD")
    assert (status, told["changed"]) == (0, 8)
    (entry,) = told["entries"]
    assert (entry["before"]["ItemsPerThread"], entry["after"]["ItemsPerThread"]) == (11, 12)
    assert {row["arch"] for row in entry["reached"]} == {"gfx900"}
    assert len(entry["reached"]) == 8


ALL = ("float", "int")
SMALL = ("int", "short", "int8_t")
FOUR = "(sizeof(Key) == 4 && sizeof(Value) <= 4)"
SAME = "std::is_same<Key, {}>::value && std::is_same<Value, {}>::value"


@pytest.mark.slow
def test_a_case_changes_where_all_of_its_types_want_the_same(capsys, toy):
    before = items(capsys, toy)
    planted = [(key, value, 12) for key in ALL for value in SMALL]
    # A type without a member has a byte; it has a config of its own.
    told, new = written(capsys, toy, "gfx900", planted)
    assert len(re.findall(r"^update ", told, re.M)) == 6
    assert new == [f"        select_type_case<{FOUR}, merge_config<256, 12>>,"]
    after = items(capsys, toy)
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {(*pair, "gfx900") for pair in ((k, v) for k in ALL for v in SMALL)}


@pytest.mark.slow
def test_a_type_alone_gets_a_case_of_its_own(capsys, toy):
    _, new = written(capsys, toy, "gfx900", [("int", "short", 12), ("double", "int", 5)])
    assert new == [
        f"        select_type_case<{SAME.format('int', 'short')},",
        "            merge_config<256, 12>>,",
        f"        select_type_case<{SAME.format('double', 'int')},",
        "            merge_config<128, 5>>,",
    ]


def test_one_of_the_types_may_tell_workloads_apart(capsys, toy):
    planted = [(key, value, 12 if key == "int" else 13) for key in ALL for value in SMALL]
    _, new = written(capsys, toy, "gfx900", planted, "--collisions", "split")
    assert new == [
        f"        select_type_case<({FOUR}) && std::is_same<Key, float>::value,",
        "            merge_config<256, 13>>,",
        f"        select_type_case<{FOUR}, merge_config<256, 12>>,",
    ]


@pytest.mark.slow
def test_a_config_without_cases_gets_some(capsys, toy):
    told, new = written(capsys, toy, "gfx90a", [("int", "int", 5)], "--reach", "later")
    assert "on unknown" in told
    assert new == [
        "struct merge_config_90a : select_type<",
        f"    select_type_case<{SAME.format('int', 'int')},",
        "        merge_config<512, 5>>,",
        "    merge_config<512, 2>",
        ">",
    ]


@pytest.mark.slow
def test_an_architecture_gets_a_copy_where_others_have_its_config(capsys, toy):
    before = items(capsys, toy)
    told, new = written(capsys, toy, "gfx90a", [("int", "int", 5)])
    assert "add rocprim.device_merge" in told
    assert "struct merge_config_gfx90a : select_type<" in new
    assert "        select_arch_case<ROCPRIM_ARCH_90a, merge_config_gfx90a<Key, Value>>," in new
    after = items(capsys, toy)
    assert {key: after[key] for key in before if before[key] != after[key]} == {
        ("int", "int", "gfx90a"): 5
    }
    assert main(["undo", "--cub", str(toy), "--store", "store.db"]) == 0
    assert (toy / MERGE).read_text() == header()


@pytest.mark.slow
def test_an_architecture_without_a_row_gets_one(capsys, toy):
    _, new = written(capsys, toy, "gfx942", [("int", "int", 5)])
    assert "        select_arch_case<942, merge_config_gfx942<Key, Value>>," in new
    assert items(capsys, toy, "--arch", "gfx942")["int", "int", "gfx942"] == 5


@pytest.mark.slow
def test_what_is_called_as_a_copy_would_be_is_in_its_way(capsys, tmp_path):
    there = OTHER.replace("merge_config_90a", "merge_config_gfx942")
    root = make_toy(tmp_path / "toy", PAIRS, KEYS, OTHER, there, ALONE)
    told, new = written(capsys, root, "gfx942", [("int", "int", 5)])
    assert new == []
    assert "device_merge_config.hpp: merge_config_gfx942 already exists" in told


@pytest.mark.slow
def test_lines_end_as_those_of_the_table(capsys, toy):
    path = toy / MERGE
    path.write_bytes(header().replace("\n", "\r\n").encode())
    plant(capsys, toy, "gfx90a", [("int", "int", 5)])
    applied(capsys, toy, arch="gfx90a")
    data = path.read_bytes()
    assert b"merge_config_gfx90a" in data
    assert data.count(b"\n") == data.count(b"\r\n")


@pytest.mark.slow
def test_the_comments_of_a_config_are_copied_with_it(capsys, tmp_path):
    root = make_toy(tmp_path / "toy", PAIRS, KEYS, OTHER, TABLE)
    plant(capsys, root, "gfx900", [("int", "short", 12)])
    applied(capsys, root, arch="gfx900")
    assert (root / MERGE).read_text().count("// Tuned by hand.\n") == 2


def dialect_of(texts, arch):
    """The dialect of a tree of some headers, and the benchmark of merging."""
    beside = {"config_types.hpp": TYPES.encode()}
    read = {name: read_header(name, text.encode(), beside) for name, text in texts.items()}
    cub = Cub(root=".", version="2.10.9", dialect="configs", found="--cub")
    tree = TuningTree(cub, read, {name: text.encode() for name, text in texts.items()})
    every = (one for algorithm in bound(cub.bindings) for one in algorithm.benchmarks)
    return Configs(tree, arch), next(one for one in every if one.name == "rocprim.device_merge")


def spot_of(text, arch, found=None, workload=("int", "int")):
    """Where values of a pair of types go, and the header."""
    dialect, benchmark = dialect_of({CONFIG: text}, arch)
    read, told = dialect.sources.headers[CONFIG], Selected({})
    if found is not None:
        family = next(f for f in read.families if f.arch == arch)
        key = FamilyKey(workload, (family, family.entries[found]))
        told = Selected({"BlockSize": 1}, key.entry, {family.name: key})
    return dialect.place(benchmark, told, (benchmark.name, ())), read


def copied(spot):
    return Configs(None, spot.arch).bounded(None, spot)


def test_what_decides_must_be_known():
    spot, _ = spot_of(header(), "gfx900")
    assert spot.too_broad == "no known case of device_merge_config.hpp decides it"
    assert (spot.entry, spot.types, spot.narrower, copied(spot)) == (None, {}, None, None)
    assert spot.target.family == "merge_config_gfx900 gfx900"
    assert spot.place == ("device_merge_config.hpp", "merge_config", (), ())


def test_the_last_row_is_for_nobody_in_particular():
    spot, _ = spot_of(header(PAIRS, KEYS, OTHER, TABLE), "unknown", 2)
    why = "the last row is for all architectures without their own; name the measured one"
    assert spot.too_broad == why
    assert copied(spot_of(header(), "gfx900", 0)[0]).copied
    assert copied(copied(spot_of(header(), "gfx900", 0)[0])) is None


def checked(texts):
    dialect, benchmark = dialect_of(texts, "gfx900")
    dialect.check(benchmark)


def test_what_is_no_config_of_the_table_is_refused():
    other = header(OTHER, TABLE.replace("merge_config_900", "merge_config_90a"))
    with pytest.raises(InputError, match=r"the tree has no device_merge_config\.hpp"):
        checked({})
    with pytest.raises(InputError, match=r"device_merge_config\.hpp has no merge_config"):
        checked({CONFIG: other.replace("default_merge_config", "merge_default")})


def test_a_config_that_is_no_template_is_left_as_it_is_on_its_line():
    text = header(OTHER.replace("merge_config<512, 2>", "a_config_whose_name_is_long" * 3), ALONE)
    text = text.replace("900, merge_config_900", "900, merge_config_90a")
    spot, read = spot_of(text, "gfx90a", 0)
    write = EntryWrite((spot.narrower,), Content("values", {}), "why")
    found = write_tables(read, text.encode(), [write], "gfx90a")
    assert any("a_config_whose_name_is_long" in edit.new for edit in found.edits)


@pytest.mark.parametrize(
    ("arch", "number"),
    [("gfx90a", 910), ("gfx803", 803), ("gfx942:mi300x", 942), ("unknown", 0), ("gfx90c", 0)],
)
def test_architectures_have_numbers(arch, number):
    assert table_number(arch) == number


def test_a_copy_does_not_take_a_name_that_is_there():
    text = Text("device_merge.hpp", header().replace("merge_config_90a", "merge_config_b").encode())
    case = (
        SimpleNamespace(reason="why"),
        SimpleNamespace(header=text.path, copy_name="merge_config_b"),
    )
    with pytest.raises(InputError, match=r"device_merge\.hpp: merge_config_b already exists"):
        _copied(text, "merge_config", [case], "gfx942")
