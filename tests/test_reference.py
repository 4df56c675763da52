"""docs/reference/ is what the program says of itself."""

import hashlib
import os
import re
import subprocess
import sys
import tomllib

import pytest

from docs import make_reference
from policygen.model.bindings import Binding
from policygen.proof.lint_rules import RULES
from tests.tiers import slow

PAGES = make_reference.pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_as_the_program_says(name):
    text = (make_reference.FOLDER / name).read_text("utf-8")
    assert text == PAGES[name], f"write it again: {make_reference.REMEDY}"


@slow
def test_the_catalogue_is_as_its_databases_say_and_there_are_no_other_pages():
    files = make_reference.files()
    there = {path.name: path.read_bytes() for path in make_reference.FOLDER.iterdir()}
    assert there == files, f"write it again: {make_reference.REMEDY}"


def test_what_was_measured_again_is_undamaged_and_on_the_page():
    page = (make_reference.FOLDER / "catalogue.md").read_text("utf-8")
    shown = tomllib.loads((make_reference.CATALOGUE / "again.toml").read_text("utf-8"))
    for measured in (*shown["again"], *shown["withheld"]):
        data = (make_reference.CATALOGUE / measured["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == measured["sha256"]
    for measured in shown["again"]:
        assert f"on {measured['date']}" in page
    for measured in shown["withheld"]:
        assert measured["reason"].split(".")[0] in " ".join(page.split())


def test_every_option_and_key_and_rule_has_its_row():
    assert "| `--accept-unconfirmed` |" in PAGES["commands.md"]
    assert "### `policygen db import`" in PAGES["commands.md"]
    for name, field in Binding.model_fields.items():
        assert f"| `{field.alias or name}` |" in PAGES["bindings.md"]
    assert re.findall(r"^## (.*)$", PAGES["lint.md"], re.M) == [rule.name for rule in RULES]


def test_messages_are_printed_with_an_example_that_a_test_met(tmp_path):
    met = tmp_path / "examples"
    plugin = ["-p", "tests.message_examples", "-p", "no:randomly", "-q"]
    tests = "tests/model/test_expression.py"
    command = [sys.executable, "-m", "pytest", *plugin, tests]
    root = make_reference.FOLDER.parent.parent
    subprocess.run(command, env=os.environ | {"EXAMPLES": str(met)}, cwd=root, check=True)
    command = [sys.executable, "-m", "docs.make_reference", "messages", str(met)]
    done = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)
    assert "| '~a' is not an expression: ~ is not allowed in it" in done.stdout
    assert "| Available: {…}, and the architectures that nvcc compiles for. |  |" in done.stdout
    assert done.returncode == 1
    assert "no test of the first tier meets: unknown architecture {…}\n" in done.stderr


def test_a_remedy_is_a_sentence():
    """It begins with a capital letter, a value, or a name that has none."""
    rows = re.findall(r"^\| .* \| (.*) \|$", PAGES["messages.md"], re.M)
    remedies = [row for row in rows if row not in {"", "remedy", "---"}]
    assert len(remedies) >= 300
    names = ("policygen ", "rocPRIM")
    assert [row for row in remedies if row[0].islower() and not row.startswith(names)] == []


def test_links_within_a_page_lead_to_a_heading():
    for name, text in PAGES.items():
        headings = {heading.lower() for heading in re.findall(r"^#+ `?(.*?)`?$", text, re.M)}
        assert set(re.findall(r"\]\(#(\w+)\)", text)) <= headings, name


@slow
def test_the_site_builds_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    root = make_reference.FOLDER.parent.parent
    subprocess.run([*command, "--site-dir", tmp_path / "site"], cwd=root, check=True)
    assert "CUB tuning policies" in (tmp_path / "site/index.html").read_text("utf-8")
