"""A tree's header that holds what looks like an answer of the compiler's."""

from pathlib import Path

import pytest

from policygen.cli.main import main
from tests.probing import changed_tree
from tests.real_trees import tree

HEADER = "tuning_reduce.cuh"
ROW = (
    "static constexpr const char *cub::policygen_probe::row<Answers...>::text() [with"
    " Answers = cub::policygen_probe::value<0>; Answers = cub::policygen_probe::value<1>]"
)
SHARED = (
    "static constexpr const char *cub::policygen_probe::shared<First, Count, Facts...>::text()"
    " [with int First = 0; int Count = 1; int Facts = 0; int Facts = 90; int Facts = 1]"
)


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize("text", [ROW, SHARED])
def test_it_is_no_answer(tmp_path, capsys, text):
    source = Path(tree("3.6.0"), "cub/device/dispatch/tuning", HEADER).read_text()
    forged = f'{source}\n__device__ const char* forged = "{text}";\n'
    root = changed_tree(tmp_path, "3.6.0", {HEADER: forged.encode()})
    asked = ("-R", "cub.bench.reduce.sum$", "-a", "T=I8", "--arch", "sm90")
    assert main(["resolve", "-q", "--cub", str(root), *asked]) == 2
    assert "the probe's PTX contains two answers to question 0" in capsys.readouterr().err
