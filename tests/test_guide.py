"""The guide's commands, one after the other as a reader runs them; and the messages it explains."""

import re
import shlex

import pytest

from policygen.cli.main import main
from tests.test_docs import GUIDES, ROOT, as_pattern, folder, statuses  # noqa: F401  a fixture
from tests.tiers import slow

STEP = re.compile(r"^```console\n\$ policygen (.*)\n((?:.*\n)*?)```", re.M)


STEPS = {"guide.md": 8, "guide-use.md": 2, "guide-review.md": 4, "guide-release.md": 4}


def test_there_is_a_guide_for_each_reader():
    assert {page.name for page in GUIDES} == STEPS.keys()


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


def test_the_messages_that_are_explained_are_those_of_the_program():
    text = (ROOT / "docs/troubleshooting.md").read_text("utf-8")
    messages = re.findall(r"^\| `(.*?)` \|", text, re.M)
    assert len(messages) > 15
    source = " ".join(
        path.read_text("utf-8") for path in sorted((ROOT / "policygen").rglob("*.py"))
    )
    # Long messages are several literals; names in them are fields of an f-string.
    plain = re.sub(r'"\s*\n\s*f?"', "", source)
    plain = re.sub(r"\{(wanted|called|description)\}", "policygen/review/1", plain)
    plain = plain.replace("{CALLED[searched_library]}", "CUB").replace("{part.suite}", "sid")
    plain = plain.replace("{part.package} {part.version}", "librocprim-dev ...")
    for name in ("nvcc", "NVBench", "cuRAND"):
        plain = re.sub(rf'MissingToolError\(\s*"{name}"', f"{name} is missing ", plain)
    plain += plain.replace("no CUB tree", "no rocPRIM tree")
    missing = [message for message in messages if message not in plain]
    assert missing == []
