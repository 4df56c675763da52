import pytest

from policygen import resources
from policygen.cli import demo
from policygen.cli.main import main
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


def test_on_a_machine_without_cub_it_obtains_one_first(tmp_path, monkeypatch):
    empty_machine(tmp_path, monkeypatch)
    _, arguments = next(demo._steps(None))
    assert arguments == ["headers", "fetch", "3.0.1"]
    mini = str(resources.folder("cub_headers") / "mini")
    assert [arguments[0] for _, arguments in demo._steps(mini)] == ["scan", "scan", "bench"]


def test_a_printed_command_can_be_typed():
    assert demo._quoted("-a") == "-a"
    assert demo._quoted("T{ct}=I8") == "'T{ct}=I8'"
