"""What `docs/style.md` says of words, as far as a program can hold it."""

import re
from pathlib import Path

import pytest

from benchmarks import house

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
STYLE = ROOT / "docs/style.md"
WIDEST = 120
"""Columns of a line of documentation; tables and code may be wider."""


def sources():
    """Modules, pages, and the templates that a user fills in."""
    yield from sorted((ROOT / "policygen").rglob("*.py"))
    yield from (page for page in PAGES if page != STYLE)
    yield from sorted((ROOT / "docs/reference").glob("*.md"))
    yield from sorted((ROOT / "templates/own").glob("*.toml.j2"))
    yield ROOT / "action.yml"


def test_no_phrase_comes_back():
    """In strings, docstrings, comments, names and pages."""
    puzzles = {
        str(path.relative_to(ROOT)): phrases
        for path in sources()
        if (phrases := house.phrases(path.read_text("utf-8")))
    }
    assert puzzles == {}


def test_the_page_has_an_example_of_each_phrase():
    rows = table(STYLE.read_text("utf-8"), "Phrases that do not come back")
    assert len(rows) >= 15
    for _, example, instead in rows:
        assert house.phrases(example), example
        assert house.phrases(instead) == []


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ('"the plan is"\n    f" told of it"', ["told"]),
        ("it was not\n    # asked", ["was not asked"]),
        ("None where = 3; it is no longer there; there is no label; ~nobody", []),
        ("cannot be told apart; roles of which CUB uses the size", []),
    ],
)
def test_phrases_are_found_across_lines(text, phrases):
    assert house.phrases(text) == phrases


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
    assert len(pairs) >= 30
    assert not pairs.keys() & set(pairs.values())
    words = [word for word, _ in table(text, "Glossary")]
    assert len(words) >= 60
    assert words == sorted(set(words))
    assert {"benchmark", "workload", "variant", "base", "family", "entry", "binding"} <= set(words)
