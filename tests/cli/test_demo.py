import pytest

from policygen import resources
from policygen.cli import demo
from policygen.cli.main import main
from policygen.tree.store import make_current
from tests.tree.places import empty_machine
from tests.trees import tree


@pytest.mark.trees
def test_the_demo_runs_real_commands_on_a_real_tree(capsys):
    assert main(["demo", "--cub", str(tree("3.0.1"))]) == 0
    out = capsys.readouterr().out
    assert "1. What is tuned, and for which architectures?\n$ policygen scan -q --cub " in out
    assert "radix::sm100_small_key_tuning" in out
    assert "Default explicitly so it doesn't pick up the sm100<I64, I64> tuning." in out
    assert "cub.bench.mini.blur" in out


@pytest.mark.trees
def test_on_a_machine_without_cub_it_obtains_one_first(tmp_path, monkeypatch):
    places = empty_machine(tmp_path, monkeypatch)
    steps = demo._steps(None)
    assert next(steps)[1] == ["headers", "fetch", "3.0.1"]
    (places.headers / "3.0.1").symlink_to(tree("3.0.1"))
    make_current(places.headers, "3.0.1")
    assert [arguments[:2] for _, arguments in steps][:2] == [["scan", "-q"]] * 2


@pytest.mark.trees
def test_inside_a_checkout_it_still_shows_the_embedded_example(tmp_path, monkeypatch):
    places = empty_machine(tmp_path, monkeypatch)
    (places.headers / "3.0.1").symlink_to(tree("3.0.1"))
    make_current(places.headers, "3.0.1")
    (places.work / "cub").symlink_to(resources.folder("cub_headers") / "mini/cub")
    assert next(demo._steps(None))[1] == ["scan", "-q", "--cub", "3.0.1"]


def test_a_tree_that_is_named_is_used():
    mini = str(resources.folder("cub_headers") / "mini")
    steps = [arguments for _, arguments in demo._steps(mini)]
    assert [arguments[0] for arguments in steps] == ["scan", "scan", "bench"]
    assert steps[0][-2:] == ["--cub", mini]


def test_a_printed_command_can_be_typed():
    assert demo._quoted("-a") == "-a"
    assert demo._quoted("T{ct}=I8") == "'T{ct}=I8'"
