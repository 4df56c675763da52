"""The commands of the guides, one after the other as a reader runs them."""

import re
import shlex

import pytest

from policygen.cli.main import main
from tests.test_docs import GUIDES, as_pattern, folder, statuses  # noqa: F401  a fixture
from tests.tiers import slow

STEP = re.compile(r"^```console\n\$ policygen (.*)\n((?:.*\n)*?)```", re.M)


STEPS = {"guide-maintainer.md": 12, "guide-reviewer.md": 4, "guide-user.md": 5}


@slow
@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize("page", GUIDES, ids=[page.stem for page in GUIDES])
def test_each_step_prints_what_is_shown(page, folder, capsys):  # noqa: F811
    steps = STEP.findall(page.read_text("utf-8"))
    assert len(steps) == STEPS[page.name]
    for command, shown in steps:
        arguments = shlex.split(command)
        status = main(arguments)
        printed = capsys.readouterr().out.replace(f"{folder.resolve()}/", "")
        rows = "".join(f"{row.rstrip()}\n" for row in printed.rstrip().splitlines())
        assert as_pattern(shown).fullmatch(rows), f"{command} printed:\n{rows}"
        assert status in statuses(arguments), command
        assert status or "--check" not in arguments, command
