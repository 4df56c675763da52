"""Programs with and without tuned headers are run in turn, and what they print is compared."""

import json
import sys

import pytest

from benchmarks.programs import main

PROGRAM = "#!{python}\nimport pathlib, sys\npathlib.Path({log!r}).open('a').write({side!r})\n"
PRINTS = "print('sorted', sys.argv[1], 'items in', {milliseconds}, 'ms')\n"


def write(tmp_path, pattern="in ([0-9.]+) ms"):
    log = str(tmp_path / "log")
    for side, milliseconds in (("without", 3.0), ("with", 2.0)):
        (tmp_path / side).mkdir()
        program = tmp_path / side / "sort"
        text = PROGRAM + PRINTS
        program.write_text(
            text.format(python=sys.executable, log=log, side=side[-1], milliseconds=milliseconds)
        )
        program.chmod(0o755)
    toml = tmp_path / "programs.toml"
    sides = "".join(f"{side} = {str(tmp_path / side)!r}\n" for side in ("without", "with"))
    toml.write_text(
        f"[[program]]\nname = 'sort'\ncommand = 'sort 100'\n{sides}"
        f"times = {{ whole = '{pattern}' }}\nrates = {{ rate = '{pattern}' }}\n"
    )
    return toml


def test_both_sides_run_in_turn_and_the_ratio_is_printed(tmp_path, capsys):
    out = tmp_path / "times.json"
    assert main([str(write(tmp_path)), "--pairs", "3", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "| sort | whole | 3 | 2 | 1.500 (1.500 to 1.500) |" in printed
    assert "| sort | rate | 0.33333 | 0.5 | 0.667 (0.667 to 0.667) |" in printed
    assert json.loads(out.read_text())["sort"]["whole"] == {"without": [3.0] * 3, "with": [2.0] * 3}
    assert (tmp_path / "log").read_text() == "htthhtth", "each pair in the other order"


def test_a_time_that_is_not_printed_is_an_error(tmp_path):
    with pytest.raises(SystemExit, match="is not in what it prints"):
        main([str(write(tmp_path, "took ([0-9]+)"))])
