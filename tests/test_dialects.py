"""Only `headers/` and `rocprim/` know how a tuning is spelled: and no other line asks for it."""

import re
from collections import Counter
from pathlib import Path

import policygen

PACKAGE = Path(policygen.__file__).parent
KNOWS = {"headers", "rocprim", "bindings"}
# Lines that name a dialect all the same; a number can only become smaller.
LEFT = {
    "model": 2,  # the words that documents have, and which of them has returns
    "trees": 1,  # what a manifest's rule finds
    "report": 1,  # a heading
}
# "selectors", 'specializations', "in the selector dialect"
_NAMED = re.compile(r"[\"'](?:selectors|specializations)[\"']|(?:selector|specialization) dialect")


def test_dialects_are_named_in_fewer_and_fewer_places():
    found = Counter(
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if _NAMED.search(line)
    )
    assert {name: n for name, n in found.items() if name not in KNOWS} == LEFT


# `if cub.library == "rocprim"`, `library != "cub"`, `library in {"cub"}`: a row of a table says it.
_ASKED = re.compile(r"\blibrary\s*(?:[!=]=|(?:not )?in\b|is\b)\s*[({\[]?\s*[\"']")


def test_no_line_asks_which_library_it_is():
    assert [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in KNOWS
        for line in path.read_text(encoding="utf-8").splitlines()
        if _ASKED.search(line)
    ] == []


def test_a_line_that_asks_for_a_library_is_seen():
    for line in ('if cub.library != "cub":', "if library in {'rocprim'}:", 'x.library == "cub"'):
        assert _ASKED.search(line)
