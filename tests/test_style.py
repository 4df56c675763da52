"""What `docs/style.md` says of words, as far as a program can hold it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
STYLE = ROOT / "docs/style.md"
# Sentences without a subject, and riddles that readers stumbled over.
PUZZLES = re.compile(
    r"\b(?:in its own manner|none is none|the same; none|dumps of nothing|was not asked"
    r"|were not asked|is not asked)\b"
)
WIDEST = 120
"""Columns of a line of documentation; tables and code may be wider."""


def messages():
    """The literals of a module, but for docstrings."""
    for path in sorted((ROOT / "policygen").rglob("*.py")):
        parsed = ast.parse(path.read_text("utf-8"))
        docs = {
            id(node.value)
            for node in ast.walk(parsed)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(parsed):
            if not isinstance(node, ast.Constant) or id(node) in docs:
                continue
            if isinstance(node.value, str):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def test_no_message_is_a_puzzle():
    assert [place for place, text in messages() if PUZZLES.search(text)] == []


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_no_page_is_a_puzzle(page):
    text = page.read_text("utf-8")
    if page != STYLE:
        assert PUZZLES.findall(text) == []


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_lines_of_documentation_wrap(page):
    prose = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    rows = [row for row in prose.splitlines() if not row.startswith(("|", "!["))]
    assert [row for row in rows if len(row) > WIDEST] == []


def test_no_pattern_repeats_a_group_possessively():
    """Python 3.11.0 to 3.11.4 miss matches of such patterns, and Debian 12 has 3.11.2."""
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "policygen").rglob("*.py"))
        for number, row in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if re.search(r"""\)[*+?]\+|\)\{[\d,]+\}\+|\(\?>""", row)
    ]
    assert found == []


def table(text, heading):
    """The rows of the first table below a heading."""
    rows = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if row[:1] == "|"]
    return cells[2:]


def test_the_page_has_ten_rules_thirty_pairs_and_a_sorted_glossary():
    text = STYLE.read_text("utf-8")
    assert re.findall(r"^(\d+)\. \*\*", text, re.M) == [str(n) for n in range(1, 11)]
    pairs = dict(table(text, "Before and after"))
    assert len(pairs) == 30
    assert not pairs.keys() & set(pairs.values())
    words = [word for word, _ in table(text, "Glossary")]
    assert len(words) >= 60
    assert words == sorted(set(words))
    assert {"benchmark", "workload", "variant", "base", "family", "entry", "binding"} <= set(words)
