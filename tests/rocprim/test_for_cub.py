"""Commands that need nvcc or a GPU of NVIDIA, on a tree of rocPRIM."""

import pytest

from policygen.app.session import FOR_CUB, check_serves
from policygen.cli.main import main
from policygen.errors import InputError
from policygen.model.trees import Cub
from tests.results.build import Builder
from tests.rocprim.toy import make_toy

MEASURED = (
    "  Measure with rocPRIM's own benchmarks: policygen db import reads their results, and"
    " policygen plan shows what would change.\n"
)
ARGUMENTS = {
    "emit": ["--db", "results.db", "--arch", "sm90"],
    "measure": ["-R", "rocprim.device_reduce", "--db", "rows.db", "--variant", "bs_64.ipt_1"],
    "measure --compile-only": ["--arch", "sm90", "-R", "rocprim.device_reduce"],
    "search": ["-R", "rocprim.device_reduce", "--db", "rows.db"],
    "tune": ["-R", "rocprim.device_reduce", "-o", "mine.cuh"],
    "verify-performance": [],
}


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def toy(tmp_path):
    Builder(tmp_path / "results.db").table()
    return make_toy(tmp_path / "toy")


@pytest.mark.parametrize("command", ARGUMENTS)
def test_each_says_in_one_message_what_it_is_for(capsys, toy, command):
    assert main([*command.split(), "--cub", str(toy), *ARGUMENTS[command]]) == 2
    named = command.split()[0]
    error = capsys.readouterr().err.partition("policygen: error: ")[2]
    assert error.startswith(f"policygen {named} is for CUB, but {toy} contains rocPRIM 4.2.0\n")
    if FOR_CUB[named].startswith("Measure"):
        assert error.endswith(MEASURED)


def test_benchmarks_are_looked_for_in_a_checkout_of_cccl(capsys, toy):
    assert main(["bench", "list", "--cub", str(toy)]) == 2
    assert "name a CCCL checkout" in capsys.readouterr().err


def test_status_and_review_name_no_command_that_is_for_cub(capsys, toy):
    assert main(["status", "--cub", str(toy)]) == 0
    assert "verify-sass" not in capsys.readouterr().out


def test_all_else_is_for_any_tree(toy):
    cub = Cub(root=str(toy), version="4.2.0", dialect="configs", found="--cub")
    other = cub.model_copy(update={"dialect": "selectors"})
    for command in FOR_CUB:
        check_serves(command, other)
        with pytest.raises(InputError, match="is for CUB"):
            check_serves(command, cub)
