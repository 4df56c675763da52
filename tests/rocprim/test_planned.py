"""Made-up results for a whole release: planned, proven, written, and taken back."""

import re
from pathlib import Path

import pytest

from policygen.cli.main import main
from tests.rocprim.places import CONFIGS, REDUCE, headers, own_tree, resolved, rows_of
from tests.rocprim.tuned import (
    against,
    applied,
    as_json,
    config_of,
    imported,
    measured,
    on,
    row_for,
)

pytestmark = pytest.mark.trees

INT = {"key_type": "int", "value_type": "int"}
PLANTED = {
    ("reduce", (("key_type", "int"),)): {"ipt": 7},
    ("reduce", (("key_type", "double"),)): {"bs": 128, "method": "raking_reduce"},
    ("scan", (("value_type", "int"), ("exclusive", "true"))): {"method": "reduce_then_scan"},
    ("scan_by_key", tuple({**INT, "value_type": "short"}.items())): {"bs": 64, "ipt": 3},
    ("merge_sort_block_sort", tuple(INT.items())): {"ipt": 6},
    ("merge_sort_block_merge", tuple(INT.items())): {"mergepath_bs": 512},
    ("radix_sort_block_sort", tuple(INT.items())): {"bs": 1024, "ipt": 5},
    ("radix_sort_onesweep", tuple(INT.items())): {
        "sort_ipt": 7,
        "bits_per_place": 4,
        "algorithm": "basic",
    },
    (
        "histogram",
        (("value_type", "int"), ("channels", "1"), ("active_channels", "1")),
    ): {"ipt": 11, "shared_impl_histograms": 2},
    (
        "histogram",
        (("value_type", "float"), ("channels", "4"), ("active_channels", "3")),
    ): {"max_grid_size": 512},
}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tree(tmp_path):
    return own_tree(tmp_path)


def contents(tree):
    return {path.name: path.read_bytes() for path in (tree / CONFIGS).iterdir()}


def everywhere(capsys, tree, *options):
    """What every workload has on every architecture."""
    return resolved(capsys, tree, *options)[0]


def values_of(document):
    return {key: (values, status) for key, (values, status, _) in rows_of(document).items()}


def changed(before, after):
    """The rows with other values, and those values."""
    assert before.keys() == after.keys()
    return {
        key: {name: value for name, value in after[key][0].items() if value != before[key][0][name]}
        for key in before
        if after[key] != before[key]
    }


@pytest.mark.slow
def test_ten_changes_are_resolved_as_written_and_nothing_else_changes(tree, capsys):
    document = everywhere(capsys, tree)
    before, bytes_before = values_of(document), contents(tree)
    mine = {"benchmark", "workload", "arch"}
    rows = [one for one in document["rows"] if one["arch"] == "gfx90a"]
    runs, expected = [], {}
    for (benchmark, workload), values in PLANTED.items():
        found = row_for({"rows": rows}, benchmark, **dict(workload))
        assert mine <= found.keys()
        runs += against(found, values)
        decided = [one for one in rows if one["entry"] == found["entry"]]
        for one in decided:
            new = config_of(one) | values
            key = (one["benchmark"], *one["workload"].values(), "gfx90a")
            expected[key] = {**config_of(one), **new}
    status, told, _ = imported(capsys, tree, runs, "gfx90a")
    assert (status, "left out" in told) == (0, False)
    told = applied(capsys, tree)
    assert "proof: " in told
    assert len(re.findall(r"^update ", told, re.M)) == 10
    after_document = everywhere(capsys, tree)
    after = values_of(after_document)
    differs = changed(before, after)
    assert differs.keys() == expected.keys()
    now = {
        (one["benchmark"], *one["workload"].values(), one["arch"]): config_of(one)
        for one in after_document["rows"]
    }
    assert {key: now[key] for key in expected} == expected
    written = contents(tree)
    assert {name for name in written if written[name] != bytes_before[name]} == {
        path.name for path in headers()
    }
    for name, data in written.items():  # a line for a line, and nothing but lines of values
        lines = zip(bytes_before[name].split(b"\n"), data.split(b"\n"), strict=True)
        assert sum(old != new for old, new in lines) <= 4
    assert "nothing to write\n" in applied(capsys, tree)
    undone(capsys, tree)
    assert contents(tree) == bytes_before
    applied(capsys, tree)
    assert contents(tree) == written
    status, effect = as_json(capsys, "verify-effect", "--cub", str(tree), "--store", "store.db")
    assert status == 0
    assert effect["format"].startswith("policygen/effect/")


def undone(capsys, tree):
    assert main(["undo", "--cub", str(tree), "--store", "store.db"]) == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_what_is_worse_stays_as_it_is_while_others_go_in(tree, capsys):
    document = on(capsys, tree, "gfx90a", "-R", "rocprim.device_reduce$")
    before = values_of(document)
    runs = against(row_for(document, "reduce", key_type="int"), {"ipt": 7})
    runs += against(row_for(document, "reduce", key_type="short"), {"ipt": 7}, gain=0.8)
    runs += against(row_for(document, "reduce", key_type="float"), {"ipt": 7}, gain=1.0005)
    imported(capsys, tree, runs, "gfx90a")
    told = applied(capsys, tree)
    assert re.findall(r"^update (.*):", told, re.M) == ["rocprim.device_reduce key_type=int"]
    after = values_of(on(capsys, tree, "gfx90a", "-R", "rocprim.device_reduce$"))
    assert changed(before, after) == {
        ("rocprim.device_reduce", "int", "gfx90a"): {"ItemsPerThread": 7}
    }


@pytest.mark.slow
def test_differences_within_the_noise_write_nothing(tree, capsys):
    before = contents(tree)
    document = on(capsys, tree, "gfx90a", "-R", "rocprim.device_reduce$")
    runs = []
    for one in document["rows"]:
        runs += against(one, {"ipt": 7}, gain=1.001)
    imported(capsys, tree, runs, "gfx90a")
    assert "nothing to write\n" in applied(capsys, tree)
    assert contents(tree) == before


@pytest.mark.slow
def test_a_result_of_zero_is_refused_with_its_place(tree, capsys):
    document = on(capsys, tree, "gfx90a", "-R", "rocprim.device_reduce$")
    runs = against(row_for(document, "reduce", key_type="int"), {"ipt": 7})
    (*where, config, _) = runs[1]
    runs.append((*where, {**config, "ipt": 9}, 1.9))
    made = measured(runs, "gfx90a")
    for one in made["benchmarks"][6:12]:
        one["real_time"] = 0.0
    status, out, _ = imported(capsys, tree, made, "gfx90a")
    told = " ".join(out.split())
    assert status == 0
    assert "its time, 0.0, is not a plausible kernel time, such as bs_256.ipt_7" in told
    assert "results.json: benchmarks[6]" in told
    assert "ipt_7" not in applied(capsys, tree).partition("policygen: warning")[0]


def entries(text, arch):
    """The configs of an architecture, with the comments above them."""
    each = r"(?://[^\n]*\n)*template<[^{};]*>\s*struct default_\w+<\s*static_cast<unsigned int>\("
    return [
        match.span()
        for match in re.finditer(rf"{each}target_arch::{arch}\)[^{{}}]*\{{\s*\}};\n\n?", text)
    ]


def without(text, spans):
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return text


def found_again(document, tree, capsys, db="run.db"):
    """Imports the values of all rows as those of a search, better than what the tree has now."""
    runs = []
    now = on(capsys, tree, "gfx90a", "-R", "rocprim.device_reduce$")
    for old in document["rows"]:
        new = row_for(now, "reduce", **old["workload"])
        if old["status"] == "tuned":
            runs += against(new, config_of(old)) if config_of(new) != config_of(old) else []
    return imported(capsys, tree, runs, "gfx90a", db=db)


@pytest.mark.slow
def test_a_removed_config_comes_back_with_the_same_selections(tree, capsys):
    before = values_of(everywhere(capsys, tree, "-R", "rocprim.device_reduce$"))
    document = on(capsys, tree, "gfx90a", "-R", "rocprim.device_reduce$")
    path = tree / CONFIGS / REDUCE
    real = path.read_text()
    spans = entries(real, "gfx90a")
    assert len(spans) == 7
    (short,) = [span for span in spans if "= short" in real[slice(*span)]]
    path.write_text(without(real, [short]))
    assert found_again(document, tree, capsys)[0] == 0
    told = applied(capsys, tree)
    assert re.findall(r"^(\w+) rocprim", told, re.M) == ["add"]
    assert values_of(everywhere(capsys, tree, "-R", "rocprim.device_reduce$")) == before
    assert sorted(path.read_text().split("\n")) == sorted(real.split("\n"))


@pytest.mark.slow
def test_all_configs_of_an_architecture_come_back_with_the_same_selections(tree, capsys):
    before = everywhere(capsys, tree, "-R", "rocprim.device_reduce$")
    document = on(capsys, tree, "gfx90a", "-R", "rocprim.device_reduce$")
    path = tree / CONFIGS / REDUCE
    real = path.read_text()
    cut = without(real, entries(real, "gfx90a"))
    assert "gfx90a" not in cut
    path.write_text(cut)
    assert found_again(document, tree, capsys)[0] == 0
    told = applied(capsys, tree)
    added = re.findall(r"^add (\S+) key_type=(\S+):", told, re.M)
    after = everywhere(capsys, tree, "-R", "rocprim.device_reduce$")
    # What was the same as the fallback needs no config.
    same = {
        row["workload"]["key_type"]
        for row in document["rows"]
        if row["status"] == "tuned"
        and row["workload"]["key_type"] not in dict(map(reversed, added))
    }
    assert {key: value[0] for key, value in values_of(after).items()} == {
        key: value[0] for key, value in values_of(before).items()
    }
    assert len(added) + len(same) == 7
    text = path.read_text()
    assert len(entries(text, "gfx90a")) == len(added)
    assert without(text, entries(text, "gfx90a")).split() == cut.split()
    undone(capsys, tree)
    assert path.read_text() == cut


@pytest.mark.slow
@pytest.mark.parametrize(
    ("benchmark", "remark", "workload"),
    [
        (
            "histogram",
            "value_type = int, channels = 2, active_channels = 2",
            {"value_type": "int", "channels": "2", "active_channels": "2"},
        ),
        (
            "merge_sort_block_sort",
            "key_type = short, value_type = empty_type",
            {"key_type": "short", "value_type": "rocprim::empty_type"},
        ),
    ],
)
def test_a_config_is_added_for_numbers_and_for_no_values(tree, capsys, benchmark, remark, workload):
    asked = ("-R", f"rocprim.device_{benchmark}$")
    before = values_of(everywhere(capsys, tree, *asked))
    found = row_for(on(capsys, tree, "gfx90a", *asked), benchmark, **workload)
    path = tree / CONFIGS / f"device_{benchmark}.hpp"
    real = path.read_text()
    (span,) = [one for one in entries(real, "gfx90a") if remark in real[slice(*one)]]
    path.write_text(without(real, [span]))
    now = row_for(on(capsys, tree, "gfx90a", *asked), benchmark, **workload)
    assert now["status"] == "default"
    imported(capsys, tree, against(now, config_of(found)), "gfx90a")
    assert re.findall(r"^(\w+) rocprim", applied(capsys, tree), re.M) == ["add"]
    assert values_of(everywhere(capsys, tree, *asked)) == before
    assert sorted(path.read_text().split()) == sorted(real.split())


@pytest.mark.slow
def test_one_part_of_radix_sort_is_not_chosen_without_the_other(tree, capsys):
    before = contents(tree)
    asked = ("-R", "rocprim.device_radix_sort")
    document = on(capsys, tree, "gfx90a", *asked)
    one, other = (
        row_for(document, name, **INT) for name in ("radix_sort_onesweep", "radix_sort_block_sort")
    )
    runs = against(one, {"sort_ipt": 7})
    imported(capsys, tree, runs, "gfx90a")
    told = " ".join(applied(capsys, tree).split())
    assert (
        "it is chosen together with rocprim.device_radix_sort_block_sort, which is rejected" in told
    )
    assert contents(tree) == before
    # What was looked at and is not better is settled.
    imported(capsys, tree, runs + against(other, {"ipt": 5}, gain=0.9), "gfx90a")
    assert re.findall(r"^(update|add) ", applied(capsys, tree), re.M) == ["update"]


@pytest.mark.slow
def test_lines_end_as_those_of_the_header(tree, capsys):
    document = on(capsys, tree, "gfx90a", "-R", "rocprim.device_reduce$")
    path = tree / CONFIGS / REDUCE
    real = path.read_text()
    (short,) = [span for span in entries(real, "gfx90a") if "= short" in real[slice(*span)]]
    path.write_bytes(without(real, [short]).replace("\n", "\r\n").encode())
    found_again(document, tree, capsys)
    applied(capsys, tree)
    data = path.read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") == real.count("\n")


@pytest.mark.slow
def test_values_that_a_config_leaves_to_its_template_can_be_said(tree, capsys):
    """Those of radix sorts leave the rank algorithm out: its place is the last."""
    path = tree / CONFIGS / "device_reduce.hpp"
    text = path.read_text()
    said = "reduce_config<256, 4, ::rocprim::block_reduce_algorithm::using_warp_reduce>"
    short = "reduce_config<256, 4>"
    at = text.index("target_arch::gfx90a")
    types = tree / "rocprim/device/device_reduce_config.hpp"
    assert types.is_file()
    assert said in text[at:]
    path.write_text(text[:at] + text[at:].replace(said, short))
    document = on(capsys, tree, "gfx90a", "-R", "rocprim.device_reduce$")
    found = row_for(document, "reduce", key_type="int")
    assert found["values"]["BlockReduceMethod"] == "using_warp_reduce"
    imported(capsys, tree, against(found, {"method": "raking_reduce"}), "gfx90a")
    told = applied(capsys, tree)
    assert "proof: " in told
    now = row_for(
        on(capsys, tree, "gfx90a", "-R", "rocprim.device_reduce$"), "reduce", key_type="int"
    )
    assert now["values"] == {**found["values"], "BlockReduceMethod": "raking_reduce"}
    assert "::raking_reduce>" in path.read_text()


@pytest.mark.slow
def test_a_config_that_is_for_named_types_gets_other_values(tree, capsys):
    asked = ("-R", "rocprim.device_merge_sort_block_sort$")
    document = on(capsys, tree, "gfx906", *asked)
    types = {"key_type": "double", "value_type": "rocprim::empty_type"}
    found = row_for(document, "merge_sort_block_sort", **types)
    assert found["entry"]["args"] == ["double", "empty_type"]
    imported(capsys, tree, against(found, {"ipt": 2}), "gfx906")
    applied(capsys, tree, arch="gfx906")
    after = values_of(on(capsys, tree, "gfx906", *asked))
    assert changed(values_of(document), after) == {
        ("rocprim.device_merge_sort_block_sort", *types.values(), "gfx906"): {"ItemsPerThread": 2}
    }


@pytest.mark.slow
def test_an_architecture_without_configs_is_told(tree, capsys):
    """It is as others are: rocPRIM asks for architectures that it knows alone."""
    document = on(capsys, tree, "gfx90a", "-R", "rocprim.device_reduce$")
    runs = against(row_for(document, "reduce", key_type="int"), {"ipt": 7})
    status, out, err = imported(capsys, tree, runs, "gfx942")
    assert status in {0, 2}
    assert "Traceback" not in out + err
    if status == 0:
        given = ["apply", "--db", "run.db", "--arch", "gfx942", "--cub", str(tree)]
        before = contents(tree)
        found = main([*given, "--store", "store.db"])
        told = capsys.readouterr()
        assert found in {0, 2}, told
        assert "internal" not in told.err
        assert contents(tree) == before
    assert Path("results.json").is_file()
