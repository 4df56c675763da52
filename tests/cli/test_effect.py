import json
import sqlite3
from contextlib import closing

import jsonschema
import pytest

from policygen.model.selection import Effect
from policygen.proof.toolchain import find_toolchain
from tests.cli.tuned import HEADER, LABEL, THREE, others, run, tuned
from tests.planning.wanted import workload_count
from tests.probing import replaced

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]


@pytest.fixture
def applied(capsys, tree, three):
    """A tree with one apply."""
    given = ("--cub", tree, "--db", three, "--arch", "sm90", "-q")
    assert run(capsys, "apply", *given)[0] == 0
    return tree


def verify(capsys, tree, *more):
    return run(capsys, "verify-effect", "--cub", tree, *more)


def changed(tree, *changes):
    tuned(tree).write_bytes(replaced(tuned(tree).read_bytes(), *changes))


def with_items(tree, value):
    """Another number of items than was written."""
    head, label, tail = tuned(tree).read_text().partition(LABEL)
    assert "= 10;" in tail
    tuned(tree).write_text(head + label + tail.replace("= 10;", f"= {value};", 1))


def test_what_was_applied_is_selected_and_nothing_else_changed(capsys, applied):
    status, out, err = verify(capsys, applied)
    assert status == 0
    assert out == (
        "proof: 1 workload changed as written, 3 that share an entry or inherit, 66 as\n"
        "  before, three_way_partition::policy_hub changed, too"
        f" (nvcc {find_toolchain().version}; sm50,\n  sm80, sm86, sm90, sm100)\n"
    )
    assert others(err) == []
    assert verify(capsys, applied, "-q") == (0, "", "")
    _, out, _ = verify(capsys, applied, "-v", "-q")
    assert " ".join(out.split()).startswith(
        f"{THREE} T=I32 OffsetT=I32 on sm90: threads 320 → 512, items 12 → 10,"
    )
    assert out.count("(written)") == 1
    assert out.count("(shared)") == 3


def test_json_is_one_document(capsys, applied):
    status, out, _ = verify(capsys, applied, "--json")
    assert status == 0
    document = json.loads(out)
    jsonschema.validate(document, Effect.model_json_schema(mode="serialization"))
    assert document["headers"] == [HEADER]
    assert document["archs"] == ["sm50", "sm80", "sm86", "sm90", "sm100"]
    assert [(one["role"], one["arch"]) for one in document["changed"]] == [
        ("written", "sm90"),
        *[("shared", "sm90")] * 3,
    ]
    assert document["compared"] == 5 * workload_count("3.0.1", HEADER)
    assert document["wrong"] == []


@pytest.mark.slow
def test_another_value_than_was_written_is_found(capsys, applied):
    with_items(applied, "11")
    status, out, _ = verify(capsys, applied)
    assert status == 1
    words = " ".join(out.split())
    assert f"{THREE} T=I32 OffsetT=I32 on sm90: it gets items 11, not 10: the" in words
    assert "proof: 0 workloads changed as written" in words
    assert "1 wrong" in words
    status, out, _ = verify(capsys, applied, "--json", "-q")
    assert status == 1
    (wrong,) = json.loads(out)["wrong"]
    assert (wrong["before"]["items"], wrong["after"]["items"]) == (12, 11)


@pytest.mark.slow
def test_another_entry_that_changed_since_is_found(capsys, applied):
    data = tuned(applied).read_text()
    start = data.index("sm90_tuning<Input, OffsetT, input_size::_8, offset_size::_4>")
    old = next(row for row in data[start:].splitlines() if "int threads" in row)
    number = old.split("= ")[1]
    tuned(applied).write_text(data[:start] + data[start:].replace(number, "128;", 1))
    status, out, _ = verify(capsys, applied)
    assert status == 1
    words = " ".join(out.split())
    assert f"{THREE} T=I64 OffsetT=I32 on sm90: it changes, but should not: threads" in words


NARROWER = """\
template <class OffsetT>
struct sm90_tuning<int, OffsetT, input_size::_4, offset_size::_4>
    : sm90_tuning<short, OffsetT, input_size::_2, offset_size::_4>
{};

"""
WIDER = """\
template <class Input, class OffsetT>
struct sm90_tuning<Input, OffsetT, input_size::_8, offset_size::_4>
"""


@pytest.mark.slow
def test_an_entry_that_takes_the_effect_away_is_found(capsys, applied):
    changed(applied, (WIDER, NARROWER + WIDER))
    status, out, _ = verify(capsys, applied, "-q")
    assert status == 1
    words = " ".join(out.split())
    assert words.startswith(f"{THREE} T=I32 OffsetT=I32 on sm90: it gets threads 256, not 512,")
    assert ": the compiler selects different values proof: 0 workloads changed" in words


@pytest.mark.slow
def test_a_header_that_no_longer_compiles_is_told(capsys, applied):
    with_items(applied, "none")
    status, out, err = verify(capsys, applied, "-q")
    assert (status, out) == (1, "")
    assert "it does not compile" in err
    assert '"none" is undefined' in err


def test_after_undo_there_is_nothing_to_verify(capsys, applied):
    assert run(capsys, "undo", "-q")[0] == 0
    status, out, err = verify(capsys, applied)
    assert (status, out) == (2, "")
    assert err == (
        f"policygen: error: policygen.db: nothing was applied to {applied}\n"
        "  Name the store: --store FILE\n"
    )


def test_only_the_applies_of_an_architecture_can_be_asked_for(capsys, applied):
    assert verify(capsys, applied, "-q", "--arch", "9.0") == (0, "", "")
    status, _, err = verify(capsys, applied, "-q", "--arch", "sm100")
    assert status == 2
    assert err.startswith(
        f"policygen: error: policygen.db: nothing was applied to {applied} for sm100\n"
    )
    status, _, err = verify(capsys, applied, "-q", "--arch", "new")
    assert status == 2
    assert err.startswith("policygen: error: 'new' is not a GPU architecture")


def test_without_a_store_there_is_nothing_to_verify(capsys, tree):
    status, _, err = verify(capsys, tree, "--store", "none.db")
    assert status == 2
    assert err.startswith("policygen: error: none.db: nothing was applied to ")


def test_an_apply_of_another_policygen_is_told(capsys, applied):
    with closing(sqlite3.connect("policygen.db")) as connection, connection:
        connection.execute('UPDATE applies SET document = \'{"format": "policygen/plan/9"}\'')
    status, out, err = verify(capsys, applied, "-q")
    assert (status, out) == (2, "")
    assert err.startswith(
        "policygen: error: policygen.db: apply 1 was written by another version of policygen"
    )
