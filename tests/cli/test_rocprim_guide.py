"""The part about rocPRIM of docs/guide-kernels.md is run, and prints what it shows."""

import re
import shlex
from pathlib import Path

import pytest

from policygen.cli.main import main
from tests.results.rocprim_files import text_of
from tests.rocprim.places import own_tree
from tests.rocprim.tuned import measured
from tests.test_docs import KERNELS, ROCPRIM, as_pattern

pytestmark = pytest.mark.trees
WARPS = "using_warp_reduce"
RUNS = (
    ("int", 256, 4, 2.0),
    ("int", 256, 8, 1.7),
    ("int", 256, 16, 1.8),
    ("short", 128, 8, 1.0),
    ("short", 256, 8, 1.1),
)


def steps():
    text = KERNELS.read_text("utf-8").partition(ROCPRIM)[2]
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for step in re.split(r"^(?=\$ )", block, flags=re.M)[1:]:
            command, _, output = step.removeprefix("$ policygen ").partition("\n")
            yield command, output


@pytest.mark.hipcc
@pytest.mark.slow
def test_the_guide_prints_what_it_shows(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    own_tree(tmp_path).rename(tmp_path / "rocprim")
    runs = [
        ("rocprim.device_reduce", {"key_type": of}, {"bs": bs, "ipt": ipt, "method": WARPS}, time)
        for of, bs, ipt, time in RUNS
    ]
    Path("reduce.json").write_text(text_of(measured(runs, "gfx90a")))
    count = 0
    for command, output in steps():
        assert main(shlex.split(command)) == 0, command
        told = capsys.readouterr().out.replace(f"{tmp_path.resolve()}/", "")
        told = "".join(f"{row.rstrip()}\n" for row in told.rstrip().splitlines())
        assert as_pattern(output).fullmatch(told), f"{command}\n{told}"
        count += 1
    assert count == 7


def test_the_documents_name_gpus_with_their_own_architecture():
    texts = [path.read_text("utf-8") for path in KERNELS.parent.glob("*.md")]
    named = {pair for text in texts for pair in re.findall(r"Instinct (\w+).* · (gfx\w+)", text)}
    assert named == {("MI210", "gfx90a")}
