"""`policygen audit reach` on trees of rocPRIM."""

import json

import pytest

from policygen.cli.main import main
from tests.real_trees import rocprim_tree
from tests.rocprim.toy import ENTRIES, FLOATS, config, make_toy

EIGHT = "(sizeof(key_type) <= 8) && (sizeof(key_type) > 4)"


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)


def reach(capsys, root, *words):
    status = main(["audit", "reach", "--cub", str(root), "--json", *words])
    captured = capsys.readouterr()
    return status, json.loads(captured.out), captured.err


def test_every_sound_entry_is_reached_a_full_specialization_too(capsys, tmp_path):
    status, told, errors = reach(capsys, make_toy(tmp_path / "toy"))
    assert (status, errors) == (0, "")
    assert (told["entries"], told["reached"]) == (4, 4)
    assert (told["unreachable"], told["unasked"], told["unknown"]) == ([], [], {})
    assert told["archs"] == ["unknown", "gfx906", "gfx942"]
    assert told["toolchain"].startswith("libclang ")


@pytest.mark.parametrize(
    ("entry", "args"),
    [
        (
            config("gfx942", "(sizeof(key_type) <= 8) && (sizeof(key_type) > 8)", "64, 1"),
            ["sizeof(key_type) <= 8", "sizeof(key_type) > 8"],
        ),
        (  # the full one for double is the only type of the kind
            config("gfx906", f"{FLOATS} && {EIGHT}", "1, 1"),
            ["is_floating_point<key_type>", "sizeof(key_type) <= 8", "sizeof(key_type) > 4"],
        ),
    ],
)
def test_what_no_type_gets_is_told_with_its_reason(capsys, tmp_path, entry, args):
    _, told, _ = reach(capsys, make_toy(tmp_path / "toy", *ENTRIES, entry))
    (lost,) = told["unreachable"]
    assert (lost["args"], lost["cause"]) == (args, "condition")
    assert lost["reason"] == (
        "none of the types tried gets its values: none meets all of its conditions, or another"
        " entry decides them"
    )
    assert main(["audit", "reach", "--cub", "toy"]) == 1
    assert "1 never selected" in capsys.readouterr().out


def test_types_that_no_benchmark_has_are_tried(capsys, tmp_path):
    large = config("gfx942", "sizeof(key_type) > 16", "64, 1")
    status, told, _ = reach(capsys, make_toy(tmp_path / "toy", *ENTRIES, large))
    assert status == 0
    (one,) = told["call_only"]
    assert one["args"] == ["sizeof(key_type) > 16"]
    assert one["example"].endswith("key_type=user_32 on gfx942")


def test_two_entries_for_the_same_types_do_not_compile_and_are_not_known(capsys, tmp_path):
    status, told, errors = reach(capsys, make_toy(tmp_path / "toy", *ENTRIES, ENTRIES[1], ""))
    assert status == 2
    assert "redefinition of" in errors or "ambiguous" in errors
    assert told["unknown"]["device_reduce.hpp"] == 5


def test_a_config_that_nothing_is_asked_about_is_named(capsys, tmp_path):
    root = make_toy(tmp_path / "toy")
    path = root / "rocprim/device/detail/config/device_other.hpp"
    path.write_text(
        (root / "rocprim/device/detail/config/device_reduce.hpp")
        .read_text()
        .replace("default_reduce_config", "default_other_config")
    )
    _, told, _ = reach(capsys, root)
    assert told["unasked"] == ["rocprim::detail::default_other_config"]


def test_a_pattern_asks_about_some_entries_alone(capsys, tmp_path):
    _, told, _ = reach(capsys, make_toy(tmp_path / "toy"), "--arch", "gfx906")
    assert told["entries"] == 2


@pytest.mark.slow
def test_the_real_5_7_1_has_entries_that_full_specializations_hide(capsys):
    _, told, _ = reach(capsys, rocprim_tree("5.7.1"))
    assert (told["entries"], len(told["unreachable"])) == (1432, 8)
    assert {one["args"][0] for one in told["unreachable"]} == {"is_floating_point<key_type>"}
