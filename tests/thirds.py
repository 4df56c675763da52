"""The slow tier: which cases are in it, in which third, and which of them CI runs for a commit."""

import hashlib
import subprocess
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

CASES = 1
"""So many cases of one test are in the slow tier; further ones are thorough."""
COUNT = 3
MORE = 20
"""So many slow tests CI adds to its third, at most, from the packages that were touched."""
COMMITS = 10
"""So many commits back CI looks for packages that were touched."""


def further(names: Iterable[str]) -> set[str]:
    """Of slow tests the further cases, picked by name alone: the mechanism is that of the first."""
    cases = defaultdict(list)
    for name in names:
        cases[name.partition("[")[0]].append(name)
    return {name for each in cases.values() for name in sorted(each, key=_number)[CASES:]}


def third_of(name: str) -> int:
    """1, 2 or 3, by a test's name alone: it does not change with other tests."""
    return _number(name) % COUNT + 1


def package_of(path: str) -> str | None:
    """The package that a file or a test belongs to: `planning` for tests/planning/test_plan.py."""
    match path.split("::", maxsplit=1)[0].split("/"):
        case ["policygen" | "tests", package, _, *_]:
            return package
    return None


def for_commit(names: Iterable[str], tree: str, paths: Iterable[str]) -> set[str]:
    """Of slow tests those that CI runs for a commit, by its tree's hash and the files touched.

    The third that the tree picks, and up to MORE others of packages that were touched; the tree
    picks these, too, so that another commit runs others.
    """
    found = list(names)
    picked = third_of(tree)
    touched = {package_of(path) for path in paths} - {None}
    others = [one for one in found if third_of(one) != picked and package_of(one) in touched]
    others.sort(key=lambda one: _number(f"{tree} {one}"))
    return {one for one in found if third_of(one) == picked} | set(others[:MORE])


def chosen(names: Collection[str], asked: str, folder: Path) -> set[str]:
    """Of slow tests those that are asked for: all, those of a third, or those of CI."""
    if not asked:
        return set(names)
    if asked in {str(one + 1) for one in range(COUNT)}:
        return {one for one in names if third_of(one) == int(asked)}
    if asked != "commit":
        raise ValueError(f"THIRD={asked}: it is 1, 2, 3 or commit")
    tree = _git(folder, "rev-parse", "HEAD^{tree}")
    paths = _git(folder, "log", f"-{COMMITS}", "--first-parent", "-m", "--name-only", "--format=")
    return for_commit(names, tree.strip(), paths.splitlines())


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest())
